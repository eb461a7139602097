"""Sparse runs that are handed their lists (rule K7), against NumPy's attention in double precision."""

import deft
import ml_dtypes
import numpy as np
import pytest
from evaluate import assert_close

QUERIES, SLOTS = 5, 192


def compiled(heads, page, budget=40, dim=64, rope=16, more=""):
    return deft.compile(
        f"attention a {{ query_heads = {heads}; kv_cache = latent(dim = {dim}, rope = {rope}, page_size = {page}); scale = 0.2; "
        f"output = bf16 with lse; {more} select {{ budget = {budget}; by = caller; }} }}"
    )


def plan_of(att, queries=QUERIES):
    """Where tokens are comes with each run: any tree with as many queries will do."""
    tree = deft.Tree()
    root = tree.add_root(1, location=0)
    for _ in range(queries):
        tree.add_query(root)
    return att.plan(tree), tree


def bf16(rng, *shape):
    return rng.standard_normal(shape).astype(ml_dtypes.bfloat16)


def drawn(rng, budget):
    """Tokens that several queries have, one has twice, holes, and a list without tokens."""
    lists = rng.integers(0, SLOTS, (QUERIES, budget), dtype="int32")
    lists[1, : budget // 2] = lists[0, : budget // 2]
    lists[2, 1:] = lists[2, 0]
    lists[rng.random(lists.shape) < 0.2] = -1
    lists[4] = -1
    return lists


def expected(q, cache, lists, scale=0.2):
    rows, dim = cache.reshape(SLOTS, -1).astype("float64"), cache.shape[-1]
    latent = {80: 64, 576: 512}[dim]
    out, lse = np.zeros((*q.shape[:2], latent)), np.full(q.shape[:2], -np.inf)
    for query, slots in enumerate(lists):
        tokens = rows[slots[slots >= 0]]
        if len(tokens):
            scores = q[query].astype("float64") @ tokens.T * scale
            most = scores.max(1, keepdims=True)
            weights = np.exp(scores - most)
            lse[query] = (most + np.log(weights.sum(1, keepdims=True)))[:, 0]
            out[query] = weights / weights.sum(1, keepdims=True) @ tokens[:, :latent]
    return out, lse


@pytest.mark.parametrize(
    ("heads", "page", "dim", "budget"),
    [(1, 1, 64, 40), (3, 16, 64, 7), (16, 64, 512, 40), (66, 16, 64, 1), (128, 64, 64, 700)],
)
def test_a_query_sees_the_tokens_of_its_list(rng, heads, page, dim, budget):
    rope = 64 if dim == 512 else 16
    att = compiled(heads, page, budget, dim, rope)
    assert att.selects == deft.Selects((budget,), by="caller")
    plan, _tree = plan_of(att)
    q, cache = bf16(rng, QUERIES, heads, dim + rope), bf16(rng, SLOTS // page, page, dim + rope)
    for _ in range(2):
        lists = drawn(rng, budget)
        out, lse = plan.run_sparse(lists, q, cache, return_lse=True)
        right, right_lse = expected(q, cache, lists)
        assert_close(out, right, "bfloat16")
        assert (np.isneginf(lse) == np.isneginf(right_lse)).all()
        seen = ~np.isneginf(right_lse)
        assert np.abs(lse[seen] - right_lse[seen]).max() < 1e-3
        assert (out[~seen] == 0).all()


def test_what_does_not_fit_is_named(rng):
    att = compiled(4, 16)
    plan, tree = plan_of(att)
    q, cache, lists = bf16(rng, QUERIES, 4, 80), bf16(rng, SLOTS // 16, 16, 80), drawn(rng, 40)
    wrong = lists.copy()
    wrong[3, 5] = SLOTS
    for given, said in (
        (wrong, "lists has 192 for query 3, and the cache has 192 slots"),
        (lists[:, :39].copy(), r"lists is \[5, 39\], and a budget of 39 is none of `a`'s: 40"),
        (lists[:3].copy(), r"lists is \[3, 40\]"),
        (lists.astype("int64"), "lists is int64, it must be int32"),
    ):
        with pytest.raises(deft.UsageError, match=said):
            plan.run_sparse(given, q, cache)
    with pytest.raises(deft.UsageError, match="check_finite is not 0, and a run over a caller's lists looks at no values"):
        plan.run_sparse(lists, q, cache, check_finite=True)
    with pytest.raises(deft.UsageError, match="`a` selects nothing: its lists are by `caller`"):
        deft.Selection(att)
    with pytest.raises(deft.DiagnosticError, match="`kv_pos` is unknown for tokens of lists by `caller`"):
        compiled(4, 16, more="mask = kv_pos > 3;")
    full = att.run(tree, q, cache, page_table=np.zeros(1, "int32"))
    assert_close(full, np.broadcast_to(cache[0, 0, :64].astype("float64"), full.shape), "bfloat16")


def test_a_python_function_may_have_lists_of_its_caller(rng):
    att = deft.attention(query_heads=2, latent=(64, 16), scale=0.2, dtype="bfloat16", select=deft.Selects((8,), by="caller"))
    plan, _tree = plan_of(att)
    lists = drawn(rng, 8)
    q, cache = bf16(rng, QUERIES, 2, 80), bf16(rng, SLOTS // 16, 16, 80)
    assert_close(plan.run_sparse(lists, q, cache), expected(q, cache, lists)[0], "bfloat16")
