"""Products of 8 bits (rule A12), recomputed in float64 by the casts of ml_dtypes."""

import deft
import ml_dtypes
import numpy as np
import pytest
from evaluate import dense, evaluate

HEADS, KV_HEADS, DIM, PAGE = 6, 2, 32, 16
TABLE = np.array([3, 1, 4, 0, 6, 2, 5], "int32")
E4M3 = ml_dtypes.float8_e4m3fn
SPEC = f"""attention a {{
  query_heads = {HEADS}; kv_heads = {KV_HEADS}; head_dim = {DIM};
  kv_cache = paged(page_size = {PAGE}, dtype = fp8_e4m3);
  products = fp8_e4m3;
  output = bf16 with lse;
}}"""


def as_bytes(q):
    """Each row over the least power of two for which no element is beyond 448, rounded."""
    q = q.astype("float64")
    scale = np.exp2(np.ceil(np.log2(np.abs(q).max(-1, keepdims=True) / 448)))
    return scale * (q / scale).astype(E4M3).astype("float64")


@pytest.fixture
def family():
    tree = deft.Tree()
    root = tree.add_root(60, location=0)
    for tokens, location in ((20, 64), (1, 90)):
        tree.add_query(tree.add_child(root, tokens, location=location))
    return tree


def test_q_and_weights_are_rounded(family):
    rng = np.random.default_rng(1)
    att = deft.compile(SPEC)
    assert att.byte_products and att.cache_dtype == "float8_e4m3fn" and att.dtype == "bfloat16"
    q = rng.normal(size=(2, HEADS, DIM), scale=3).astype(ml_dtypes.bfloat16)
    k, v = (rng.normal(size=(8, PAGE, KV_HEADS, DIM)).astype(E4M3) for _ in range(2))
    keys, values = (dense(part.astype("float64"), TABLE) for part in (k, v))
    out, lse = att.run(family, q, k, v, page_table=TABLE, return_lse=True)
    right, right_lse = evaluate(family, as_bytes(q), keys, values, DIM**-0.5)
    size = evaluate(family, as_bytes(q), keys, np.abs(values), DIM**-0.5)[0]
    assert np.abs(lse - right_lse).max() < 1e-4
    assert (np.abs(out.astype("float64") - right) <= (2.0**-4 + 2.0**-8) * size + 2.0**-16).all()
    whole = deft.compile(SPEC.replace("products = fp8_e4m3;", ""))
    assert not whole.byte_products
    assert np.abs(whole.run(family, q, k, v, page_table=TABLE, return_lse=True)[1] - right_lse).max() > 1e-2
    traced = deft.attention(query_heads=HEADS, kv_heads=KV_HEADS, head_dim=DIM, cache_dtype="fp8_e4m3", products=E4M3, lse=True)
    assert (traced.run(family, q, k, v, page_table=TABLE) == out).all()


def test_a_row_that_sees_one_token_has_its_values(family):
    rng = np.random.default_rng(2)
    tree = deft.Tree()
    tree.add_query(tree.add_root(1, location=0))
    q = rng.normal(size=(1, HEADS, DIM)).astype(ml_dtypes.bfloat16)
    k, v = (rng.normal(size=(8, PAGE, KV_HEADS, DIM)).astype(E4M3) for _ in range(2))
    out = deft.compile(SPEC).run(tree, q, k, v, page_table=TABLE)
    assert (out[0] == np.repeat(v[TABLE[0], 0], HEADS // KV_HEADS, 0).astype(ml_dtypes.bfloat16)).all()


def test_q_of_8_bits_is_taken_as_it_is(family):
    rng = np.random.default_rng(3)
    scaled = SPEC.replace("output = bf16", "param q_scale : f32;\n  score = s * q_scale;\n  output = bf16")
    att = deft.compile(scaled)
    q = rng.normal(size=(2, HEADS, DIM), scale=40).astype(E4M3)
    q[0, 0] = np.array([448, -448, 2.0**-9, 0, 0.5, -1.75, 15, 240] * 4).astype(E4M3)  # the largest and least that there are
    k, v = (rng.normal(size=(8, PAGE, KV_HEADS, DIM)).astype(E4M3) for _ in range(2))
    given = {"page_table": TABLE, "return_lse": True, "params": {"q_scale": 0.03}}
    out, lse = att.run(family, q, k, v, **given)
    assert out.dtype == ml_dtypes.bfloat16
    for one, other in zip((out, lse), att.run(family, q.astype(ml_dtypes.bfloat16), k, v, **given)):
        assert (one == other).all()
    keys, values = (dense(part.astype("float64"), TABLE) for part in (k, v))
    assert np.abs(lse - evaluate(family, q.astype("float64"), keys, values, 0.03 * DIM**-0.5)[1]).max() < 1e-4
    half = deft.compile(SPEC.replace("products", "dtype = f16;\n  products"))
    assert (half.run(family, q, k, v, page_table=TABLE) == half.run(family, q.astype("float16"), k, v, page_table=TABLE)).all()
    for given, att in ((q, deft.compile(SPEC.replace("products = fp8_e4m3;", ""))), (q.astype(ml_dtypes.float8_e5m2), half)):
        with pytest.raises(deft.Error, match="q is float8_e.m.*, `a` takes"):
            att.run(family, given, k, v, page_table=TABLE)


def test_what_does_not_go_with_them_is_named():
    for more, message in (({}, "the cache is of bf16"), ({"cache_dtype": "fp8_e5m2"}, "the cache is of fp8_e5m2"),
                          ({"cache_dtype": "fp8_e4m3", "sigmoid": True}, "there is sigmoid")):  # fmt: skip
        with pytest.raises(deft.Error, match=message):
            deft.attention(query_heads=HEADS, kv_heads=KV_HEADS, head_dim=DIM, products="fp8_e4m3", **more)
    with pytest.raises(deft.Error, match="unknown products `fp8_e5m2`"):
        deft.attention(query_heads=HEADS, kv_heads=KV_HEADS, head_dim=DIM, cache_dtype="fp8_e5m2", products="fp8_e5m2")
