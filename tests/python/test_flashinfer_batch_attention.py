import pytest

torch = pytest.importorskip("torch")

from deft.flashinfer import BatchAttention
from plain_attention import assert_close, pages_of, plain

PAGE = 8


@pytest.fixture
def generator():
    return torch.Generator().manual_seed(5)


class Mixed:
    """A prompt of its own, a continued one, two that decode behind a shared prefix, and one with more queries than tokens."""

    rows = [[0, 1, 2], [3, 4, 5, 6], [3, 4, 7], [3, 4, 8], [9]]
    lengths = [20, 32, 17, 24, 2]
    counts = [20, 5, 1, 1, 4]

    def __init__(self, generator, layout="NHD", dtype=torch.bfloat16):
        self.layout = layout
        shape = (10, 2, PAGE, 2, 64) if layout == "NHD" else (10, 2, 2, PAGE, 64)
        self.cache = torch.randn(shape, generator=generator).to(dtype)
        self.q = torch.randn(sum(self.counts), 6, 64, generator=generator).to(dtype)

    def plan(self, wrapper, **more):
        as_ints = lambda values: torch.tensor(values, dtype=torch.int32)
        sums = lambda values: as_ints([0, *values]).cumsum(0, dtype=torch.int32)
        more.setdefault("q_data_type", self.cache.dtype)
        more.setdefault("kv_data_type", self.cache.dtype)
        indices = as_ints([page for row in self.rows for page in row])
        given = sums(self.counts), sums(map(len, self.rows)), indices, as_ints(self.lengths)
        wrapper.plan(*given, 6, 2, 64, more.pop("head_dim_vo", 64), PAGE, **more)

    def right(self, causal, **more):
        outs, first = [], 0
        for row, length, count in zip(self.rows, self.lengths, self.counts):
            k, v = (pages_of(self.cache[:, which], torch.tensor(row), length, self.layout) for which in (0, 1))
            seen = [max(length - count + 1 + i, 0) if causal else length for i in range(count)]
            outs.append(plain(self.q[first : first + count], k, v, seen, **more))
            first += count
        return tuple(torch.cat(parts) for parts in zip(*outs))


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("layout", ["NHD", "HND"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_prompts_and_decoding_in_one_batch(generator, causal, layout, dtype):
    mixed = Mixed(generator, layout, dtype)
    wrapper = BatchAttention(layout, device="cpu")
    mixed.plan(wrapper, causal=causal)
    out, lse = wrapper.run(mixed.q, mixed.cache)
    right, right_lse = mixed.right(causal)
    assert_close(out, right, lse, right_lse)
    assert (lse == -torch.inf).any().item() is causal


def test_steps_of_all_kinds_follow_each_other(generator):
    mixed = Mixed(generator)
    wrapper = BatchAttention(device="cpu")
    for counts, causal in ([1] * 5, True), ([20, 5, 1, 1, 4], False), ([3, 3, 3, 3, 2], True), ([0, 2, 1, 0, 3], True):
        mixed.counts = counts
        mixed.q = mixed.q[:1].expand(sum(counts), -1, -1).contiguous()
        mixed.plan(wrapper, causal=causal)
        assert_close(wrapper.run(mixed.q, mixed.cache)[0], mixed.right(causal)[0])


def test_prefixes_are_shared_whatever_the_queries(generator):
    mixed = Mixed(generator)
    wrapper = BatchAttention(device="cpu")
    mixed.plan(wrapper, causal=False)
    # 16 tokens of the second request are the third's and the fourth's, too.
    assert wrapper._steps._work.tree.tokens == sum(mixed.lengths) - 2 * 16


def test_caps_scales_out_and_lse(generator):
    mixed = Mixed(generator, dtype=torch.float16)
    wrapper = BatchAttention(device="cpu")
    mixed.plan(wrapper, causal=True, logits_soft_cap=30.0, sm_scale=0.2)
    out, lse = torch.empty_like(mixed.q), torch.empty(mixed.q.shape[:2])
    given = wrapper.run(mixed.q, mixed.cache, out, lse, k_scale=2.0, v_scale=torch.tensor(0.5), logits_soft_cap=3.0)
    assert given[0] is out and given[1] is lse
    right, right_lse = mixed.right(True, scale=0.4, soft_cap=3.0)
    assert_close(out, right / 2, lse, right_lse)
    assert_close(wrapper.run(mixed.q, mixed.cache)[0], mixed.right(True, scale=0.2, soft_cap=30.0)[0])


def test_a_cap_that_was_not_planned_is_an_error(generator):
    mixed = Mixed(generator)
    wrapper = BatchAttention(device="cpu")
    mixed.plan(wrapper)
    with pytest.raises(ValueError, match="planned without one"):
        wrapper.run(mixed.q, mixed.cache, logits_soft_cap=3.0)
    with pytest.raises(NotImplementedError, match="logits_soft_cap=nan"):
        wrapper.run(mixed.q, mixed.cache, logits_soft_cap=float("nan"))


@pytest.mark.parametrize(
    "name, value",
    [("head_dim_vo", 72), ("use_profiler", True), ("kv_data_type", torch.float32), ("logits_soft_cap", float("inf"))],
)
def test_what_plan_does_not_take_is_named(generator, name, value):
    with pytest.raises(NotImplementedError, match=name):
        Mixed(generator).plan(BatchAttention(device="cpu"), **{name: value})


@pytest.mark.parametrize("dims", [(96, 64), (48, 80)])
def test_v_may_be_of_another_width_than_k(generator, dims):
    of_keys, of_values = dims
    mixed = Mixed(generator)
    k, v = (torch.randn(10, PAGE, 2, dim, generator=generator).bfloat16() for dim in dims)
    q = torch.randn(sum(mixed.counts), 6, of_keys, generator=generator).bfloat16()
    as_ints = lambda values: torch.tensor(values, dtype=torch.int32)
    sums = lambda values: as_ints([0, *values]).cumsum(0, dtype=torch.int32)
    indices = as_ints([page for row in mixed.rows for page in row])
    wrapper = BatchAttention(device="cpu")
    given = sums(mixed.counts), sums(map(len, mixed.rows)), indices, as_ints(mixed.lengths)
    wrapper.plan(*given, 6, 2, of_keys, of_values, PAGE, causal=True)
    out, lse = wrapper.run(q, (k, v))
    outs, first = [], 0
    for row, length, count in zip(mixed.rows, mixed.lengths, mixed.counts):
        own = [pages_of(cache, torch.tensor(row), length, "NHD") for cache in (k, v)]
        outs.append(plain(q[first : first + count], *own, [max(length - count + 1 + i, 0) for i in range(count)]))
        first += count
    right, right_lse = (torch.cat(parts) for parts in zip(*outs))
    assert out.shape == (len(q), 6, of_values)
    assert_close(out, right, lse, right_lse)


@pytest.mark.parametrize("name", ["profiler_buffer", "kv_cache_sf"])
def test_what_a_run_does_not_take_is_named(generator, name):
    mixed = Mixed(generator)
    wrapper = BatchAttention(device="cpu")
    mixed.plan(wrapper)
    with pytest.raises(NotImplementedError, match=name):
        wrapper.run(mixed.q, mixed.cache, **{name: torch.zeros(1)})


@pytest.mark.parametrize("place, name", [*enumerate(("qo_indptr", "kv_indptr", "kv_indices", "kv_len_arr"))])
def test_numbers_that_do_not_fit_into_32_bits_are_named(place, name):
    given = [torch.tensor(values) for values in ([0, 1], [0, 1], [0], [1])]
    given[place][0] += 2**32
    with pytest.raises(ValueError, match=rf"{name}\[0\] is 42949672.., which does not fit into int32"):
        BatchAttention(device="cpu").plan(*given, 6, 2, 64, 64, PAGE)
