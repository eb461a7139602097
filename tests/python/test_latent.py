import deft
import ml_dtypes
import numpy as np
import pytest
from evaluate import assert_close, dense, evaluate

HEADS, DIM, ROPE, PAGE = 6, 64, 16, 16
TABLE = np.array([5, 0, 7, 2, 6, 1, 3, 4], "int32")


@pytest.fixture
def att():
    return deft.compile(
        f"attention a {{ query_heads = {HEADS}; kv_cache = latent(dim = {DIM}, rope = {ROPE}); scale = 0.2; output = bf16 with lse; }}"
    )


def bf16(rng, *shape):
    return rng.standard_normal(shape).astype(ml_dtypes.bfloat16)


def expected(tree, q, cache, table, scale=0.2):
    k = dense(cache, table)[:, None]
    return evaluate(tree, q, k, k[..., :DIM], scale)


def test_its_facts_say_what_the_cache_is(att):
    assert (att.kv_heads, att.key_dim, att.value_dim, att.value_in_key, att.page_size) == (1, DIM + ROPE, DIM, True, PAGE)
    assert "key_dim 80, value_dim 64 of K" in repr(att)


@pytest.mark.parametrize("shape", [(8, PAGE, DIM + ROPE), (8, PAGE, 1, DIM + ROPE)])
def test_the_cache_is_k_alone(att, family, rng, shape):
    q, cache = bf16(rng, 2, HEADS, DIM + ROPE), bf16(rng, *shape)
    out, lse = att.run(family, q, cache, page_table=TABLE, return_lse=True)
    right, right_lse = expected(family, q, cache.reshape(8, PAGE, -1), TABLE)
    assert out.shape == (2, HEADS, DIM)
    assert_close(out, right, "bfloat16")
    assert np.abs(lse - right_lse).max() < 1e-3
    assert (att.run(family, q, cache, None, TABLE) == out).all()
    plan = att.plan(family)
    assert (plan.run(q, cache, None, TABLE) == out).all()


def test_layers_may_lie_side_by_side(att, family, rng):
    q, both = bf16(rng, 2, HEADS, DIM + ROPE), bf16(rng, 8, PAGE, 2, DIM + ROPE)
    out = att.run(family, q, both[:, :, 1], page_table=TABLE)
    assert_close(out, expected(family, q, both[:, :, 1], TABLE)[0], "bfloat16")


def test_tokens_that_overlap_are_named(att, family, rng):
    q, memory = bf16(rng, 2, HEADS, DIM + ROPE), bf16(rng, 8 * PAGE * (DIM + ROPE))
    item = memory.itemsize

    def view(*strides, columns=DIM + ROPE):
        return np.lib.stride_tricks.as_strided(memory, (8, PAGE, columns), [item * stride for stride in strides])

    packed = view(PAGE * 80, 80, 1)
    for cache, said in (
        (view(PAGE * 80, 72, 1), r"k has strides \[1280, 72, 1\], entries of page_size overlap: they span 80 elements and begin 72 apart"),
        (view(PAGE * 80 - 8, 80, 1), r"k has strides \[1272, 80, 1\], entries of pages overlap"),
        ((packed[..., :DIM], view(PAGE * 80, 8, 1, columns=ROPE)), r"k_rope has strides \[1280, 8, 1\], entries of page_size overlap"),
    ):
        with pytest.raises(deft.UsageError, match=said):
            att.run(family, q, cache, page_table=TABLE)
        batch = deft.PagedBatch(att, max_requests=2)
        batch.update(TABLE.reshape(1, -1), [100])
        with pytest.raises(deft.UsageError, match=said):
            batch.run(q[:1], cache)
    same = np.broadcast_to(packed[:1], packed.shape)
    assert (att.run(family, q, same, page_table=TABLE) == att.run(family, q, same.copy(), page_table=TABLE)).all()


def test_columns_of_one_array_may_come_in_two_parts(att, family, rng):
    q, cache = bf16(rng, 2, HEADS, DIM + ROPE), bf16(rng, 8, PAGE, DIM + ROPE)
    right = att.run(family, q, cache, page_table=TABLE)
    parts = (cache[..., :DIM], cache[..., DIM:])
    assert (att.run(family, q, parts, page_table=TABLE) == right).all()
    batch = deft.PagedBatch(att, max_requests=2)
    batch.update(TABLE.reshape(1, -1), [100])
    assert (batch.run(q[:1], parts) == batch.run(q[:1], cache)).all()
    with pytest.raises(deft.UsageError, match="k_rope does not follow k in memory, and processors read a token's columns from one tensor"):
        att.run(family, q, (parts[0], parts[1].copy()), page_table=TABLE)
    with pytest.raises(deft.UsageError, match="k has all 80 columns of a token, and k_rope is given"):
        att.run(family, q, (cache, parts[1]), page_table=TABLE)
    with pytest.raises(deft.UsageError, match="k_rope is float32, `a` takes bfloat16"):
        att.run(family, q, (parts[0], parts[1].astype("float32")), page_table=TABLE)
    with pytest.raises(deft.UsageError, match="k is a tuple of 3, it must be one array or"):
        att.run(family, q, (*parts, cache), page_table=TABLE)
    with pytest.raises(deft.UsageError, match="k is a tuple, and the cache of `a` is not latent"):
        apart = deft.compile("attention a { query_heads = 6; kv_heads = 2; head_dim = 16; dtype = f16; }")
        apart.run(family, np.zeros((2, 6, 16), "float16"), (q, q), q, TABLE)


def test_a_batch_has_latent_pages(att, rng):
    tables, lengths = np.array([[0, 1, 2], [0, 1, 3], [4, 5, -1]], "int32"), [40, 37, 20]
    q, cache = bf16(rng, 3, HEADS, DIM + ROPE), bf16(rng, 6, PAGE, DIM + ROPE)
    batch = deft.PagedBatch(att, max_requests=4)
    batch.update(tables, np.array(lengths, "int32"))
    out = batch.run(q, cache)
    tree = deft.Tree()
    for row, length in enumerate(lengths):
        tree.add_query(tree.add_root(length, location=row * 3 * PAGE))
    assert_close(out, expected(tree, q, cache, tables.reshape(-1).clip(0))[0], "bfloat16")
    assert batch.sharing() == deft.Sharing(3, 97, 65)


def packed(rng, *shape, dim=512, rope=64, each=128):
    """Tokens as DeepSeek V3.2's engines pack them, and what their elements mean."""
    latent = rng.standard_normal((*shape, dim // each, each)) * rng.uniform(0.1, 3, (*shape, dim // each, 1))
    scales = (np.abs(latent).max(-1, keepdims=True) / 448).astype("float32")
    numbers = (latent / scales).astype(ml_dtypes.float8_e4m3fn)
    rotated = bf16(rng, *shape, rope)
    parts = (numbers.reshape(*shape, dim), scales.reshape(*shape, dim // each), rotated)
    meant = (numbers.astype("float32") * scales).astype(ml_dtypes.bfloat16).reshape(*shape, dim)
    return np.concatenate([part.view("uint8") for part in parts], -1), np.concatenate([meant, rotated], -1)


SCALED = "attention a { query_heads = 6; kv_cache = latent(dim = 512, rope = 64, dtype = fp8_e4m3, scales = 128); scale = 0.04; output = bf16 with lse; }"


@pytest.mark.parametrize("has_heads", [False, True])
def test_rows_may_have_scales(family, rng, has_heads):
    att = deft.compile(SCALED)
    assert (att.key_dim, att.value_dim, att.scale_columns, att.cache_dtype) == (576, 512, 128, "float8_e4m3fn")
    assert "of float8_e4m3fn with scales" in repr(att)
    cache, meant = packed(rng, 8, PAGE)
    assert cache.shape == (8, PAGE, 656)
    q = bf16(rng, 2, HEADS, 576)
    k = dense(meant, TABLE)[:, None]
    right, right_lse = evaluate(family, q, k, k[..., :512], 0.04)
    given = cache[:, :, None] if has_heads else cache
    out, lse = att.run(family, q, given, page_table=TABLE, return_lse=True)
    assert_close(out, right, "bfloat16")
    assert np.abs(lse - right_lse).max() < 1e-3
    assert (att.run(family, q, given.view(ml_dtypes.float8_e4m3fn), page_table=TABLE) == out).all()
    batch = deft.PagedBatch(att, max_requests=2)
    batch.update(TABLE.reshape(1, -1), [100])
    tree = deft.Tree()
    tree.add_query(tree.add_root(100, location=0))
    assert_close(batch.run(q[:1], given), evaluate(tree, q[:1], k, k[..., :512], 0.04)[0], "bfloat16")
    traced = deft.attention(query_heads=HEADS, latent=(512, 64, 128), cache_dtype="fp8_e4m3", scale=0.04, lse=True)
    assert (traced.run(family, q, given, page_table=TABLE) == out).all()


def test_rows_with_scales_that_do_not_fit_are_named(family, rng):
    att, q = deft.compile(SCALED), bf16(rng, 2, HEADS, 576)
    cache = packed(rng, 8, PAGE)[0]
    with pytest.raises(deft.UsageError, match=r"k is \[8, 16, 576\], it must be \[pages, page_size, bytes of a token\] = \[any, 16, 656\]"):
        att.run(family, q, cache[..., :576], page_table=TABLE)
    with pytest.raises(deft.UsageError, match="k_rope is given, and a token's row in the cache of `a` has its scales in it"):
        att.run(family, q, (cache[..., :512], cache[..., 528:]), page_table=TABLE)
    cache[TABLE[1], 3, 512:516] = np.array([np.inf], "float32").view("uint8")
    with pytest.raises(deft.UsageError, match="K is -?inf at element .* of the token at kv_pos 19"):
        att.run(family, q, cache, page_table=TABLE, check_finite=True)


def test_bytes_have_one_scale_that_a_run_is_given(family, rng):
    att = deft.compile(
        "attention a { query_heads = 6; kv_cache = latent(dim = 512, rope = 64, dtype = fp8_e4m3); scale = 0.04; "
        "param k_scale : f32; param v_scale : f32; score = s * k_scale; output = x * v_scale as bf16 with lse; }"
    )
    q, cache = bf16(rng, 2, HEADS, 576), rng.standard_normal((8, PAGE, 576)).astype(ml_dtypes.float8_e4m3fn)
    k = 0.5 * dense(cache.astype("float32"), TABLE)[:, None]
    out = att.run(family, q, cache, page_table=TABLE, params={"k_scale": 0.5, "v_scale": 0.5})
    assert_close(out, evaluate(family, q, k, k[..., :512], 0.04)[0], "bfloat16")


def test_functions_are_said_over_latent_caches(family, rng):
    att = deft.attention(
        query_heads=HEADS, latent=(DIM, ROPE), scale=0.2, lse=True, score=lambda s, kv_pos: s + 0.01 * kv_pos
    )
    assert f"kv_cache = latent(dim = {DIM}, rope = {ROPE}, page_size = {PAGE});" in att.spec
    q, cache = bf16(rng, 2, HEADS, DIM + ROPE), bf16(rng, 8, PAGE, DIM + ROPE)
    k = dense(cache, TABLE)[:, None]
    right = evaluate(family, q, k, k[..., :DIM], 0.2, score=lambda s, kv_pos: s + 0.01 * kv_pos)[0]
    assert_close(att.run(family, q, cache, page_table=TABLE), right, "bfloat16")
    apart = deft.attention(query_heads=4, kv_heads=2, key_dim=96, value_dim=64)
    assert (apart.key_dim, apart.value_dim) == (96, 64)
    with pytest.raises(deft.UsageError, match="a latent cache has pages"):
        deft.attention(query_heads=HEADS, latent=(DIM, ROPE), scale=0.2, page_size=None)
    with pytest.raises(deft.DiagnosticError, match="a latent cache needs a `scale`"):
        deft.attention(query_heads=HEADS, latent=(DIM, ROPE))
    with pytest.raises(deft.DiagnosticError, match="has no `head_dim`"):
        deft.attention(query_heads=HEADS)


def test_what_does_not_fit_is_named(att, family, rng):
    q = bf16(rng, 2, HEADS, DIM + ROPE)
    with pytest.raises(deft.UsageError, match=r"k is \[8, 16, 64\], it must be \[pages, page_size, key_dim\] = \[any, 16, 80\]"):
        att.run(family, q, bf16(rng, 8, PAGE, DIM), page_table=TABLE)
    with pytest.raises(deft.UsageError, match=r"out is \[2, 6, 80\], it must be \[queries, query_heads, value_dim\] = \[2, 6, 64\]"):
        att.run(family, q, bf16(rng, 8, PAGE, DIM + ROPE), page_table=TABLE, out=np.empty_like(q))


def test_keys_and_values_may_have_dims_of_their_own(family, rng):
    att = deft.compile("attention a { query_heads = 6; kv_heads = 2; key_dim = 96; value_dim = 64; dtype = f16; kv_cache = contiguous; }")
    q, k, v = (rng.standard_normal(shape).astype("float16") for shape in ((2, 6, 96), (114, 2, 96), (114, 2, 64)))
    out = att.run(family, q, k, v)
    assert_close(out, evaluate(family, q, k, v, 96**-0.5)[0], "float16")
    assert (att.key_dim, att.value_dim, att.value_in_key) == (96, 64, False)
    with pytest.raises(deft.UsageError, match="v is a NoneType"):
        att.run(family, q, k)
