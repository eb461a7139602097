"""Hooks of elements, sinks, and arrays over tokens and queries as Python functions: they compute what the same spec in text does."""

import functools

import deft
import numpy as np
import pytest
from deft import lang

HEADS, KV_HEADS, DIM, PAGES, PAGE = 4, 2, 16, 8, 16
HEAD = f"query_heads = {HEADS}; kv_heads = {KV_HEADS}; head_dim = {DIM}; dtype = f16;"
TABLE = np.array([5, 0, 7, 2, 6, 1, 3, 4], "int32")


def attention(**hooks):
    return deft.attention(query_heads=HEADS, kv_heads=KV_HEADS, head_dim=DIM, dtype="f16", **hooks)


def of_text(text):
    return deft.compile(f'import "library.deft"; attention a {{ {HEAD} {text} }}')


@pytest.fixture
def run(rng):
    tree = deft.Tree()
    prompt = tree.add_root(100, location=0)
    for place in (100, 105):
        tree.add_query(tree.add_child(prompt, 5, location=place))
    q = rng.standard_normal((2, HEADS, DIM)).astype("float16")
    k, v = (rng.standard_normal((PAGES, PAGE, KV_HEADS, DIM)).astype("float16") for _ in range(2))
    return lambda att, **options: att.run(tree, q, k, v, TABLE, **options)


def rope(x, x_half, dim, pos, base=10000.0):
    angle = pos * lang.exp2(-float(np.log2(base)) * (dim % (DIM // 2)) / (DIM // 2))
    return x * np.cos(angle) + np.where(dim < DIM // 2, -x_half, x_half) * np.sin(angle)


def rope_of_pairs(x, x_pair, dim, pos):
    angle = pos * lang.exp2(-float(np.log2(10000.0)) * (dim // 2) / (DIM // 2))
    return x * np.cos(angle) + np.where(dim % 2 == 0, -x_pair, x_pair) * np.sin(angle)


def near(actual, expected):
    """But for how an expression is rounded."""
    return np.allclose(actual.astype("float32"), expected.astype("float32"), atol=2e-3, rtol=2e-3)


def test_queries_and_keys_are_turned(run):
    for function, name, partner in ((rope, "rope", "x_half"), (rope_of_pairs, "rope_pairs", "x_pair")):
        turned = f"{name}(x, {partner}, 10000.0)"
        for hooks in ("query",), ("key",), ("query", "key"):
            text = of_text(" ".join(f"{hook} = {turned};" for hook in hooks))
            assert near(run(attention(**dict.fromkeys(hooks, function))), run(text))
    assert not near(run(attention(key=rope)), run(attention()))


def test_rows_are_normed_with_weights_that_are_captured(run, rng):
    weight = rng.uniform(0.5, 1.5, DIM).astype("float32")

    def norm(x, x_rms, dim):
        return x * lang.rsqrt(x_rms * x_rms + 1e-6) * weight[dim]

    text = of_text(f"param weight : f32[{DIM}]; query = rms_norm(weight[dim], 0.000001);")
    assert near(run(attention(query=norm)), run(text, params={"weight": weight}))


def test_outputs_have_a_gate_and_a_dtype_of_their_own(run, rng):
    gate = rng.standard_normal((HEADS, DIM)).astype("float32")
    att = attention(output=lambda x, head, dim: x * lang.sigmoid(gate[head, dim]), lse=True)
    assert (att.output_dtype, att.has_lse) == ("float16", True)
    plain, lse = run(attention(lse=True), return_lse=True)
    out, own_lse = run(att, return_lse=True)
    assert near(out, plain / (1 + np.exp(-gate))) and (own_lse == lse).all()
    assert attention(output=lambda x: x * 2.0, output_dtype="bf16").output_dtype == "bfloat16"
    assert attention(output_dtype="bf16").output_dtype == "bfloat16"


@pytest.mark.parametrize("sink", [1.5, 2, np.linspace(-1, 2, HEADS, dtype="float32"), lambda head: 0.5 * head])
def test_a_sink_is_a_logit_that_only_the_denominator_sees(run, sink):
    out, lse = run(attention(lse=True), return_lse=True)
    logit = sink(np.arange(HEADS)) if callable(sink) else sink
    kept = 1 / (1 + np.exp(logit - lse))
    assert near(run(attention(sink=sink)), out * kept[..., None])


def test_arrays_over_tokens_and_queries_are_captured(run, rng):
    doc, own = rng.integers(-1, 3, (PAGES, PAGE)), np.array([2, 0])
    gain = rng.standard_normal((PAGES, PAGE)).astype("float64")

    def mine(q_pos, kv_pos):
        return (doc[lang.token] < 0) | (doc[lang.token] == own[lang.query])

    att = attention(mask=mine, score=lambda s, head, q_pos, kv_pos: s + gain[lang.token])
    assert {param.name: param.sized_by for param in att.params} == {"doc": "tokens", "own": "queries", "gain": "tokens"}
    text = of_text(
        "param doc : i32[tokens]; param own : i32[queries]; param gain : f32[tokens];"
        "mask = doc[token] < 0 || doc[token] == own[query]; score = s + gain[token];"
    )
    given = {"doc": doc.astype("int32"), "own": own.astype("int32"), "gain": gain.astype("float32")}
    expected = run(text, params=given)
    assert (run(att) == expected).all()
    had, doc[:] = doc.copy(), 0  # the values are those of the capture, but for those that a run is given
    assert (run(att) == expected).all()
    others = {**given, "own": np.array([1, 1], "int32")}
    assert (run(att, params={"own": [1, 1]}) == run(text, params=others)).all()
    assert (had != doc).any()


def test_each_token_and_kv_head_has_scales(run, rng):
    ks, vs = (rng.uniform(0.5, 2.0, (PAGES, PAGE, KV_HEADS)).astype("float32") for _ in range(2))
    att = attention(
        score=lambda s, head, q_pos, kv_pos: s * ks[lang.token, lang.kv_head], value=lambda x, kv_head: x * vs[lang.token, kv_head]
    )
    text = of_text(
        "param ks : f32[tokens, kv_heads]; param vs : f32[tokens, kv_heads];"
        "score = s * ks[token, kv_head]; value = x * vs[token, kv_head];"
    )
    assert (run(att) == run(text, params={"ks": ks, "vs": vs})).all()


def test_arrays_may_be_torch_s_and_not_packed(run, rng):
    torch = pytest.importorskip("torch")
    doc = torch.from_numpy(rng.integers(0, 3, (PAGE, PAGES))).T
    own = torch.tensor([2, 0], dtype=torch.int16)
    att = attention(mask=lambda q_pos, kv_pos: doc[lang.token] == own[lang.query])
    text = of_text("param doc : i32[tokens]; param own : i32[queries]; mask = doc[token] == own[query];")
    given = {"doc": np.ascontiguousarray(doc.numpy()).astype("int32"), "own": [2, 0]}
    assert (run(att) == run(text, params=given)).all()


def test_tensors_of_an_object_are_indexed_by_tokens(run, rng):
    torch = pytest.importorskip("torch")

    class Scales:
        keys = torch.from_numpy(rng.uniform(0.5, 2.0, (PAGES, PAGE, KV_HEADS)))

        def score(self, s, head, q_pos, kv_pos):
            return s * self.keys[lang.token, lang.kv_head]

    text = of_text("param array : f32[tokens, kv_heads]; score = s * array[token, kv_head];")
    given = {"array": Scales.keys.numpy().astype("float32")}
    assert (run(attention(score=Scales().score)) == run(text, params=given)).all()


@pytest.mark.parametrize(
    "selects", [deft.Selects((64,)), deft.Selects((32, 64), "query"), deft.Selects(budgets=[96], by="query_head", keep_first=4, keep_last=8)]
)
def test_layers_select_as_it_is_said(selects):
    att = attention(select=selects, mask=lambda q_pos, kv_pos: q_pos - kv_pos < 512)
    assert att.selects == selects._replace(budgets=tuple(selects.budgets))
    assert attention(select=att.selects).selects == att.selects


def test_captured_names_do_not_hide_those_of_hooks(run):
    x, value = np.arange(HEADS, dtype="float32"), np.ones(HEADS, "float32")
    att = attention(output=functools.partial(lambda x, head, by: x * by[head], by=x), score=lambda s, h, q_pos, kv_pos: s * value[h])
    assert "param value_ : f32[query_heads];" in att.spec
    assert near(run(att), run(attention()) * x[:, None])

    def scaled(head):
        return x[head]

    assert "with sink(x_[head])" in attention(sink=scaled).spec


HALF = np.zeros((PAGES, PAGE, 3), "float32")
WIDE = np.array([2**40])
ONE = np.zeros(HEADS, "float32")


@pytest.mark.parametrize(
    ("hooks", "message"),
    [
        ({"query": lambda x, turn: x}, "the query has an unknown argument `turn`"),
        ({"query": lambda x, xhalf: x}, "rename `xhalf` to `x_half`"),
        ({"key": lambda x, q_pos: x}, "the key has an unknown argument `q_pos`"),
        ({"output": lambda x, kv_pos: x}, "by name: x, dim, q_pos, query, head, kv_head, or as FlexAttention calls them: h, q_idx"),
        ({"sink": lambda s: s}, "by name: head, kv_head, or as FlexAttention calls them: h"),
        ({"key": 3}, "key is 3, it must be a function"),
        ({"value": lambda x: x * x}, "value"),
        ({"key": lambda x, head: x * head}, "the key has an unknown argument `head`"),
        ({"query": lambda x: None}, "the query gives nothing back"),
        ({"score": lambda s: s + lang.token}, "`token`, but as an index of an array"),
        ({"score": lambda s: s * HALF[lang.token, lang.kv_head]}, r"shape \[8, 16, 3\]"),
        ({"score": lambda s, h: s * HALF[lang.token, h]}, "at another place than kv_head"),
        ({"score": lambda s: s * HALF[lang.query]}, "`HALF.query.` of shape"),
        ({"score": lambda s: s + WIDE[lang.token]}, "does not fit into 32 bits"),
        ({"score": lambda s, h: s + ONE[h] + ONE[lang.token]}, "`ONE` by two kinds of index"),
        ({"output": "bf16", "output_dtype": "f16"}, "both output and output_dtype are dtypes"),
        ({"sink": 1.0, "sigmoid": True}, "a sigmoid has no sink"),
        ({"sink": "high"}, "a spec cannot say a str"),
        ({"select": 64}, "select is 64, it must be a deft.Selects"),
        ({"select": deft.Selects((0,))}, "a budget of select = 0, it must be from 1"),
        ({"select": deft.Selects((64,), "head")}, "by"),
        ({"select": deft.Selects(())}, "budget"),
    ],
)
def test_what_cannot_be_said_is_named(hooks, message):
    with pytest.raises(deft.Error, match=message):
        attention(**hooks)
