import threading

import deft
import ml_dtypes
import numpy as np
import pytest
from evaluate import as_float, assert_close, dense, evaluate

HEADS, KV_HEADS, DIM = 8, 2, 64
SHAPE = f"query_heads = {HEADS}; kv_heads = {KV_HEADS}; head_dim = {DIM};"


def contiguous(dtype="f16"):
    return deft.compile(f"attention a {{ {SHAPE} dtype = {dtype}; kv_cache = contiguous; output = {dtype} with lse; }}")


def values(rng, *shape):
    return rng.standard_normal(shape).astype("float16")


def test_it_is_the_attention_of_each_query_over_its_path(family, rng):
    q, k, v = values(rng, 2, HEADS, DIM), values(rng, 114, KV_HEADS, DIM), values(rng, 114, KV_HEADS, DIM)
    out, lse = contiguous().run(family, q, k, v, return_lse=True)
    expected, expected_lse = evaluate(family, q, k, v, DIM**-0.5)
    assert_close(out, expected, "float16")
    assert lse.dtype == np.float32
    assert np.abs(lse - expected_lse).max() < 1e-3


def test_pages_are_found_through_the_page_table(family, rng):
    att = deft.compile(f"attention a {{ {SHAPE} dtype = f16; }}")
    table = np.array([5, 0, 7, 2, 6, 1, 3, 4], "int32")
    q, k, v = values(rng, 2, HEADS, DIM), values(rng, 8, 16, KV_HEADS, DIM), values(rng, 8, 16, KV_HEADS, DIM)
    out = att.run(family, q, k, v, page_table=table)
    assert_close(out, evaluate(family, q, dense(k, table), dense(v, table), DIM**-0.5)[0], "float16")
    assert (att.run(family, q, k, v, table.tolist()) == out).all()


def test_caches_may_lie_side_by_side_with_strides(family, rng):
    q, both = values(rng, 2, HEADS, DIM), values(rng, 114, 2, KV_HEADS, DIM)
    out = contiguous().run(family, q, both[:, 0], both[:, 1])
    assert_close(out, evaluate(family, q, both[:, 0], both[:, 1], DIM**-0.5)[0], "float16")


def test_q_k_and_v_of_a_token_may_be_one_row(family, rng):
    rows = values(rng, 2, HEADS + 2 * KV_HEADS, DIM)  # of which a query is the beginning
    cache = values(rng, 114, KV_HEADS, 2 * DIM)  # V behind K in each head
    q, k, v = rows[:, :HEADS], cache[:, :, :DIM], cache[:, :, DIM:]
    expected = evaluate(family, q, k, v, DIM**-0.5)[0]
    assert_close(contiguous().run(family, q, k, v), expected, "float16")
    wide = np.full((2, HEADS + 3, DIM), 7, "float16")
    contiguous().run(family, q, k, v, out=wide[:, :HEADS])
    assert_close(wide[:, :HEADS], expected, "float16")
    assert (wide[:, HEADS:] == 7).all()


@pytest.mark.parametrize("order", ["nhd", "hnd"])
def test_keys_and_values_may_lie_in_ways_of_their_own(family, rng, order):
    att = deft.compile(f"attention a {{ {SHAPE} dtype = f16; kv_cache = paged(page_size = 16, order = {order}); }}")
    table = np.array([5, 0, 7, 2, 6, 1, 3, 4], "int32")
    q, k = values(rng, 2, HEADS, DIM), values(rng, 8, 16, KV_HEADS, DIM)
    v = values(rng, 8, KV_HEADS, 16, DIM + 16)[..., :DIM]  # the tokens of a head side by side, with room between
    expected = evaluate(family, q, dense(k, table), dense(v.transpose(0, 2, 1, 3), table), DIM**-0.5)[0]
    nhd = order == "nhd"
    out = att.run(family, q, k if nhd else k.transpose(0, 2, 1, 3), v.transpose(0, 2, 1, 3) if nhd else v, page_table=table)
    assert_close(out, expected, "float16")


@pytest.mark.parametrize("kind", [ml_dtypes.bfloat16, np.uint16])
def test_bfloat16_comes_in_ml_dtypes_or_uint16_and_goes_as_it_came(family, rng, kind):
    q, k, v = (
        values(rng, *shape).astype(ml_dtypes.bfloat16)
        for shape in ((2, HEADS, DIM), (114, KV_HEADS, DIM), (114, KV_HEADS, DIM))
    )
    out = contiguous("bf16").run(family, q.view(kind), k.view(kind), v.view(kind))
    assert out.dtype == kind
    assert_close(out, evaluate(family, q, k, v, DIM**-0.5)[0], "bfloat16")


def test_out_is_written_where_it_is(family, rng):
    att = contiguous()
    q, k, v = values(rng, 2, HEADS, DIM), values(rng, 114, KV_HEADS, DIM), values(rng, 114, KV_HEADS, DIM)
    out, lse = np.zeros_like(q), np.zeros((2, HEADS), "float32")
    given = att.run(family, q, k, v, out=out, lse=lse, return_lse=True)
    assert given[0] is out and given[1] is lse
    expected, expected_lse = att.run(family, q, k, v, return_lse=True)
    assert (out == expected).all() and (lse == expected_lse).all()


def test_parameters_are_numbers_and_arrays(family, rng):
    att = deft.compile(
        f"attention a {{ {SHAPE} dtype = f16; kv_cache = contiguous; param cap : f32 = 30.0; param w : i32 = 1000;"
        "  param slope : f32[query_heads]; score = cap * tanh(s / cap) + slope[head]; mask = tree && kv_pos > q_pos - w; }"
    )
    assert [param.name for param in att.params] == ["cap", "w", "slope"]
    q, k, v = values(rng, 2, HEADS, DIM), values(rng, 114, KV_HEADS, DIM), values(rng, 114, KV_HEADS, DIM)
    slope = rng.standard_normal(HEADS).astype("float32")

    def expected(cap, w):
        return evaluate(
            family,
            q,
            k,
            v,
            DIM**-0.5,
            lambda s, head, q_pos, kv_pos: cap * np.tanh(s / cap) + slope[head],
            lambda q_pos, kv_pos: kv_pos > q_pos - w,
        )[0]

    assert_close(att.run(family, q, k, v, params={"slope": slope}), expected(30, 1000), "float16")
    given = {"slope": slope, "cap": 2, "w": 7}
    assert_close(att.run(family, q, k, v, params=given), expected(2, 7), "float16")
    assert_close(att.plan(family, params=given).run(q, k, v), expected(2, 7), "float16")
    with pytest.raises(deft.UsageError, match="slope"):
        att.run(family, q, k, v)
    with pytest.raises(deft.UsageError, match="no parameter `sloppy`"):
        att.run(family, q, k, v, params={"sloppy": 1})
    with pytest.raises(deft.UsageError, match="slope is float64, it must be float32 or int32"):
        att.run(family, q, k, v, params={"slope": slope.astype("float64")})


def test_arrays_over_tokens_lie_like_the_pages(family, rng):
    att = deft.compile(
        f"attention a {{ {SHAPE} dtype = f16; param doc : i32[tokens]; param gain : f32[tokens]; param own : i32[queries];"
        "  mask = doc[token] == own[query]; score = s + gain[token]; }"
    )
    assert [(param.name, param.length, param.sized_by) for param in att.params] == [
        ("doc", 0, "tokens"), ("gain", 0, "tokens"), ("own", 0, "queries")]
    table = np.array([5, 0, 7, 2, 6, 1, 3, 4], "int32")
    q, k, v = values(rng, 2, HEADS, DIM), values(rng, 8, 16, KV_HEADS, DIM), values(rng, 8, 16, KV_HEADS, DIM)
    doc = rng.integers(0, 3, (8, 16)).astype("int32")
    gain = rng.standard_normal((8, 16)).astype("float32")

    def of_tokens(array, q_pos, kv_pos):  # the second branch lies behind the first
        return array[table].ravel()[np.where((kv_pos < 100) | (q_pos == 104), kv_pos, kv_pos + 5)]

    expected = evaluate(
        family,
        q,
        dense(k, table),
        dense(v, table),
        DIM**-0.5,
        lambda s, head, q_pos, kv_pos: s + of_tokens(gain, q_pos, kv_pos),
        lambda q_pos, kv_pos: of_tokens(doc, q_pos, kv_pos) == np.where(q_pos == 104, 2, 0),
    )[0]
    given = {"doc": doc, "gain": gain, "own": [2, 0]}
    assert_close(att.run(family, q, k, v, table, params=given), expected, "float16")
    plan = att.plan(family, params=given)
    assert_close(plan.run(q, k, v, table, params=given), expected, "float16")
    with pytest.raises(deft.UsageError, match=r"`doc` \(i32\[tokens\]\) has 112 values, the run reads the first 128 slots"):
        att.run(family, q, k, v, table, params={**given, "doc": doc[:7]})
    with pytest.raises(deft.UsageError, match="`own` .* has 1 values, the plan has 2 queries"):
        att.run(family, q, k, v, table, params={**given, "own": [2]})


def test_rows_of_tokens_have_scales(family, rng):
    att = deft.compile(
        f"attention a {{ {SHAPE} dtype = f16; param ks : f32[tokens, kv_heads]; param vs : f32[tokens, kv_heads];"
        "  score = s * ks[token, kv_head]; value = x * vs[token, kv_head]; }"
    )
    assert [(param.sized_by, param.elements) for param in att.params] == [("tokens", KV_HEADS)] * 2
    table = np.array([5, 0, 7, 2, 6, 1, 3, 4], "int32")
    q, k, v = values(rng, 2, HEADS, DIM), values(rng, 8, 16, KV_HEADS, DIM), values(rng, 8, 16, KV_HEADS, DIM)
    ks, vs = (rng.uniform(0.5, 2, (8, 16, KV_HEADS)).astype("float32") for _ in range(2))
    scaled = lambda cache, scales: dense((cache.astype("float32") * scales[..., None]), table)  # noqa: E731
    expected = evaluate(family, q, scaled(k, ks), scaled(v, vs), DIM**-0.5)[0]
    given = {"ks": ks, "vs": vs}
    assert_close(att.run(family, q, k, v, table, params=given), expected, "float16")
    with pytest.raises(deft.UsageError, match=r"`ks` \(f32\[tokens, kv_heads\]\) has 224 values, the run reads the first 128 slots of 2 KV heads"):
        att.run(family, q, k, v, table, params={**given, "ks": ks[:7]})
    with pytest.raises(deft.UsageError, match=r'params\["vs"\] needs a value \(f32\[tokens, kv_heads\]\)'):
        att.run(family, q, k, v, table, params={"ks": ks})


@pytest.mark.parametrize(
    "cache, declared, shape, wanted",
    [
        ("", "f32[tokens, kv_heads]", (2, 128), r"\[2, 128\], it must be \[pages, page_size, kv_heads\] = \[any, 16, 2\]"),
        ("", "f32[tokens, kv_heads]", (8, 2, 16), r"\[8, 2, 16\], it must be"),
        ("", "f32[tokens, kv_heads]", (128, 2), None),
        ("", "f32[tokens, kv_heads]", (8, 16, 2), None),
        ("", "f32[tokens, kv_heads]", (1, 8, 16, 2), None),
        ("", "f32[tokens, kv_heads]", (256,), None),
        ("", "f32[tokens]", (16, 8), r"\[16, 8\], it must be \[pages, page_size\] = \[any, 16\]"),
        ("", "f32[tokens]", (8, 16), None),
        ("", "f32[tokens]", (8, 16, 1), None),
        ("", "f32[queries]", (2, 2), r"\[2, 2\], it must be \[queries\] = \[any\]"),
        ("", "f32[queries]", (2, 1), None),
        ("kv_cache = contiguous;", "f32[tokens, kv_heads]", (2, 114), r"it must be \[tokens, kv_heads\] = \[any, 2\]"),
        ("kv_cache = contiguous;", "f32[tokens, kv_heads]", (114, 2), None),
        ("kv_cache = contiguous;", "f32[tokens]", (57, 2), r"it must be \[tokens\] = \[any\]"),
    ],
)
def test_arrays_of_the_cache_have_its_shape(family, cache, declared, shape, wanted):
    index = declared[declared.index("[") :].replace("tokens", "token").replace("queries", "query").replace("kv_heads", "kv_head")
    att = deft.compile(f"attention a {{ {SHAPE} dtype = f16; {cache} param w : {declared}; score = s * w{index}; }}")
    kv = np.zeros((114, KV_HEADS, DIM) if cache else (8, 16, KV_HEADS, DIM), "float16")
    given = np.zeros((2, HEADS, DIM), "float16"), kv, kv, None if cache else np.arange(8, dtype="int32")
    if wanted is None:
        att.run(family, *given, params={"w": np.ones(shape, "float32")})
        return
    with pytest.raises(deft.UsageError, match=f"the parameter w has shape .*{wanted}"):
        att.run(family, *given, params={"w": np.ones(shape, "float32")})


def test_a_list_is_of_the_type_that_its_parameter_is_declared_with(family, rng):
    att = deft.compile(
        f"attention a {{ {SHAPE} dtype = f16; kv_cache = contiguous; param far : f32[2]; param near : i32[2];"
        "  score = s + (far[0] > 2999999744.0 ? 0.01 * kv_pos : 0.0); mask = kv_pos > q_pos - near[0]; }"
    )
    q, k, v = values(rng, 2, HEADS, DIM), values(rng, 114, KV_HEADS, DIM), values(rng, 114, KV_HEADS, DIM)
    expected = att.run(family, q, k, v, params={"far": [3e9, 0.0], "near": np.array([7, 0], "int32")})
    assert (expected != att.run(family, q, k, v, params={"far": [0, 0], "near": [7, 0]})).any()
    assert (expected == att.run(family, q, k, v, params={"far": [3_000_000_000, 0], "near": [np.int64(7), 0]})).all()
    for near, message in (
        ([2**32 + 7, 0], r"the parameter near\[0\] = 4294967303, it must be from -2147483648 to 2147483647"),
        (["x", 0], "the parameter near is no list of numbers: must be real number, not str"),
        ([7.0, 0], "parameter `near` is i32, not f32"),
    ):
        with pytest.raises(deft.UsageError, match=message):
            att.run(family, q, k, v, params={"far": [0, 0], "near": near})


def test_a_query_that_sees_nothing_has_zeros(rng):
    tree = deft.Tree()
    tree.add_query(tree.add_root(0, location=0))
    q, k = values(rng, 1, HEADS, DIM), values(rng, 1, KV_HEADS, DIM)
    out, lse = contiguous().run(tree, q, k, k, return_lse=True)
    assert (out == 0).all() and (lse == -np.inf).all()


def test_the_lock_of_the_interpreter_is_let_go(rng):
    tree = deft.Tree()
    tree.add_query(tree.add_root(200_000, location=0))
    att = contiguous()
    q, k = values(rng, 1, HEADS, DIM), values(rng, 200_000, KV_HEADS, DIM)
    plan = att.plan(tree)
    ticks, is_done = [], threading.Event()

    def count():
        while not is_done.wait(0.001):
            ticks.append(1)

    counting = threading.Thread(target=count)
    counting.start()
    for _ in range(20):
        plan.run(q, k, k)
    is_done.set()
    counting.join()
    assert len(ticks) > 5


def test_threads_are_as_many_as_are_set():
    before = deft.get_threads()
    try:
        deft.set_threads(1)
        assert deft.get_threads() == 1
    finally:
        deft.set_threads(before)


def test_as_float_of_uint16_is_the_upper_half():
    assert as_float(np.array([0x3F80, 0xC000], np.uint16)).tolist() == [1.0, -2.0]


class Elsewhere:
    """An array of a GPU's, which notes on which streams it is told that it will be read."""

    def __init__(self, array):
        self.array, self.streams = array, []

    def __dlpack_device__(self):
        return deft._abi.DEFT_DEVICE_CUDA, 0

    def __dlpack__(self, *, stream):
        self.streams.append(stream)
        return self.array.__dlpack__()


def test_who_made_an_array_is_told_on_which_stream_it_is_read(family):
    q, k, out = (Elsewhere(np.zeros(shape, "float16")) for shape in ((2, HEADS, DIM), (114, KV_HEADS, DIM), (2, HEADS, DIM)))
    plan = contiguous().plan(family)
    seen = deft._tensors.view("q", q)
    assert q.streams == [1]
    assert deft._tensors.view("k", k, 77).owner is not None and k.streams == [77]
    assert seen.data == q.array.ctypes.data
    plan.run(q, k, k, out=out, stream=77)
    assert k.streams == [77, 77, 77] and out.streams == [77]


def test_the_page_table_of_sequences_may_be_asked_for_before_they_change(rng):
    att = deft.compile(f"attention a {{ {SHAPE} dtype = f16; }}")
    sequences = deft.SequenceTree(pages=512)
    prompt = sequences.add_root(40)
    early = sequences.page_table
    for _ in range(100):
        leaf = sequences.fork(prompt)
        sequences.append(leaf, 17)
    sequences.set_queries([leaf])
    late = sequences.page_table
    assert late.shape != early.shape
    q, k, v = values(rng, 1, HEADS, DIM), values(rng, 512, 16, KV_HEADS, DIM), values(rng, 512, 16, KV_HEADS, DIM)
    assert (att.run(sequences, q, k, v, early) == att.run(sequences, q, k, v, late)).all()



def test_a_run_that_checks_names_the_row_with_a_nan(family, rng):
    q, k, v = values(rng, 2, HEADS, DIM), values(rng, 114, KV_HEADS, DIM), values(rng, 114, KV_HEADS, DIM)
    att = contiguous()
    right = att.run(family, q, k, v, check_finite=True)
    q[1, 3, 7] = np.nan
    out, lse = att.run(family, q, k, v, return_lse=True)
    assert (out[1, 3] == 0).all() and lse[1, 3] == -np.inf  # as of a row that sees nothing
    assert (out[0] == right[0]).all()
    with pytest.raises(deft.UsageError, match="query 1, head 3: q is NaN at element 7"):
        att.plan(family).run(q, k, v, check_finite=True)
    q[1, 3, 7] = 0
    assert att.run(family, q, k, v, check_finite=True) is not None
