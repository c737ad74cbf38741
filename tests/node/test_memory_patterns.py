"""What is held against a GPU where patterns went over its memory only in part, or on nobody knows which GPU."""

import json

import pytest

from nodeready import baseline
from nodeready.expectation import judge
from nodeready.reading import Known, Unknown
from nodeready.simulate.build import build
from nodeready.simulate.memory_model import PatternRun
from nodeready.simulate.outputs.names import outputs

DEMANDS = baseline.load("sxm").demands
SHARE = DEMANDS["gpu.memory-patterns/share"]


@pytest.fixture
def patterns(node_of):
    """The memory of gpu4 after its run was changed, or the document."""

    def make(run=None, change=None):
        node = build("sxm")
        node.gpus[4].patterns = run or PatternRun()
        document = json.loads(outputs(node)["patterns"].stdout)
        if change:
            change(document)
        return node_of(node, {"patterns": json.dumps(document).encode()}).gpus[4].memory_patterns

    return make


def at_gpu4(**figures):
    return lambda document: document["results"][4].update(figures)


def judged(patterns):
    finding = judge(SHARE, patterns.share)
    return finding.verdict.value, finding.sentence


def test_a_healthy_gpu_shows_most_of_its_memory(patterns):
    found = patterns()
    assert (found.wrong_words.value, found.uncorrected.value, found.corrected.value) == (0, 0, 0)
    assert judged(found)[0] == "pass"
    assert found.share.note == "76.5 GiB of 79.2 GiB"
    assert found.share.recordings == ("patterns",)


def test_memory_that_somebody_holds_proves_nothing_of_the_gpu(patterns):
    verdict, sentence = judged(patterns(PatternRun(held=0.5)))
    assert verdict == "unverified"
    assert "of 79.2 GiB only 39 GiB were free when it began: something else held the rest" in sentence


def test_memory_that_is_called_free_and_not_given_is_the_gpus_fault(patterns):
    verdict, sentence = judged(patterns(PatternRun(refused=0.5)))
    assert verdict == "fail"
    assert "41.3 GiB were free and could not be allocated" in sentence


def test_memory_that_was_taken_meanwhile_proves_nothing_of_the_gpu(patterns):
    gone = at_gpu4(covered_bytes=40 << 30, left_bytes=1 << 30)
    verdict, sentence = judged(patterns(change=gone))
    assert verdict == "unverified"
    assert "of 78.6 GiB that were free something else took a part meanwhile" in sentence


def test_a_run_that_was_told_to_take_less_proves_nothing_of_the_rest(patterns):
    verdict, sentence = judged(patterns(change=at_gpu4(cap_bytes=1 << 30, covered_bytes=1 << 30, left_bytes=77 << 30)))
    assert verdict == "unverified"
    assert "the probe was told to take no more than 1 GiB" in sentence


def test_an_uncorrectable_error_fails_though_the_run_ended_by_it(patterns):
    found = patterns(PatternRun(uncorrected=1, error="CUDA error: uncorrectable ECC error encountered"))
    assert found.uncorrected.value == 1
    for reading in (found.wrong_words, found.share):
        assert isinstance(reading, Unknown)
        assert "uncorrectable ECC error" in reading.reason


def test_wrong_words_of_an_unknown_gpu_leave_none_right_and_keep_those_that_are_known(patterns):
    def change(document):
        document["results"].append({"device": "cuda:9", "bus_id": None, "wrong_words": 3, "verified": False})

    found = patterns(change=change).wrong_words
    assert isinstance(found, Unknown)
    assert "whose bus id is unknown" in found.reason
    assert patterns(PatternRun(wrong_words=2), change).wrong_words.value == 2


def test_the_result_of_another_gpu_at_that_place_is_not_this_ones(patterns):
    found = patterns(change=at_gpu4(uuid="GPU-00000000-0000-0000-0000-000000000000"))
    for reading in (found.wrong_words, found.share, found.corrected, found.uncorrected):
        assert isinstance(reading, Unknown)
        assert "the driver lists" in reading.reason


def test_a_gpu_that_the_document_lacks_may_be_one_that_is_lost(patterns):
    found = patterns(change=lambda document: document["results"].pop(4)).wrong_words
    assert isinstance(found, Unknown)
    assert "gpu.count" in found.causes


def test_a_document_with_an_error_waits_for_what_starts_cuda(patterns):
    error = "no GPU to measure: cuInit: error 802 (system not yet initialized)"
    found = patterns(change=lambda document: document.update(results=[], error=error)).wrong_words
    assert isinstance(found, Unknown)
    assert {"driver.responds", "frameworks.torch", "nvlink.fabric-manager"} <= set(found.causes)


def test_a_recording_that_is_not_there_is_no_memory_that_was_tried(node_of):
    found = node_of(build("sxm"), {"patterns": None}).gpus[0].memory_patterns
    assert not isinstance(found.share, Known)
    assert found.wrong_words.reason == "patterns was not recorded"
