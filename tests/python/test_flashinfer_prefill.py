"""FlashInfer's wrappers for prompts, over paged and over ragged K and V, beside a plain evaluation."""

import dataclasses

import pytest

torch = pytest.importorskip("torch")

from deft.flashinfer import (
    BatchAttentionWithAttentionSinkWrapper,
    BatchPrefillWithPagedKVCacheWrapper,
    BatchPrefillWithRaggedKVCacheWrapper,
)
from plain_attention import assert_close, pages_of, plain_shown

WORKSPACE = torch.empty(0)
HEADS, KV_HEADS, DIM = 4, 2, 64


@pytest.fixture
def generator(request):
    return torch.Generator().manual_seed(17)


def drawn(generator, least, most):
    return int(torch.randint(least, most + 1, (1,), generator=generator))


def sums(values):
    return torch.tensor([0, *values], dtype=torch.int32).cumsum(0, dtype=torch.int32)


@dataclasses.dataclass
class Prompts:
    """Requests with queries, some of which share pages; K and V in pages."""

    page_size: int
    layout: str
    rows: list
    lengths: list
    counts: list
    cache: torch.Tensor
    q: torch.Tensor

    @classmethod
    def drawn(cls, generator, *, page_size=16, layout="NHD", dtype=torch.float16, requests=4, most=200, shares=True):
        rows, lengths, counts, pages = [], [], [], 0
        for request in range(requests):
            kept = []
            if request and shares:
                other = rows[drawn(generator, 0, request - 1)]
                kept = other[: drawn(generator, 0, len(other) - 1)]
            length = len(kept) * page_size + drawn(generator, 1, most + 50)
            own = -(-length // page_size) - len(kept)
            rows.append(kept + list(range(pages, pages + own)))
            pages += own
            lengths.append(length)
            # Those that ask are of the tokens that the request has by itself.
            counts.append(drawn(generator, 1, min(most, length - len(kept) * page_size)))
        shape = (pages, 2, page_size, KV_HEADS, DIM) if layout == "NHD" else (pages, 2, KV_HEADS, page_size, DIM)
        cache = torch.randn(shape, generator=generator).to(dtype)
        return cls(page_size, layout, rows, lengths, counts, cache, cls.queries(generator, sum(counts), dtype))

    @staticmethod
    def queries(generator, count, dtype):
        return torch.randn(count, HEADS, DIM, generator=generator).to(dtype)

    def arguments(self):
        indices = torch.tensor([page for row in self.rows for page in row], dtype=torch.int32)
        last = torch.tensor([(length - 1) % self.page_size + 1 for length in self.lengths], dtype=torch.int32)
        return sums(self.counts), sums(map(len, self.rows)), indices, last, HEADS, KV_HEADS, DIM, self.page_size

    def plan(self, wrapper, **more):
        more.setdefault("q_data_type", self.q.dtype)
        wrapper.plan(*self.arguments(), **more)

    def right(self, shown, cache=None, **more):
        """`shown`: of each request, which tokens each query sees."""
        cache = self.cache if cache is None else cache
        outs = []
        queries = self.q.split(self.counts)
        for row, length, q, visible in zip(self.rows, self.lengths, queries, shown):
            k, v = (pages_of(cache[:, which], torch.tensor(row, dtype=torch.int32), length, self.layout) for which in (0, 1))
            outs.append(plain_shown(q, k, v, visible, **more))
        return tuple(torch.cat(parts) for parts in zip(*outs))

    def shown(self, causal=False, window_left=-1):
        """FlashInfer's rule: queries are the last of their request, and a window begins where one's own token says."""
        return [shown_of(count, length, causal, window_left) for count, length in zip(self.counts, self.lengths)]


def shown_of(count, length, causal, window_left=-1):
    own = torch.arange(length - count, length)[:, None]
    token = torch.arange(length)[None, :]
    shown = token <= own if causal else torch.ones(count, length, dtype=torch.bool)
    return shown & (token >= own - window_left) if window_left >= 0 else shown


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("page_size, layout, dtype", [(1, "NHD", torch.float16), (16, "HND", torch.bfloat16), (5, "NHD", torch.bfloat16)])
def test_prompts_of_all_lengths(generator, causal, page_size, layout, dtype):
    wrapper = BatchPrefillWithPagedKVCacheWrapper(WORKSPACE, layout)
    for most in 200, 1, 7:  # and a step follows a step
        prompts = Prompts.drawn(generator, page_size=page_size, layout=layout, dtype=dtype, most=most)
        prompts.plan(wrapper, causal=causal)
        out, lse = wrapper.run(prompts.q, prompts.cache, return_lse=True)
        assert out.dtype == dtype
        right, right_lse = prompts.right(prompts.shown(causal))
        assert_close(out, right, lse, right_lse)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("window_left", [0, 3, 40, 10000])
def test_windows_begin_at_a_query_s_own_token(generator, causal, window_left):
    prompts = Prompts.drawn(generator, most=90)
    wrapper = BatchPrefillWithPagedKVCacheWrapper(WORKSPACE)
    prompts.plan(wrapper, causal=causal, window_left=window_left, logits_soft_cap=8.0, sm_scale=0.3)
    out, lse = wrapper.run_return_lse(prompts.q, prompts.cache)
    right, right_lse = prompts.right(prompts.shown(causal, window_left), scale=0.3, soft_cap=8.0)
    assert_close(out, right, lse, right_lse)


@pytest.mark.parametrize("causal, window_left", [(True, -1), (False, -1), (False, 2), (True, 2)])
def test_more_queries_than_tokens(generator, causal, window_left):
    prompts = Prompts.drawn(generator, requests=3, shares=False)
    prompts.lengths, prompts.counts = [5, prompts.lengths[1], 0], [20, 3, 2]
    prompts.rows[0], prompts.rows[2] = prompts.rows[0][:1], []
    prompts.q = prompts.queries(generator, 25, torch.float16)
    wrapper = BatchPrefillWithPagedKVCacheWrapper(WORKSPACE)
    arguments = list(prompts.arguments())
    arguments[3][2] = 0
    wrapper.plan(*arguments, causal=causal, window_left=window_left, q_data_type=torch.float16)
    out, lse = wrapper.run(prompts.q, prompts.cache, return_lse=True)
    right, right_lse = prompts.right(prompts.shown(causal, window_left))
    assert_close(out, right, lse, right_lse)
    assert (lse == -torch.inf).any(), "a query that sees nothing is among them"


@pytest.mark.parametrize("cache_dtype", [torch.float8_e4m3fn, torch.float8_e5m2])
def test_a_cache_of_8_bit_floats_has_scales(generator, cache_dtype):
    prompts = Prompts.drawn(generator, dtype=torch.bfloat16, most=40)
    stored = prompts.cache.to(cache_dtype)
    wrapper = BatchPrefillWithPagedKVCacheWrapper(WORKSPACE)
    prompts.plan(wrapper, causal=True, kv_data_type=cache_dtype)
    out, lse = wrapper.run(prompts.q, stored, k_scale=0.5, v_scale=2.0, return_lse=True)
    scaled = stored.to(torch.bfloat16) * torch.tensor([0.5, 2.0]).to(torch.bfloat16)[:, None, None, None]
    right, right_lse = prompts.right(prompts.shown(True), scaled)
    assert_close(out, right, lse, right_lse)


@pytest.mark.parametrize("causal", [True, False])
def test_sinks_come_with_a_run(generator, causal):
    prompts = Prompts.drawn(generator, most=60)
    sinks = torch.randn(HEADS, generator=generator) * 3
    right, right_lse = prompts.right(prompts.shown(causal, 30), sinks=sinks, scale=0.2)
    wrapper = BatchPrefillWithPagedKVCacheWrapper(WORKSPACE)
    prompts.plan(wrapper, causal=causal, window_left=30, sm_scale=0.2)
    out, lse = wrapper.run(prompts.q, prompts.cache, sinks=sinks, return_lse=True)
    assert_close(out, right, lse, right_lse)
    of_sinks = BatchAttentionWithAttentionSinkWrapper(WORKSPACE, q_data_type=torch.float16, window_left=30)
    prompts.plan(of_sinks, causal=causal, window_left=30)
    out, lse = of_sinks.run(prompts.q, prompts.cache, sinks, 0.1, q_scale=2.0, return_lse=True)
    assert_close(out, right, lse, right_lse)
    with pytest.raises(ValueError, match="sinks are missing"):
        of_sinks.run(prompts.q, prompts.cache)


def test_lse_comes_to_either_base_and_in_either_order(generator):
    prompts = Prompts.drawn(generator, most=20)
    wrapper = BatchPrefillWithPagedKVCacheWrapper(WORKSPACE)
    prompts.plan(wrapper)
    out, lse = torch.empty_like(prompts.q), torch.empty(HEADS, len(prompts.q))
    given = wrapper.run(prompts.q, prompts.cache, out=out, lse=lse, return_lse=True, lse_base="ln", lse_layout="HN")
    assert given[0] is out and given[1] is lse
    right, right_lse = prompts.right(prompts.shown())
    assert_close(out, right, lse.t() / torch.log(torch.tensor(2.0)), right_lse)
    turned = wrapper.run(prompts.q, prompts.cache, return_lse=True, lse_layout="HN")[1]
    assert turned.is_contiguous() and turned.shape == lse.shape
    for layout, expected in ("HN", turned), ("NH", turned.t()):
        written = torch.zeros(expected.shape)
        assert torch.equal(wrapper.run(prompts.q, prompts.cache, lse=written, lse_layout=layout), out)
        assert torch.equal(written, expected), "an lse that is given is written"
    for name, value in ("lse_base", "e"), ("lse_layout", "HNX"):
        with pytest.raises(ValueError, match=f"{name} is '{value}', it must be"):
            wrapper.run(prompts.q, prompts.cache, **{name: value})


def test_the_older_call_says_with_each_run_what_is_causal(generator):
    """As SGLang makes it: plan is not told, and layers have windows of their own."""
    wrapper = BatchPrefillWithPagedKVCacheWrapper(WORKSPACE)
    for _ in range(3):
        prompts = Prompts.drawn(generator, most=50)
        wrapper.begin_forward(*prompts.arguments(), q_data_type=torch.float16)
        for causal, window_left in (True, -1), (True, 11), (False, 11), (False, -1):
            out, lse = wrapper.forward_return_lse(
                prompts.q, prompts.cache, causal=causal, window_left=window_left, sm_scale=0.1, logits_soft_cap=9.0, k_scale=2.0
            )
            right, right_lse = prompts.right(prompts.shown(causal, window_left), scale=0.2, soft_cap=9.0)
            assert_close(out, right, lse, right_lse)
        wrapper.end_forward()


def test_a_step_is_planned_for_what_ran_in_the_one_before(generator):
    prompts = Prompts.drawn(generator, most=20)
    wrapper = BatchPrefillWithPagedKVCacheWrapper(WORKSPACE)
    for _ in range(2):
        wrapper.begin_forward(*prompts.arguments(), q_data_type=torch.float16)
        wrapper.forward(prompts.q, prompts.cache, causal=True)
    wrapper.begin_forward(*prompts.arguments(), q_data_type=torch.float16)
    assert [kind.value for kind in wrapper._plans._steps] == ["causal"]


@pytest.mark.parametrize("asked", [{"disable_split_kv": True}, {"fixed_split_size": 8}])
@pytest.mark.parametrize("causal", [True, False])
def test_bits_do_not_depend_on_who_shares_a_prefix(generator, asked, causal):
    first = Prompts.drawn(generator, requests=1, most=3)
    pages = 60
    first.cache = torch.randn((pages + 20, 2, 16, KV_HEADS, DIM), generator=generator).half()
    first.rows, first.lengths, first.counts = [list(range(pages))], [pages * 16 - 5], [3]
    first.q = first.queries(generator, 3, torch.float16)
    wrapper, bits = BatchPrefillWithPagedKVCacheWrapper(WORKSPACE), []
    for left_at in ([], [7], [1, 20, 33, 59]):
        others = [[*range(left), pages + number] for number, left in enumerate(left_at)]
        batch = dataclasses.replace(first, rows=[*first.rows, *others], counts=[3] * (1 + len(others)))
        batch.lengths = [len(row) * 16 - 5 for row in batch.rows]
        batch.q = torch.cat([first.q, first.queries(generator, 3 * len(others), torch.float16)])
        batch.plan(wrapper, causal=causal, **asked)
        out, lse = wrapper.run(batch.q, batch.cache, return_lse=True)
        right, right_lse = batch.right(batch.shown(causal))
        assert_close(out, right, lse, right_lse)
        bits.append((out[:3], lse[:3]))
    for out, lse in bits[1:]:
        assert torch.equal(out, bits[0][0]) and torch.equal(lse, bits[0][1])


def for_graphs(requests, pages, **more):
    sizes = {"qo_indptr_buf": requests + 1, "paged_kv_indptr_buf": requests + 1}
    sizes |= {"paged_kv_indices_buf": pages, "paged_kv_last_page_len_buf": requests}
    buffers = {name: torch.zeros(size, dtype=torch.int32) for name, size in sizes.items()}
    return BatchPrefillWithPagedKVCacheWrapper(WORKSPACE, "NHD", True, **buffers, **more), buffers


def test_with_buffers_for_graphs_the_pages_lie_in_the_caller_s_buffer(generator):
    prompts = Prompts.drawn(generator, most=30, shares=False)
    wrapper, buffers = for_graphs(4, 200, max_total_num_rows=sum(prompts.counts))
    assert wrapper.is_cuda_graph_enabled
    for step in range(3):
        prompts.lengths = [length + (length % 16 > 0) for length in prompts.lengths]
        prompts.plan(wrapper, causal=True)
        indices = prompts.arguments()[2]
        assert torch.equal(buffers["paged_kv_indices_buf"][: len(indices)], indices)
        assert_close(wrapper.run(prompts.q, prompts.cache), prompts.right(prompts.shown(True))[0])
    prompts.counts[0] += 1
    with pytest.raises(ValueError, match="has room for"):
        prompts.plan(wrapper, causal=True)
    prompts.counts[0] -= 1
    assert_close(wrapper.run(prompts.q, prompts.cache), prompts.right(prompts.shown(True))[0])  # nothing has changed
    for requests, pages, message in ((3, 200, "4 requests.*made for 3"), (4, 2, "paged_kv_indices_buf has 2")):
        with pytest.raises(ValueError, match=message):
            prompts.plan(for_graphs(requests, pages)[0])
    with pytest.raises(ValueError, match="max_total_num_rows is for wrappers with use_cuda_graph"):
        BatchPrefillWithPagedKVCacheWrapper(WORKSPACE, max_total_num_rows=3)
    with pytest.raises(ValueError, match="paged_kv_indices_buf should be a torch.Tensor in CUDA graph mode"):
        for_graphs(4, 20)[0].__init__(WORKSPACE, "NHD", True, buffers["qo_indptr_buf"], buffers["paged_kv_indptr_buf"])


def test_what_engines_look_at_is_there(generator):
    """vLLM asserts what its wrapper was planned with, and SGLang whether it has a buffer for masks."""
    prompts = Prompts.drawn(generator)
    wrapper = BatchPrefillWithPagedKVCacheWrapper(WORKSPACE)
    prompts.plan(wrapper, causal=True, window_left=7, logits_soft_cap=5.0, sm_scale=0.3)
    assert (wrapper._causal, wrapper._window_left, wrapper._logits_soft_cap, wrapper._sm_scale) == (True, 7, 5.0, 0.3)
    assert wrapper._custom_mask_buf is None


def test_a_plan_that_raises_changes_nothing(generator):
    prompts = Prompts.drawn(generator, most=30)
    wrapper = BatchPrefillWithPagedKVCacheWrapper(WORKSPACE)
    prompts.plan(wrapper, causal=True)
    right = wrapper.run(prompts.q, prompts.cache)
    queries, indptr, indices, last, *shapes = prompts.arguments()
    for wrong, message in (
        ((queries[:-1], indptr, indices, last), "qo_indptr has 4 entries, there must be 5 for 4 requests"),
        ((queries + 1, indptr, indices, last), "qo_indptr begins with 1"),
        ((queries.flip(0) - queries[-1], indptr, indices, last), "qo_indptr must not fall"),
        ((queries, indptr, indices, last + 16), "tokens in its last page, must be 1 to 16"),
        ((queries, indptr, indices - 1000, last), "page"),
    ):
        with pytest.raises(ValueError, match=message):
            wrapper.plan(*wrong, *shapes, causal=True, q_data_type=torch.float16)
        assert torch.equal(wrapper.run(prompts.q, prompts.cache), right)
    with pytest.raises(ValueError, match=r"q has 1 rows, qo_indptr\[-1\] is"):
        wrapper.run(prompts.q[:1], prompts.cache)
    with pytest.raises(RuntimeError, match="call plan before run"):
        BatchPrefillWithPagedKVCacheWrapper(WORKSPACE).run(prompts.q, prompts.cache)


@pytest.mark.parametrize(
    "name, value",
    [
        ("pos_encoding_mode", "ALIBI"),
        ("q_data_type", torch.float8_e4m3fn),
        ("kv_data_type", torch.uint8),
        ("head_dim_vo", 24),
        ("block_tables", torch.zeros(1, 1)),
        ("prefix_len_ptr", torch.zeros(1)),
        ("token_pos_in_items_ptr", torch.zeros(1)),
        ("max_item_len_ptr", torch.zeros(1)),
        ("use_token_head_sf", True),
    ],
)
def test_what_plan_does_not_take_is_named(generator, name, value):
    with pytest.raises(NotImplementedError, match=name):
        Prompts.drawn(generator).plan(BatchPrefillWithPagedKVCacheWrapper(WORKSPACE), **{name: value})


@pytest.mark.parametrize("kind", [BatchPrefillWithPagedKVCacheWrapper, BatchPrefillWithRaggedKVCacheWrapper])
@pytest.mark.parametrize("name, value", [("backend", "cudnn"), ("jit_args", ["name"]), ("variant_owns_mask", True)])
def test_what_a_wrapper_does_not_take_is_named(kind, name, value):
    with pytest.raises(NotImplementedError, match=name):
        kind(WORKSPACE, **{name: value})


@pytest.mark.parametrize(
    "name, value",
    [
        ("skip_softmax_threshold_scale_factor", 1.0),
        ("kv_cache_sf", torch.zeros(1)),
        ("use_fp16_softmax", True),
        ("uses_spcompress", True),
    ],
)
def test_what_a_run_does_not_take_is_named(generator, name, value):
    prompts = Prompts.drawn(generator)
    wrapper = BatchPrefillWithPagedKVCacheWrapper(WORKSPACE)
    prompts.plan(wrapper)
    with pytest.raises(NotImplementedError, match=name):
        wrapper.run(prompts.q, prompts.cache, **{name: value})
    with pytest.raises(NotImplementedError, match="args"):
        wrapper.run(prompts.q, prompts.cache, 1.0)
    with pytest.raises(ValueError, match="window_left is 5, it was planned as -1"):
        wrapper.run(prompts.q, prompts.cache, window_left=5)


class Ragged:
    """The same requests, one behind the other."""

    def __init__(self, generator, layout="NHD", dtype=torch.float16, most=80):
        self.lengths = [drawn(generator, 1, most + 20) for _ in range(4)]
        self.counts = [drawn(generator, 1, min(most, length)) for length in self.lengths]
        self.layout = layout
        self.k, self.v = (torch.randn(sum(self.lengths), KV_HEADS, DIM, generator=generator).to(dtype) for _ in range(2))
        self.q = Prompts.queries(generator, sum(self.counts), dtype)

    def plan(self, wrapper, **more):
        more.setdefault("q_data_type", self.q.dtype)
        wrapper.plan(sums(self.counts), sums(self.lengths), HEADS, KV_HEADS, DIM, **more)

    def run(self, wrapper, *more, **given):
        k, v = (one.transpose(0, 1).contiguous() if self.layout == "HND" else one for one in (self.k, self.v))
        return wrapper.run(self.q, k, v, *more, **given)

    def shown(self, causal=False, window_left=-1):
        return [shown_of(count, length, causal, window_left) for count, length in zip(self.counts, self.lengths)]

    def right(self, shown, **more):
        parts = zip(self.q.split(self.counts), self.k.split(self.lengths), self.v.split(self.lengths), shown)
        return tuple(torch.cat(results) for results in zip(*(plain_shown(*part, **more) for part in parts)))


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("layout", ["NHD", "HND"])
@pytest.mark.parametrize("window_left", [-1, 0, 20])
def test_ragged_prompts(generator, causal, layout, window_left):
    wrapper = BatchPrefillWithRaggedKVCacheWrapper(WORKSPACE, layout)
    for _ in range(2):
        ragged = Ragged(generator, layout)
        ragged.plan(wrapper, causal=causal, window_left=window_left)
        out, lse = ragged.run(wrapper, return_lse=True, k_scale=3.0)  # of 16 bits, which have no scales
        right, right_lse = ragged.right(ragged.shown(causal, window_left))
        assert_close(out, right, lse, right_lse)
    out = wrapper.forward(ragged.q, *(one.transpose(0, 1) if layout == "HND" else one for one in (ragged.k, ragged.v)), causal=True)
    assert_close(out, ragged.right(ragged.shown(True))[0])


@pytest.mark.parametrize("layout", ["NHD", "HND"])
def test_v_of_ragged_prompts_may_be_of_another_width_than_k(generator, layout):
    """As prompts of latent models in the expanded form."""
    ragged = Ragged(generator, layout, torch.bfloat16)
    ragged.k, ragged.q = (torch.randn(*one.shape[:2], 96, generator=generator).bfloat16() for one in (ragged.k, ragged.q))
    wrapper = BatchPrefillWithRaggedKVCacheWrapper(WORKSPACE, layout)
    arguments = sums(ragged.counts), sums(ragged.lengths), HEADS, KV_HEADS
    wrapper.plan(*arguments, 96, head_dim_vo=DIM, causal=True, sm_scale=0.1, q_data_type=torch.bfloat16)
    out, lse = ragged.run(wrapper, return_lse=True)
    assert out.shape == (sum(ragged.counts), HEADS, DIM)
    right, right_lse = ragged.right(ragged.shown(True), scale=0.1)
    assert_close(out, right, lse, right_lse)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("window_left", [-1, 3])
def test_ragged_requests_with_more_queries_than_tokens(generator, causal, window_left):
    ragged = Ragged(generator)
    ragged.lengths[1], ragged.counts[1], ragged.counts[2] = 4, 9, 0
    ragged.q = Prompts.queries(generator, sum(ragged.counts), torch.float16)
    ragged.k, ragged.v = ragged.k[: sum(ragged.lengths)], ragged.v[: sum(ragged.lengths)]
    wrapper = BatchPrefillWithRaggedKVCacheWrapper(WORKSPACE)
    ragged.plan(wrapper, causal=causal, window_left=window_left)
    out, lse = ragged.run(wrapper, return_lse=True)
    right, right_lse = ragged.right(ragged.shown(causal, window_left))
    assert_close(out, right, lse, right_lse)


def test_ragged_8_bit_floats_have_scales(generator):
    ragged = Ragged(generator)
    k, v = (one.to(torch.float8_e4m3fn) for one in (ragged.k, ragged.v))
    ragged.k, ragged.v = k.half() * 0.5, v.half() * 2
    wrapper = BatchPrefillWithRaggedKVCacheWrapper(WORKSPACE)
    ragged.plan(wrapper, causal=True, kv_data_type=torch.float8_e4m3fn)
    assert_close(wrapper.run(ragged.q, k, v, k_scale=0.5, v_scale=2.0), ragged.right(ragged.shown(True))[0])


def test_ragged_with_the_sinks_of_flashinfer_s_kernel(generator):
    """Which is made of arguments that FlashInfer documents, the name of a variant among them."""
    sink_kernel = ("uri", *[torch.float16] * 3, torch.int32, DIM, DIM, ["sink"], ["float"], ["sm_scale"], ["double"], "AttentionSink", "")
    ragged, sinks = Ragged(generator), torch.randn(HEADS, generator=generator) * 3
    wrapper = BatchPrefillWithRaggedKVCacheWrapper(WORKSPACE, jit_args=sink_kernel, jit_kwargs={"use_sliding_window": False})
    ragged.plan(wrapper, causal=True)
    assert_close(ragged.run(wrapper, sinks, 0.3), ragged.right(ragged.shown(True), sinks=sinks, scale=0.3)[0])
    with pytest.raises(RuntimeError, match="call run in place of forward"):
        wrapper.forward(ragged.q, ragged.k, ragged.v)


def test_ragged_buffers_for_graphs(generator):
    ragged = Ragged(generator)
    buffers = {name: torch.zeros(5, dtype=torch.int32) for name in ("qo_indptr_buf", "kv_indptr_buf")}
    wrapper = BatchPrefillWithRaggedKVCacheWrapper(WORKSPACE, "NHD", True, **buffers)
    for counts in ragged.counts, [1, 1, 1, 1]:
        ragged.counts, ragged.q = counts, ragged.q[: sum(counts)]
        ragged.plan(wrapper, causal=True)
        assert_close(ragged.run(wrapper), ragged.right(ragged.shown(True))[0])
    with pytest.raises(NotImplementedError, match="kv_data_type"):
        ragged.plan(wrapper, kv_data_type=torch.float8_e4m3fn)
    ragged.counts = [200, 1, 1, 1]
    with pytest.raises(ValueError, match="qo_indptr has 203 queries, the wrapper for CUDA graphs has room for"):
        ragged.plan(wrapper, causal=True)
    for name in buffers:
        with pytest.raises(ValueError, match=f"{name} should be a torch.Tensor in CUDA graph mode"):
            BatchPrefillWithRaggedKVCacheWrapper(WORKSPACE, "NHD", True, **{**buffers, name: None})
