"""Steps of doors over caches of 8-bit floats, whose scales come with each run.

What planning asks of a GPU is seen on the tests' driver, which takes the host's memory for a GPU's (ctest -R python.gpu_calls)."""

import os
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

from deft._doors.steps import PagedWork, Room, Steps  # noqa: E402
from deft._doors.variant import make_variant  # noqa: E402


def variant_of(**given):
    heads = {"query_heads": 4, "kv_heads": 2, "head_dim": 64, "page_size": 16, "kv_layout": "NHD"}
    rest = {"sm_scale": None, "logits_soft_cap": None, "window_left": -1}
    return make_variant(**heads, **rest, dtype="bf16", output_dtype="bf16", **given)


@pytest.mark.skipif("DEFT_EXPECT_FAKE_CUDA" not in os.environ, reason="the tests' driver is not there: ctest -R python.gpu_calls")
@pytest.mark.parametrize("room", [None, Room(4, 4, 4096)])
@pytest.mark.parametrize("given", [{}, {"cache_dtype": "fp8_e4m3", "has_scales": True}])
def test_a_step_is_planned_before_a_run_brings_its_scales(monkeypatch, given, room):
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: SimpleNamespace(cuda_stream=0))
    steps = Steps("a layer", torch.device("cuda", 0), room)
    table = torch.tensor([[1, 2], [3, 4]], dtype=torch.int32)
    variant = variant_of(**given)
    for length in 20, 21:
        steps.plan(PagedWork(table, None, [length, 9]), variant)


def test_a_run_without_its_scales_is_told():
    steps = Steps("a layer", torch.device("cpu"))
    steps.plan(PagedWork(torch.tensor([[1, 2]], dtype=torch.int32), None, [20]))
    with pytest.raises(RuntimeError, match="is given their scales"):
        steps.run(variant_of(cache_dtype="fp8_e4m3", has_scales=True), None, None, None)
