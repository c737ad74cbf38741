import subprocess
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeready.facts.pci_sysfs import PCI_LINKS, from_tree, parse
from nodeready.reading import Known, Unknown

READINGS = (
    "generation",
    "generation_max",
    "width",
    "width_max",
    "vendor_device",
    "class_code",
    "numa_node",
    "above",
)
PORT = "/sys/devices/pci0000:37/0000:37:01.0"
GPU = f"{PORT}/0000:3b:00.0"
GPU_FILES = {
    "vendor": "0x10de",
    "device": "0x2330",
    "class": "0x030200",
    "current_link_speed": "32.0 GT/s PCIe",
    "current_link_width": "16",
    "max_link_speed": "32.0 GT/s PCIe",
    "max_link_width": "16",
    "numa_node": "0",
}
PORT_FILES = {
    **GPU_FILES,
    "vendor": "0x8086",
    "device": "0x352a",
    "class": "0x060400",
    "max_link_speed": "64.0 GT/s PCIe",
    "numa_node": "-1",
}


def text(device, files):
    return "".join(f"{device}/{name}:{value}\n" for name, value in files.items())


WHOLE = (text(GPU, GPU_FILES) + text(PORT, PORT_FILES)).encode()


def gpu(**changes):
    return parse(text(GPU, {**GPU_FILES, **changes}).encode())["0000:3b:00.0"]


def test_probe():
    assert (PCI_LINKS.name, PCI_LINKS.family) == ("sys/bus/pci/links", "pci")
    assert not PCI_LINKS.root_for


def test_a_gpu_and_the_port_above_it():
    links = parse(WHOLE)
    assert list(links) == ["0000:3b:00.0", "0000:37:01.0"]
    card = links["0000:3b:00.0"]
    assert [getattr(card, name).value for name in READINGS] == [5, 5, 16, 16, "10de:2330", "0302", 0, "0000:37:01.0"]
    port = links[card.above.value]
    assert (port.generation.value, port.generation_max.value, port.vendor_device.value) == (5, 6, "8086:352a")
    assert port.above.reason == "0000:37:01.0 is on a root bus: no port is above it"
    assert isinstance(port.numa_node, Unknown)


@pytest.mark.parametrize(
    ("speed", "generation"),
    [
        ("2.5 GT/s PCIe", 1),
        ("2.5 GT/s", 1),
        ("5.0 GT/s PCIe", 2),
        ("5 GT/s", 2),
        ("8.0 GT/s PCIe", 3),
        ("8 GT/s", 3),
        ("16.0 GT/s PCIe", 4),
        ("32.0 GT/s PCIe", 5),
        ("64.0 GT/s PCIe", 6),
    ],
)
def test_speeds_are_generations(speed, generation):
    assert gpu(current_link_speed=speed).generation.value == generation


@pytest.mark.parametrize(
    "speed", ["Unknown", "Unknown speed", "", "32", "3.2 GT/s PCIe", "32.0 GB/s PCIe", "32.0 GT/s PCIe x"]
)
def test_what_is_no_speed_is_unknown(speed):
    found = gpu(current_link_speed=speed, max_link_speed=speed)
    assert isinstance(found.generation, Unknown)
    assert isinstance(found.generation_max, Unknown)
    assert found.width.value == 16


@pytest.mark.parametrize("width", ["0", "63", "255", "", "x16", "Unknown", "3", "-1", "016"])
def test_what_is_no_width_is_unknown(width):
    found = gpu(current_link_width=width, max_link_width=width)
    assert isinstance(found.width, Unknown)
    assert isinstance(found.width_max, Unknown)
    assert found.generation.value == 5


@pytest.mark.parametrize("width", [1, 2, 4, 8, 16, 32])
def test_widths_of_the_standard(width):
    assert gpu(current_link_width=str(width)).width.value == width


@pytest.mark.parametrize("value", ["", "10de", "0x10dex", "0x1"])
def test_ids_that_are_none_are_unknown(value):
    assert isinstance(gpu(vendor=value).vendor_device, Unknown)
    assert isinstance(gpu(device=value).vendor_device, Unknown)
    assert isinstance(gpu(**{"class": value}).class_code, Unknown)


def test_a_node_that_the_firmware_does_not_name_is_unknown():
    assert "no NUMA node" in gpu(numa_node="-1").numa_node.reason
    assert gpu(numa_node="1").numa_node.value == 1


def test_long_domains_and_upper_case_are_one_bus_id():
    found = parse(b"/sys/devices/pci10000:00/10000:00:02.0/10000:E1:00.0/current_link_width:8\n")
    assert list(found) == ["10000:e1:00.0"]
    assert found["10000:e1:00.0"].above.value == "10000:00:02.0"


def test_two_different_answers_are_unknown():
    found = parse(WHOLE + text(GPU, {"current_link_width": "8"}).encode())["0000:3b:00.0"]
    assert "twice" in found.width.reason
    assert found.generation.value == 5
    elsewhere = parse(WHOLE + b"/sys/devices/pci0000:37/0000:37:02.0/0000:3b:00.0/numa_node:0\n")["0000:3b:00.0"]
    assert "below two ports" in elsewhere.above.reason


@pytest.mark.parametrize("attribute", ["aer_dev_correctable", "driver", "numa_node2"])
def test_other_files_do_not_count(attribute):
    assert isinstance(parse(f"{GPU}/{attribute}:1\n".encode()), Unknown)


def test_every_prefix_says_the_same_or_nothing():
    whole = parse(WHOLE)
    known = dict.fromkeys(READINGS, 0)
    for end in range(len(WHOLE)):
        found = parse(WHOLE[:end])
        for bus_id, link in ({} if isinstance(found, Unknown) else found).items():
            for name in READINGS:
                reading = getattr(link, name)
                if isinstance(reading, Known):
                    known[name] += 1
                    assert reading.value == getattr(whole[bus_id], name).value
    assert all(known.values())


def tree(ending="\n"):
    return {
        f"sys/bus/pci/devices/0000:3b:00.0/{name}": f"{value}{ending}".encode() for name, value in GPU_FILES.items()
    }


def test_a_copied_tree_says_the_same():
    found = from_tree({**tree(), "sys/class/net/eth0/speed": b"1\n", "proc/meminfo": b"MemTotal: 5 kB\n"})
    assert list(found) == ["0000:3b:00.0"]
    card = found["0000:3b:00.0"]
    assert [getattr(card, name).value for name in READINGS[:-1]] == [5, 5, 16, 16, "10de:2330", "0302", 0]
    assert "does not tell" in card.above.reason


def test_a_copied_tree_by_real_paths_knows_what_is_above():
    files = {f"{GPU.lstrip('/')}/{name}": f"{value}\n".encode() for name, value in GPU_FILES.items()}
    assert from_tree(files)["0000:3b:00.0"].above.value == "0000:37:01.0"


def test_a_file_that_was_cut_is_unknown():
    for name in ("current_link_width", "current_link_speed", "device"):
        path = f"sys/bus/pci/devices/0000:3b:00.0/{name}"
        data = tree()[path]
        for end in range(len(data)):
            card = from_tree({**tree(), path: data[:end]})["0000:3b:00.0"]
            reading = {
                "current_link_width": card.width,
                "current_link_speed": card.generation,
                "device": card.vendor_device,
            }[name]
            assert isinstance(reading, Unknown)
    bare = from_tree(tree(ending=""))["0000:3b:00.0"]
    assert isinstance(bare.width, Unknown)


def test_a_tree_without_devices_is_unknown():
    for files in ({}, {"proc/meminfo": b"x\n"}, {"sys/bus/pci/devices/garbage/vendor": b"0x10de\n"}):
        assert isinstance(from_tree(files), Unknown)


def test_a_path_or_content_with_lines_of_its_own_forges_nothing():
    forged = {"sys/bus/pci/devices/0000:3b:00.0/current_link_width": b"1\n0000:5d:00.0/current_link_width:16\n"}
    found = from_tree(forged)
    assert list(found) == ["0000:3b:00.0"]
    assert found["0000:3b:00.0"].width.value == 1
    assert isinstance(from_tree({"x\n0000:5d:00.0/current_link_width": b"16\n"}), Unknown)


def run_script(root):
    shell, option, script = PCI_LINKS.argv
    assert "/sys/bus/pci/devices" in script
    return subprocess.run(
        [shell, option, script.replace("/sys/", f"{root}/sys/")], capture_output=True, check=False, timeout=20
    )


def test_the_script_walks_up_from_each_device_of_nvidia(tmp_path):
    def add(path, **files):
        folder = tmp_path / "sys/devices" / path
        folder.mkdir(parents=True)
        for name, value in files.items():
            (folder / name).write_text(f"{value}\n")
        link = tmp_path / "sys/bus/pci/devices" / folder.name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(folder)

    add("pci0000:37/0000:37:01.0", **PORT_FILES)
    add("pci0000:37/0000:37:01.0/0000:38:00.0", **PORT_FILES)
    add("pci0000:37/0000:37:01.0/0000:38:00.0/0000:3b:00.0", **GPU_FILES)
    add("pci0000:37/0000:37:01.0/0000:38:00.0/0000:3c:00.0", vendor="0x10de", device="0x22a3")
    add("pci0000:37/0000:37:01.0/0000:38:00.0/0000:3d:00.0", **{**GPU_FILES, "vendor": "0x15b3"})
    add("pci0000:00/0000:00:1f.0", **{**GPU_FILES, "vendor": "0x8086"})
    done = run_script(tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")
    found = parse(done.stdout)
    assert sorted(found) == ["0000:37:01.0", "0000:38:00.0", "0000:3b:00.0", "0000:3c:00.0"]
    assert done.stdout.count(b"0000:38:00.0/vendor:") == 1
    assert found["0000:3b:00.0"].above.value == found["0000:3c:00.0"].above.value == "0000:38:00.0"
    assert found["0000:38:00.0"].above.value == "0000:37:01.0"
    assert found["0000:3b:00.0"].generation.value == 5
    assert found["0000:3c:00.0"].vendor_device.value == "10de:22a3"
    assert isinstance(found["0000:3c:00.0"].width, Unknown)


def test_the_script_lists_adapters_and_drives_with_their_ports_too(tmp_path):
    def add(path, **files):
        folder = tmp_path / "sys/devices" / path
        for name, value in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(f"{value}\n")
        link = tmp_path / "sys/bus/pci/devices" / folder.name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(folder)

    add("pci0000:37/0000:37:01.0", **PORT_FILES)
    add("pci0000:37/0000:37:01.0/0000:3c:00.0", **{**GPU_FILES, "vendor": "0x15b3", "class": "0x020700"})
    add("pci0000:64/0000:64:01.0", **PORT_FILES)
    add("pci0000:64/0000:64:01.0/0000:65:00.0", **{**GPU_FILES, "vendor": "0x8086", "class": "0x010802"})
    grouped = {**GPU_FILES, "iommu_group/type": "identity"}
    add("pci0000:00/0000:00:02.0", **grouped)
    add("pci0000:00/0000:00:17.0", **{**GPU_FILES, "vendor": "0x8086", "class": "0x010601"})
    found = parse(run_script(tmp_path).stdout)
    assert sorted(found) == ["0000:00:02.0", "0000:37:01.0", "0000:3c:00.0", "0000:64:01.0", "0000:65:00.0"]
    assert found["0000:3c:00.0"].above.value == "0000:37:01.0"
    assert found["0000:00:02.0"].iommu.value == "identity"
    assert found["0000:65:00.0"].iommu.value == "none"
    assert found["0000:00:02.0"].on_root_bus
    assert not found["0000:3c:00.0"].on_root_bus


@pytest.mark.parametrize(("width", "answers"), [("63", False), ("255", False), ("16", True), ("0", True)])
def test_registers_that_read_all_ones_are_no_answer(width, answers):
    assert gpu(current_link_width=width).answers is answers


def test_a_firmware_that_names_no_node_says_so():
    assert gpu(numa_node="-1").numa_unnamed
    assert not gpu(numa_node="0").numa_unnamed
    assert not gpu(numa_node="").numa_unnamed


def test_the_script_without_devices_of_nvidia(tmp_path):
    assert run_script(tmp_path).returncode != 0
    (tmp_path / "sys/bus/pci/devices").mkdir(parents=True)
    done = run_script(tmp_path)
    assert (done.returncode, done.stdout) == (0, b"")
    assert parse(done.stdout).reason == "sysfs lists no device of NVIDIA on the PCI bus"


@pytest.mark.parametrize(
    "data", [b"", b"\n", b"0000:3b:00.0\n", b"3b:00.0/vendor:0x10de\n", WHOLE.rstrip().split(b"\n")[0]]
)
def test_what_names_no_device_is_unknown(data):
    found = parse(data)
    assert isinstance(found, Unknown)
    assert not found.missing


@given(st.binary(max_size=200), st.integers(0, len(WHOLE)))
def test_garbage_never_raises(noise, at):
    assert isinstance(parse(WHOLE[:at] + noise + WHOLE[at:]), (dict, Unknown))
    assert isinstance(
        from_tree({f"0000:3b:00.0/{noise.decode('latin-1')}": noise, "0000:3b:00.0/class": noise}), (dict, Unknown)
    )


def test_lines_of_megabytes_take_linear_time():
    started = time.process_time()
    for line in (b"/0000:3b:00.0" * 200_000, b"/" * 3_000_000, b"/0000:3b:00.0/vendor:" * 100_000, b"a" * 3_000_000):
        assert len(parse(WHOLE + line + b"\n")) >= 2
    assert time.process_time() - started < 5
