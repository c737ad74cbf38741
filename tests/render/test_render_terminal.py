import pytest

from nodeready.render.terminal import summary


def said(results, **options):
    return "\n".join(summary(results, **options))


def test_accepted_at_quick_says_nothing_of_throughput(sample):
    last = summary(sample.results())[-1]
    assert last == "ACCEPTED at tier quick on gpu-node-a12 (nothing is said of throughput)."


def test_accepted_under_load_counts_what_was_judged(sample):
    last = summary(sample.results(tier="acceptance"))[-1]
    assert last == "ACCEPTED at tier acceptance on gpu-node-a12: all 78 demands judged."


def test_a_rejection_names_part_check_and_remedy_last(sample):
    remap = sample.finding("health.row-remap-pending", "gpu6", "fail", remedy="Reset the GPU, then run the gate again")
    last = summary(sample.results(sample.with_findings(remap), acceptance="rejected", exit_status=1))[-1]
    assert last == (
        "REJECTED at tier quick on gpu-node-a12: gpu6 (0000:9b:00.0) health.row-remap-pending. "
        "Reset the GPU, then run the gate again."
    )


def test_further_failures_are_counted_in_the_last_line(sample):
    assert "gpu2 (0000:3d:00.0) pcie.gpu-link-width, and 2 more failures. Reseat" in summary(sample.rejected())[-1]


def test_failures_come_first_with_bus_id_serial_observed_demanded_and_remedy(sample):
    text = said(sample.rejected())
    assert "gpu3 (0000:4e:00.0, serial 165322304E317, slot 4): 8, demanded 16" in text
    assert text.index("FAILED (3)") < text.index("NOT MEASURED (9)") < text.index("ADVISORIES (1)")
    assert "-> Reseat the GPU tray; look for bent pins in the connector." in text


def test_what_one_cause_hides_is_one_block(sample):
    text = said(sample.rejected())
    assert text.count("blocked by driver.responds@node") == 1
    assert "blocked by driver.responds@node (8)\n    nvlink.links-active (gpu0-gpu7)" in text
    assert "ibstat: command not found (1, measured if possible)" in text


def test_incomplete_says_how_many_and_the_first_reason(sample):
    reading = sample.finding("health.xid", "node", "unverified", message="dmesg: permission denied")
    hidden = sample.finding("driver.version", "node", "unverified", blocked_by=["driver.responds@node"])
    results = sample.results(sample.with_findings(hidden, reading), acceptance="incomplete", exit_status=10)
    assert summary(results)[-1] == (
        "INCOMPLETE at tier quick on gpu-node-a12: 2 of 79 demands could not be judged; "
        "first: health.xid on node because dmesg: permission denied."
    )


def test_what_no_check_judged_is_listed_and_said(sample):
    left = [{"check": "memory.installed", "key": "memory.installed", "subject": "node"}]
    found = [f for f in sample.healthy_findings() if f["key"] != "memory.installed"]
    results = sample.results(found, unjudged=left, acceptance="incomplete", exit_status=10, subset=True)
    assert "memory.installed (node)" in said(results)
    assert summary(results)[-1] == (
        "INCOMPLETE at tier quick on gpu-node-a12: 1 of 78 demands could not be judged; first: memory.installed "
        "on node because the check was deselected, was skipped or judged nothing. subset: not an acceptance"
    )


def test_advisories_are_counted_and_the_unmeasured_named(sample):
    found = [f for f in sample.rejected()["findings"] if f["verdict"] != "fail" and not f["blocked_by"]]
    last = summary(sample.results(found, acceptance="accepted-with-advisories", tier="acceptance"))[-1]
    assert last == (
        "ACCEPTED WITH ADVISORIES at tier acceptance on gpu-node-a12 "
        "(1 advisory; 1 demand not measured; first: memory.installed on node)."
    )


def test_a_busy_node_is_neither_accepted_nor_rejected(sample):
    left = [{"check": "gpu.count", "key": "gpu.count", "subject": "node"}]
    results = sample.results(
        [],
        unjudged=left,
        acceptance="incomplete",
        exit_status=11,
        tier="acceptance",
        busy="gpu2 runs pid 4711 (python)",
    )
    assert summary(results)[-1].startswith(
        "BUSY at tier acceptance on gpu-node-a12: gpu2 runs pid 4711 (python). Nothing was run;"
    )


def test_a_busy_node_that_was_judged_all_the_same_has_its_verdict(sample):
    last = summary(sample.rejected(busy="gpu2 runs pid 4711 (python)"))[-1]
    assert last.startswith("REJECTED at tier quick")


@pytest.mark.parametrize(("status", "words"), [(2, "The run was interrupted."), (3, "internal error.")])
def test_a_run_that_ended_early_says_so(sample, status, words):
    assert summary(sample.results([], acceptance="incomplete", exit_status=status))[-1].endswith(words)


def test_draft_overrides_and_report_only_are_said(sample):
    results = sample.results(overrides={"gpu.count": 4}, report_only=True)
    results["baseline"]["status"] = "draft"
    text = said(results, width=150)
    assert "sxm@2026.12 (draft)" in text
    assert "overridden: gpu.count=4" in text
    assert "report only" in text


def test_the_folder_of_the_reports_is_named(sample):
    assert "report: reports/a12/latest/certificate.html" in summary(sample.results(), folder="reports/a12/latest")


def test_colour_is_only_added_when_asked_for(sample):
    assert "\x1b" not in said(sample.rejected())
    assert summary(sample.rejected(), colour=True)[-1].startswith("\x1b[31;1mREJECTED")


@pytest.mark.parametrize("width", [60, 100])
def test_long_lists_are_folded_into_sixty_lines_of_the_width(sample, width):
    found = sample.large(400)["findings"]
    found += [sample.finding(f"health.odd-{i}", "node", "fail", message="m" * 3000) for i in range(30)]
    found += [sample.finding(f"health.dim-{i}", "node", "unverified", message=f"reason {i} " * 99) for i in range(30)]
    found += [sample.finding(f"health.low-{i}", "node", "advisory", value="v" * 900) for i in range(30)]
    results = sample.results(found, acceptance="rejected", exit_status=1)
    lines = summary(results, width=width, folder="reports")
    assert len(lines) <= 60
    assert max(map(len, lines[:-1])) <= width
    assert sum("see certificate.html" in line for line in lines) == 3


def test_the_count_of_what_is_folded_is_right(sample):
    found = [sample.finding(f"health.odd-{i}", "node", "fail") for i in range(30)]
    lines = summary(sample.results(found, acceptance="rejected", exit_status=1))
    shown = sum(line.startswith("  health.odd-") for line in lines)
    assert f"  and {30 - shown} more demands: see certificate.html" in lines


def test_many_parts_of_one_demand_are_folded_by_name(sample):
    found = [sample.finding("network.port", f"port:mlx5_{i}", "fail") for i in range(40)]
    text = said(sample.results(found, acceptance="rejected", exit_status=1))
    shown = text.count("demanded 1")
    assert 8 <= shown < 40
    assert f"and {40 - shown} more: port:mlx5_{shown}" in text
