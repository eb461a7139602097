"""Attention over a tree in float64, one query after the other: knows of deft only what a tree says of itself."""

import inspect

import numpy as np


def path(tree, query):
    """Where the tokens lie that a query sees, from the root on."""
    node, position = tree.queries[query]
    locations = []
    own = True
    while node is not None:
        facts = tree.node(node)
        tokens = facts.tokens if position is None or not own else position
        locations = [*range(facts.location, facts.location + tokens), *locations]
        node, own = facts.parent, False
    return locations


def evaluate(tree, q, k, v, scale, score=None, mask=None):
    """`k` and `v` are [tokens, kv_heads, head_dim]; score and mask take arrays, by their names: `s`, `head`, `q_pos`, `kv_pos`."""
    q, k, v = (np.asarray(array).astype(np.float64) for array in (q, k, v))
    queries, heads, _ = q.shape
    out = np.zeros((queries, heads, v.shape[-1]))
    lse = np.full((queries, heads), -np.inf)
    for i in range(queries):
        seen = path(tree, i)
        if not seen:
            continue
        kv_pos = np.arange(len(seen))
        q_pos = np.full(len(seen), len(seen) - 1)
        for head in range(heads):
            kv_head = head // (heads // k.shape[1])
            s = k[seen, kv_head] @ q[i, head] * scale
            if score:
                s = by_name(score, s=s, head=head, q_pos=q_pos, kv_pos=kv_pos)
            if mask:
                s = np.where(by_name(mask, head=head, q_pos=q_pos, kv_pos=kv_pos), s, -np.inf)
            most = s.max()
            if most == -np.inf:
                continue
            weights = np.exp(s - most)
            lse[i, head] = np.log(weights.sum()) + most
            out[i, head] = weights @ v[seen, kv_head] / weights.sum()
    return out, lse


def by_name(function, **values):
    """The function of those of the values that it names."""
    return function(**{name: values[name] for name in inspect.signature(function).parameters if name in values})


def dense(pages, table):
    """The tokens of a paged cache [pages, page_size, heads, dim] in the order of the page table."""
    return pages[table].reshape(-1, *pages.shape[2:])


def assert_close(actual, expected, dtype):
    """Twice the rounding of the type, and what a long sum adds, relative to values of about 1."""
    step = {"float16": 2**-11, "bfloat16": 2**-8}[dtype]
    actual = as_float(actual)
    assert actual.shape == expected.shape
    error = np.abs(actual - expected).max()
    assert error <= 4 * step * max(1.0, np.abs(expected).max()), error


def as_float(array):
    """uint16 holds the upper half of a float32."""
    if array.dtype == np.uint16:
        return (array.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return np.asarray(array).astype(np.float64)
