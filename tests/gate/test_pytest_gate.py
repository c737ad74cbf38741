"""`pytest checks/ --node-type sxm` as an operator runs it."""

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import jsonschema
import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = {"results.json", "certificate.html", "report.html", "junit.xml", "node.prom", "capture.tar.gz"}


def run_folder(process):
    return Path(re.search(r"^report: (.+)/certificate.html$", process.stdout, re.MULTILINE)[1])


def test_a_healthy_node_is_accepted(gate_run, healthy):
    process, results = gate_run("--node-type", "sxm", "--evidence", healthy)
    assert process.returncode == 0, process.stdout + process.stderr
    assert (results["acceptance"], results["exit_status"]) == ("accepted", 0)
    assert results["coverage"]["planned"] == results["coverage"]["judged"] > 200
    folder = run_folder(process)
    assert {p.name for p in folder.iterdir()} == FILES
    assert json.loads((folder.parent / "latest/results.json").read_text()) == results
    last = process.stdout.strip().splitlines()[-1]
    assert last.startswith("ACCEPTED")
    assert "tier acceptance" in last


@pytest.mark.parametrize(
    "document", ["nvidia-smi-q-xml/01-h100-hw.txt", "nvidia-smi-q/09-h100x8-535-powerbrake-all.txt"]
)
def test_results_keep_the_published_schema(judge, captures, document):
    schema = json.loads((ROOT / "src/nodeready/render/results.schema.json").read_text())
    results, _ = judge(captures / document)
    jsonschema.validate(json.loads(json.dumps(results)), schema)


def test_the_findings_are_the_same_without_pytest(gate_run, healthy_files, folder_of, judge):
    files = {**healthy_files}
    files["nvidia-smi_-q_-x"] = files["nvidia-smi_-q_-x"].replace(b"<current_ecc>Enabled", b"<current_ecc>Disabled", 1)
    del files["dmesg"], files["nvidia-smi_-q"]
    folder = folder_of(files)
    _, by_pytest = gate_run("--node-type", "sxm", "--evidence", folder)
    by_engine, _ = judge(folder)
    assert by_pytest["findings"] == by_engine["findings"]
    assert by_pytest["acceptance"] == by_engine["acceptance"] == "rejected"
    assert by_pytest["unjudged"] == by_engine["unjudged"] == []


@pytest.mark.parametrize(
    "subset",
    [
        ["-k", "memory"],
        ["--deselect", "checks/test_memory.py"],
        ["--ignore", "checks/test_memory.py"],
        ["-k", "not gpu3"],
        ["-k", "not toolkit and not driver_branch"],
        ["--maxfail=1", "-k", "link"],
    ],
    ids=lambda s: " ".join(s),
)
def test_a_part_of_the_checks_is_never_an_acceptance(gate_run, healthy, subset):
    process, results = gate_run("--node-type", "sxm", "--evidence", healthy, *subset)
    assert process.returncode == 10
    assert results["acceptance"] == "incomplete"
    assert process.stdout.strip().splitlines()[-1].endswith("subset: not an acceptance")


def test_one_file_is_never_an_acceptance(gate_run, healthy):
    process, results = gate_run("--node-type", "sxm", "--evidence", healthy, first=("checks/test_memory.py",))
    assert (process.returncode, results["acceptance"]) == (10, "incomplete")


def test_no_test_selected_keeps_pytests_status(gate_run, healthy):
    process, _ = gate_run("--node-type", "sxm", "--evidence", healthy, "-k", "no_such_check_at_all")
    assert process.returncode == 5


def test_stopping_at_the_first_failure_is_no_acceptance(gate_run, healthy_files, folder_of):
    files = {
        **healthy_files,
        "proc/meminfo": healthy_files["proc/meminfo"].replace(b"MemTotal:", b"MemTotal: 1 kB\nOther:"),
    }
    process, results = gate_run("--node-type", "sxm", "--evidence", folder_of(files), "-x")
    assert process.returncode in (1, 10)
    assert results["acceptance"] in ("rejected", "incomplete")
    assert results["unjudged"]


def test_an_unverified_check_under_x_is_incomplete(gate_run, healthy_files, folder_of):
    files = {name: data for name, data in healthy_files.items() if name != "docker_info"}
    process, results = gate_run("--node-type", "sxm", "--evidence", folder_of(files), "-x")
    assert (process.returncode, results["acceptance"]) == (10, "incomplete")


def test_a_crash_inside_a_check_leaves_the_node_incomplete(gate_run, healthy, tmp_path):
    for path in (ROOT / "checks").glob("*.py"):
        (tmp_path / "checks").mkdir(exist_ok=True)
        (tmp_path / "checks" / path.name).write_text(path.read_text())
    power = tmp_path / "checks/test_power.py"
    power.write_text(power.read_text().replace("    expect(", "    raise RuntimeError(gpu.subject)\n    expect(", 1))
    process, results = gate_run("--node-type", "sxm", "--evidence", healthy, first=(tmp_path / "checks",))
    assert (process.returncode, results["acceptance"]) == (10, "incomplete")
    assert {u["key"] for u in results["unjudged"]} == {"power.limit"}
    assert "RuntimeError: gpu0" in results["unjudged"][0]["error"]
    assert "RuntimeError: gpu0" in process.stdout


def copied_checks(tmp_path):
    """The project's checks in a folder that a test may change."""
    (tmp_path / "checks").mkdir()
    for path in (ROOT / "checks").glob("*.py"):
        (tmp_path / "checks" / path.name).write_text(path.read_text())
    return tmp_path / "checks"


def test_a_check_that_raises_after_a_pass_has_judged_nothing(gate_run, healthy, tmp_path):
    checks = copied_checks(tmp_path)
    power, line = checks / "test_power.py", '    expect("power.limit", gpu.power_limit)\n'
    assert line in power.read_text()
    power.write_text(power.read_text().replace(line, f"{line}    assert gpu.subject != 'gpu2'\n"))
    process, results = gate_run("--node-type", "sxm", "--evidence", healthy, first=(checks,))
    assert (process.returncode, results["acceptance"]) == (10, "incomplete")
    assert [(u["key"], u["subject"]) for u in results["unjudged"]] == [("power.limit", "gpu2")]


def test_a_failing_test_that_is_no_check_is_not_explained_away(gate_run, healthy, tmp_path):
    checks = copied_checks(tmp_path)
    (checks / "test_site.py").write_text("def test_site():\n    assert False\n")
    process, results = gate_run("--node-type", "sxm", "--evidence", healthy, first=(checks,))
    assert process.returncode == 1
    assert (results["acceptance"], results["exit_status"]) == ("accepted", 1)
    assert "test_site" in results["foreign_failure"]
    assert "test_site" in process.stdout.strip().splitlines()[-1]


def test_an_interrupt_is_no_acceptance(healthy, tmp_path):
    checks = tmp_path / "checks"
    checks.mkdir()
    (checks / "test_power.py").write_text(
        textwrap.dedent(
            '''
            import os, signal
            from nodeready.check import check

            @check("power.limit", remedy="r")
            def test_power(gpu, expect):
                """Interrupts."""
                os.kill(os.getpid(), signal.SIGINT)
            '''
        )
    )
    arguments = [
        "--node-type",
        "sxm",
        "--evidence",
        str(healthy),
        "--report-dir",
        str(tmp_path / "r"),
        "-p",
        "no:cacheprovider",
    ]
    process = subprocess.run(
        [sys.executable, "-m", "pytest", str(checks), *arguments], capture_output=True, text=True, cwd=ROOT, timeout=60
    )
    assert process.returncode == 2
    (found,) = [p for p in (tmp_path / "r").glob("*/*/results.json") if p.parent.name != "latest"]
    results = json.loads(found.read_text())
    assert (results["acceptance"], results["exit_status"]) == ("incomplete", 2)


@pytest.mark.parametrize("where", ["before", "after", "equals"])
def test_a_hostile_conftest_inside_the_evidence_is_not_imported(gate_run, folder_of, captures, where):
    folder = folder_of(
        {
            "nvidia-smi_-q_-x.xml": (captures / "nvidia-smi-q-xml/01-h100-hw.txt").read_bytes(),
            "conftest.py": "raise SystemExit('evidence was imported')\n",
            "test_evil.py": "raise SystemExit('evidence was imported')\n",
        }
    )
    options = ["--node-type", "sxm", "--evidence", folder]
    if where == "equals":
        options = ["--node-type=sxm", f"--evidence={folder}"]
    process, results = gate_run(
        first=["checks/", *map(str, options)] if where == "after" else [*map(str, options), "checks/"]
    )
    assert process.returncode == 10, process.stdout + process.stderr
    assert results["acceptance"] == "incomplete"
    assert "evidence was imported" not in process.stdout + process.stderr


@pytest.mark.parametrize("where", ["before", "after", "equals"])
def test_a_hostile_pytest_ini_inside_the_evidence_is_not_obeyed(gate_run, folder_of, captures, where):
    folder = folder_of(
        {
            "nvidia-smi_-q_-x.xml": (captures / "nvidia-smi-q-xml/01-h100-hw.txt").read_bytes(),
            "pytest.ini": "[pytest]\naddopts = -p no_such_plugin\n",
        }
    )
    options = ["--node-type", "sxm", "--evidence", folder]
    if where == "equals":
        options = ["--node-type=sxm", f"--evidence={folder}"]
    process, results = gate_run(
        first=["checks/", *map(str, options)] if where == "after" else [*map(str, options), "checks/"]
    )
    assert process.returncode == 10, process.stdout + process.stderr
    assert results["acceptance"] == "incomplete"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ([], "--node-type is missing.*sxm"),
        (["--node-type", ""], "--node-type is missing.*sxm"),
        (["--node-type", "no-such-type"], "no node type 'no-such-type'; known: .*sxm"),
        (["--node-type", "sxm", "--evidence", "no-such-path"], "there is no evidence at no-such-path"),
        (["--node-type", "sxm", "--evidence", "docs"], "no file of a known name"),
        (["--node-type", "sxm", "--baseline", "sxm@1999.01"], "there is no sxm@1999.01"),
        (["--node-type", "sxm", "--set", "gpu.cuont=4"], "did you mean gpu.count"),
        (["--node-type", "sxm", "--tier", "burn-in"], "does not exist yet"),
        (["--node-type", "sxm", "--tier", "slow"], "known: quick, acceptance"),
        (["--node-type", "sxm", "--waivers", "w.toml"], "does not exist yet"),
        (["--node-type", "sxm", "--burn-in-duration", "2h"], "does not exist yet"),
        (["--node-type", "sxm", "--python", "/no/such/python"], "no such program"),
        (["--node-type", "sxm", "-n", "2"], "-n"),
        (["--node-type", "sxm", "--evidence="], "--evidence is empty"),
        (["--node-type", "sxm", "--evidense", "docs"], "--evidense"),
        (["--node-type", "sxm", "--ansible-inventory", "hosts"], "remote hosts"),
    ],
    ids=lambda o: " ".join(o) if isinstance(o, list) else "",
)
def test_usage_errors(gate_run, options, says):
    process, results = gate_run(*options)
    assert process.returncode == 4, process.stdout + process.stderr
    assert re.search(says, process.stdout + process.stderr)
    assert results is None


def test_collect_only_and_help_touch_nothing(gate_run, healthy, tmp_path):
    process, results = gate_run("--node-type", "sxm", "--evidence", healthy, "--collect-only", "-q")
    assert (process.returncode, results) == (0, None)
    assert "test_gpu_link_trains_at_full_width[gpu7]" in process.stdout
    process, results = gate_run("--node-type", "sxm", "--help")
    assert (process.returncode, results) == (0, None)
    assert "--report-only" in process.stdout
    assert not list(tmp_path.glob("run*/*"))


def test_report_only_exits_0_and_changes_nothing_else(gate_run, captures):
    document = captures / "nvidia-smi-q-xml/01-h100-hw.txt"
    process, results = gate_run("--node-type", "sxm", "--evidence", document, "--report-only")
    assert process.returncode == 0
    assert (results["acceptance"], results["exit_status"]) == ("incomplete", 0)


def test_quick_says_nothing_of_throughput(gate_run, healthy):
    process, results = gate_run("--node-type", "sxm", "--evidence", healthy, "--tier", "quick")
    assert (process.returncode, results["acceptance"], results["tier"]) == (0, "accepted", "quick")
    assert not any(f["layer"] == "compute" for f in results["findings"])
    assert "quick" in process.stdout.strip().splitlines()[-1]


def test_overrides_size_the_plan_and_are_reported(gate_run, captures):
    process, results = gate_run(
        "--node-type", "sxm", "--evidence", captures / "nvidia-smi-q/01-h100-590-idle.txt", "--set", "gpu.count=1"
    )
    assert process.returncode == 10
    assert results["overrides"] == {"gpu.count": "1"}
    assert {f["subject"] for f in results["findings"]} == {"node", "gpu0"}
    assert [f["verdict"] for f in results["findings"] if f["key"] == "gpu.count"] == ["pass"]


def test_other_test_suites_are_left_alone(tmp_path):
    (tmp_path / "test_mine.py").write_text("def test_mine():\n    assert True\n")
    process = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert process.returncode == 0
    assert "1 passed" in process.stdout
    assert sorted(p.name for p in tmp_path.iterdir() if p.suffix == ".py") == ["test_mine.py"]
    assert not (tmp_path / "reports").exists()


def test_a_capture_of_a_run_judges_like_the_run(gate_run, healthy, judge):
    process, first = gate_run("--node-type", "sxm", "--evidence", healthy)
    again, _ = judge(run_folder(process) / "capture.tar.gz")
    assert again["findings"] == first["findings"]
    assert again["host"] == first["host"]
    assert again["evidence"]["kind"] == "capture"


def _commands(folder, scripts):
    folder.mkdir()
    for name, text in scripts.items():
        path = folder / name
        path.write_text(f"#!/bin/bash\n{text}\n")
        path.chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


def test_probes_that_hang_vanish_and_flood_end_within_the_budget(gate_run, tmp_path):
    wedged = "trap '' TERM; (trap '' TERM; sleep 600) & while :; do sleep 1; done"
    env = _commands(
        tmp_path / "bin",
        {"nvidia-smi": wedged, "lspci": "kill -9 $$", "dmesg": "yes", "docker": wedged, "dmidecode": wedged},
    )
    begin = time.monotonic()
    process, results = gate_run("--node-type", "sxm", "--tier", "quick", env=env)
    assert time.monotonic() - begin < 40
    assert process.returncode in (1, 10)
    messages = {f["key"]: f["message"] for f in results["findings"] if f["subject"] == "node"}
    assert "gave no answer in" in messages["driver.responds"]
    assert "nvidia-smi" in messages["driver.responds"] or "driver.responds" in messages
    assert "signal 9" in messages["pcie.gpu-present"]
    assert "wrote more than" in messages["health.xid"]
    verdicts = {(f["key"], f["subject"]): f["verdict"] for f in results["findings"]}
    assert verdicts["driver.responds", "node"] == "fail"
    assert verdicts["gpu.memory", "gpu0"] == "unverified"
    assert next(f for f in results["findings"] if f["key"] == "gpu.memory")["blocked_by"] == ["driver.responds@node"]
    assert _left_running(tmp_path / "bin") == []


def _left_running(folder):
    """Command lines of processes of that folder that still run (an abandoned zombie is none)."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = entry.read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if str(folder) in text:
            found.append(text)
    return found


def test_an_interrupt_ends_the_probes_too(tmp_path):
    env = {**os.environ, **_commands(tmp_path / "bin", {"nvidia-smi": "trap '' TERM; while :; do sleep 0.2; done"})}
    arguments = ["--node-type", "sxm", "--tier", "quick", "--report-dir", str(tmp_path / "r"), "-p", "no:cacheprovider"]
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", "checks/", *arguments],
        cwd=ROOT,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    for _ in range(100):
        if _left_running(tmp_path / "bin"):
            break
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 2
    for _ in range(50):
        if not _left_running(tmp_path / "bin"):
            break
        time.sleep(0.1)
    assert _left_running(tmp_path / "bin") == []


def test_hostile_evidence_by_pytest_addopts_is_not_imported(gate_run, folder_of, captures, tmp_path):
    folder = folder_of(
        {
            "nvidia-smi_-q_-x.xml": (captures / "nvidia-smi-q-xml/01-h100-hw.txt").read_bytes(),
            "pytest.ini": f"[pytest]\naddopts = {tmp_path / 'evidence'}\n",
            "conftest.py": f"open({str(tmp_path / 'pwned')!r}, 'w')\n",
        }
    )
    process, _ = gate_run("--node-type", "sxm", env={"PYTEST_ADDOPTS": f"--evidence {folder}"})
    assert process.returncode in (4, 10)
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_run_that_is_told_to_end_leaves_no_probe_behind(tmp_path, number):
    env = {**os.environ, **_commands(tmp_path / "bin", {"nvidia-smi": "trap '' TERM HUP; while :; do sleep 0.2; done"})}
    arguments = ["--node-type", "sxm", "--tier", "quick", "--report-dir", str(tmp_path / "r"), "-p", "no:cacheprovider"]
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", "checks/", *arguments],
        cwd=ROOT,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    for _ in range(100):
        if _left_running(tmp_path / "bin"):
            break
        time.sleep(0.1)
    process.send_signal(number)
    process.communicate(timeout=30)
    assert process.returncode == 2
    assert _left_running(tmp_path / "bin") == []


def test_a_collection_error_is_pytests_own_and_asks_nothing_of_the_node(gate_run, tmp_path):
    checks = copied_checks(tmp_path)
    (checks / "test_site.py").write_text("import no_such_module_at_all\n")
    env = _commands(tmp_path / "bin", {"nvidia-smi": f"touch {tmp_path / 'asked'}"})
    process, results = gate_run("--node-type", "sxm", first=(checks,), env=env)
    assert process.returncode == 2, process.stdout[-2000:]
    assert "no_such_module_at_all" in process.stdout
    assert results is None
    assert not (tmp_path / "asked").exists()
