import copy
import json
from importlib import resources

import jsonschema
import pytest

SCHEMA = json.loads(resources.files("nodeready.render").joinpath("results.schema.json").read_text("utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def test_the_schema_is_one():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("name", ["results", "rejected", "large"])
def test_the_samples_keep_the_schema(sample, name):
    assert [error.message for error in VALIDATOR.iter_errors(getattr(sample, name)())] == []


def test_a_node_of_which_nothing_is_known_keeps_the_schema(sample):
    blank = dict.fromkeys(("product", "driver", "cuda", "os", "memory", "gpus"))
    assert VALIDATOR.is_valid(sample.results([], node=blank))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("acceptance",), "ok"),
        (("exit_status",), 7),
        (("started",), "2026-12-01 09:15"),
        (("baseline", "sha256"), "abc"),
        (("baseline", "status"), "final"),
        (("coverage", "judged"), -1),
        (("busy",), True),
        (("findings", 0, "verdict"), "skipped"),
        (("findings", 0, "observed"), 5),
        (("findings", 0, "required"), {"at_least": {"value": 1, "unit": ""}}),
        (("findings", 0, "required"), {}),
        (("findings", 0, "blocked_by"), ["driver.responds"]),
        (("findings", 0, "measure"), "maybe"),
        (("findings", 0, "check"), "installed"),
        (("unjudged",), [{"check": "a.b"}]),
    ],
)
def test_what_breaks_the_contract_is_refused(sample, path, value):
    document = copy.deepcopy(sample.results())
    at = document
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    assert not VALIDATOR.is_valid(document)


@pytest.mark.parametrize("name", SCHEMA["required"])
def test_every_name_of_the_contract_is_required(sample, name):
    document = sample.results()
    del document[name]
    assert not VALIDATOR.is_valid(document)


@pytest.mark.parametrize("verdict", ["pass", "advisory"])
def test_what_was_not_measured_is_never_a_pass(sample, verdict):
    document = sample.results([sample.finding("a.b", verdict=verdict)])
    assert VALIDATOR.is_valid(document)
    document["findings"][0]["observed"] = None
    assert not VALIDATOR.is_valid(document)
