"""A simulated node is written whole, and the same arguments write the same bytes."""

import pytest

from nodeready.simulate.faults import faults
from nodeready.simulate.write import SimulateError, list_faults, simulate


def contents(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_same_seed_gives_the_same_bytes_and_another_seed_another_node(tmp_path):
    for name, seed in (("one", 5), ("two", 5), ("other", 6)):
        simulate("sxm", tmp_path / name, seed=seed)
    one, two, other = (contents(tmp_path / name) for name in ("one", "two", "other"))
    assert one == two
    assert one.keys() == other.keys()
    for varies in ("nvidia-smi_-q_-x", "nvidia-smi_-q", "dmidecode_-t_memory", "proc/meminfo", "matmul", "torch"):
        assert one[varies] != other[varies], varies


def test_only_the_outputs_are_written_and_nothing_is_left_beside(tmp_path):
    simulate("sxm", tmp_path / "deep" / "node")
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["node"]
    written = contents(tmp_path / "deep" / "node")
    assert not [name for name in written if name.endswith((".rc", ".err"))]
    assert {"proc/driver/nvidia/version", "etc/os-release", "container-gpus", "lspci_-nnvvv"} <= written.keys()


def test_exit_status_and_standard_error_stand_beside_the_output(tmp_path):
    simulate("sxm", tmp_path / "node", ["driver-not-loaded", "docker-down"])
    written = contents(tmp_path / "node")
    assert written["nvidia-smi_-q_-x.rc"] == b"9\n"
    assert written["nvidia-smi_-q_-x"].startswith(b"NVIDIA-SMI has failed because it couldn't communicate")
    assert "proc/driver/nvidia/version" not in written
    assert written["docker_info.rc"] == b"1\n"
    assert written["docker_info.err"].startswith(b"ERROR: Cannot connect to the Docker daemon")


def test_a_smaller_node_has_fewer_gpus_everywhere(tmp_path):
    simulate("sxm", tmp_path / "node", settings={"gpu.count": "3"})
    written = contents(tmp_path / "node")
    assert written["ibstat"].count(b"MT4129") == 3
    assert b"<attached_gpus>3</attached_gpus>" in written["nvidia-smi_-q_-x"]
    assert written["container-gpus"].count(b"GPU ") == 3
    assert written["lspci_-nnvvv"].count(b"[10de:2330]") == 3
    assert written["matmul"].count(b'"tflops"') == 3 * 7


def test_an_empty_folder_is_filled_and_a_full_one_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    simulate("sxm", tmp_path / "empty")
    assert contents(tmp_path / "empty")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("keep\n")
    (tmp_path / "file").write_text("keep\n")
    for taken in ("full", "file"):
        with pytest.raises(SimulateError, match=taken):
            simulate("sxm", tmp_path / taken)
    assert contents(tmp_path / "full") == {"mine": b"keep\n"}


def test_a_folder_that_cannot_be_made_is_an_error_with_its_name(tmp_path):
    (tmp_path / "file").write_text("in the way\n")
    with pytest.raises(SimulateError, match="node cannot be written"):
        simulate("sxm", tmp_path / "file" / "node")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"fault_names": ["nvlink-link-donw"]}, "nvlink-link-down"),
        ({"fault_names": ["zzz"]}, "known: gpu-fell-off-the-bus, "),
        ({"settings": {"gpu.count": "nine"}}, "write a number"),
        ({"settings": {"gpu.count": "9"}}, "1 to 8 GPUs, not 9"),
        ({"settings": {"gpu.count": "0"}}, "1 to 8 GPUs, not 0"),
        ({"settings": {"memory.installed": "1 TiB"}}, "memory.installed"),
        ({"settings": {"driver": "540"}}, "known branches: 535, 550, 570, 580, 595"),
        ({"settings": {"driver": "580."}}, "no driver '580.'"),
        ({"settings": {"driver": "new"}}, "no driver 'new'"),
        ({"node_type": "sxm-5"}, "known: h200-nvl, h200-sxm, nvl, pcie, sxm, sxm-1, sxm-4"),
        ({"node_type": "sxm-1", "settings": {"gpu.count": "2"}}, "1 to 1 GPUs, not 2"),
        ({"node_type": "pcie", "fault_names": ["fabric-manager-dead"]}, "there is no fault 'fabric-manager-dead'"),
    ],
)
def test_what_is_not_known_is_refused_before_anything_is_written(tmp_path, arguments, said):
    with pytest.raises(SimulateError) as refusal:
        simulate(**{"node_type": "sxm", "out": tmp_path / "node", **arguments})
    assert said in str(refusal.value)
    assert not list(tmp_path.iterdir())


def test_the_list_of_faults_says_what_each_leads_to():
    listed = list_faults("sxm")
    assert [fault["name"] for fault in listed] == [fault.name for fault in faults("sxm")]
    assert len({fault["name"] for fault in listed}) == len(listed) >= 60
    for fault in listed:
        assert set(fault) == {"name", "why", "case", "expects"}
        assert fault["why"].endswith(".")
        assert all(set(row) == {"check", "subject", "verdict"} for row in fault["expects"])
    assert listed[0]["expects"][0] == {"check": "gpu.count", "subject": "node", "verdict": "fail"}
    with pytest.raises(SimulateError):
        list_faults("sxm-5")


def test_faults_add_up(tmp_path):
    simulate("sxm", tmp_path / "node", ["ecc-off", "nvlink-link-down", "ecc-off"])
    written = contents(tmp_path / "node")
    assert (
        written["nvidia-smi_-q"].count(b"Disabled\n        Pending                                        : Disabled")
        == 9
    )
    assert written["nvidia-smi_nvlink_-s"].count(b"<inactive>") == 1


def test_what_a_node_lacks_is_told_by_exit_status_alone(tmp_path):
    simulate("nvl", tmp_path / "node")
    written = contents(tmp_path / "node")
    assert "nv-fabricmanager_--version" not in written
    assert written["nv-fabricmanager_--version.rc"] == b"127\n"
    assert written["nv-fabricmanager_--version.err"] == b"nv-fabricmanager: command not found\n"
    assert written["systemctl_is-active_nvidia-fabricmanager"] == b"inactive\n"
    assert written["systemctl_is-active_nvidia-fabricmanager.rc"] == b"3\n"
    assert "ibstat" not in written


def test_a_driver_branch_brings_the_software_of_its_time(tmp_path):
    for driver in ("550", "550.54.14"):
        simulate("sxm", tmp_path / driver, settings={"driver": driver, "gpu.count": "1"})
    branch, build = (contents(tmp_path / driver) for driver in ("550", "550.54.14"))
    assert b"<driver_version>550.163.01</driver_version>\n\t<cuda_version>12.4<" in branch["nvidia-smi_-q_-x"]
    assert branch["nv-fabricmanager_--version"] == b"Fabric Manager version is : 550.163.01\n"
    assert b"release 12.4" in branch["nvcc_--version"]
    assert b'"torch": "2.7.1+cu126"' in branch["torch"]
    assert b"<driver_version>550.54.14</driver_version>" in build["nvidia-smi_-q_-x"]
    assert b"Kernel Module  550.54.14" in build["proc/driver/nvidia/version"]
