import math

import pytest

torch = pytest.importorskip("torch")

from deft.flash_mla import flash_mla_with_kvcache, get_mla_metadata
from plain_attention import assert_close, packed, plain

DIM, DIM_V, HEADS, PAGE = 80, 64, 4, 16


@pytest.fixture
def generator():
    return torch.Generator().manual_seed(7)


class Step:
    """Three requests, of which two share a prefix."""

    def __init__(self, generator, each=1, dtype=torch.bfloat16, dim=DIM, heads=HEADS, page=PAGE):
        self.table = torch.tensor([[5, 1, 7, 0], [5, 1, 2, -1], [3, -1, -1, -1]], dtype=torch.int32)
        self.lengths = torch.tensor([4 * page - 3 * (page > 3), 2 * page + 1, page], dtype=torch.int32)
        self.q = torch.randn(3, each, heads, dim, generator=generator).to(dtype)
        self.cache = torch.randn(8, page, 1, dim, generator=generator).to(dtype)

    def run(self, metadata, head_dim_v=DIM_V, **more):
        return flash_mla_with_kvcache(self.q, self.cache, self.table, self.lengths, head_dim_v, metadata, None, **more)

    def right(self, head_dim_v=DIM_V, causal=False, scale=None):
        results = []
        for q, row, length in zip(self.q, self.table, self.lengths.tolist()):
            k = self.cache[row.clamp(min=0).long()].reshape(-1, 1, q.shape[-1])[:length]
            seen = [length - len(q) + 1 + i if causal else length for i in range(len(q))]
            results.append(plain(q, k, k[..., :head_dim_v], seen, scale=scale))
        out, lse = (torch.stack(one) for one in zip(*results))
        return out, lse.transpose(1, 2)

    def check(self, metadata, causal=False, scale=None, head_dim_v=DIM_V):
        out, lse = self.run(metadata, head_dim_v, causal=causal, softmax_scale=scale)
        right = self.right(head_dim_v, causal, scale)
        assert out.shape == right[0].shape and lse.shape == right[1].shape and lse.dtype == torch.float32
        assert_close(out, right[0], lse * math.log2(math.e), right[1])


@pytest.mark.parametrize("each", [1, 4])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_it_is_the_attention_of_each_request(generator, each, causal, dtype):
    step = Step(generator, each, dtype)
    metadata, num_splits = get_mla_metadata(step.lengths, each * HEADS, 1)
    assert num_splits is None
    step.check(metadata, causal)
    step.check(metadata, causal, scale=0.21)


def test_dims_of_deepseek(generator):
    Step(generator, 2, dim=576, heads=16, page=64).check(get_mla_metadata()[0], True, 192**-0.5, 512)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.float8_e4m3fn])
def test_tokens_may_be_of_656_bytes(generator, dtype):
    step = Step(generator, 2, dim=576, heads=16, page=64)
    cache, step.cache = packed(step.cache)
    right = step.right(512, True, 192**-0.5)
    step.cache = cache.view(dtype)
    assert step.cache.shape == (8, 64, 1, 656)
    out, lse = step.run(get_mla_metadata()[0], 512, causal=True, softmax_scale=192**-0.5, is_fp8_kvcache=True)
    assert_close(out, right[0], lse * math.log2(math.e), right[1])


def test_bytes_that_do_not_fit_are_named(generator):
    metadata, _ = get_mla_metadata()
    step = Step(generator, dim=576, page=64)
    cache = packed(step.cache)[0]
    for given, kind, said in (
        (step.cache, ValueError, r"k_cache is \[8, 64, 1, 576\], it must be \[blocks, page size, 1, 656\]"),
        (cache[..., :584], NotImplementedError, "tokens of 584 bytes are not read"),
        (torch.zeros(8, 64, 1, 656), ValueError, "k_cache is torch.float32, it must be of 8 bits"),
    ):
        step.cache = given
        with pytest.raises(kind, match=said):
            step.run(metadata, 512, is_fp8_kvcache=True)
    step.cache, step.q = cache, step.q.half()
    with pytest.raises(NotImplementedError, match="whose rotated elements are bfloat16"):
        step.run(metadata, 512, is_fp8_kvcache=True)


def test_layers_of_a_step_share_a_plan(generator):
    step = Step(generator)
    metadata, _ = get_mla_metadata()
    step.check(metadata)
    planned = metadata._steps._work
    step.q, step.cache = step.q + 1, step.cache + 1
    step.check(metadata)
    assert metadata._steps._work is planned
    step.lengths += torch.tensor([1, 3, -2], dtype=torch.int32)  # which torch notes
    step.check(metadata)
    step.table = step.table.flip(1)[:, :4].roll(1, 1).clamp(min=0)
    step.check(metadata)
    assert metadata._steps._work is not planned


def test_what_is_outside_is_named(generator):
    step = Step(generator)
    metadata, _ = get_mla_metadata()
    for name, value in {"extra_topk_length": step.lengths, "extra_k_cache": step.cache}.items():
        with pytest.raises(NotImplementedError, match=f"^{name}="):
            step.run(metadata, **{name: value})
    with pytest.raises(ValueError, match="head_dim_v is 80, it must be less than the 80 of q"):
        step.run(metadata, 80)
    for change, said in (
        ({"table": None}, "block_table and cache_seqlens must be given"),
        ({"cache": step.cache[..., :72]}, r"k_cache is \[8, 16, 1, 72\], it must be \[blocks, page size, 1, 80\]"),
        ({"cache": step.cache.half()}, "k_cache is torch.float16, and q torch.bfloat16"),
        ({"cache": step.cache[:, :, 0]}, "k_cache has 3 dimensions, it must have 4"),
        ({"table": step.table[:2]}, "block_table has 2 rows and cache_seqlens 3, q is of 3 requests"),
    ):
        wrong = Step(generator)
        vars(wrong).update(change)
        with pytest.raises(ValueError, match=said):
            wrong.run(metadata)
    with pytest.raises(TypeError, match="it must be of get_mla_metadata of deft.flash_mla"):
        step.run(step.lengths)
    with pytest.raises(ValueError, match="num_splits must be None"):
        flash_mla_with_kvcache(step.q, step.cache, step.table, step.lengths, DIM_V, metadata, step.lengths)


class Lists:
    """Queries of two requests, each with a list of its own; the last one's is empty."""

    def __init__(self, generator, each=2, topk=37, dim=DIM, heads=HEADS, page=PAGE):
        self.q = torch.randn(2, each, heads, dim, generator=generator).to(torch.bfloat16)
        self.cache = torch.randn(8, page, 1, dim, generator=generator).to(torch.bfloat16)
        self.indices = torch.randint(-1, 8 * page, (2, each, topk), generator=generator, dtype=torch.int32)
        self.indices[0, -1, ::3] = self.indices[0, 0, min(5, topk - 1)]
        self.indices[1, -1] = -1

    def run(self, metadata, head_dim_v=DIM_V, **more):
        more = {"indices": self.indices, **more}
        return flash_mla_with_kvcache(self.q, self.cache, None, None, head_dim_v, metadata, None, **more)

    def check(self, metadata, head_dim_v=DIM_V, counts=None, **more):
        out, lse = self.run(metadata, head_dim_v, **more)
        assert lse.shape == (self.q.shape[0], self.q.shape[2], self.q.shape[1])
        tokens = self.cache.reshape(-1, 1, self.q.shape[-1])
        for request, queries in enumerate(self.indices):
            for query, slots in enumerate(queries):
                slots = slots[: counts[request]] if counts is not None else slots
                k = tokens[slots[slots >= 0].long()]
                got, got_lse = out[request, query], lse[request, :, query]
                if len(k) == 0:
                    assert (got == 0).all() and torch.isneginf(got_lse).all()
                    continue
                right, right_lse = plain(self.q[request, query][None], k, k[..., :head_dim_v], [len(k)])
                assert_close(got[None], right, got_lse[None] * math.log2(math.e), right_lse)


def test_indices_say_what_a_query_sees(generator):
    metadata, _ = get_mla_metadata()
    lists = Lists(generator)
    lists.check(metadata)
    plan = metadata._lists[1]
    lists.indices = lists.indices.flip(1).contiguous()
    lists.check(metadata)  # another layer has lists of its own
    assert metadata._lists[1] is plan
    lists.check(metadata, topk_length=torch.tensor([5, 0], dtype=torch.int32), counts=[5, 0])
    Lists(generator, each=1, topk=1).check(metadata)
    lists.check(get_mla_metadata(list_overlap=0.5)[0])
    with pytest.raises(ValueError, match="list_overlap is nan, it must be a number"):
        lists.check(get_mla_metadata(list_overlap=math.nan)[0])
    for wrong in -0.001, 1.001, 50:  # also on processors, which do not use it
        with pytest.raises(ValueError, match="list_overlap is .*, it must be from 0 to 1"):
            lists.check(get_mla_metadata(list_overlap=wrong)[0])
    Lists(generator, each=1, topk=64, dim=576, heads=16, page=64).check(get_mla_metadata()[0], 512)


SINKS = torch.tensor([0.4, -math.inf, math.inf, 30.0])


def sunk(right, right_lse, sinks):
    """FlashMLA's meaning of `attn_sink`, of heads last but one in `right` and last in its lse, to base 2."""
    return right * torch.sigmoid(right_lse / math.log2(math.e) - sinks.double())[..., None]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_sink_scales_the_output_and_not_the_lse(generator, dtype, causal):
    step = Step(generator, 3, dtype)
    metadata, _ = get_mla_metadata()
    for sinks in (SINKS, torch.randn(HEADS, generator=generator) * 4):
        out, lse = step.run(metadata, causal=causal, attn_sink=sinks)
        right, right_lse = step.right(causal=causal)
        assert_close(out, sunk(right, right_lse.transpose(1, 2), sinks), lse * math.log2(math.e), right_lse)
    planned = metadata._steps._work
    without, same_lse = step.run(metadata, causal=causal)
    assert metadata._steps._work is planned
    assert torch.equal(same_lse, lse)
    assert torch.equal(step.run(metadata, causal=causal, attn_sink=torch.full((HEADS,), -math.inf))[0], without)


@pytest.mark.parametrize("is_packed", [False, True])
def test_a_sink_goes_with_indices(generator, is_packed):
    metadata, _ = get_mla_metadata()
    lists = Lists(generator, topk=23, dim=576, page=64)
    tokens, more = lists.cache.reshape(-1, 1, 576), {}
    if is_packed:
        lists.cache, tokens = packed(lists.cache)
        tokens, more = tokens.reshape(-1, 1, 576), {"is_fp8_kvcache": True}
    out, lse = lists.run(metadata, 512, attn_sink=SINKS, **more)
    assert torch.equal(lse, lists.run(metadata, 512, **more)[1])
    for request, query in ((0, 0), (0, 1), (1, 0)):
        slots = lists.indices[request, query]
        k = tokens[slots[slots >= 0].long()]
        right, right_lse = plain(lists.q[request, query][None], k, k[..., :512], [len(k)])
        assert_close(out[request, query][None], sunk(right, right_lse, SINKS), lse[request, :, query][None] * math.log2(math.e), right_lse)
    assert (out[1, 1] == 0).all() and torch.isneginf(lse[1, :, 1]).all()


def test_a_sink_that_does_not_fit_is_named(generator):
    step = Step(generator)
    for sinks, said in (
        (torch.zeros(HEADS, dtype=torch.bfloat16), r"attn_sink is torch.bfloat16 \[4\], it must be torch.float32 \[4\]"),
        (torch.zeros(1, HEADS), r"attn_sink is torch.float32 \[1, 4\], it must be torch.float32 \[4\]"),
    ):
        with pytest.raises(ValueError, match=said):
            step.run(get_mla_metadata()[0], attn_sink=sinks)


def test_indices_that_do_not_fit_are_named(generator):
    metadata, _ = get_mla_metadata()
    lists = Lists(generator)
    for change, said in (
        ({"indices": lists.indices[:1]}, r"indices is \[1, 2, 37\], it must be \[2, 2, topk\]"),
        ({"indices": lists.indices.long()}, "indices is torch.int64, it must be torch.int32"),
        ({"indices": lists.indices[0]}, "indices has 2 dimensions, it must have 3"),
        ({"causal": True}, "causal must be False if indices are given"),
        ({"topk_length": lists.indices}, r"topk_length is \[2, 2, 37\], it must be \[2\]"),
    ):
        with pytest.raises(ValueError, match=said):
            lists.run(metadata, **change)
    with pytest.raises(ValueError, match="topk_length is given, and there are no indices"):
        step = Step(generator)
        step.run(metadata, topk_length=step.lengths)
    lists.indices[1, 0, 3] = 8 * PAGE
    with pytest.raises(ValueError, match="lists has 128 for query 2, and the cache has 128 slots"):
        lists.run(metadata)
