"""What a plan refuses changes nothing, and what FlashInfer refuses is refused here by the same types and words."""

import pytest

torch = pytest.importorskip("torch")

from deft.flashinfer import (
    BatchAttention,
    BatchDecodeWithPagedKVCacheWrapper,
    CUDAGraphBatchDecodeWithPagedKVCacheWrapper,
    MultiLevelCascadeAttentionWrapper,
    fast_decode_plan,
)
from deft.flashinfer._arguments import lengths_of
from plain_attention import assert_close
from test_flashinfer_batch_attention import Mixed
from test_flashinfer_cascade import TWO, Levels
from test_flashinfer_decode import WORKSPACE, Batch


@pytest.fixture
def generator():
    return torch.Generator().manual_seed(11)


def ints(*values):
    return torch.tensor(values, dtype=torch.int32)


def for_graphs(batch, indices=64, **more):
    requests = len(batch.rows)
    buffers = [torch.zeros(count, dtype=torch.int32) for count in (requests + 1, indices, requests)]
    named = zip(("paged_kv_indptr_buffer", "paged_kv_indices_buffer", "paged_kv_last_page_len_buffer"), buffers)
    return BatchDecodeWithPagedKVCacheWrapper(WORKSPACE, "NHD", True, **dict(named), **more), buffers


def last_too_full(given):
    given["last_page_len"][2] = 17


def no_such_page(given):
    given["indices"][3] = -1


def pages_beyond_the_indices(given):
    given["indptr"][-1] += 1


def an_indptr_that_falls(given):
    given["indptr"][2] = given["indptr"][1] - 1


def half_a_window(given):
    given["window_left"] = 1.5


def another_type(given):
    given["q_data_type"] = torch.float32


REFUSED = [last_too_full, no_such_page, pages_beyond_the_indices, an_indptr_that_falls, half_a_window, another_type]


@pytest.mark.parametrize("spoil", REFUSED)
@pytest.mark.parametrize("is_for_graphs", [True, False])
def test_a_refused_plan_leaves_the_step_before(generator, spoil, is_for_graphs):
    batch = Batch(generator)
    wrapper, buffers = for_graphs(batch) if is_for_graphs else (BatchDecodeWithPagedKVCacheWrapper(WORKSPACE), [])
    batch.plan(wrapper)
    q, before = batch.q(generator), [buffer.clone() for buffer in buffers]
    right = batch.right(q)[0]
    # Another order of the requests: other pages, other lengths.
    given = {
        "indptr": ints(0, *(len(row) for row in batch.rows[::-1])).cumsum(0, dtype=torch.int32),
        "indices": ints(*(page for row in batch.rows[::-1] for page in row)),
        "last_page_len": batch.last_page_len.flip(0),
        "num_qo_heads": 4,
        "num_kv_heads": 2,
        "head_dim": 64,
        "page_size": 16,
        "q_data_type": batch.dtype,
    }
    spoil(given)
    with pytest.raises((ValueError, NotImplementedError)):
        wrapper.plan(**given)
    assert all(torch.equal(*pair) for pair in zip(buffers, before))
    assert_close(wrapper.run(q, batch.cache), right)


def test_a_refused_first_plan_leaves_a_wrapper_that_can_be_planned(generator):
    batch = Batch(generator)
    wrapper, buffers = for_graphs(batch)
    with pytest.raises(ValueError, match="17 tokens in its last page"):
        wrapper.plan(batch.indptr, batch.indices, torch.full_like(batch.last_page_len, 17), 4, 2, 64, 16)
    assert not buffers[1].any()
    batch.plan(wrapper)
    q = batch.q(generator)
    assert_close(wrapper.run(q, batch.cache), batch.right(q)[0])


def test_a_refused_plan_of_a_cascade_leaves_the_step_before(generator, monkeypatch):
    levels = Levels(generator, *TWO)
    buffers = [[torch.zeros(count, dtype=torch.int32) for count in counts] for counts in ([2, 4], [2, 4], [8, 9], [1, 3])]
    wrapper = MultiLevelCascadeAttentionWrapper(2, WORKSPACE, "NHD", True, *buffers)
    levels.plan(wrapper)
    right, before = levels.right(), wrapper._pages.clone()
    levels.pages = [[group[::-1] for group in level] for level in levels.pages]


    def refuse(*given):
        raise ValueError("such a tree is refused")

    with monkeypatch.context() as patched, pytest.raises(ValueError, match="is refused"):
        patched.setattr(wrapper._steps, "plan", refuse)
        levels.plan(wrapper)
    assert torch.equal(wrapper._pages, before)
    assert_close(wrapper.run(levels.q, levels.cache), right)


def test_lengths_are_counted_in_64_bits():
    # In 32 bits the second request would have none of its tokens.
    indptr = ints(0, 2, 2 + 2**30, 4 + 2**30)
    with pytest.raises(ValueError, match=r"request 1: 1073741824 pages of 4 with 4294967296 tokens.*at most 2147483647"):
        lengths_of(indptr, ints(3, 4, 3), 4)
    most = (2**31 - 1) // 16 + 1
    assert lengths_of(ints(0, most), ints(15), 16).tolist() == [2**31 - 1]
    with pytest.raises(ValueError, match="2147483648 tokens"):
        lengths_of(ints(0, most), ints(16), 16)


def test_an_indptr_that_falls_is_named():
    with pytest.raises(ValueError, match="request 1: its pages go from 4 to 3, indptr must not fall"):
        lengths_of(ints(0, 4, 3, 5), ints(1, 1, 1), 16)


def test_several_queries_of_a_request_ask_for_what_flashinfer_asks_for(generator):
    batch = Batch(generator)
    batch.lengths = [max(length, 3) for length in batch.lengths]
    with pytest.raises(ValueError, match="use_tensor_cores"):
        batch.plan(BatchDecodeWithPagedKVCacheWrapper(WORKSPACE), q_len_per_req=2)
    with pytest.raises(NotImplementedError, match="fa2"):
        batch.plan(BatchDecodeWithPagedKVCacheWrapper(WORKSPACE, use_tensor_cores=True, backend="fa3"), q_len_per_req=2)
    wrapper = BatchDecodeWithPagedKVCacheWrapper(WORKSPACE, use_tensor_cores=True)
    given = batch.indptr, batch.indices, batch.last_page_len, 4, 2, 64, 16
    with pytest.raises(ValueError, match="prior plan"):
        fast_decode_plan(wrapper, *given, q_data_type=batch.dtype, q_len_per_req=2)
    batch.plan(wrapper, q_len_per_req=2)
    with pytest.raises(ValueError, match="q_len_per_req"):
        wrapper.run(batch.q(generator, each=3), batch.cache)
    with pytest.raises(ValueError, match="q_len_per_req is 3, it was planned as 2"):
        wrapper.run(batch.q(generator, each=3), batch.cache, q_len_per_req=3)
    fast_decode_plan(wrapper, *given, q_data_type=batch.dtype, q_len_per_req=3)
    q = batch.q(generator, each=3)
    assert_close(wrapper.run(q, batch.cache), batch.right(q, each=3)[0])
    batch.lengths[1], batch.rows[1] = 2, batch.rows[1][:1]
    with pytest.raises(ValueError, match="empty KV range"):
        batch.plan(wrapper, q_len_per_req=3)


def test_a_wrapper_for_graphs_stays_with_as_many_queries_of_a_request(generator):
    batch = Batch(generator)
    batch.lengths = [max(length, 3) for length in batch.lengths]
    wrapper, _ = for_graphs(batch, use_tensor_cores=True)
    for _ in range(2):
        batch.plan(wrapper, q_len_per_req=2)
    with pytest.raises(ValueError, match="frozen"):
        batch.plan(wrapper, q_len_per_req=3)
    q = batch.q(generator, each=2)
    assert_close(wrapper.run(q, batch.cache), batch.right(q, each=2)[0])


def test_k_and_v_of_other_strides_ask_for_tensor_cores(generator):
    batch = Batch(generator)
    wrapper = BatchDecodeWithPagedKVCacheWrapper(WORKSPACE)
    batch.plan(wrapper)
    v = torch.cat([batch.cache[:, 1]] * 2, -1)[..., :64]
    with pytest.raises(ValueError, match="must have identical strides"):
        wrapper.run(batch.q(generator), (batch.cache[:, 0], v))


def test_a_workspace_lies_at_a_multiple_of_16_bytes():
    aligned = torch.empty(65, dtype=torch.uint8)
    shifted = aligned[1:]
    with pytest.raises(ValueError, match="float_workspace_buffer must be 16-byte aligned"):
        BatchDecodeWithPagedKVCacheWrapper(shifted)
    with pytest.raises(ValueError, match="float_workspace_buffer must be 16-byte aligned"):
        CUDAGraphBatchDecodeWithPagedKVCacheWrapper(shifted, ints(0, 1), ints(1), ints(1))
    with pytest.raises(ValueError, match="float_workspace_buffer must be 16-byte aligned"):
        MultiLevelCascadeAttentionWrapper(1, shifted)
    wrapper, cascade = BatchDecodeWithPagedKVCacheWrapper(aligned), MultiLevelCascadeAttentionWrapper(1, aligned)
    for reset, number in ((wrapper.reset_workspace_buffer, shifted), (cascade.reset_workspace_buffer, [shifted])):
        with pytest.raises(ValueError, match="int_workspace_buffer must be 16-byte aligned"):
            reset(aligned, number)
        with pytest.raises(ValueError, match="float_workspace_buffer must be 16-byte aligned"):
            reset(shifted, number)
    wrapper.reset_workspace_buffer(aligned, aligned)
    cascade.reset_workspace_buffer(aligned, [aligned])


def test_kernels_for_other_strides_are_there_without_being_loaded(generator):
    levels, mixed, batch = Levels(generator, *TWO), Mixed(generator), Batch(generator)
    given = [
        (levels, MultiLevelCascadeAttentionWrapper(2, WORKSPACE)),
        (mixed, BatchAttention(device="cpu")),
        (batch, BatchDecodeWithPagedKVCacheWrapper(WORKSPACE, use_tensor_cores=True)),
    ]
    for case, wrapper in given:
        with pytest.raises(RuntimeError, match="must complete"):
            wrapper.prewarm_paged_kv_stride_variant()
        case.plan(wrapper)
        wrapper.prewarm_paged_kv_stride_variant()
        with pytest.raises(ValueError, match="variant must be 'independent'"):
            wrapper.prewarm_paged_kv_stride_variant("equal")
    plain = BatchDecodeWithPagedKVCacheWrapper(WORKSPACE)
    batch.plan(plain)
    with pytest.raises(RuntimeError, match="tensor-core decode"):
        plain.prewarm_paged_kv_stride_variant()


def test_scales_of_tokens_are_outside(generator):
    with pytest.raises(NotImplementedError, match="use_token_head_sf"):
        Batch(generator).plan(BatchDecodeWithPagedKVCacheWrapper(WORKSPACE), use_token_head_sf=True)
