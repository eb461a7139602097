import math
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

import deft
from deft.flashinfer import BatchMLAPagedAttentionWrapper, MLAPlanMetadata
from plain_attention import assert_close, packed, plain

WORKSPACE = torch.empty(0)
CKV, KPE, HEADS, SCALE = 64, 16, 4, 0.11


@pytest.fixture
def generator():
    return torch.Generator().manual_seed(5)


def ints(values):
    return torch.tensor(values, dtype=torch.int32)


class Batch:
    """Requests that share the pages of prefixes, each with queries of its last tokens, or of all."""

    def __init__(self, generator, *, counts=(1, 1, 1), page_size=16, dtype=torch.bfloat16, ckv=CKV, kpe=KPE, heads=HEADS):
        self.page_size, self.dtype, self.ckv, self.kpe, self.heads, self.counts = page_size, dtype, ckv, kpe, heads, counts
        self.lengths = [5 * page_size - 3 * (page_size > 3), 5 * page_size, 3 * page_size - page_size // 2][: len(counts)]
        self.rows = [[7, 2, 9, 4, 0], [7, 2, 9, 1, 3], [7, 8, 6]][: len(counts)]
        self.q = torch.randn(sum(counts), heads, ckv + kpe, generator=generator).to(dtype)
        self.cache = torch.randn(10, page_size, ckv + kpe, generator=generator).to(dtype)

    def requests(self):
        return {
            "qo_indptr": ints([0, *self.counts]).cumsum(0, dtype=torch.int32),
            "kv_indptr": ints([0, *map(len, self.rows)]).cumsum(0, dtype=torch.int32),
            "kv_indices": ints(sum(self.rows, [])),
            "kv_len_arr": ints(self.lengths),
        }

    def plan(self, wrapper, causal=False, **more):
        more.setdefault("sm_scale", SCALE)
        given = self.requests() if "metadata" not in more and "block_tables" not in more else {}
        wrapper.plan(
            **given,
            num_heads=self.heads,
            head_dim_ckv=self.ckv,
            head_dim_kpe=self.kpe,
            page_size=self.page_size,
            causal=causal,
            **{"q_data_type": self.dtype, "kv_data_type": self.dtype, **more},
        )

    def parts(self):
        return (*self.q.split([self.ckv, self.kpe], -1), *self.cache.split([self.ckv, self.kpe], -1))

    def right(self, causal=False, scale=SCALE):
        results, first = [], 0
        for row, length, count in zip(self.rows, self.lengths, self.counts):
            k = self.cache[row].reshape(-1, 1, self.ckv + self.kpe)[:length]
            seen = [length - count + 1 + i if causal else length for i in range(count)]
            results.append(plain(self.q[first : first + count], k, k[..., : self.ckv], seen, scale=scale))
            first += count
        return tuple(torch.cat(one) for one in zip(*results))


@pytest.mark.parametrize("page_size", [1, 16])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("counts", [(1, 1, 1), (4, 4, 4), (2, 1, 3)])
def test_it_is_the_attention_of_each_request(generator, page_size, dtype, causal, counts):
    batch = Batch(generator, counts=counts if page_size > 1 else (1, 2, 1), page_size=page_size, dtype=dtype)
    wrapper = BatchMLAPagedAttentionWrapper(WORKSPACE)
    batch.plan(wrapper, causal)
    out, lse = wrapper.run(*batch.parts(), return_lse=True)
    assert out.shape == (sum(batch.counts), HEADS, CKV) and out.dtype == dtype and lse.dtype == torch.float32
    assert_close(out, batch.right(causal)[0], lse, batch.right(causal)[1])


def test_dims_of_deepseek(generator):
    batch = Batch(generator, ckv=512, kpe=64, heads=16, page_size=64, counts=(1, 2))
    wrapper = BatchMLAPagedAttentionWrapper(WORKSPACE)
    batch.plan(wrapper, True, sm_scale=192**-0.5)
    out, lse = wrapper.run(*batch.parts(), return_lse=True)
    right = batch.right(True, 192**-0.5)
    assert_close(out, right[0], lse, right[1])


def test_parts_may_lie_apart_and_tensors_may_be_whole(generator):
    batch = Batch(generator)
    wrapper = BatchMLAPagedAttentionWrapper(WORKSPACE)
    batch.plan(wrapper)
    q_nope, q_pe, ckv, kpe = batch.parts()
    right = wrapper.run(q_nope, q_pe, ckv, kpe)
    assert_close(right, batch.right()[0])
    apart = [part.clone() for part in (q_nope, q_pe, ckv, kpe)]
    assert torch.equal(wrapper.run(*apart), right)
    assert torch.equal(wrapper.run(query=batch.q, kv_cache=batch.cache), right)
    assert torch.equal(wrapper.run(query=(q_nope, q_pe), kv_cache=(apart[2], kpe)), right)
    # Layers side by side, and a projection whose rows are wider.
    layers = torch.stack([batch.cache, batch.cache + 1], 2)
    assert torch.equal(wrapper.run(query=batch.q, kv_cache=layers[:, :, 0]), right)
    wide = torch.cat([batch.q, batch.q[:, :1]], 1)[:, :HEADS]
    assert torch.equal(wrapper.run(wide[..., :CKV], wide[..., CKV:], ckv, kpe), right)


def test_views_of_one_tensor_are_read_as_they_lie(generator, monkeypatch):
    batch = Batch(generator)
    wrapper = BatchMLAPagedAttentionWrapper(WORKSPACE)
    batch.plan(wrapper)
    right = batch.right()[0]
    monkeypatch.setattr(torch, "cat", None)
    assert_close(wrapper.run(*batch.parts()), right)


def test_lse_is_to_the_base_that_is_asked_for(generator):
    batch = Batch(generator)
    wrapper = BatchMLAPagedAttentionWrapper(WORKSPACE)
    batch.plan(wrapper)
    out, lse = torch.empty(3, HEADS, CKV, dtype=batch.dtype), torch.empty(3, HEADS)
    given = wrapper.run(*batch.parts(), out=out, lse=lse, return_lse=True)
    assert given[0] is out and given[1] is lse
    assert_close(out, batch.right()[0], lse, batch.right()[1])
    lse.zero_()
    assert wrapper.run(*batch.parts(), out=out, lse=lse) is out  # it is written all the same
    assert torch.equal(lse, wrapper.run(*batch.parts(), return_lse=True)[1])
    natural = wrapper.run(*batch.parts(), return_lse=True, return_lse_base_on_e=True)[1]
    assert torch.allclose(natural, lse * math.log(2), atol=1e-5)


def test_requests_may_come_as_metadata_or_as_a_table(generator):
    batch = Batch(generator, counts=(1, 2, 1))
    wrapper = BatchMLAPagedAttentionWrapper(WORKSPACE)
    none = dict.fromkeys(("cum_seq_lens_q", "block_tables", "seq_lens", "max_q_len"))
    batch.plan(wrapper, True, metadata=SimpleNamespace(**batch.requests(), **none))
    right = wrapper.run(*batch.parts())
    assert_close(right, batch.right(True)[0])
    dense = {
        "cum_seq_lens_q": batch.requests()["qo_indptr"],
        "block_tables": ints([row + [-1] * (5 - len(row)) for row in batch.rows]),
        "seq_lens": ints(batch.lengths),
    }
    rows = batch.requests()
    both = MLAPlanMetadata.dual(**rows, **{**dense, "seq_lens": ints([1, 2, 1])})  # the rows count
    for given in dense, {"metadata": MLAPlanMetadata.dense(**dense)}, {"metadata": MLAPlanMetadata.csr(*rows.values())}, {"metadata": both}:
        batch.plan(wrapper, True, **given)
        assert torch.equal(wrapper.run(*batch.parts()), right)


def test_offsets_behind_those_of_the_requests_are_left_out(generator):
    batch = Batch(generator)
    wrapper = BatchMLAPagedAttentionWrapper(WORKSPACE)
    given = batch.requests()
    for name in ("qo_indptr", "kv_indptr"):
        given[name] = torch.cat([given[name], ints([99, 3])])
    none = dict.fromkeys(("cum_seq_lens_q", "block_tables", "seq_lens"))
    batch.plan(wrapper, metadata=SimpleNamespace(**given, **none))
    assert_close(wrapper.run(*batch.parts()), batch.right()[0])
    given["kv_indptr"] = given["kv_indptr"][:3]
    with pytest.raises(ValueError, match="kv_indptr has 3 entries, there must be 4 for 3 requests"):
        batch.plan(wrapper, metadata=SimpleNamespace(**given, **none))


@pytest.mark.parametrize("causal", [False, True])
def test_a_request_may_have_no_tokens(generator, causal):
    batch = Batch(generator, counts=(2, 2, 2))
    batch.lengths = [0, 80, 1]
    for wrapper in (BatchMLAPagedAttentionWrapper(WORKSPACE), graph_wrapper()):
        batch.plan(wrapper, causal)
        out, lse = wrapper.run(*batch.parts(), return_lse=True)
        assert_close(out, batch.right(causal)[0].nan_to_num(), lse, batch.right(causal)[1])


def test_another_scale_is_no_other_attention(generator):
    batch = Batch(generator)
    wrapper = BatchMLAPagedAttentionWrapper(WORKSPACE)
    for scale in (SCALE, 0.2, 0.3):
        batch.plan(wrapper, sm_scale=scale)
        out, lse = wrapper.run(*batch.parts(), return_lse=True)
        assert_close(out, batch.right(scale=scale)[0], lse, batch.right(scale=scale)[1])
    assert len(wrapper._steps._planned) == 2


def test_pages_that_requests_share_are_read_once(generator):
    batch = Batch(generator)
    wrapper = BatchMLAPagedAttentionWrapper(WORKSPACE)
    batch.plan(wrapper)
    (planned,) = wrapper._steps._planned.values()
    assert planned._batch.sharing() == deft.Sharing(3, 77 + 80 + 40, 48 + 29 + 32 + 24)


def test_a_plan_that_raises_changes_nothing(generator):
    batch = Batch(generator)
    wrapper = BatchMLAPagedAttentionWrapper(WORKSPACE)
    batch.plan(wrapper)
    right = wrapper.run(*batch.parts())
    lengths, batch.lengths = batch.lengths, [1000, 1, 1]
    with pytest.raises(ValueError, match="request 0|row 0"):
        batch.plan(wrapper)
    batch.lengths = lengths
    assert torch.equal(wrapper.run(*batch.parts()), right)


def graph_wrapper(requests=3, pages=20):
    return BatchMLAPagedAttentionWrapper(WORKSPACE, True, ints([0] * (requests + 1)), ints([0] * (requests + 1)), ints([0] * pages), ints([0] * requests))


def test_a_wrapper_for_graphs_reads_pages_in_its_buffer(generator):
    batch, wrapper = Batch(generator, counts=(2, 2, 2)), graph_wrapper()
    batch.plan(wrapper, True)
    assert wrapper._pages[:13].tolist() == sum(batch.rows, [])
    assert_close(wrapper.run(*batch.parts()), batch.right(True)[0])
    batch.rows, batch.counts = [[1, 2, 3, 4, 5], [6, 7, 8, 9, 0], [1, 2, 0]], (1, 2, 3)
    batch.plan(wrapper, True)
    assert_close(wrapper.run(*batch.parts()), batch.right(True)[0])


def test_a_wrapper_for_graphs_stays_what_it_was(generator):
    batch, wrapper = Batch(generator, counts=(2, 2, 2)), graph_wrapper()
    with pytest.raises(ValueError, match="kv_indices must be a tensor where use_cuda_graph is set"):
        BatchMLAPagedAttentionWrapper(WORKSPACE, True, ints([0]), ints([0]))
    batch.plan(wrapper, True)
    with pytest.raises(ValueError, match="takes a plan of another kind"):
        batch.plan(wrapper, False)
    batch.counts = (2, 3, 2)
    with pytest.raises(ValueError, match="there are 7 queries, the first plan of the wrapper for CUDA graphs had 6"):
        batch.plan(wrapper, True)
    with pytest.raises(ValueError, match="there are 2 requests, the wrapper for CUDA graphs was made for 3"):
        Batch(generator, counts=(1, 1)).plan(wrapper)
    with pytest.raises(ValueError, match="kv_indices has 13 entries, the wrapper's buffer has 4"):
        Batch(generator).plan(graph_wrapper(pages=4))


@pytest.mark.parametrize("are_apart", [False, True])
def test_a_cache_may_be_of_8_bit_floats_with_one_scale(generator, are_apart):
    batch = Batch(generator)
    wrapper = BatchMLAPagedAttentionWrapper(WORKSPACE)
    batch.plan(wrapper, kv_data_type=torch.float8_e4m3fn)
    numbers = batch.cache.to(torch.float8_e4m3fn)
    batch.cache = 0.5 * numbers.float()
    parts = [part.clone() if are_apart else part for part in numbers.split([CKV, KPE], -1)]
    out, lse = wrapper.run(*batch.parts()[:2], *parts, return_lse=True, ckv_scale=0.5, kpe_scale=0.5)
    assert_close(out, batch.right()[0], lse, batch.right()[1])
    with pytest.raises(NotImplementedError, match="^kpe_scale=1.0"):
        wrapper.run(*batch.parts()[:2], *parts, ckv_scale=0.5)
    with pytest.raises(NotImplementedError, match="^ckv_scale_arr="):
        wrapper.run(*batch.parts()[:2], *parts, ckv_scale_arr=batch.q)
    with pytest.raises(ValueError, match="kpe_cache.dtype=torch.bfloat16 does not match"):
        wrapper.run(*batch.parts()[:2], parts[0], parts[1].bfloat16(), ckv_scale=0.5, kpe_scale=0.5)
    with pytest.raises(ValueError, match="q_data_type=torch.bfloat16"):
        batch.plan(BatchMLAPagedAttentionWrapper(WORKSPACE), q_data_type=torch.float16, kv_data_type=torch.float8_e4m3fn)
    for given in ({}, {"ckv_scale": 0.5, "ckv_scale_arr": batch.q}):
        with pytest.raises(ValueError, match="^Exactly one of ckv_scale or ckv_scale_arr"):
            wrapper.run(*batch.parts()[:2], *parts, kpe_scale=0.5, **given)


def test_a_cache_may_be_of_656_bytes_a_token(generator):
    batch = Batch(generator, page_size=64, ckv=512, kpe=64, heads=16)
    wrapper = BatchMLAPagedAttentionWrapper(WORKSPACE)
    batch.plan(wrapper, kv_data_type=torch.uint8)
    rows, batch.cache = packed(batch.cache)
    for cache in (rows, rows.unsqueeze(2), rows.view(torch.float8_e4m3fn)):
        out, lse = wrapper.run(query=batch.q, kv_cache=cache, return_lse=True)
        assert_close(out, batch.right()[0], lse, batch.right()[1])
    for given, said in (
        ({"kv_cache": rows[..., :576]}, r"kv_cache is \[10, 64, 576\], it must be \[any, 64, 656\] as planned"),
        ({"kv_cache": batch.cache}, r"kv_cache is \[10, 64, 576\], it must be"),
        ({"ckv_cache": rows[..., :512], "kpe_cache": rows[..., 528:]}, "rows of 656 bytes have all: give kv_cache"),
        ({"kv_cache": rows, "ckv_scale": 0.5}, "ckv_scale is given, and rows have scales of their own"),
    ):
        with pytest.raises(ValueError, match=said):
            wrapper.run(query=batch.q, **given)
    with pytest.raises(NotImplementedError, match="^q_data_type=torch.float16"):
        batch.plan(wrapper, q_data_type=torch.float16, kv_data_type=torch.uint8)


def test_what_is_outside_is_named(generator):
    batch = Batch(generator)
    wrapper = BatchMLAPagedAttentionWrapper(WORKSPACE)
    with pytest.raises(RuntimeError, match="call plan before run"):
        wrapper.run(*batch.parts())
    with pytest.raises(TypeError, match="missing required arguments: sm_scale"):
        batch.plan(wrapper, sm_scale=None)
    with pytest.raises(TypeError, match="plan\\(\\) takes qo_indptr, kv_indptr, kv_indices and kv_len_arr"):
        batch.plan(wrapper, metadata=SimpleNamespace(**{**batch.requests(), "kv_len_arr": None}, cum_seq_lens_q=None, block_tables=None, seq_lens=None))
    for name, value in {
        "output_scale": "per-tensor",
        "scale_mode": "bmm-scalar",
        "skip_softmax": True,
        "use_sinks": True,
        "use_profiler": True,
    }.items():
        with pytest.raises(NotImplementedError, match=f"^{name}="):
            batch.plan(wrapper, **{name: value})
    with pytest.raises(NotImplementedError, match="^head_dim_kpe=0"):
        Batch(generator, kpe=0).plan(wrapper)
    with pytest.raises(NotImplementedError, match="^backend='cutlass'"):
        BatchMLAPagedAttentionWrapper(WORKSPACE, backend="cutlass")
    batch.plan(wrapper)
    for name in ("kv_len", "page_table", "o_scale", "ckv_scale", "kpe_scale"):
        with pytest.raises(ValueError, match=f"^{name} is "):
            wrapper.run(*batch.parts(), **{name: 1})
    for name in ("sinks", "profiler_buffer", "bmm1_scale", "skip_softmax_threshold_scale_factor"):
        with pytest.raises(NotImplementedError, match=f"^{name}="):
            wrapper.run(*batch.parts(), **{name: 1})


def test_tensors_that_do_not_fit_are_named(generator):
    batch = Batch(generator)
    wrapper = BatchMLAPagedAttentionWrapper(WORKSPACE)
    batch.plan(wrapper)
    q_nope, q_pe, ckv, kpe = batch.parts()
    for given, said in (
        ((q_nope[:2], q_pe, ckv, kpe), r"q_nope is \[2, 4, 64\], it must be \[3, 4, 64\] as planned"),
        ((q_nope, q_nope, ckv, kpe), r"q_pe is \[3, 4, 64\], it must be \[3, 4, 16\] as planned"),
        ((q_nope, q_pe, ckv[:, :8], kpe), r"ckv_cache is \[10, 8, 64\], it must be \[any, 16, 64\] as planned"),
        ((q_nope, q_pe.half(), ckv, kpe), r"q_pe.dtype=torch.float16 does not match the planned type, bf16"),
        ((q_nope, None, ckv, kpe), "q_nope and q_pe must both be given"),
        ((q_nope, q_pe, ckv, kpe.half()), "kpe_cache.dtype=torch.float16 does not match"),
    ):
        with pytest.raises(ValueError, match=said):
            wrapper.run(*given)
    with pytest.raises(TypeError, match="run\\(\\) takes query, or q_nope and q_pe"):
        wrapper.run(kv_cache=batch.cache)
    with pytest.raises(TypeError, match="not both"):
        wrapper.run(*batch.parts(), query=batch.q)
    with pytest.raises(TypeError, match="query is a list, it must be a tensor or a tuple of two"):
        wrapper.run(query=[1], kv_cache=batch.cache)
