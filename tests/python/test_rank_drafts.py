"""Drafts whose trees are masks of bits, over ranks: each reads the part of a draft's path that its cache has."""

import deft
import numpy as np
import pytest
from evaluate import assert_close, evaluate
from test_paged_batch_drafts import LENGTHS, PAGE, PARENTS, TABLES, mask_of

SPEC = "attention a { query_heads = 4; kv_heads = 2; head_dim = 64; dtype = f16; output = f16 with lse; }"
WINDOW = """import "library.deft";
attention w { query_heads = 4; kv_heads = 2; head_dim = 64; dtype = f16; mask = tree && sliding_window(12); output = f16 with lse; }"""


class Caches:
    """K and V of all tokens, and of each rank what it holds; NaN where it holds nothing. `holders`: of the table's entries, by page."""

    def __init__(self, rng, count, unit, holders=None):
        self.count, self.unit, self.holders = count, unit, holders
        self.page = PAGE if holders is not None else PAGE * count  # tokens of an entry
        self.row = TABLES.shape[1] * self.page
        self.whole = rng.standard_normal((2, TABLES.size * self.page, 2, 64)).astype("float16")
        for row in range(1, len(TABLES)):  # what is shared
            for page in np.flatnonzero(TABLES[row] == TABLES[0]):
                first = page * self.page
                self.whole[:, row * self.row + first : row * self.row + first + self.page] = self.whole[:, first : first + self.page]

    def of(self, rank, all_parents, lengths):
        k_and_v = np.full((2, (TABLES.max() + 1) * PAGE, 2, 64), np.nan, "float16")
        for row, (length, parents) in enumerate(zip(lengths, all_parents)):
            for token in range(length + len(parents)):
                page, at = TABLES[row, token // self.page], token % self.page
                if self.holders is None:
                    ranks = deft.Ranks(self.count, rank, unit=self.unit)
                    holder, slot = ranks.holder(at), page * PAGE + ranks.place(at)
                else:
                    holder, slot = self.holders[row, token // self.page], page * PAGE + at
                if holder == rank:
                    k_and_v[:, slot] = self.whole[:, row * self.row + token]
        return k_and_v.reshape(2, -1, PAGE, 2, 64)

    def ranks(self, rank):
        if self.holders is None:
            return deft.Ranks(self.count, rank, unit=self.unit)
        return deft.Ranks(self.count, rank, unit=PAGE, layout="by_page")

    def batches(self, att):
        return [deft.PagedBatch(att, max_requests=4, ranks=self.ranks(rank)) for rank in range(self.count)]

    def merged(self, batches, q, all_parents, lengths, depths=None):
        outs, lses = [], []
        for rank, batch in enumerate(batches):
            batch.draft(mask_of(all_parents, 7), depths)
            out, lse = batch.run(q, *self.of(rank, all_parents, lengths), return_lse=True)
            outs.append(out)
            lses.append(lse)
        return deft.merge_states(outs, lses)

    def right(self, q, all_parents, lengths, mask=None):
        tree = deft.Tree()
        for row, (length, parents) in enumerate(zip(lengths, all_parents)):
            nodes = [tree.add_root(length, location=row * self.row)]
            for draft, parent in enumerate(parents):
                nodes.append(tree.add_child(nodes[parent + 1], 1, location=row * self.row + length + draft))
            tree.set_queries([*(query.node for query in tree.queries), *nodes[1:]])
        return evaluate(tree, q, *self.whole, 64**-0.5, mask=mask)


def queries(rng, all_parents):
    return rng.standard_normal((sum(map(len, all_parents)), 4, 64)).astype("float16")


HOLDERS = np.array([[0, 1, 1, 0], [0, 1, 0, 1], [1, 0, 0, 1]], "int32")
LAYOUTS = [(2, 1, None), (2, PAGE, None), (3, 4, None), (4, 2, None), (2, PAGE, HOLDERS)]


@pytest.mark.parametrize("count, unit, holders", LAYOUTS, ids=["tokens", "pages", "three", "four", "holders"])
@pytest.mark.parametrize("spec", [SPEC, WINDOW], ids=["all", "window"])
def test_ranks_together_have_each_drafts_attention(rng, count, unit, holders, spec):
    caches = Caches(rng, count, unit, holders)
    batches = caches.batches(deft.compile(spec))
    mask = None if spec is SPEC else (lambda q_pos, kv_pos: q_pos - kv_pos < 12)
    all_parents, lengths = PARENTS, LENGTHS
    for step in range(4):
        for batch in batches:
            if step == 2:
                batch.grow(TABLES, lengths, **({} if holders is None else {"holders": holders}))
            else:
                counts = [len(parents) for parents in all_parents]
                batch.update(TABLES, lengths, drafts=counts, **({} if holders is None else {"holders": holders}))
        q = queries(rng, all_parents)
        out, lse = caches.merged(batches, q, all_parents, lengths)
        right, right_lse = caches.right(q, all_parents, lengths, mask)
        assert_close(out, right, "float16")
        assert np.abs(lse - right_lse).max() < 2e-3
        lengths = [length + step for length in lengths]
        if step != 1:
            all_parents = [[-1, -1, 0, 2], [], [-1, 0, 1, 2, 3, 0, 5]] if step == 0 else [[-1], [-1], [-1, 0]]


def test_each_rank_says_what_is_wrong(rng):
    caches = Caches(rng, 2, 1)
    for batch in caches.batches(deft.compile(SPEC)):
        batch.update(TABLES, LENGTHS, drafts=[len(parents) for parents in PARENTS])
        with pytest.raises(deft.UsageError, match="does not know yet which drafts see which"):
            batch.run(queries(rng, PARENTS), *caches.of(0, PARENTS, LENGTHS))
        with pytest.raises(deft.UsageError, match="bits has 4 drafts of a request, and request 0 has 5"):
            batch.draft(np.ones((3, 4, 4), bool))
        with pytest.raises(deft.UsageError, match=r"bits\[2\]\[2\] is not a row of a tree of drafts"):
            batch.draft(np.zeros((3, 5, 1), "int32"))


def test_a_draft_needs_a_page_with_a_holder(rng):
    batch = deft.PagedBatch(deft.compile(SPEC), max_requests=1, ranks=deft.Ranks(2, 0, unit=PAGE, layout="by_page"))
    holders = np.array([[0, 1, -1, -1]], "int32")
    batch.update(TABLES[:1], [30], drafts=[2], holders=holders)
    with pytest.raises(deft.UsageError, match="page 2 of row 0 is -1"):
        batch.update(TABLES[:1], [30], drafts=[3], holders=holders)
