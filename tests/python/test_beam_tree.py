"""Beams that change parents, beside a decoder in which each has all its tokens by itself."""

import deft
import numpy as np
import pytest
from evaluate import assert_close

PAGE, HEADS, KV_HEADS, DIM = 16, 4, 2, 32
ATT = f'import "library.deft"; attention a {{ query_heads = {HEADS}; kv_heads = {KV_HEADS}; head_dim = {DIM}; dtype = f16; output = f16 with lse; %s }}'


@pytest.fixture(scope="module")
def att():
    return deft.compile(ATT % "")


class PlainBeams:
    """Each beam is the list of its tokens, which have numbers. The cache under test gets their K and V where beams say."""

    def __init__(self, rng, pages, histories):
        """`histories`: the slots of each."""
        self.rng = rng
        self.k = np.zeros((0, KV_HEADS, DIM), "float16")
        self.v = self.k
        self.cache = np.zeros((2, pages * PAGE, KV_HEADS, DIM), "float16")
        self.paths = [self._write(slots) for slots in histories]

    def _write(self, slots):
        """New tokens at these slots; gives their numbers."""
        first = len(self.k)
        new = self.rng.standard_normal((2, len(slots), KV_HEADS, DIM)).astype("float16")
        self.k, self.v = np.concatenate([self.k, new[0]]), np.concatenate([self.v, new[1]])
        self.cache[:, slots] = new
        return np.arange(first, first + len(slots))

    def advance(self, parents, slots):
        new = self._write(np.asarray(slots))
        self.paths = [np.append(self.paths[parent], number) for parent, number in zip(parents, new)]

    def attend(self, q):
        """Attention of each beam over its own tokens, in float64."""
        out, lse = np.zeros(q.shape), np.zeros(q.shape[:2])
        for beam, path in enumerate(self.paths):
            k, v = (np.repeat(one[path].astype("float64"), HEADS // KV_HEADS, axis=1) for one in (self.k, self.v))
            scores = np.einsum("hd,thd->ht", q[beam].astype("float64"), k) * DIM**-0.5
            most = scores.max(axis=1, keepdims=True)
            weights = np.exp(scores - most)
            lse[beam] = np.log(weights.sum(axis=1)) + most[:, 0]
            out[beam] = np.einsum("ht,thd->hd", weights / weights.sum(axis=1, keepdims=True), v)
        return out, lse

    def pages(self):
        """K and V as runs take them."""
        return self.cache.reshape(2, -1, PAGE, KV_HEADS, DIM)


@pytest.mark.parametrize("count, history, steps", [(1, 1, 40), (6, 40, 30), (200, 77, 8), (5000, 130, 3)])
def test_beams_attend_as_a_plain_decoder_does(att, rng, count, history, steps):
    """Random parents, and in each third step few of them: pages are used again, and never one that a beam still sees."""
    first = -(-history // PAGE)
    pages = 2 + -(-count * steps // PAGE)
    beams = deft.BeamTree(PAGE)
    beams.start(history, pages)
    plain = PlainBeams(rng, first + pages, [np.arange(history)])
    plan, begun, used = None, 0, set()
    for step in range(steps):
        parents = rng.integers(0, min(len(plain.paths), 3 if step % 3 == 1 else count), count).astype("int32")
        found = beams.advance(parents)
        begun += len(found.new_pages)
        used.update(found.new_pages)
        plain.advance(parents, found.slots)
        assert found.positions.tolist() == [len(path) - 1 for path in plain.paths]
        if plan is None:
            plan = att.plan(beams)
        else:
            assert plan.advance() == "remade"
        q = rng.standard_normal((count, HEADS, DIM)).astype("float16")
        k, v = plain.pages()
        out, lse = plan.run(q, k, v, beams.page_table, return_lse=True)
        right, right_lse = plain.attend(q)
        assert_close(out, right, "float16")
        assert np.abs(lse - right_lse).max() < 2e-3
    assert beams.query_count == count and beams.tokens <= history + count * steps
    if count > 2 * PAGE:
        assert len(used) < begun  # some were used again
    assert beams.free_pages >= pages - len(used)


def test_numpy_reads_the_page_table_in_place():
    beams = deft.BeamTree(PAGE)
    beams.start([[(0, 20)]], pages=[9, 7], table=[4, 2])
    table = np.asarray(beams.page_table)
    assert table.dtype == np.int32 and table.tolist()[:2] == [4, 2] and set(table.tolist()[2:]) == {9, 7}
    assert not table.flags.writeable and table.ctypes.data == beams.page_table.data


def test_windows_hide_what_beams_decoded_long_ago(rng):
    att = deft.compile(ATT % "mask = tree && sliding_window(20);")
    beams = deft.BeamTree(PAGE)
    beams.start(40, 60)
    plain = PlainBeams(rng, 63, [np.arange(40)])
    for _ in range(30):
        parents = rng.integers(0, len(plain.paths), 12).tolist()
        plain.advance(parents, beams.advance(parents).slots)
    plain.paths = [path[-20:] for path in plain.paths]
    q = rng.standard_normal((12, HEADS, DIM)).astype("float16")
    assert_close(att.run(beams, q, *plain.pages(), beams.page_table), plain.attend(q)[0], "float16")


def test_searches_have_histories_of_their_own_in_any_pages(att, rng):
    """Two searches: one whose tokens lie in pages 9 and 4 and then in the middle of page 6, one in page 2."""
    beams = deft.BeamTree(PAGE)
    beams.start([[(0, 20), (2 * PAGE + 5, 3)], [(3 * PAGE, 7)]], pages=[0, 1, 11, 12], table=[9, 4, 6, 2])
    slots = [*range(9 * PAGE, 10 * PAGE), *range(4 * PAGE, 4 * PAGE + 4), *range(6 * PAGE + 5, 6 * PAGE + 8)]
    plain = PlainBeams(rng, 13, [np.array(slots), 2 * PAGE + np.arange(7)])
    assert beams.step().positions.tolist() == [22, 6]
    for parents in ([0, 1, 0], [2, 1, 1, 0], [3, 3, 2]):
        plain.advance(parents, beams.advance(parents).slots)
    q = rng.standard_normal((3, HEADS, DIM)).astype("float16")
    assert_close(att.run(beams, q, *plain.pages(), beams.page_table), plain.attend(q)[0], "float16")
    assert beams.copy().nodes == beams.nodes
    # Histories that lie one behind the other are numbers.
    beams.start([20, 7], pages=np.array([8, 9], "int32"))
    assert beams.step().positions.tolist() == [19, 6]
    assert beams.advance([1]).slots[0] == 8 * PAGE
    assert beams.node(beams.nodes[0]).location == 2 * PAGE


def test_the_owner_of_the_cache_takes_pages_that_are_free():
    beams = deft.BeamTree(PAGE)
    beams.start(10, pages=[5, 7, 6], table=[3])
    assert beams.advance([0] * 40).new_pages == [5, 7, 6]
    step = beams.advance([39, 39])
    assert (step.new_pages, step.freed_pages, step.slots.tolist()) == ([], [5, 7], [6 * PAGE + 8, 6 * PAGE + 9])
    assert sorted(beams.take_pages(10)) == [5, 7] and beams.free_pages == 0
    with pytest.raises(deft.DiagnosticError, match="out of space: 1 pages of 16 tokens needed, 0 of 3 free"):
        beams.advance([0] * 10)
    beams.add_pages([7])
    assert beams.advance([0] * 10).new_pages == [7]


@pytest.mark.parametrize(
    "options, message",
    [
        ({"page_size": 0}, "page_size is 0, not between 1 and 1048576"),
        ({"max_beams": 0}, "max_beams = 0, it must be from 1 to"),
        ({"page_size": 2.5}, "page_size is a float"),
    ],
)
def test_wrong_options_are_named(options, message):
    with pytest.raises(deft.UsageError) as caught:
        deft.BeamTree(**options)
    assert caught.value.message.startswith(message)


@pytest.mark.parametrize(
    "histories, options, message",
    [
        (0, {"pages": 1}, "histories are wrong: history 0 has 0 tokens at location 0"),
        (20, {"pages": 1, "table": [7, 1]}, "pages is null, and the histories' entries are given"),
        ([(0, 5)], {"pages": 1}, "histories[0] is (0, 5), it must be a number of tokens, or stretches (location, tokens)"),
        ([2.5], {"pages": 1}, "histories[0] is a float, it must be a whole number"),
        (20, {"pages": [4], "table": [7]}, "table has 1 pages, and history 0 ends in page 1"),
        (20, {"pages": [4], "table": [7, -1]}, "table has -1 at 1, and history 0 has tokens there"),
        (20, {"pages": [4, 4], "table": [7, 1]}, "pages has page 4 at 1, which the beams have already"),
        (20, {"pages": [7], "table": [7, 1]}, "pages has page 7 at 0, which the beams have already"),
        (20, {"pages": [-2]}, "pages has page -2 at 0, which is none"),
        (20, {"pages": -1}, "pages = -1, it must be from 0 to"),
        (20, {"pages": 1 << 28}, "pages is too large: "),
        (20, {"pages": [4], "table": np.zeros(2)}, "table is float64, it must be int32"),
    ],
)
def test_wrong_histories_are_named(histories, options, message):
    beams = deft.BeamTree(PAGE)
    beams.start(5, 4)
    with pytest.raises(deft.UsageError) as caught:
        beams.start(histories, **options)
    assert caught.value.message.startswith(message)
    assert beams.step().positions.tolist() == [4]  # nothing has changed


@pytest.mark.parametrize(
    "parents, message",
    [
        ([0, 1], "parents are wrong: beam 1 goes on from beam 1 of 1"),
        ([-1], "parents are wrong: beam 0 goes on from beam -1 of 1"),
        ([0] * 4, "parents has 4 beams, there are at most 3"),
        ([0.0], "parents[0] is a float, it must be a whole number"),
        (np.zeros(2), "parents is float64, it must be int32"),
        (np.zeros((2, 1), "int32"), "parents has shape [2, 1]"),
    ],
)
def test_wrong_parents_are_named(parents, message):
    beams = deft.BeamTree(PAGE, max_beams=3)
    beams.start(20, 4)
    with pytest.raises(deft.UsageError) as caught:
        beams.advance(parents)
    assert caught.value.message.startswith(message)
    assert caught.value.field in ("parents", "parents[0]")
    assert beams.step().positions.tolist() == [19]


def test_attentions_with_other_pages_are_named(att):
    beams = deft.BeamTree(32)
    beams.start(20, 4)
    with pytest.raises(deft.UsageError, match="tree has beams in pages of 32 tokens, and `a` has pages of 16"):
        att.plan(beams)
    with pytest.raises(deft.UsageError, match="pages of 32 tokens, and `a` has no pages"):
        deft.compile(ATT % "kv_cache = contiguous;").plan(beams)


def test_a_stale_plan_does_not_run(att):
    beams = deft.BeamTree(PAGE)
    beams.start(20, 4)
    beams.advance([0, 0])
    plan = att.plan(beams)
    beams.start(20, 4)
    beams.advance([0, 0])
    assert not plan.is_current
    q, cache = np.ones((2, HEADS, DIM), "float16"), np.ones((6, PAGE, KV_HEADS, DIM), "float16")
    with pytest.raises(deft.UsageError, match="stale"):
        plan.run(q, cache, cache, beams.page_table)
    assert plan.advance() == "remade"
    assert float(plan.run(q, cache, cache, beams.page_table).mean()) == 1.0
    assert "2 queries" in repr(beams) and "<svg" in plan._repr_svg_() and "html" in plan.html()
