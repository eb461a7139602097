"""jax's arrays on the processor. On GPUs they are not taken as results, and nothing of it has been seen."""

import deft
import numpy as np
import pytest

jax = pytest.importorskip("jax")
jnp = jax.numpy

SHAPE = "query_heads = 4; kv_heads = 2; head_dim = 64;"


def compiled(dtype, cache="kv_cache = contiguous;"):
    return deft.compile(f"attention a {{ {SHAPE} dtype = {dtype}; {cache} output = {dtype} with lse; }}")


def tensors(rng, dtype):
    shapes = ((2, 4, 64), (114, 2, 64), (114, 2, 64))
    return [jnp.asarray(rng.standard_normal(shape), dtype) for shape in shapes]


@pytest.mark.parametrize("code, dtype", [("f16", jnp.float16), ("bf16", jnp.bfloat16)])
def test_results_are_jax_arrays_with_numpys_bits(family, rng, code, dtype):
    att, given = compiled(code), tensors(rng, dtype)
    out, lse = att.run(family, *given, return_lse=True)
    expected, expected_lse = att.run(family, *(np.asarray(one) for one in given), return_lse=True)
    assert isinstance(out, jax.Array) and out.dtype == dtype and isinstance(lse, jax.Array) and lse.dtype == jnp.float32
    assert (np.asarray(out) == expected).all() and (np.asarray(lse) == expected_lse).all()


def test_what_jax_still_computes_is_waited_for(family, rng):
    att, (q, k, v) = compiled("f16"), tensors(rng, jnp.float16)
    slow = jax.jit(lambda x: jax.lax.fori_loop(0, 3000, lambda _, y: jnp.sin(y @ y.T @ y), x))
    square = slow(jnp.ones((64, 64)))
    late = q + (square[0, 0] * 0).astype(jnp.float16)
    assert (np.asarray(att.run(family, late, k, v)) == np.asarray(att.run(family, q, k, v))).all()


def test_results_of_two_runs_are_apart(family, rng):
    att, (q, k, v) = compiled("f16"), tensors(rng, jnp.float16)
    first = att.run(family, q, k, v)
    before = np.array(first)
    second = att.run(family, -q, k, v)
    assert (np.asarray(first) == before).all() and not (np.asarray(second) == before).all()
    assert (jnp.zeros((2, 4, 64), jnp.float16) == 0).all(), "no array that jax keeps for others was written"


def test_numpys_arrays_may_be_written_from_jaxs(family, rng):
    att, given = compiled("f16"), tensors(rng, jnp.float16)
    out = np.zeros((2, 4, 64), "float16")
    assert att.run(family, *given, out=out) is out
    assert (out == np.asarray(att.run(family, *given))).all()


def test_arrays_of_jax_are_not_written(family, rng):
    att, given = compiled("f16"), tensors(rng, jnp.float16)
    with pytest.raises(deft.UsageError, match="out may not be written to"):
        att.run(family, *given, out=jnp.zeros((2, 4, 64), jnp.float16))


def test_a_page_table_and_lengths_may_be_jaxs(rng):
    att = compiled("f16", "")
    batch = deft.PagedBatch(att, max_requests=2)
    batch.update(jnp.array([[0, 1], [0, 2]], jnp.int32), jnp.array([20, 21], jnp.int32))
    assert batch.sharing().tokens == 25
    q, cache = (jnp.asarray(rng.standard_normal(shape), jnp.float16) for shape in ((2, 4, 64), (3, 16, 2, 64)))
    expected = batch.run(np.asarray(q), np.asarray(cache), np.asarray(cache))
    assert (np.asarray(batch.run(q, cache, cache)) == expected).all()


def test_an_array_that_is_traced_is_named(family, rng):
    att, (q, k, v) = compiled("f16"), tensors(rng, jnp.float16)
    with pytest.raises(deft.UsageError, match="q: an array is traced by jax"):
        jax.jit(lambda q: att.run(family, q, k, v))(q)


def test_a_run_in_a_compiled_function_is_a_callback(family, rng):
    att, (q, k, v) = compiled("f16"), tensors(rng, jnp.float16)
    shape = jax.ShapeDtypeStruct(q.shape, q.dtype)
    plan = att.plan(family)

    @jax.jit
    def layer(q, k, v):
        return jax.pure_callback(lambda *given: np.asarray(plan.run(*map(np.asarray, given))), shape, q * 2, k, v)

    assert (np.asarray(layer(q, k, v)) == np.asarray(plan.run(q * 2, k, v))).all()
