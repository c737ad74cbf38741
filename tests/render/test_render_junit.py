from xml.etree import ElementTree as ET

from nodeready.render import junit


def parsed(results):
    top = ET.fromstring(junit.render(results))
    (suite,) = top.findall("testsuite")
    return suite, {case.get("name"): case for case in suite.findall("testcase")}


def properties(case):
    return {p.get("name"): p.get("value") for p in case.findall("properties/property")}


def test_one_case_per_check_and_subject_and_the_counts_agree(sample):
    results = sample.rejected()
    suite, cases = parsed(results)
    assert len(cases) == len({(f["check"], f["subject"]) for f in results["findings"]}) == int(suite.get("tests"))
    for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        assert int(suite.get(attribute)) == sum(case.find(tag) is not None for case in cases.values())
    assert (suite.get("failures"), suite.get("errors"), suite.get("skipped")) == ("3", "9", "2")


def test_a_failure_tells_observed_demanded_and_remedy(sample):
    _, cases = parsed(sample.rejected())
    case = cases["health.row-remap-pending[gpu6]"]
    assert case.get("classname") == "health"
    failure = case.find("failure")
    assert failure.get("message") == "A row remap is pending since the last boot."
    assert "observed yes; demanded no" in failure.text
    assert "remedy: Reset the GPU, then run the gate again." in failure.text


def test_what_was_not_measured_is_an_error_with_its_cause(sample):
    _, cases = parsed(sample.rejected())
    error = cases["nvlink.links-active[gpu0]"].find("error")
    assert error.get("type") == "unverified"
    assert "blocked by driver.responds@node" in error.text


def test_what_no_check_judged_is_an_error_too(sample):
    left = [
        {"check": "gpu.mig", "key": "gpu.mig", "subject": "gpu0", "error": "KeyError: 'mig'"},
        {"check": "health.ecc-uncorrected", "key": "health.ecc-uncorrected/extra", "subject": "gpu0"},
    ]
    suite, cases = parsed(sample.results(unjudged=left, acceptance="incomplete", exit_status=10))
    assert suite.get("errors") == "2"
    assert cases["gpu.mig[gpu0]"].find("error").get("message") == "the check crashed: KeyError: 'mig'"
    mixed = cases["health.ecc-uncorrected[gpu0]"]
    assert mixed.find("error").get("type") == "unjudged"
    assert properties(mixed)["health.ecc-uncorrected/sram:verdict"] == "pass"
    assert properties(mixed)["health.ecc-uncorrected/extra:verdict"] == "unjudged"


def test_waived_and_not_applicable_are_skipped_advisories_are_not(sample):
    _, cases = parsed(sample.rejected())
    assert cases["power.limit[gpu0]"].find("skipped").get("type") == "waived"
    assert cases["platform.bmc[node]"].find("skipped").get("message") == "This node type has no BMC of its own."
    memory = cases["memory.installed[node]"]
    assert [child.tag for child in memory] == ["properties", "system-out"]


def test_every_finding_has_its_properties(sample):
    _, cases = parsed(sample.rejected())
    assert properties(cases["pcie.gpu-link-width[gpu2]"]) == {
        "pcie.gpu-link-width:verdict": "fail",
        "pcie.gpu-link-width:observed": "8",
        "pcie.gpu-link-width:required": "16",
        "pcie.gpu-link-width:source": "h100-setup-guide",
    }
    assert len(properties(cases["health.ecc-uncorrected[gpu0]"])) == 8


def test_the_suite_says_what_judged_whom(sample):
    suite, _ = parsed(sample.rejected(overrides={"gpu.count": 4}))
    assert (suite.get("hostname"), suite.get("time"), suite.get("timestamp")) == (
        "gpu-node-a12",
        "12.000",
        "2026-12-01T09:15:00",
    )
    told = properties(suite)
    assert told["baseline"] == "sxm@2026.12"
    assert told["baseline_sha256"] == sample.SHA256
    assert told["acceptance"] == "rejected"
    assert told["override gpu.count"] == "4"
