"""Every evidence file of the healthy node removed, emptied and cut in half: the node is not accepted for it."""

import pytest

from nodeready.node.catalogue import evidence_names

# removed, another form of the same data takes its place
FORMS = {
    "nvidia-smi_-q_-x": "nvidia-smi_-q",
    "dmidecode_-t_memory": "proc/meminfo",
    "sys/bus/pci/links": "lspci_-nnvvv",
    "nvidia-smi_--query-gpu=pci.bus_id,compute_cap_--format=csv": "torch",
    "runc_--version": "docker_info",
}
# not needed while the first form is there
SPARE = {"nvidia-smi_-q", "ip_-j_link", "sys/class/net-speed", "nvml"}
# of which the next form tells the datum, and nothing of what else is read from it
TELLS_MORE = {"dmidecode_-t_memory"}
# what is enough as it is
ENOUGH = {
    ("removed", "nvidia-smi_nvlink_-e-later"): "links that never counted an error need no second look",
    ("cut", "nvidia-smi_topo_-m"): "the matrix is in the first half, the legend in the second",
    ("cut", "timedatectl_show"): "what is asked for is in the first half",
}


@pytest.fixture
def files(healthy_files):
    return dict(healthy_files)


@pytest.mark.parametrize("how", ["removed", "emptied", "cut"])
def test_one_file_at_a_time(files, folder_of, judge, how):
    names = [name for name in files if name in evidence_names()]
    assert len(names) > 14
    for number, name in enumerate(names):
        changed = dict(files)
        if how == "removed":
            del changed[name]
        else:
            changed[name] = b"" if how == "emptied" else files[name][: len(files[name]) // 2]
        results, _ = judge(folder_of(changed, f"{how}{number}"))
        citing = {cited for f in results["findings"] for cited in f["evidence"]}
        if how == "removed" and name in FORMS:
            ending = "accepted-with-advisories" if name in TELLS_MORE else "accepted"
            assert results["acceptance"] == ending, name
            assert FORMS[name] in citing
            assert any(f"{name} was not recorded" in f["message"] for f in results["findings"]), name
        elif name == "ibstat":  # ports of the other kind are enough, and are what the finding cites then
            cited = [f["evidence"] for f in results["findings"] if f["key"] == "network.ports-active"]
            assert cited == [["ip_-j_link", "sys/class/net-speed"]]
        elif (how, name) in ENOUGH:
            assert results["acceptance"] == "accepted", ENOUGH[how, name]
        elif name in SPARE:
            assert results["acceptance"] == "accepted", name
            assert name not in citing or how == "cut"
        else:
            assert results["acceptance"] != "accepted", f"{name} {how}"


def test_both_forms_removed(files, folder_of, judge):
    for name in ("nvidia-smi_-q_-x", "nvidia-smi_-q"):
        del files[name]
    results, found = judge(folder_of(files))
    assert results["acceptance"] == "incomplete"
    assert found["driver.responds", "node"]["verdict"] == "unverified"


def test_a_form_that_exited_non_zero_falls_through_and_is_the_drivers_failure(files, folder_of, judge):
    files["nvidia-smi_-q_-x"], files["nvidia-smi_-q_-x.rc"] = b"", b"9\n"
    results, found = judge(folder_of(files))
    assert found["driver.responds", "node"]["verdict"] == "fail"
    assert found["gpu.memory", "gpu0"]["verdict"] == "pass"
    assert found["gpu.memory", "gpu0"]["evidence"] == ["nvidia-smi_-q"]
    assert results["acceptance"] == "rejected"


def test_two_forms_that_disagree_are_unknown(files, folder_of, judge):
    files["nvidia-smi_-q"] = files["nvidia-smi_-q"].replace(b"81559 MiB", b"40960 MiB", 1)
    _, found = judge(folder_of(files))
    finding = found["gpu.memory", "gpu0"]
    assert finding["verdict"] == "unverified"
    assert "nvidia-smi_-q_-x says 81559 MiB, nvidia-smi_-q says 40960 MiB" in finding["message"]


def test_a_dead_driver_is_one_failure(files, folder_of, judge):
    for name in ("nvidia-smi_-q_-x", "nvidia-smi_-q", "nvidia-smi_nvlink_-s"):
        files[name], files[f"{name}.rc"] = b"", b"9\n"
    for name in ("nvidia-smi_--query-gpu=pci.bus_id,compute_cap_--format=csv", "matmul", "torch", "container-gpus"):
        del files[name]
    results, _ = judge(folder_of(files))
    assert [f["key"] for f in results["findings"] if f["verdict"] == "fail"] == ["driver.responds"]
    blocked = [f for f in results["findings"] if f["verdict"] == "unverified"]
    assert len(blocked) > 150
    assert all(f["blocked_by"] == ["driver.responds@node"] for f in blocked if f["subject"] != "node")
