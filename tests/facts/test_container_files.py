"""What the file system says of containers: the script with real sockets, and cuts at every place."""

import socket
import subprocess

import pytest

from nodeready.facts.container_files import CONTAINER_FILES, parse
from nodeready.reading import Unknown

WHOLE = b"socket:/run/docker.sock 660\nsocket:/run/containerd/containerd.sock 660\ncgroup:there\ncgroup:unified\nlink:195:0\nlink:195:255\ndevice:nvidia0\nhook:/etc/enroot/hooks.d/98-nvidia.sh\ntool:/usr/bin/nvidia-container-cli\nlistening:0100007F:0947\nend:\n"


def run(root):
    script = CONTAINER_FILES.argv[2]
    for folder in ("/run/", "/sys/fs/", "/dev/", "/etc/", "/proc/net/"):
        script = script.replace(f" {folder}", f" {root}{folder}")
    out = subprocess.run(["sh", "-c", script], capture_output=True, check=True, timeout=20).stdout
    return parse(out.replace(str(root).encode(), b""))


@pytest.mark.parametrize(
    ("mode", "open_"), [(0o660, ()), (0o666, ("/run/docker.sock",)), (0o777, ("/run/docker.sock",))]
)
def test_the_script_finds_sockets_that_all_may_write_to(tmp_path, mode, open_):
    (tmp_path / "run").mkdir()
    path = tmp_path / "run/docker.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        path.chmod(mode)
        found = run(tmp_path)
    assert (found.sockets, found.open_sockets) == (("/run/docker.sock",), open_)


def test_the_script_finds_devices_links_hooks_and_cgroups(tmp_path):
    for name in ("dev/nvidia0", "dev/nvidiactl", "sys/fs/cgroup/cgroup.controllers", "etc/enroot/hooks.d/98-nvidia.sh"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch(mode=0o755)
    (tmp_path / "dev/char").mkdir()
    (tmp_path / "dev/char/195:0").symlink_to(tmp_path / "dev/nvidia0")
    found = run(tmp_path)
    assert (found.cgroup, found.devices, sorted(found.links), found.enroot_hook) == (2, 1, ["195:0"], True)


@pytest.mark.parametrize(
    ("address", "found"),
    [
        ("00000000", ("00000000:0947",)),
        ("0100007F", ()),
        ("0A00000A", ("0A00000A:0947",)),
        ("00000000000000000000000000000000", ("00000000000000000000000000000000:0947",)),
        ("00000000000000000000000001000000", ()),
    ],
)
def test_the_script_finds_dockers_port_where_others_reach_it(tmp_path, address, found):
    table = tmp_path / "proc/net/tcp"
    table.parent.mkdir(parents=True)
    remote = "0" * len(address)
    rows = [
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode",
        f"   0: {address}:0947 {remote}:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1",
        f"   1: {address}:0016 {remote}:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1",
        f"   2: {address}:0947 0A00000B:C3A1 01 00000000:00000000 00:00000000 00000000     0        0 1 1",
    ]
    table.write_text("".join(f"{row}\n" for row in rows))
    assert run(tmp_path).open_ports == found


def test_the_whole_list():
    found = parse(WHOLE)
    assert (found.open_sockets, found.open_ports, found.gpu_tool) == ((), (), True)
    assert parse(WHOLE.replace(b"cgroup:unified\n", b"")).cgroup == 1
    assert parse(b"end:\n").cgroup is None


@pytest.mark.parametrize("data", [b"", b"\n", b"socket:/run/docker.sock rw\nend:\n"])
def test_other_output_is_unknown(data):
    assert isinstance(parse(data), Unknown)


def test_any_prefix_is_unknown():
    for end in range(len(WHOLE)):
        assert isinstance(parse(WHOLE[:end]), Unknown)
