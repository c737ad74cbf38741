"""A site's overlay from a good node: it loads, its own node meets it, and a node with less does not."""

import json
import sys
from pathlib import Path

import pytest

from nodeready import cli
from nodeready.baseline import BaselineError, load
from nodeready.simulate.write import simulate
from nodeready.site_overlay import SETTINGS, TAKEN

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

NODE_TYPES = ["sxm", "sxm-4", "sxm-1", "pcie", "nvl", "h200-sxm", "h200-nvl"]


@pytest.fixture
def nodeready(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        status = cli.main([str(a) for a in arguments])
        out = capsys.readouterr()
        return status, out.out, out.err

    return run


@pytest.fixture
def drafted(nodeready, healthy):
    """The overlay of a healthy sxm node that was judged at tier quick, as a file."""
    assert nodeready("judge", healthy, "--node-type", "sxm", "--tier", "quick")[0] == 0
    status, out, err = nodeready("baseline", "from", "reports/node/latest")
    assert (status, err) == (0, "")
    assert out.splitlines()[-1].startswith("site-sxm.toml: a draft")
    return Path("site-sxm.toml").absolute()


def judged(judge, folder, drafted, **options):
    return judge(folder, baseline=str(drafted), tier="quick", **options)


@pytest.mark.parametrize("node_type", NODE_TYPES)
def test_the_overlay_of_every_node_type_loads_and_takes_its_own_node(nodeready, judge, tmp_path, node_type):
    simulate(node_type, tmp_path / "node", [], {}, 3)
    status, out, err = nodeready("baseline", "from", "node", "--node-type", node_type, "--out", "mine.toml")
    assert (status, err) == (0, "")
    found, _ = judge(tmp_path / "node", node_type, baseline="mine.toml")
    assert found["acceptance"] == "accepted"
    assert found["baseline"]["status"] == "draft"
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".")], "what was written beside is gone"
    assert "memory.installed: required >= " in out


def test_the_draft_says_where_it_is_from(drafted):
    text = drafted.read_text()
    table = tomllib.loads(text)
    assert (table["extends"], table["status"]) == ("sxm@2026.12", "draft")
    entries = {key: entry for key, entry in table.items() if "." in key}
    assert {"memory.installed", "network.ports-active", "driver.version"} <= set(entries)
    assert "." in entries["consistency.vbios/version"]["recommended"]["equals"]
    run = Path("reports/node/latest").resolve().name
    for entry in entries.values():
        assert entry["source"] == "site"
        assert run in entry["why"]
        assert "host node" in entry["why"]
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if line.startswith('["'):
            assert lines[number - 1].startswith("#"), "each entry says what was read"


@pytest.mark.parametrize(
    ("fault", "key"),
    [
        ("dimm-missing", "memory.installed"),
        ("dimm-missing", "memory.dimms/count"),
        ("drive-dead", "storage.drives/count"),
        ("supply-missing", "power.supplies/count"),
        ("one-port-down", "network.ports-active"),
        ("gpu-missing-since-boot", "gpu.count"),
    ],
)
def test_a_node_with_less_is_rejected_by_it(judge, drafted, tmp_path, fault, key):
    simulate("sxm", tmp_path / "less", [fault], {}, 0)
    found, rows = judged(judge, tmp_path / "less", drafted)
    assert found["acceptance"] == "rejected"
    assert rows[key, "node"]["verdict"] == "fail"


def test_the_slot_list_names_the_gpu_that_no_log_names(judge, drafted, healthy, tmp_path):
    simulate("sxm", tmp_path / "less", ["gpu-missing-since-boot"], {}, 0)
    slots = tomllib.loads(drafted.read_text())["settings"]["gpu.slots"]
    whole, _ = judge(healthy, tier="quick")
    assert slots == [gpu["bus_id"] for gpu in whole["node"]["gpus"]]
    _, without = judge(tmp_path / "less", tier="quick")
    found, rows = judged(judge, tmp_path / "less", drafted)
    listed = {g["bus_id"] for g in judge(tmp_path / "less", tier="quick")[0]["node"]["gpus"]}
    (index,) = [i for i, slot in enumerate(slots) if slot not in listed]
    for key in ("gpu.count", "pcie.gpu-present"):
        assert "slot unknown" in without[key, "node"]["message"]
        assert f"missing: gpu{index} ({slots[index]}" in rows[key, "node"]["message"]
    assert [gpu["bus_id"] for gpu in found["node"]["gpus"]] == slots
    blocked = rows["gpu.memory", f"gpu{index}"]
    assert blocked["verdict"] == "unverified"
    assert "gpu.count@node" in blocked["blocked_by"]


def test_a_gpu_beside_the_slots_fails_although_the_number_is_right(judge, drafted, healthy):
    text = drafted.read_text()
    first = tomllib.loads(text)["settings"]["gpu.slots"][0]
    drafted.write_text(text.replace(f'"{first}"', '"0000:01:00.0"'))
    found, rows = judged(judge, healthy, drafted)
    assert found["acceptance"] == "rejected"
    for key in ("gpu.count", "pcie.gpu-present"):
        assert f"{first} stands in no slot" in rows[key, "node"]["message"]
        assert "missing: gpu0 (0000:01:00.0)" in rows[key, "node"]["message"]


@pytest.mark.parametrize(
    ("slots", "says"),
    [
        ('["0000:18:00.0"]', "holds 1 bus ids and gpu.count is 8"),
        ('["slot 4"]', "'slot 4' is no bus id"),
        (str([f"0000:{bus}:00.0" for bus in (10, 10, 11, 12, 13, 14, 15, 16)]).replace("'", '"'), "twice"),
        ("[18]", "write text"),
    ],
)
def test_slot_lists_that_are_refused(tmp_path, slots, says):
    path = tmp_path / "site.toml"
    path.write_text(f'extends = "sxm@2026.12"\n[settings]\n"gpu.slots" = {slots}\n')
    with pytest.raises(BaselineError, match=says):
        load("sxm", str(path))


def test_a_setting_that_the_root_does_not_declare_is_refused(tmp_path):
    path = tmp_path / "site.toml"
    path.write_text('extends = "sxm@2026.12"\n[settings]\n"gpu.slot" = "0000:18:00.0"\n')
    with pytest.raises(BaselineError, match="did you mean gpu.slots"):
        load("sxm", str(path))


def test_slots_are_put_into_bus_order_in_any_spelling():
    base = load("sxm-4", "", ["gpu.count=2", "gpu.slots=00000000:A1:00.0, 0000:18:00.0"])
    assert base.tables["gpu.slots"] == ("0000:18:00.0", "0000:a1:00.0")


def test_shipped_baselines_list_no_slots():
    assert all(load(name).settings["gpu.slots"] == "" for name in NODE_TYPES)


def test_a_rejected_run_is_refused_with_its_failures(nodeready, tmp_path):
    simulate("sxm", tmp_path / "sick", ["row-remap-failure"], {}, 0)
    assert nodeready("judge", "sick", "--node-type", "sxm")[0] == 1
    for run in ("reports/sick/latest", "sick"):
        status, out, err = nodeready("baseline", "from", run)
        assert (status, out) == (4, "")
        assert "rejected" in err
        assert "health.row-remap-failure on gpu" in err
    assert not list(tmp_path.glob("*.toml"))


def test_an_incomplete_run_is_warned_of_and_leaves_the_unmeasured_out(nodeready, tmp_path):
    simulate("sxm", tmp_path / "blind", ["dimm-size-unknown"], {}, 0)
    assert nodeready("judge", "blind", "--node-type", "sxm")[0] == 10
    status, out, _ = nodeready("baseline", "from", "reports/blind/latest")
    assert status == 0
    assert "not taken: memory.installed: " in out
    assert "warning: the node was incomplete" in out
    assert "memory.installed" not in tomllib.loads(Path("site-sxm.toml").read_text())


def test_nothing_that_exists_is_overwritten(nodeready, drafted):
    before = drafted.read_bytes()
    status, _, err = nodeready("baseline", "from", "reports/node/latest")
    assert status == 4
    assert "there already" in err
    assert drafted.read_bytes() == before
    Path("dangling.toml").symlink_to("nowhere.toml")
    assert nodeready("baseline", "from", "reports/node/latest", "--out", "dangling.toml")[0] == 4
    assert not Path("nowhere.toml").exists()


def test_what_the_run_was_judged_by_is_kept_with_its_reason(nodeready, judge, tmp_path):
    simulate("sxm-4", tmp_path / "half", [], {"gpu.count": "2"}, 0)
    options = ("--set", "gpu.count=2", "--set", "power.limit=650 W", "--set", "container.image=ours:1")
    assert nodeready("judge", "half", "--node-type", "sxm-4", *options)[0] == 0
    assert nodeready("baseline", "from", "reports/half/latest/results.json")[0] == 0
    table = tomllib.loads(Path("site-sxm-4.toml").read_text())
    assert table["gpu.count"]["required"] == {"equals": 2}
    assert "--set power.limit=650 W" in table["power.limit"]["loosened_because"]
    assert table["settings"]["container.image"] == "ours:1"
    assert judge(tmp_path / "half", "sxm-4", baseline="site-sxm-4.toml")[0]["acceptance"] == "accepted"


def test_a_damaged_results_file_is_no_word_of_a_good_node(nodeready, healthy):
    assert nodeready("judge", healthy, "--node-type", "sxm")[0] == 0
    folder = Path("reports/node/latest")
    (folder / "results.json").write_text("{")
    status, _, err = nodeready("baseline", "from", folder)
    assert status == 4
    assert "is damaged" in err


def test_text_of_the_node_cannot_write_into_the_file(nodeready, healthy_files, folder_of):
    release = 'ID=ubuntu\nVERSION_ID="22.04\\"]\x1b\u202e"\n'.encode()
    folder = folder_of({**healthy_files, "etc/os-release": release})
    nodeready("baseline", "from", folder, "--node-type", "sxm")
    text = Path("site-sxm.toml").read_text()
    assert all(line.isprintable() for line in text.splitlines())
    tomllib.loads(text)


def test_every_row_of_the_table_is_a_declared_key():
    for node_type in NODE_TYPES:
        base = load(node_type)
        assert {take.key for take in TAKEN} <= set(base.demands)
        assert set(SETTINGS) <= set(base.settings)


def test_a_run_in_service_is_tried_by_the_bounds_it_was_judged_by(nodeready, tmp_path):
    simulate("sxm", tmp_path / "old", ["sram-lifetime-1"], {}, 0)
    assert nodeready("judge", "old", "--node-type", "sxm")[0] == 1
    assert nodeready("baseline", "from", "reports/old/latest")[0] == 4
    assert nodeready("judge", "old", "--node-type", "sxm", "--in-service")[0] == 0
    status, out, _ = nodeready("baseline", "from", "reports/old/latest")
    assert status == 0
    assert "warning: the run was judged by the bounds for nodes in service" in out


def test_a_difference_is_told_under_the_overlay(nodeready, drafted, tmp_path):
    simulate("sxm", tmp_path / "less", ["one-port-down"], {}, 0)
    assert nodeready("judge", "less", "--node-type", "sxm")[0] == 0
    first = Path("reports/less/latest").resolve()
    status, out, _ = nodeready("judge", first, "--baseline", drafted)
    assert status == 1
    told = json.loads(Path("reports/less/latest/difference.json").read_text())
    (row,) = [row for row in told["changed"] if row["key"] == "network.ports-active"]
    assert (row["from"], row["to"], row["why"]) == ("pass", "fail", ["other bound"])
    assert told["baseline"]["after"]["name"] == "site-sxm"
    *_, last = out.splitlines()
    assert last.startswith("REJECTED")
    assert "worse: network.ports-active on node: pass -> fail (other bound: required >= 1 -> >= 9" in " ".join(
        out.split()
    )
