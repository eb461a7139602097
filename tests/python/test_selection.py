"""Selecting and sparse runs against NumPy, in float64."""

import numpy as np
import pytest

import deft

QUERY_HEADS, KV_HEADS, DIM = 4, 2, 64
SPEC = (
    f"attention a {{ query_heads = {QUERY_HEADS}; kv_heads = {KV_HEADS}; head_dim = {DIM}; dtype = f16; "
    "kv_cache = paged(page_size = 4); select { budget = tune(12, 500); keep_first = 1; keep_last = 2; } }"
)


class Case:
    def __init__(self, spec=SPEC):
        self.attention = deft.compile(spec)
        self.sequences = deft.SequenceTree(pages=64, page_size=4)
        prompt = self.sequences.add_root(90)
        self.leaves = [self.sequences.fork(prompt, position) for position in (None, 50)]
        for leaf in self.leaves:
            assert self.sequences.append(leaf, 7) == []
        self.sequences.set_queries(self.leaves)
        random = np.random.default_rng(3)
        self.q = random.standard_normal((2, QUERY_HEADS, DIM)).astype("float16")
        self.k, self.v = (random.standard_normal((64, 4, KV_HEADS, DIM)).astype("float16") for _ in range(2))

    def path(self, query):
        """The slots of a query's path."""
        slots, node = [], self.leaves[query]
        while node is not None:
            tokens = self.sequences.node(node).tokens
            slots[:0] = [self.sequences.slot(node, index) for index in range(tokens)]
            parent = self.sequences.node(node).parent
            node = parent if parent is not None and parent >= 0 else None
        return slots

    def keys_of(self, cache, query, kv_head):
        return cache.reshape(-1, KV_HEADS, DIM)[self.path(query), kv_head].astype("float64")

    def run(self, how, selection=None):
        plan = self.attention.plan(self.sequences)
        arguments = (self.q, self.k, self.v, self.sequences.page_table)
        return getattr(plan, how)(*([selection] if selection else []), *arguments)


def test_what_the_spec_says_of_selection_is_told():
    assert deft.compile(SPEC).selects == deft.Selects(budgets=(12, 500), by="kv_head", keep_first=1, keep_last=2)
    assert deft.compile(SPEC.replace("select {", "select { by = query;")).selects.by == "query"
    assert deft.compile(SPEC[: SPEC.index("select")] + "}").selects is None


def test_lists_are_those_of_a_sort_and_sparse_runs_read_them():
    case = Case()
    selection = deft.Selection(case.attention)
    assert (selection.budget, selection.lists, selection.query_count) == (12, KV_HEADS, 0)
    full = case.run("run_selecting", selection)
    np.testing.assert_array_equal(full, case.run("run"))
    plan = case.attention.plan(case.sequences)
    table = case.sequences.page_table
    plan.run_selecting(selection, case.q, case.k, case.v, table)
    sparse = plan.run_sparse(selection, case.q, case.k, case.v, table)
    for query in range(2):
        for kv_head in range(KV_HEADS):
            keys, values = (case.keys_of(cache, query, kv_head) for cache in (case.k, case.v))
            heads = range(kv_head * 2, kv_head * 2 + 2)
            scores = case.q[query, heads].astype("float64") @ keys.T / np.sqrt(DIM)
            worth = scores.max(0)
            worth[[0, -1, -2]] = np.inf
            expected = sorted(np.argsort(-worth, kind="stable")[:12].tolist())
            assert selection.positions(query, kv_head) == expected
            weights = np.exp(scores[:, expected])
            weights /= weights.sum(1, keepdims=True)
            np.testing.assert_allclose(sparse[query, heads], weights @ values[expected], atol=2e-3)


def test_a_budget_beyond_the_path_reads_all_of_it():
    case = Case()
    selection = deft.Selection(case.attention, budget=500)
    plan = case.attention.plan(case.sequences)
    table = case.sequences.page_table
    full = plan.run_selecting(selection, case.q, case.k, case.v, table)
    assert selection.positions(0) == list(range(97))
    np.testing.assert_allclose(plan.run_sparse(selection, case.q, case.k, case.v, table), full, atol=2e-3)


def test_wrong_selections_are_errors():
    case = Case()
    with pytest.raises(deft.UsageError, match="a budget of 13 is none of"):
        deft.Selection(case.attention, budget=13)
    with pytest.raises(deft.UsageError, match="selects nothing"):
        deft.Selection(deft.compile("attention b { query_heads = 2; kv_heads = 2; head_dim = 64; }"))
    selection = deft.Selection(case.attention)
    with pytest.raises(deft.UsageError, match="the selection is empty"):
        case.run("run_sparse", selection)
    with pytest.raises(IndexError):
        selection.positions(0)


def test_polluted_tokens_follow_forks_and_are_corrected():
    case = Case()
    leaf = case.leaves[0]
    case.sequences.pollute([deft.NodeTokens(leaf, 2, 3)])
    branch = case.sequences.fork(leaf, 4)
    upper = case.sequences.node(branch).parent
    assert case.sequences.polluted() == [(upper, 2, 2), (leaf, 0, 1)]
    case.sequences.correct(case.sequences.polluted())
    assert case.sequences.polluted() == []
