"""What a baseline may say, and what is refused with file and remedy."""

import hashlib
import shutil

import pytest

from nodeready import baseline
from nodeready.baseline import BaselineError, load


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A copy of the shipped baselines that a test may spoil."""
    copy = tmp_path / "baselines"
    shutil.copytree(baseline.baselines_dir(), copy)
    monkeypatch.setattr(baseline, "baselines_dir", lambda: copy)
    return copy


def add(site, text):
    path = site / "sxm" / "2026.12.toml"
    path.write_text(path.read_text() + "\n" + text)


def test_the_shipped_baseline_is_whole():
    base = load("sxm")
    assert (base.name, base.version, base.gpu_count, base.status) == ("sxm", "2026.12", 8, "draft")
    assert all(d.absent or d.required or d.recommended for d in base.demands.values())
    assert all(d.absent or (d.source in base.sources and d.why) for d in base.demands.values())


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('["gpu.colour"]\nrequired = { equals = "green" }', "not a key that hopper declares"),
        ('["gpu.mig"]\nrequired = { equals = "" }', "empty bound"),
        ('["gpu.mig"]\nrequired = {}', "expected one of"),
        ('["gpu.mig"]\nsource = "hearsay"', "sources.toml does not hold"),
        ('["gpu.mig"]\nwhy = ""', "no why"),
        ('["gpu.mig"]\ntier = "quick"', "an overlay sets only"),
        ('["gpu.mig"]\nabsent = ""', "absent without a reason"),
        ('["gpu.mig"]\nmeasure = "if-possible"', "loosened_because"),
        ('["thermal.margin"]\nrequired = { min = "-1 W" }', "is a power, the demand is a temperature"),
        ('["thermal.margin"]\nrequired = { min = -1 }', "has no unit"),
        ('["thermal.margin"]\nrequired = { min = "-5 degC" }', "loosens required"),
        ('["pcie.gpu-link-generation"]\nrequired = { min = 4 }', "loosens required"),
        ('["health.ecc-uncorrected/sram"]\nrequired = { max = 3 }', "loosens required"),
        ('["driver.version"]\nrequired = { min = "520" }', "loosens required"),
        ('["gpu.mig"]\nrequired = { equals = "Enabled" }', "loosens required"),
        ('["gpu.mig"\n', "cannot be read"),
    ],
)
def test_overlays_that_are_refused(site, text, says):
    add(site, text)
    with pytest.raises(BaselineError, match=says) as refusal:
        load("sxm")
    assert "2026.12.toml" in str(refusal.value)


def test_loosening_with_a_reason_is_taken(site):
    add(site, '["pcie.gpu-link-generation"]\nrequired = { min = 4 }\nloosened_because = "Gen4 hosts"')
    assert load("sxm").demands["pcie.gpu-link-generation"].required.operand == 4


@pytest.mark.parametrize(
    "field",
    [
        'required = { min = "990 TFLOPS" }',
        'recommended = { min = "1.2e3 TFLOPS" }',
        'recommended = { min = "1200 TFLOPS" }',
    ],
)
def test_a_floor_above_the_physical_peak_is_refused(site, field):
    path = site / "sxm" / "2026.12.toml"
    kind = field.split(" ")[0]
    lines = path.read_text().split("\n")
    at = lines.index('["compute.matmul-fp16"]')
    lines[at + 1 : at + 3] = [
        field,
        'recommended = { min = "680 TFLOPS" }' if kind == "required" else 'required = { min = "620 TFLOPS" }',
    ]
    path.write_text("\n".join(lines))
    with pytest.raises(BaselineError):
        load("sxm")


def test_a_rate_without_peak_is_refused(site):
    path = site / "sxm" / "2026.12.toml"
    path.write_text(path.read_text().replace('peak        = "989 TFLOPS"\n', "", 1))
    with pytest.raises(BaselineError, match="physical peak"):
        load("sxm")


def test_a_cycle_is_refused(site):
    root = site / "hopper" / "2026.12.toml"
    root.write_text('extends = "sxm@2026.12"\n' + root.read_text())
    with pytest.raises(BaselineError, match="extends itself"):
        load("sxm")


def test_a_released_baseline_that_changed_is_refused(site):
    path = site / "sxm" / "2026.12.toml"
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    (site / "LOCK").write_text(f"{digest}  sxm/2026.12.toml\n")
    load("sxm")
    add(site, "# a comment\n")
    with pytest.raises(BaselineError, match="was released and has changed"):
        load("sxm")


def test_an_unlocked_baseline_must_call_itself_a_draft(site):
    path = site / "sxm" / "2026.12.toml"
    path.write_text(path.read_text().replace('status  = "draft"', 'status  = "released"'))
    with pytest.raises(BaselineError, match="LOCK"):
        load("sxm")


def test_a_site_file_extends_a_shipped_one(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('extends = "sxm@2026.12"\n["memory.installed"]\nrequired = { min = "2 TiB" }\n')
    base = load("sxm", str(path))
    assert str(base.demands["memory.installed"].required) == ">= 2 TiB"
    assert (base.name, base.status) == ("mine", "draft")


@pytest.mark.parametrize(
    ("which", "says"),
    [
        ("sxm@1999.01", "there is no sxm@1999.01"),
        ("nonesuch@2026.12", "there is no baseline"),
        ("missing.toml", "there is no baseline file"),
        ("hopper@2026.12", "name a baseline of sxm"),
        ("../sxm@2026.12", "there is no baseline"),
    ],
)
def test_baselines_that_do_not_fit(which, says):
    with pytest.raises(BaselineError, match=says):
        load("sxm", which)


def test_an_unknown_node_type_lists_those_there_are():
    with pytest.raises(BaselineError, match="known: .*sxm"):
        load("no-such-type")


def test_a_setting_replaces_the_required_bound_and_keeps_its_comparison():
    base = load("sxm", settings=["memory.installed=2 TiB", "gpu.count=4"])
    assert str(base.demands["memory.installed"].required) == ">= 2 TiB"
    assert base.gpu_count == 4
    assert base.demands["pcie.gpu-present"].required.operand == 4
    assert base.overrides == {"memory.installed": "2 TiB", "gpu.count": "4"}


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("gpu.count", "write KEY=VALUE"),
        ("gpu.count=", "write KEY=VALUE"),
        ("gpu.count=many", "not a number"),
        ("gpu.count=0", "1 to 64"),
        ("gpu.cuont=4", "did you mean gpu.count"),
        ("memory.installed=512", "not a number with a unit"),
        ("memory.installed=512 W", "is a power"),
        ("health.xid/warning=3", "no required bound"),
        ("driver.responds=maybe", "neither true nor false"),
    ],
)
def test_settings_that_are_refused(setting, says):
    with pytest.raises(BaselineError, match=says):
        load("sxm", settings=[setting])
