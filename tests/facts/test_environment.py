"""Environment and confidential computing: a cut answer is none, and no secret is recorded."""

import os
import subprocess

import pytest

from nodeready.facts import conf_compute, environment
from nodeready.facts.environment import ENVIRONMENT
from nodeready.reading import Known, Unknown

WHOLE = b'process:CUDA_LAUNCH_BLOCKING=1\nfile:CUDA_PROFILE="1"\nend\n'


def test_every_prefix_is_unknown_or_the_same():
    whole = environment.parse(WHOLE)
    assert [(v.name, v.value, v.where) for v in whole] == [
        ("CUDA_LAUNCH_BLOCKING", "1", "process"),
        ("CUDA_PROFILE", "1", "/etc/environment"),
    ]
    for cut in range(len(WHOLE)):
        assert isinstance(environment.parse(WHOLE[:cut]), Unknown)


@pytest.mark.parametrize("data", [b"", b"\xff\xfe\n", b"end", b"endless\n"])
def test_what_is_no_list_is_unknown(data):
    assert isinstance(environment.parse(data), Unknown)


def test_the_probe_finds_what_is_set_and_keeps_no_secret():
    env = {"PATH": os.environ["PATH"], "CUDA_LAUNCH_BLOCKING": "1", "API_TOKEN": "secret", "AWS_SECRET": "CUDA_X=1"}
    said = subprocess.run(ENVIRONMENT.argv, env=env, capture_output=True, check=True).stdout
    assert b"secret" not in said
    assert b"AWS" not in said
    found = environment.parse(said)
    assert ("CUDA_LAUNCH_BLOCKING", "process") in {(v.name, v.where) for v in found}


@pytest.mark.parametrize(
    "data", [b"", b"CC status: O", b"CC status: OFF", b"No devices\n", b"CC status: ON\nCC status: OFF\n"]
)
def test_no_state_is_unknown(data):
    assert isinstance(conf_compute.parse(data), Unknown)


def test_a_state_is_known():
    assert conf_compute.parse(b"CC status: ON\n") == Known("ON")
