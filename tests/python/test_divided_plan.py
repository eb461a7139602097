import deft
import ml_dtypes
import numpy as np
import pytest
from evaluate import assert_close, path

LATENT, ROPE, NOPE, VALUE, PAGE, SCALE = 64, 16, 32, 32, 16, 0.15


def attentions(heads):
    absorbed = deft.compile(
        f"attention absorbed {{ query_heads = {heads}; kv_cache = latent(dim = {LATENT}, rope = {ROPE}); scale = {SCALE}; "
        "output = bf16 with lse; }"
    )
    expanded = deft.compile(
        f"attention expanded {{ query_heads = {heads}; kv_heads = {heads}; key_dim = {NOPE + ROPE}; value_dim = {VALUE}; "
        f"scale = {SCALE}; kv_cache = paged(page_size = {PAGE}); output = bf16 with lse; }}"
    )
    return absorbed, expanded


def bf16(array):
    return np.asarray(array).astype(ml_dtypes.bfloat16)


class Problem:
    """A random tree over a latent cache with pages in no order, and the expanded K and V of all tokens."""

    def __init__(self, rng, heads, nodes=12, queries=9):
        self.tree, end = deft.Tree(), 0
        made = []
        for _ in range(nodes):
            tokens = int(rng.integers(0, 60))
            parent = None if not made or rng.random() < 0.1 else int(rng.choice(made))
            end += int(rng.integers(0, 9))
            made.append(self.tree.add_root(tokens, end) if parent is None else self.tree.add_child(parent, tokens, end))
            end += tokens
        self.tree.set_queries([int(rng.choice(made)) for _ in range(queries)])
        pages = -(-end // PAGE)
        self.table = rng.permutation(pages).astype("int32")
        w_uk = rng.standard_normal((heads, NOPE, LATENT)) * LATENT**-0.5
        self.w_uv = bf16(rng.standard_normal((heads, LATENT, VALUE)) * LATENT**-0.5)
        self.cache = bf16(rng.standard_normal((pages, PAGE, LATENT + ROPE)))
        self.latents = self.cache[self.table].reshape(-1, LATENT + ROPE).astype("float64")  # by location
        nope, pe = rng.standard_normal((queries, heads, NOPE)), rng.standard_normal((queries, heads, ROPE))
        self.q_expanded = bf16(np.concatenate([nope, pe], -1))
        self.q = bf16(np.concatenate([np.einsum("qhn,hnl->qhl", nope, w_uk), pe], -1))
        keys = np.einsum("tl,hnl->thn", self.latents[:, :LATENT], w_uk)
        rope = np.repeat(self.latents[:, None, LATENT:], heads, 1)
        self.all_k = bf16(np.concatenate([keys, rope], -1))
        self.all_v = bf16(np.einsum("tl,hlv->thv", self.latents[:, :LATENT], self.w_uv.astype("float64")))

    def expand(self, nodes, rng):
        """The caches of these nodes, with NaN where none lies."""
        expanded, where, end = [], {}, 3
        for node in nodes:
            facts = self.tree.node(node)
            expanded.append(deft.ExpandedNode(node, facts.tokens, end))
            where.update({facts.location + t: end + t for t in range(facts.tokens)})
            end += facts.tokens + 5
        pages = -(-end // PAGE)
        self.expanded_table = rng.permutation(pages).astype("int32")
        heads = self.w_uv.shape[0]
        k, v = (np.full((pages * PAGE, heads, dim), np.nan, ml_dtypes.bfloat16) for dim in (NOPE + ROPE, VALUE))
        for location, to in where.items():
            slot = self.expanded_table[to // PAGE] * PAGE + to % PAGE
            k[slot], v[slot] = self.all_k[location], self.all_v[location]
        self.k, self.v = k.reshape(pages, PAGE, heads, -1), v.reshape(pages, PAGE, heads, -1)
        # So that who reads a chosen node as latents, too, is seen.
        self.hidden = self.cache.copy()
        for location in where:
            self.hidden[self.table[location // PAGE], location % PAGE] = np.nan
        return expanded

    def run(self, plan, cache=None, **options):
        cache = self.cache if cache is None else cache
        return plan.run(self.q, self.q_expanded, cache, self.k, self.v, self.w_uv, page_table=self.table,
                        expanded_page_table=self.expanded_table, **options)

    def right(self, chosen):
        """In float64, each token in its form."""
        in_chosen = set()
        for node in chosen:
            facts = self.tree.node(node)
            in_chosen.update(range(facts.location, facts.location + facts.tokens))
        q, q_expanded, k, v, w_uv = (one.astype("float64") for one in (self.q, self.q_expanded, self.all_k, self.all_v, self.w_uv))
        out, lse = np.zeros((*q.shape[:2], VALUE)), np.full(q.shape[:2], -np.inf)
        for i in range(len(q)):
            seen = path(self.tree, i)
            if not seen:
                continue
            is_expanded = np.array([token in in_chosen for token in seen])
            for head in range(q.shape[1]):
                scores = np.where(is_expanded, k[seen, head] @ q_expanded[i, head], self.latents[seen] @ q[i, head]) * SCALE
                values = np.where(is_expanded[:, None], v[seen, head], self.latents[seen, :LATENT] @ w_uv[head])
                weights = np.exp(scores - scores.max())
                lse[i, head] = np.log(weights.sum()) + scores.max()
                out[i, head] = weights @ values / weights.sum()
        return out, lse


@pytest.mark.parametrize("heads", [1, 3, 4])
@pytest.mark.parametrize("seed", range(6))
def test_both_runs_together_are_the_attention(heads, seed):
    rng = np.random.default_rng(100 * heads + seed)
    problem = Problem(rng, heads)
    nodes = problem.tree.nodes
    nodes = [node for node in nodes if rng.random() < (0.2, 0.5, 1.0)[seed % 3]]
    expanded = problem.expand(nodes, rng)
    absorbed_attention, expanded_attention = attentions(heads)
    plan = deft.DividedPlan(absorbed_attention, expanded_attention, problem.tree, expanded, choice="all")
    assert plan.chosen == nodes
    out, lse = problem.run(plan, problem.hidden, return_lse=True)
    right, right_lse = problem.right(nodes)
    assert_close(out, right, "bfloat16")
    seen = np.isfinite(right_lse)
    assert (np.isfinite(lse) == seen).all() and np.abs(lse - right_lse)[seen].max(initial=0) < 1e-2
    # The other form has the same values, rounded elsewhere.
    alone, alone_lse = absorbed_attention.run(problem.tree, problem.q, problem.cache, None, problem.table, return_lse=True)
    latents = np.einsum("qhl,hlv->qhv", alone.astype("float64"), problem.w_uv.astype("float64"))
    assert np.abs(out.astype("float64") - latents).max() < 0.03 * max(1, np.abs(latents).max())
    assert np.abs(lse - alone_lse)[seen].max(initial=0) < 0.05


def test_without_expanded_nodes_nothing_changes(rng):
    problem = Problem(rng, 2)
    problem.k = problem.v = problem.expanded_table = None
    absorbed, expanded = attentions(2)
    plan = deft.DividedPlan(absorbed, expanded, problem.tree)
    assert plan.chosen == []
    out, lse = problem.run(plan, return_lse=True)
    alone, alone_lse = absorbed.run(problem.tree, problem.q, problem.cache, None, problem.table, return_lse=True)
    assert (lse == alone_lse).all()
    right = np.einsum("qhl,hlv->qhv", alone.astype("float32"), problem.w_uv.astype("float32")).astype(ml_dtypes.bfloat16)
    assert_close(out, right.astype("float64"), "bfloat16")


def test_tensors_of_torch(rng):
    torch = pytest.importorskip("torch")
    problem = Problem(rng, 3)
    chosen = problem.tree.nodes[::2]
    plan = deft.DividedPlan(*attentions(3), problem.tree, problem.expand(chosen, rng), choice="all")
    expected, expected_lse = problem.run(plan, return_lse=True)
    for name in ("q", "q_expanded", "cache", "k", "v", "w_uv"):
        bits = torch.from_numpy(getattr(problem, name).view("int16").copy())
        setattr(problem, name, bits.view(torch.bfloat16))
    out, lse = problem.run(plan, return_lse=True)
    assert isinstance(out, torch.Tensor) and isinstance(lse, torch.Tensor)
    assert_close(out.float().numpy(), expected.astype("float64"), "bfloat16")
    assert (lse.numpy() == expected_lse).all()


def branches(count, shared, own=4):
    tree = deft.Tree()
    prompt = tree.add_root(shared, location=0)
    for branch in range(count):
        tree.add_query(tree.add_child(prompt, own, location=shared + branch * own))
    return tree, prompt


@pytest.mark.parametrize("count, is_chosen", [(2, False), (1024, True)])
def test_many_readers_choose_the_expanded_form(count, is_chosen):
    """At DeepSeek's dims: 640 operations a head, query and token for 2,176, but 71 times the bytes."""
    absorbed = deft.compile("attention a { query_heads = 16; kv_cache = latent(dim = 512, rope = 64); scale = 0.07; output = bf16 with lse; }")
    expanded = deft.compile(
        "attention b { query_heads = 16; kv_heads = 16; key_dim = 192; value_dim = 128; scale = 0.07; output = bf16 with lse; "
        "kv_cache = paged(page_size = 16); }")
    tree, prompt = branches(count, 4096)
    plan = deft.DividedPlan(absorbed, expanded, tree, [deft.ExpandedNode(prompt, 4096, 0)])
    assert plan.chosen == [prompt] * is_chosen


def test_a_step_goes_on(rng):
    problem = Problem(rng, 2)
    absorbed, expanded = attentions(2)
    chosen = [problem.tree.nodes[0]]
    nodes = problem.expand(chosen, rng)
    plan = deft.DividedPlan(absorbed, expanded, problem.tree, nodes, choice="all")
    problem.tree.set_queries(problem.tree.nodes[-9:])
    with pytest.raises(deft.UsageError, match="the plan is stale"):
        problem.run(plan)
    assert plan.advance() == chosen
    out = np.empty((9, 2, VALUE), ml_dtypes.bfloat16)
    lse = np.empty((9, 2), "float32")
    assert problem.run(plan, out=out, lse=lse) is out
    right, right_lse = problem.right(chosen)
    assert_close(out, right, "bfloat16")
    seen = np.isfinite(right_lse)
    assert np.abs(lse - right_lse)[seen].max() < 1e-2
    assert plan.advance([]) == []
    assert repr(plan) == "<deft.DividedPlan of absorbed and expanded: 0 of 0 expanded nodes chosen>"


def test_a_batch_has_a_tree_as_well(rng):
    """An engine's block table in one row is the page table, and a node of the batch's tree may be expanded."""
    absorbed, expanded = attentions(2)
    batch = deft.PagedBatch(absorbed, max_requests=8)
    block_table = np.array([[0, 1, 2], [0, 1, 3], [0, 1, 4]], "int32")
    batch.update(block_table, [40, 45, 33])
    tree = batch.tree
    shared = tree.nodes[0]
    assert tree.node(shared).tokens == 32
    plan = deft.DividedPlan(absorbed, expanded, tree, [deft.ExpandedNode(shared, 32, 0)], choice="all")
    cache = bf16(rng.standard_normal((5, PAGE, LATENT + ROPE)))
    cache[2:] = 0  # also to the branches' tokens scores are 0, and values
    zeros = np.zeros
    w_uv = bf16(np.ones((2, LATENT, VALUE)))
    k, v = zeros((2, PAGE, 2, NOPE + ROPE), ml_dtypes.bfloat16), np.ones((2, PAGE, 2, VALUE), ml_dtypes.bfloat16)
    out = plan.run(zeros((3, 2, LATENT + ROPE), ml_dtypes.bfloat16), zeros((3, 2, NOPE + ROPE), ml_dtypes.bfloat16), cache, k, v, w_uv,
                   page_table=block_table.reshape(-1), expanded_page_table=[0, 1])
    for row, tokens in zip(out.astype("float64"), (40, 45, 33)):
        assert np.abs(row - 32 / tokens).max() < 1e-2


def test_what_is_wrong_is_named(rng):
    absorbed, expanded = attentions(2)
    tree, prompt = branches(2, 32)
    node = deft.ExpandedNode(prompt, 32, 0)
    with pytest.raises(deft.DiagnosticError, match="has 32 tokens, and its expanded K and V have 31"):
        deft.DividedPlan(absorbed, expanded, tree, [node._replace(tokens=31)])
    with pytest.raises(deft.DiagnosticError, match="the tree has no such node"):
        deft.DividedPlan(absorbed, expanded, tree, [node._replace(node=77)])
    with pytest.raises(deft.UsageError, match="whose cache is not latent"):
        deft.DividedPlan(expanded, absorbed, tree, [node])
    with pytest.raises(deft.UsageError, match="which has 4 query heads"):
        deft.DividedPlan(absorbed, attentions(4)[1], tree, [node])
    with pytest.raises(deft.UsageError, match="choice is 'cheap'"):
        deft.DividedPlan(absorbed, expanded, tree, [node], choice="cheap")
    with pytest.raises(deft.UsageError, match=r"nodes\[0\] is 3"):
        deft.DividedPlan(absorbed, expanded, tree, [3])
    silent = deft.compile("attention a { query_heads = 2; kv_cache = latent(dim = 64, rope = 16); scale = 0.2; output = bf16; }")
    with pytest.raises(deft.UsageError, match="absorbed is a plan of `a`, which gives no lse"):
        deft.DividedPlan(silent, expanded, tree, [node])
    with pytest.raises(deft.UsageError, match="an invariant|invariant"):
        deft.DividedPlan(absorbed, expanded, tree, [node], invariant=True)
    plan = deft.DividedPlan(absorbed, expanded, tree, [node], choice="all", invariant=True)
    q, cache = bf16(np.zeros((2, 2, LATENT + ROPE))), bf16(np.zeros((4, PAGE, LATENT + ROPE)))
    for w_uv, message in (
        (bf16(np.zeros((2, VALUE, LATENT))), r"w_uv has shape \[2, 32, 64\], it must be \[query_heads, latent dim, value_dim\] = \[2, 64, 32\]"),
        (np.zeros((2, LATENT, VALUE), "float32"), "w_uv is float32, the output is bfloat16"),
        (None, "w_uv is None"),
    ):
        with pytest.raises(deft.UsageError, match=message):
            plan.run(q, q, cache, cache, cache, w_uv, page_table=[0, 1, 2, 3])
