"""The kernel's words on a module that it did not take, out of logs of any form; real logs of healthy nodes hold none."""

import doctest
import os
from pathlib import Path

import pytest

from nodeready.facts import kernel_log, kernel_modules
from nodeready.facts.kernel_modules import refused_modules
from nodeready.reading import Unknown

CAPTURES = Path(os.environ.get("NODEREADY_CAPTURES", Path(__file__).parents[3] / "shared" / "captures"))
REFUSALS = (
    "Lockdown: modprobe: unsigned module loading is restricted; see man kernel_lockdown.7",
    "Lockdown: systemd-modules: unsigned module loading is restricted; see https://wiki.debian.org/SecureBoot",
    "Loading of unsigned module is rejected",
    "Loading of module with unavailable key is rejected",
    "PKCS#7 signature not signed with a trusted key",
    "nvidia: version magic '6.8.0-49-generic SMP mod_unload ' should be '6.8.0-51-generic SMP mod_unload '",
    "nvidia: disagrees about version of symbol module_layout",
    "nvidia: Unknown symbol drm_gem_object_put (err -2)",
    "NVRM: GPU 0000:19:00.0 is already bound to nouveau.",
)


def test_the_example_in_the_docstring_holds():
    assert doctest.testmod(kernel_modules) == (0, 1)


@pytest.mark.parametrize("line", REFUSALS)
@pytest.mark.parametrize("before", ["[   12.345678] ", "<5>[   12.345678] ", "2026-12-01T09:00:00+0000 gpu-7 kernel: "])
def test_a_refusal_is_told_in_the_kernel_s_own_words(before, line):
    assert refused_modules([before + line]) == (line,)


def test_a_refusal_is_told_once_however_often_it_was_tried():
    lines = [f"[{number:>5}.000000] {line}" for number, line in enumerate([*REFUSALS[3:5], *REFUSALS[3:5]])]
    assert refused_modules(lines) == REFUSALS[3:5]


@pytest.mark.parametrize(
    "line",
    [
        "nvidia: module verification failed: signature and/or required key missing - tainting kernel",
        "nvidia: loading out-of-tree module taints kernel.",
        "nvidia: module license 'NVIDIA' taints kernel.",
        "Lockdown: swapper/0: hibernation is restricted; see man kernel_lockdown.7",
        "Loading iSCSI transport class v2.0-870.",
        "integrity: Loading X.509 certificate: UEFI:db",
        'audit: type=1400 msg="Loading of unsigned module is rejected"',
    ],
)
def test_what_is_no_refusal_is_not_told(line):
    assert refused_modules([f"[   12.345678] {line}"]) == ()


def test_no_real_log_of_a_running_driver_holds_one():
    logs = [kernel_log.parse(path.read_bytes()) for path in sorted((CAPTURES / "dmesg").glob("*.txt"))]
    assert [log.refused for log in logs if not isinstance(log, Unknown) and log.driver_seen and log.refused] == []
