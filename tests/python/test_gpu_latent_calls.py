"""Runs over latent caches on the tests' driver, which computes and takes the host's memory for a GPU's."""

import math
import os
from types import SimpleNamespace

import deft
import ml_dtypes
import numpy as np
import pytest
from evaluate import assert_close, dense, evaluate

CKV, KPE, PAGE = 512, 64, 16  # as DEFT_FAKE_CUDA_VARIANT says
SCALE = 0.05

if not os.environ.get("DEFT_FAKE_CUDA_VARIANT", "").endswith(f",{CKV + KPE}"):
    pytest.skip("the tests' driver is not there: ctest -R python.gpu_latent_calls", allow_module_level=True)


class OnGpu:
    def __init__(self, array):
        self.array, self.dtype = array, array.dtype
        interface = array.__array_interface__
        self.__cuda_array_interface__ = {**interface, "version": 3}


@pytest.fixture(scope="module")
def att():
    return deft.compile(
        f"attention a {{ query_heads = 4; kv_cache = latent(dim = {CKV}, rope = {KPE}, page_size = {PAGE}); scale = {SCALE}; output = bf16 with lse; }}"
    )


def bf16(rng, *shape):
    return rng.standard_normal(shape).astype(ml_dtypes.bfloat16)


def test_columns_lie_in_one_array_or_in_two(att, family, rng):
    table = np.array([5, 0, 7, 2, 6, 1, 3, 4], "int32")
    q, cache = bf16(rng, 2, 4, CKV + KPE), bf16(rng, 8, PAGE, CKV + KPE)
    k = dense(cache, table)[:, None]
    right = evaluate(family, q, k, k[..., :CKV], SCALE)[0]
    plan = att.plan(family, device=0)

    def run(k, **given):
        out = np.zeros((2, 4, CKV), ml_dtypes.bfloat16)
        plan.run(OnGpu(q), k, None, OnGpu(table), out=OnGpu(out), **given)
        return out

    assert_close(run(OnGpu(cache)), right, "bfloat16")
    apart = cache[..., :CKV].copy(), cache[..., CKV:].copy()
    assert (run(tuple(map(OnGpu, apart))) == run(OnGpu(cache))).all()
    assert (run((OnGpu(cache[..., :CKV]), OnGpu(apart[1]))) == run(OnGpu(cache))).all()
    assert (run((OnGpu(cache[..., :CKV]), OnGpu(cache[..., CKV:]))) == run(OnGpu(cache))).all()
    apart[1][0, 0, 3] = math.nan
    with pytest.raises(deft.UsageError, match=f"K is NaN at element {CKV + 3} of the token"):
        run(tuple(map(OnGpu, apart)), check_finite=True)
    with pytest.raises(deft.UsageError, match="k_rope is in memory of the CPU, the run takes memory of CUDA device 0"):
        run((OnGpu(apart[0]), apart[1]))


def test_lists_are_given_to_sparse_runs(rng):
    att = deft.compile(
        f"attention a {{ query_heads = 4; kv_cache = latent(dim = {CKV}, rope = {KPE}, page_size = {PAGE}); scale = {SCALE}; "
        "output = bf16 with lse; select { budget = 24; by = caller; } }"
    )
    tree = deft.Tree()
    root = tree.add_root(1, location=0)
    for _ in range(3):
        tree.add_query(root)
    q, cache = bf16(rng, 3, 4, CKV + KPE), bf16(rng, 8, PAGE, CKV + KPE)
    lists = rng.integers(-1, 8 * PAGE, (3, 24), dtype="int32")
    out = np.zeros((3, 4, CKV), ml_dtypes.bfloat16)
    plan = att.plan(tree, device=0, budget=24, check_pages=True)
    plan.run_sparse(OnGpu(lists), OnGpu(q), OnGpu(cache), out=OnGpu(out))
    for query, slots in enumerate(lists):
        tokens = cache.reshape(-1, CKV + KPE)[slots[slots >= 0]].astype("float64")
        scores = q[query].astype("float64") @ tokens.T * SCALE
        weights = np.exp(scores - scores.max(1, keepdims=True))
        assert_close(out[query], weights / weights.sum(1, keepdims=True) @ tokens[:, :CKV], "bfloat16")
    plan.check_replays()
    with pytest.raises(deft.UsageError, match="lists is in memory of the CPU, the run takes memory of CUDA device 0"):
        plan.run_sparse(lists, OnGpu(q), OnGpu(cache), out=OnGpu(out))


@pytest.mark.parametrize("kept", [{}, {"cache_dtype": "fp8_e4m3", "has_scales": True}, {"cache_dtype": "fp8_e4m3", "scale_columns": 128}])
def test_steps_of_plug_ins_are_planned_with_room_for_graphs(kept, monkeypatch):
    torch = pytest.importorskip("torch")
    from deft._adapters.steps import PagedWork, Room, Steps
    from deft._adapters.variant import make_latent_variant

    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: SimpleNamespace(cuda_stream=0))
    dims = {"query_heads": 4, "latent_dim": CKV, "rope_dim": KPE, "page_size": PAGE, "dtype": "bf16", "output_dtype": "bf16"}
    variant = make_latent_variant(**dims, sm_scale=SCALE, **kept)
    steps = Steps(torch.device("cuda", 0), Room(2, 4, 4096))
    table = torch.tensor([[1, 2], [1, 3]], dtype=torch.int32)
    for lengths, starts in ([20, 25], None), ([22, 27], np.array([0, 2, 4], "int32")):
        steps.plan(PagedWork(table, None, lengths, starts), variant)
    assert not steps._planned[variant].gpu_plan(0).needs_upload


def test_a_divided_plan_reads_the_other_nodes(att, family, rng):
    """The tests' driver computes one attention, so the run of the expanded nodes is planned and not made."""
    heads = deft.compile(
        f"attention b {{ query_heads = 4; kv_heads = 4; key_dim = 192; value_dim = 128; scale = {SCALE}; output = bf16 with lse; "
        "kv_cache = paged(page_size = 16); }"
    )
    prompt, *branches = family.nodes
    divided = deft.DividedPlan(att, heads, family, [deft.ExpandedNode(prompt, 100, 16)], choice="all", device=0)
    assert divided.chosen == [prompt]
    assert (divided.absorbed.summary().tokens_read, divided.expanded.summary().tokens_read) == (14, 100)
    table = np.array([5, 0, 7, 2, 6, 1, 3, 4], "int32")
    q, cache = bf16(rng, 2, 4, CKV + KPE), bf16(rng, 8, PAGE, CKV + KPE)
    out, lse = np.zeros((2, 4, CKV), ml_dtypes.bfloat16), np.zeros((2, 4), "float32")

    def check():
        own = deft.Tree()
        for branch in branches:
            own.add_query(own.add_root(family.node(branch).tokens, location=family.node(branch).location))
        k = dense(cache, table)[:, None]
        right, right_lse = evaluate(own, q, k, k[..., :CKV], SCALE)
        divided.absorbed.run(OnGpu(q), OnGpu(cache), None, OnGpu(table), out=OnGpu(out), lse=OnGpu(lse))
        assert_close(out, right, "bfloat16")
        assert np.abs(lse - right_lse).max() < 1e-2

    check()
    family.append(branches[1], 2)
    with pytest.raises(deft.UsageError, match="is stale"):
        check()
    assert divided.advance() == [prompt]
    check()
    divided.upload(0)
    assert divided.advance([]) == []
    assert (divided.absorbed.summary().tokens_read, divided.expanded.summary().tokens_read) == (116, 0)
    with pytest.raises(deft.UsageError, match="the plan was divided on a GPU"):
        divided.run(q, q, cache, cache, cache, np.zeros((4, CKV, 128), ml_dtypes.bfloat16), page_table=table)
