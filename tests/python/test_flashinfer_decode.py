import pytest

torch = pytest.importorskip("torch")

from deft.flashinfer import (
    BatchDecodeWithAttentionSinkWrapper,
    BatchDecodeWithPagedKVCacheWrapper,
    CUDAGraphBatchDecodeWithPagedKVCacheWrapper,
    fast_decode_plan,
)
from plain_attention import assert_close, pages_of, plain

WORKSPACE = torch.empty(0)


@pytest.fixture
def generator():
    return torch.Generator().manual_seed(3)


class Batch:
    """Requests of random lengths that share the pages of random prefixes."""

    def __init__(self, generator, *, page_size=16, layout="NHD", dtype=torch.float16, kv_heads=2, head_dim=64, requests=6):
        self.page_size, self.layout, self.dtype, self.kv_heads, self.head_dim = page_size, layout, dtype, kv_heads, head_dim
        self.rows, self.lengths, pages = [], [], 0
        for request in range(requests):
            kept = []
            if request:
                other = self.rows[int(torch.randint(request, (1,), generator=generator))]
                # Only full pages: the last one of a request is its own.
                kept = other[: int(torch.randint(len(other), (1,), generator=generator))]
            own = int(torch.randint(1, 5, (1,), generator=generator))
            self.rows.append(kept + list(range(pages, pages + own)))
            pages += own
            in_last = int(torch.randint(1, page_size + 1, (1,), generator=generator))
            self.lengths.append((len(self.rows[-1]) - 1) * page_size + in_last)
        shape = (pages, 2, page_size, kv_heads, head_dim) if layout == "NHD" else (pages, 2, kv_heads, page_size, head_dim)
        self.cache = torch.randn(shape, generator=generator).to(dtype)

    @property
    def indptr(self):
        return torch.tensor([0, *map(len, self.rows)], dtype=torch.int32).cumsum(0, dtype=torch.int32)

    @property
    def indices(self):
        return torch.tensor([page for row in self.rows for page in row], dtype=torch.int32)

    @property
    def last_page_len(self):
        return torch.tensor([(length - 1) % self.page_size + 1 for length in self.lengths], dtype=torch.int32)

    def q(self, generator, heads=4, each=1):
        return torch.randn(len(self.rows) * each, heads, self.head_dim, generator=generator).to(self.dtype)

    def plan(self, wrapper, heads=4, **more):
        more.setdefault("q_data_type", self.dtype)
        wrapper.plan(self.indptr, self.indices, self.last_page_len, heads, self.kv_heads, self.head_dim, self.page_size, **more)

    def right(self, q, each=1, **more):
        outs = []
        for request, (row, length) in enumerate(zip(self.rows, self.lengths)):
            k, v = (pages_of(self.cache[:, which], torch.tensor(row), length, self.layout) for which in (0, 1))
            outs.append(plain(q[request * each : (request + 1) * each], k, v, range(length - each + 1, length + 1), **more))
        return tuple(torch.cat(parts) for parts in zip(*outs))


@pytest.mark.parametrize("page_size", [1, 7, 16])
@pytest.mark.parametrize("layout", ["NHD", "HND"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_it_is_the_attention_of_each_request(generator, page_size, layout, dtype):
    batch = Batch(generator, page_size=page_size, layout=layout, dtype=dtype)
    wrapper = BatchDecodeWithPagedKVCacheWrapper(WORKSPACE, layout)
    batch.plan(wrapper)
    q = batch.q(generator)
    out, lse = wrapper.run(q, batch.cache, return_lse=True)
    assert out.dtype == dtype and lse.dtype == torch.float32
    assert_close(out, batch.right(q)[0], lse, batch.right(q)[1])
    written = torch.zeros_like(lse)
    assert torch.equal(wrapper.run(q, batch.cache, lse=written), out)
    assert torch.equal(written, lse), "an lse that is given is written"


@pytest.mark.parametrize("asked", [{"disable_split_kv": True}, {"fixed_split_size": 64}])
@pytest.mark.parametrize("each", [1, 3])
def test_bits_do_not_depend_on_who_shares_a_prefix(generator, asked, each):
    """Of a request that is long enough to be cut, with others that leave its pages here and there."""
    page_size, pages = 16, 60
    cache = torch.randn((pages + 20, 2, page_size, 2, 64), generator=generator).half()
    first = torch.randn((each, 4, 64), generator=generator).half()
    wrapper, bits = BatchDecodeWithPagedKVCacheWrapper(WORKSPACE, use_tensor_cores=True), []
    for left_at in ([], [7], [1, 20, 33, 59]):
        batch = Batch(generator, requests=1)
        batch.cache = cache
        batch.rows = [list(range(pages)), *([*range(left), pages + number] for number, left in enumerate(left_at))]
        batch.lengths = [len(row) * page_size - 5 for row in batch.rows]
        batch.plan(wrapper, q_len_per_req=each, **asked)
        q = torch.cat([first, torch.randn((each * len(left_at), 4, 64), generator=generator).half()])
        out, lse = wrapper.run(q, cache, return_lse=True)
        assert_close(out, batch.right(q, each)[0], lse, batch.right(q, each)[1])
        bits.append((out[:each], lse[:each]))
    for out, lse in bits[1:]:
        assert torch.equal(out, bits[0][0]) and torch.equal(lse, bits[0][1])


@pytest.mark.parametrize("cache_dtype", [torch.float8_e4m3fn, torch.float8_e5m2])
def test_a_cache_of_8_bit_floats_has_scales(generator, cache_dtype):
    batch = Batch(generator)
    stored = batch.cache.to(cache_dtype)
    batch.cache = stored.to(torch.float16)
    batch.cache[:, 0] *= 0.5
    batch.cache[:, 1] *= 2
    wrapper = BatchDecodeWithPagedKVCacheWrapper(WORKSPACE)
    batch.plan(wrapper, kv_data_type=cache_dtype)
    q = batch.q(generator)
    out, lse = wrapper.run(q, stored, k_scale=0.5, v_scale=2.0, return_lse=True)
    assert_close(out, batch.right(q)[0], lse, batch.right(q)[1])


def test_pages_that_requests_share_are_read_once(generator):
    batch = Batch(generator)
    batch.rows, batch.lengths = [[0, 1, 2], [0, 1, 3]], [40, 37]
    wrapper = BatchDecodeWithPagedKVCacheWrapper(WORKSPACE)
    batch.plan(wrapper)
    (planned,) = wrapper._steps._planned.values()
    assert planned._batch.sharing().tokens == 45


def test_a_cache_may_be_a_pair_and_a_step_follows_a_step(generator):
    batch = Batch(generator)
    wrapper = BatchDecodeWithPagedKVCacheWrapper(WORKSPACE)
    pair = (batch.cache[:, 0].contiguous(), batch.cache[:, 1].contiguous())
    for grow in (0, 1, 1, 20):
        batch.lengths = [min(length + grow, 16 * len(row)) for length, row in zip(batch.lengths, batch.rows)]
        batch.plan(wrapper)
        q = batch.q(generator)
        assert_close(wrapper.run(q, pair), batch.right(q)[0])
    batch.rows, batch.lengths = batch.rows[2:], batch.lengths[2:]
    batch.plan(wrapper)
    q = batch.q(generator)
    assert_close(wrapper.run(q, pair), batch.right(q)[0])


def test_q_may_be_the_beginning_of_wider_rows_and_v_lie_in_a_way_of_its_own(generator):
    batch = Batch(generator)
    wrapper = BatchDecodeWithPagedKVCacheWrapper(WORKSPACE, use_tensor_cores=True)
    batch.plan(wrapper)
    rows = torch.randn(len(batch.rows), 4 + 2 * 2, 64, generator=generator).to(batch.dtype)  # q, K and V of a token
    q = rows[:, :4]
    wide = torch.zeros_like(batch.cache[:, 1].transpose(1, 2).repeat_interleave(2, -1))  # [pages, heads, slots, 2 * dim]
    v = wide[..., :64].transpose(1, 2).copy_(batch.cache[:, 1])
    right = batch.right(q)[0]
    assert_close(wrapper.run(q, (batch.cache[:, 0], v)), right)
    out = torch.zeros_like(rows)
    wrapper.run(q, (batch.cache[:, 0], v), out=out[:, :4])
    assert_close(out[:, :4], right)
    assert not out[:, 4:].any()


@pytest.mark.parametrize("more", [{"window_left": 0}, {"window_left": 17}, {"logits_soft_cap": 5.0}, {"sm_scale": 0.5}])
def test_windows_caps_and_scales(generator, more):
    batch = Batch(generator)
    wrapper = BatchDecodeWithPagedKVCacheWrapper(WORKSPACE)
    batch.plan(wrapper, **more)
    q = batch.q(generator)
    names = {"logits_soft_cap": "soft_cap", "sm_scale": "scale"}
    right = batch.right(q, **{names.get(name, name): value for name, value in more.items()})
    out, lse = wrapper.run(q, batch.cache, return_lse=True)
    assert_close(out, right[0], lse, right[1])


@pytest.mark.parametrize("cache_dtype", [None, torch.float8_e4m3fn])
@pytest.mark.parametrize("more", [{}, {"window_left": 9, "logits_soft_cap": 5.0}])
def test_sinks_are_logits_without_a_token(generator, cache_dtype, more):
    batch = Batch(generator)
    stored = batch.cache if cache_dtype is None else batch.cache.to(cache_dtype)
    batch.cache = stored.to(batch.dtype)
    batch.rows[1], batch.lengths[1] = [], 0
    wrapper = BatchDecodeWithPagedKVCacheWrapper(WORKSPACE)
    asked = {"soft_cap" if name == "logits_soft_cap" else name: value for name, value in more.items()}
    for dtype in torch.float32, torch.bfloat16, None:  # from step to step, and with none among them
        batch.plan(wrapper, kv_data_type=cache_dtype, **more)
        q, sinks = batch.q(generator), dtype and (torch.randn(4, generator=generator) * 3).to(dtype)
        out, lse = wrapper.run(q, stored, sinks=sinks, return_lse=True)
        right, right_lse = batch.right(q, sinks=sinks, **asked)
        assert_close(out, right, lse, right_lse)
    with pytest.raises(ValueError, match=r"sinks is \[3\], it must be \[4\]"):
        wrapper.run(q, stored, sinks=torch.zeros(3))


def test_a_wrapper_with_sinks_is_given_them_and_the_scale_with_each_run(generator):
    batch = Batch(generator)
    wrapper = BatchDecodeWithAttentionSinkWrapper(WORKSPACE, q_data_type=batch.dtype, window_left=9)
    batch.plan(wrapper, window_left=9)
    q, sinks = batch.q(generator), torch.randn(4, generator=generator) * 3
    for given, scale in ((), 64**-0.5), ((0.3,), 0.3):
        out, lse = wrapper.run_return_lse(q, batch.cache, sinks, *given, k_scale=0.5)
        right, right_lse = batch.right(q, sinks=sinks, window_left=9, scale=scale / 2)
        assert_close(out, right, lse, right_lse)
    with pytest.raises(ValueError, match="sinks are missing"):
        wrapper.run(q, batch.cache)
    with pytest.raises(NotImplementedError, match="args"):
        wrapper.run(q, batch.cache, sinks, 0.3, 1)


def test_several_queries_of_a_request_see_up_to_their_own_token(generator):
    batch = Batch(generator)
    batch.lengths = [max(length, 3) for length in batch.lengths]
    wrapper = BatchDecodeWithPagedKVCacheWrapper(WORKSPACE, use_tensor_cores=True)
    batch.plan(wrapper, q_len_per_req=3, window_left=9)
    q = batch.q(generator, each=3)
    assert_close(wrapper.run(q, batch.cache), batch.right(q, each=3, window_left=9)[0])


def test_scales_of_a_run_out_and_lse(generator):
    batch = Batch(generator)
    wrapper = BatchDecodeWithPagedKVCacheWrapper(WORKSPACE)
    batch.plan(wrapper)
    q = batch.q(generator)
    out, lse = torch.empty_like(q), torch.empty(q.shape[:2])
    given = wrapper.run(q, batch.cache, q_scale=2.0, k_scale=0.25, v_scale=3.0, out=out, lse=lse, return_lse=True)
    assert given[0] is out and given[1] is lse
    right, right_lse = batch.right(q, scale=0.5 * 64**-0.5)
    assert_close(out / 3, right, lse, right_lse)
    # The next step's plan is that of both scales.
    batch.lengths[0] -= batch.lengths[0] > 1
    batch.plan(wrapper)
    right, right_lse = batch.right(q, scale=0.5 * 64**-0.5)
    assert_close(*[x for pair in zip(wrapper.run(q, batch.cache, k_scale=0.5, return_lse=True), (right, right_lse)) for x in pair])


def test_a_request_without_pages_sees_nothing(generator):
    batch = Batch(generator)
    batch.rows[1], batch.lengths[1] = [], 0
    wrapper = BatchDecodeWithPagedKVCacheWrapper(WORKSPACE)
    batch.plan(wrapper)
    out, lse = wrapper.run(batch.q(generator), batch.cache, return_lse=True)
    assert (out[1] == 0).all() and (lse[1] == -torch.inf).all() and (lse[0] > -torch.inf).all()


def test_the_older_call_says_window_cap_and_scale_with_the_run(generator):
    batch = Batch(generator)
    wrapper = BatchDecodeWithPagedKVCacheWrapper(WORKSPACE)
    wrapper.begin_forward(
        batch.indptr, batch.indices, batch.last_page_len, 4, 2, 64, 16, window_left=3, q_data_type=batch.dtype
    )
    q = batch.q(generator)
    assert_close(wrapper.forward(q, batch.cache, logits_soft_cap=5.0), batch.right(q, soft_cap=5.0)[0])
    out, lse = wrapper.forward_return_lse(q, batch.cache, window_left=3)
    assert_close(out, batch.right(q, window_left=3)[0], lse, batch.right(q, window_left=3)[1])
    wrapper.end_forward()


def test_with_buffers_for_graphs_the_pages_lie_in_the_caller_s_buffer(generator):
    batch = Batch(generator)
    buffers = [torch.zeros(count, dtype=torch.int32) for count in (7, 64, 6)]
    wrapper = CUDAGraphBatchDecodeWithPagedKVCacheWrapper(WORKSPACE, *buffers)
    assert wrapper.is_cuda_graph_enabled
    q = batch.q(generator)
    fast_decode_plan(
        wrapper, batch.indptr, batch.indices, batch.last_page_len, 4, 2, 64, 16, global_override_indptr_cpu=batch.indptr
    )
    assert (buffers[1][: len(batch.indices)] == batch.indices).all()
    assert_close(wrapper.run(q, batch.cache), batch.right(q)[0])
    with pytest.raises(ValueError, match="0 tokens in its last page"):  # and changes nothing
        wrapper.plan(batch.indptr, torch.zeros_like(batch.indices), torch.zeros_like(batch.last_page_len), 4, 2, 64, 16)
    assert_close(wrapper.run(q, batch.cache), batch.right(q)[0])
    batch.rows, batch.lengths = batch.rows[1:], batch.lengths[1:]
    with pytest.raises(ValueError, match="5 requests.*made for 6"):
        batch.plan(wrapper)


def test_the_faster_plan_takes_its_arguments_by_place(generator):
    """FlashInfer's has no o_data_type between the types of K and V and data_type, as plan has."""
    batch = Batch(generator)
    wrapper = BatchDecodeWithPagedKVCacheWrapper(WORKSPACE)
    given = batch.indptr, batch.indices, batch.last_page_len, 4, 2, 64, 16
    fast_decode_plan(wrapper, *given, "NONE", 9, 5.0, batch.dtype, batch.dtype, None, 0.2)
    q = batch.q(generator)
    assert_close(wrapper.run(q, batch.cache), batch.right(q, window_left=9, soft_cap=5.0, scale=0.2)[0])


def test_a_workspace_needs_no_bytes(generator):
    batch = Batch(generator)
    wrapper = BatchDecodeWithPagedKVCacheWrapper(WORKSPACE)
    sizes = wrapper.workspace_size(batch.indptr, batch.indices, batch.last_page_len, 4, 2, 64, 16, q_data_type=batch.dtype)
    wrapper.reset_workspace_buffer(*(torch.empty(size, dtype=torch.uint8) for size in sizes))
    batch.plan(wrapper)
    q = batch.q(generator)
    assert_close(wrapper.run(q, batch.cache), batch.right(q)[0])


@pytest.mark.parametrize("asked, resolved", [("auto", "fa2"), ("fa2", "fa2"), ("fa3", "fa3")])
def test_a_wrapper_says_which_backend_it_stands_for(asked, resolved):
    assert BatchDecodeWithPagedKVCacheWrapper(WORKSPACE, backend=asked).resolved_backend == resolved


@pytest.mark.parametrize(
    "name, value",
    [
        ("pos_encoding_mode", "ROPE_LLAMA"),
        ("kv_data_type", torch.float32),
        ("q_data_type", torch.float32),
        ("o_data_type", torch.float32),
        ("block_tables", torch.zeros(1, 1)),
        ("window_right", 1),
        ("is_causal", True),
        ("sm_scale", -1.0),
        ("logits_soft_cap", float("inf")),
        ("logits_soft_cap", float("nan")),
        ("logits_soft_cap", 1e-40),
    ],
)
def test_what_plan_does_not_take_is_named(generator, name, value):
    with pytest.raises(NotImplementedError, match=name):
        Batch(generator).plan(BatchDecodeWithPagedKVCacheWrapper(WORKSPACE), **{name: value})


@pytest.mark.parametrize("name, value", [("backend", "trtllm-gen"), ("jit_args", ["name"])])
def test_what_a_wrapper_does_not_take_is_named(name, value):
    with pytest.raises(NotImplementedError, match=name):
        BatchDecodeWithPagedKVCacheWrapper(WORKSPACE, **{name: value})


@pytest.mark.parametrize(
    "name, value",
    [("skip_softmax_threshold_scale_factor", 1.0), ("kv_cache_sf", torch.zeros(1))],
)
def test_what_a_run_does_not_take_is_named(generator, name, value):
    batch = Batch(generator)
    wrapper = BatchDecodeWithPagedKVCacheWrapper(WORKSPACE)
    batch.plan(wrapper)
    with pytest.raises(NotImplementedError, match=name):
        wrapper.run(batch.q(generator), batch.cache, **{name: value})


@pytest.mark.parametrize("head_dim", [8, 320])
def test_a_head_dim_that_no_spec_can_have_is_named(generator, head_dim):
    with pytest.raises(NotImplementedError, match=f"head_dim={head_dim}"):
        Batch(generator, head_dim=head_dim).plan(BatchDecodeWithPagedKVCacheWrapper(WORKSPACE))


def test_a_run_that_torch_would_want_a_gradient_of_is_an_error(generator):
    batch = Batch(generator)
    wrapper = BatchDecodeWithPagedKVCacheWrapper(WORKSPACE)
    batch.plan(wrapper)
    with pytest.raises(ValueError, match="q: a tensor requires grad"):
        wrapper.run(batch.q(generator).requires_grad_(), batch.cache)


@pytest.mark.parametrize("in_last_page", [0, -20, 17])
def test_a_last_page_that_is_fuller_than_a_page_or_empty_is_named(generator, in_last_page):
    batch = Batch(generator)
    wrapper = BatchDecodeWithPagedKVCacheWrapper(WORKSPACE)
    last = batch.last_page_len
    last[1] = in_last_page
    with pytest.raises(ValueError, match=f"request 1: {in_last_page} tokens in its last page, must be 1 to 16"):
        wrapper.plan(batch.indptr, batch.indices, last, 4, 2, 64, 16)
    with pytest.raises(ValueError, match="indptr has 6 entries, there must be 7 for 6 requests"):
        wrapper.plan(batch.indptr[:-1], batch.indices, batch.last_page_len, 4, 2, 64, 16)


@pytest.mark.parametrize("window", [1.5, 17.0, "17", None])
def test_a_window_that_is_no_whole_number_is_named(generator, window):
    batch = Batch(generator)
    wrapper = BatchDecodeWithPagedKVCacheWrapper(WORKSPACE)
    batch.plan(wrapper, window_left=17)
    with pytest.raises(ValueError, match=f"window_left is {window!r}, it must be a whole number"):
        batch.plan(wrapper, window_left=window)
    with pytest.raises(ValueError, match=f"window_left is {window!r}, it must be a whole number"):
        wrapper.forward(batch.q(generator), batch.cache, window_left=window)


@pytest.mark.parametrize("window", [-7, 2**31 - 2, 2**31 - 1, 2**40])
def test_a_window_that_no_position_can_reach_is_none(generator, window):
    batch = Batch(generator)
    wrapper = BatchDecodeWithPagedKVCacheWrapper(WORKSPACE)
    batch.plan(wrapper, window_left=window)
    assert wrapper._variant.window_left == -1
    q = batch.q(generator)
    assert_close(wrapper.run(q, batch.cache, window_left=window), batch.right(q)[0])
    assert_close(wrapper.forward(q, batch.cache, window_left=window), batch.right(q)[0])


def test_the_widest_window_of_all_runs(generator):
    batch = Batch(generator)
    wrapper = BatchDecodeWithPagedKVCacheWrapper(WORKSPACE)
    batch.plan(wrapper, window_left=2**31 - 3)
    q = batch.q(generator)
    assert_close(wrapper.run(q, batch.cache), batch.right(q)[0])


def test_a_run_before_a_plan_and_another_window_are_errors(generator):
    batch = Batch(generator)
    wrapper = BatchDecodeWithPagedKVCacheWrapper(WORKSPACE)
    with pytest.raises(RuntimeError, match="call plan before run"):
        wrapper.run(batch.q(generator), batch.cache)
    batch.plan(wrapper, window_left=4)
    with pytest.raises(ValueError, match="window_left is 5, it was planned as 4"):
        wrapper.run(batch.q(generator), batch.cache, window_left=5)


def test_wider_integers_are_taken_where_they_fit_into_32_bits(generator):
    batch = Batch(generator)
    wrapper = BatchDecodeWithPagedKVCacheWrapper(WORKSPACE)
    q = batch.q(generator)
    batch.plan(wrapper)
    right = wrapper.run(q, batch.cache)
    given = {"indptr": batch.indptr, "indices": batch.indices, "last_page_len": batch.last_page_len}
    shapes = (4, batch.kv_heads, batch.head_dim, batch.page_size)
    wrapper.plan(*(values.long() for values in given.values()), *shapes, q_data_type=batch.dtype)
    assert torch.equal(wrapper.run(q, batch.cache), right)
    for name, values in given.items():
        # As 32 bits it would be what it was before.
        wrong = values.long()
        wrong[1] += 2**32
        with pytest.raises(ValueError, match=rf"{name}\[1\] is {int(wrong[1])}, which does not fit into int32"):
            wrapper.plan(*{**given, name: wrong}.values(), *shapes, q_data_type=batch.dtype)
        with pytest.raises(ValueError, match=f"{name} is torch.float32, it must be torch.int32"):
            wrapper.plan(*{**given, name: values.float()}.values(), *shapes, q_data_type=batch.dtype)


def test_wider_integers_do_not_wrap_on_their_way_into_a_buffer(generator):
    batch = Batch(generator)
    buffers = torch.zeros(7, dtype=torch.int32), torch.zeros(64, dtype=torch.int32), torch.zeros(6, dtype=torch.int32)
    wrapper = CUDAGraphBatchDecodeWithPagedKVCacheWrapper(WORKSPACE, *buffers)
    wrong = batch.indices.long()
    wrong[2] = -(2**32) + 1
    with pytest.raises(ValueError, match=r"indices\[2\] is -4294967295"):
        wrapper.plan(batch.indptr, wrong, batch.last_page_len, 4, batch.kv_heads, batch.head_dim, batch.page_size)


@pytest.mark.parametrize("more", [{}, {"window_left": 4, "logits_soft_cap": 30.0}])
def test_errors_name_what_a_wrapper_was_planned_with(generator, more):
    batch = Batch(generator)
    wrapper = BatchDecodeWithPagedKVCacheWrapper(WORKSPACE)
    batch.plan(wrapper, **more)
    planned = "num_qo_heads=4, num_kv_heads=2, head_dim=64, page_size=16, q_data_type=f16"
    planned += "".join(f", {name}={more[name]}" for name in ("logits_soft_cap", "window_left") if more)
    with pytest.raises(ValueError) as raised:
        wrapper.run(batch.q(generator).float(), batch.cache)
    assert f"q is float32, the attention ({planned}) takes float16" in str(raised.value)
