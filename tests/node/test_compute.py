"""What the matmul probe says of one GPU, and of the GPUs held against each other."""

import json

import pytest

from nodeready.reading import Known, Unknown
from nodeready.simulate.build import build
from nodeready.simulate.outputs.names import outputs


@pytest.fixture
def edited(node_of):
    """The node of a simulated document of products, with each of its entries passed through a function."""

    def make(change, which=lambda _: True, count=None):
        simulated = build("pcie", 0, count) if count else build("sxm")
        document = json.loads(outputs(simulated)["matmul"].stdout)
        document["results"] = [entry for entry in document["results"] if not which(entry) or change(entry) is not False]
        return node_of(simulated, {"matmul": json.dumps(document).encode()})

    return make


def at(index, dtype, size=8192):
    return lambda entry: (entry["device"], entry["dtype"], entry["size"]) == (f"cuda:{index}", dtype, size)


def test_healthy_gpus_make_the_same_products(edited):
    node = edited(lambda entry: None)
    found = node.consistency.products
    assert (found.value, found.note) == (0, "7 products compared")
    assert 0.95 < node.consistency.slowest_product.value <= 1
    assert node.gpus[0].compute.repeatable.value is True
    assert 0.9 < node.gpus[0].compute.draw.value < 1.01
    assert 15 <= node.gpus[0].compute.least_margin.value.value <= 23


def test_the_odd_one_is_named_and_the_product_too(edited):
    odd = at(3, "float16", 16384)
    found = edited(lambda entry: entry.update(digest="f" * 16), odd).consistency.products
    assert found.value == 1
    assert found.note.startswith("float16 16384 on gpu3 (0000:")


def test_of_two_that_differ_both_are_named(edited):
    odd = at(1, "tf32")
    found = edited(lambda entry: entry.update(digest="f" * 16), odd, 2).consistency.products
    assert found.value == 1
    assert "gpu0" in found.note
    assert "gpu1" in found.note


@pytest.mark.parametrize("unsound", [{"verified": False}, {"repeatable": False}])
def test_a_product_with_a_finding_of_its_own_is_not_reported_twice(edited, unsound):
    odd = at(3, "float16")
    node = edited(lambda entry: entry.update(digest="f" * 16, **unsound), odd)
    assert node.consistency.products.value == 0
    compute = node.gpus[3].compute
    assert False in (compute.correct("float16").value, compute.repeatable.value)


def test_one_gpu_without_products_leaves_the_others_to_be_compared(edited):
    node = edited(lambda entry: entry["device"] != "cuda:3")
    assert node.consistency.products.value == 0
    assert isinstance(node.gpus[3].compute.repeatable, Unknown)
    nobody = edited(lambda entry: False)
    assert isinstance(nobody.consistency.products, Unknown)
    assert isinstance(nobody.consistency.slowest_product, Unknown)
    one_of_two = edited(lambda entry: entry["device"] != "cuda:1", count=2)
    assert isinstance(one_of_two.consistency.products, Unknown)


@pytest.mark.parametrize("digest", [None, 5, ""])
def test_a_product_whose_bits_are_not_told_was_not_compared(edited, digest):
    untold = at(3, "float16")
    found = edited(lambda entry: entry.update(digest=digest), untold).consistency.products
    assert isinstance(found, Unknown)
    assert found.reason.startswith("digest reads")

    def either(entry):
        entry["digest"] = digest if untold(entry) else "f" * 16

    # what differs is a defect all the same
    assert edited(either, lambda entry: untold(entry) or at(5, "tf32")(entry)).consistency.products.value == 1


def test_one_gpu_alone_has_nothing_to_differ_from(edited):
    node = edited(lambda entry: None, count=1)
    assert (node.consistency.products.value, node.consistency.products.note) == (
        0,
        "one GPU has none to be compared with",
    )
    assert node.consistency.slowest_product.value == 1.0


def test_the_slowest_is_named_and_one_that_is_held_below_its_power_is_not(edited):
    slow = at(5, "float16")
    found = edited(lambda entry: entry.update(tflops=600.0, p5=590.0), slow).consistency.slowest_product
    assert found.value < 0.85
    assert found.note.startswith("gpu5")


def test_a_product_that_could_not_be_made_spoils_no_other(edited):
    fp8 = at(2, "float8_e4m3fn")
    figures = dict.fromkeys(("tflops", "verified", "repeatable", "digest", "events"))
    node = edited(lambda entry: entry.update(figures, error="torch 2.3 has no FP8 product of this form"), fp8)
    compute = node.gpus[2].compute
    assert compute.rate("float8_e4m3fn", 8192).reason == "torch 2.3 has no FP8 product of this form"
    assert isinstance(compute.correct("float8_e4m3fn"), Unknown)
    assert all(isinstance(reading, Known) for reading in (compute.repeatable, compute.slowdowns, compute.least_margin))


def test_one_product_without_a_sampled_margin_leaves_the_least_unknown(edited):
    silent = at(2, "float32")
    node = edited(lambda entry: entry["events"].update(margin_c=None), silent)
    assert isinstance(node.gpus[2].compute.least_margin, Unknown)
    assert isinstance(node.gpus[1].compute.least_margin, Known)
