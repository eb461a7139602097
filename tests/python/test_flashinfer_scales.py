"""Scales of q, K and the softmax come with each run: one attention serves all of their values."""

import pytest

torch = pytest.importorskip("torch")

from deft.flashinfer import BatchAttention, BatchDecodeWithPagedKVCacheWrapper, MultiLevelCascadeAttentionWrapper
from plain_attention import assert_close
from test_flashinfer_batch_attention import Mixed
from test_flashinfer_cascade import TWO, Levels
from test_flashinfer_decode import WORKSPACE, Batch

SCALE = 64**-0.5


@pytest.fixture
def generator():
    return torch.Generator().manual_seed(9)


def planned(wrapper):
    return len(wrapper._steps._planned)


def test_one_attention_serves_all_scales_of_runs(generator):
    batch = Batch(generator)
    wrapper = BatchDecodeWithPagedKVCacheWrapper(WORKSPACE)
    batch.plan(wrapper)
    q = batch.q(generator)
    for number in range(1, 9):
        scales = {"q_scale": 0.5, "k_scale": number / 4}
        out, lse = wrapper.run(q, batch.cache, return_lse=True, **scales)
        right, right_lse = batch.right(q, scale=SCALE * number / 8)
        assert_close(out, right, lse, right_lse)
    assert planned(wrapper) == 2  # the plain one as well
    assert_close(wrapper.run(q, batch.cache), batch.right(q)[0])


def test_one_attention_serves_all_scales_of_plans_and_of_the_older_call(generator):
    batch = Batch(generator)
    wrapper = BatchDecodeWithPagedKVCacheWrapper(WORKSPACE)
    q = batch.q(generator)
    for scale in (0.125, 0.25, 0.5, 1.0):
        batch.plan(wrapper, sm_scale=scale)
        assert_close(wrapper.run(q, batch.cache), batch.right(q, scale=scale)[0])
        assert_close(wrapper.run(q, batch.cache, k_scale=0.5), batch.right(q, scale=scale / 2)[0])
        assert_close(wrapper.forward(q, batch.cache, sm_scale=0.75), batch.right(q, scale=0.75)[0])
        assert_close(wrapper.forward(q, batch.cache), batch.right(q)[0])
    assert planned(wrapper) == 2


def test_a_cap_is_of_scores_that_are_scaled(generator):
    batch = Batch(generator)
    wrapper = BatchDecodeWithPagedKVCacheWrapper(WORKSPACE)
    batch.plan(wrapper, logits_soft_cap=2.0)
    q = batch.q(generator)
    assert_close(wrapper.run(q, batch.cache, k_scale=3.0), batch.right(q, scale=3 * SCALE, soft_cap=2.0)[0])


def test_a_cache_of_8_bit_floats_is_planned_once_for_all_scales(generator):
    batch = Batch(generator)
    stored = batch.cache.to(torch.float8_e4m3fn)
    batch.cache = stored.to(torch.float16)
    wrapper = BatchDecodeWithPagedKVCacheWrapper(WORKSPACE)
    batch.plan(wrapper, kv_data_type=torch.float8_e4m3fn)
    q = batch.q(generator)
    for k_scale, v_scale in ((None, None), (0.5, 2.0), (0.25, torch.tensor(4.0))):
        out = wrapper.run(q, stored, k_scale=k_scale, v_scale=v_scale)
        assert_close(out / float(v_scale or 1), batch.right(q, scale=SCALE * (k_scale or 1))[0])
    assert planned(wrapper) == 1


def test_mixed_batches_and_cascades_have_one_attention_for_all_scales(generator):
    mixed = Mixed(generator, dtype=torch.float16)
    levels = Levels(generator, *TWO)
    wrapper = BatchAttention(device="cpu")
    cascade = MultiLevelCascadeAttentionWrapper(2, WORKSPACE)
    for scale in (0.125, 0.25, 0.5):
        mixed.plan(wrapper, causal=True, sm_scale=scale)
        for k_scale in (None, 0.5, 2.0):
            out, lse = wrapper.run(mixed.q, mixed.cache, k_scale=k_scale)
            right, right_lse = mixed.right(True, scale=scale * (k_scale or 1))
            assert_close(out, right, lse, right_lse)
        levels.plan(cascade, sm_scale=scale)
        assert_close(cascade.run(levels.q, levels.cache), levels.right(scale=scale))
    assert planned(wrapper) == planned(cascade) == 2


@pytest.mark.parametrize("wrong", [0.0, -1.0, float("inf"), float("nan"), 1e-44, 1e40])
def test_a_scale_that_float32_has_no_number_for_is_named(generator, wrong):
    batch = Batch(generator)
    wrapper = BatchDecodeWithPagedKVCacheWrapper(WORKSPACE)
    batch.plan(wrapper)
    with pytest.raises(NotImplementedError, match="sm_scale"):
        wrapper.run(batch.q(generator), batch.cache, k_scale=wrong)
    with pytest.raises(NotImplementedError, match="sm_scale"):
        wrapper.run(batch.q(generator), batch.cache, q_scale=wrong)


def test_a_factor_between_two_scales_fits_into_float32(generator):
    batch = Batch(generator)
    wrapper = BatchDecodeWithPagedKVCacheWrapper(WORKSPACE)
    batch.plan(wrapper, sm_scale=1e-30)
    with pytest.raises(NotImplementedError, match="sm_scale.*its attention is of 1e-30"):
        wrapper.forward(batch.q(generator), batch.cache, sm_scale=1e30)
