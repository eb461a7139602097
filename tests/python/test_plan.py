import copy
import html
import re

import deft
import numpy as np
import pytest

ATT = "attention a { query_heads = 4; kv_heads = 2; head_dim = 64; dtype = f16; kv_cache = contiguous; output = f16 with lse; }"


@pytest.fixture
def att():
    return deft.compile(ATT)


@pytest.fixture
def tensors(rng):
    q = rng.standard_normal((2, 4, 64)).astype("float16")
    k, v = (rng.standard_normal((130, 2, 64)).astype("float16") for _ in range(2))
    return q, k, v


def test_a_shared_prompt_is_read_once(att, family):
    shared, flat = att.plan(family, partition="node"), att.plan(family, partition="query")
    assert shared.summary().tokens_read == 114
    assert flat.summary().tokens_read == 214
    assert shared.query_count == 2


def test_every_partition_gives_the_same(att, family, tensors):
    expected = att.run(family, *tensors).astype("float32")
    for partition in ("query", "node", "node_chunk", "flatten", "cascade", "greedy", "union", "auto"):
        out = att.plan(family, partition=partition, chunk_tokens=16).run(*tensors)
        assert np.abs(out.astype("float32") - expected).max() < 4e-3, partition
    with pytest.raises(deft.UsageError, match="no partition `nodes`"):
        att.plan(family, partition="nodes")


def test_a_plan_advances_with_its_tree(att, family, tensors):
    plan = att.plan(family)
    assert plan.advance(family) == "nothing"
    family.append(2, 1)
    assert not plan.is_current
    assert plan.advance(family) == "in_place"
    assert (plan.run(*tensors) == att.plan(family).run(*tensors)).all()
    family.add_query(0)
    assert plan.advance() == "remade"
    assert plan.query_count == 3


def test_a_run_whose_structs_another_thread_has_taken_makes_new_ones(att, family, tensors):
    class Taken(list):
        def __len__(self):
            return 1

        def pop(self):
            raise IndexError

    plan = att.plan(family)
    expected = plan.run(*tensors)
    plan._calls = Taken()
    assert (plan.run(*tensors) == expected).all()


def test_an_attention_is_its_own_copy(att, family):
    assert copy.deepcopy({"layer": att})["layer"] is att and copy.copy(att) is att
    with pytest.raises(TypeError, match="a deft.Plan cannot be pickled"):
        copy.copy(att.plan(family))


def test_a_run_without_a_plan_follows_the_tree(att, family, tensors):
    before = att.run(family, *tensors)
    family.append(2, 4)
    after = att.run(family, *tensors)
    assert (before[0] == after[0]).all() and (before[1] != after[1]).any()
    other = family.copy()
    other.set_queries([1])
    assert att.run(other, tensors[0][:1], *tensors[1:]).shape == (1, 4, 64)


def test_an_invariant_plan_gives_the_same_bits_in_other_company(att, tensors):
    q, k, v = tensors
    alone, together = deft.Tree(), deft.Tree()
    for tree in (alone, together):
        tree.add_query(tree.add_root(100, location=0))
    together.add_query(together.add_child(0, 9, location=100))
    together.add_query(together.add_root(20, location=110))
    first = att.plan(alone, invariant=True).run(q[:1], k, v)
    more = np.concatenate([q[:1], q])
    assert (att.plan(together, invariant=True).run(more, k, v)[0] == first[0]).all()


def test_the_choice_says_why(att, family):
    choice = att.plan(family).choice()
    assert choice.rule == "heuristic" and choice.why and choice.tree_class


def test_a_picture_is_of_the_plan_and_needs_its_tree(att, family):
    plan = att.plan(family)
    assert plan._repr_svg_().startswith("<svg")
    family.append(1)
    with pytest.raises(deft.UsageError, match="the tree has changed since"):
        plan._repr_svg_()


def test_a_page_shows_one_plan_or_two(att, family, tmp_path):
    plan, other = att.plan(family), att.plan(family, partition="query")
    page = plan.show(height=500)
    assert page.html == plan.html() and page.html.startswith("<!doctype html>")
    frame = page._repr_html_()
    assert frame.startswith("<iframe ") and 'height="500"' in frame and 'sandbox="allow-scripts"' in frame
    srcdoc = re.search(r'srcdoc="([^"]*)"', frame)
    assert srcdoc and html.unescape(srcdoc[1]) == page.html
    page.save(tmp_path / "plan.html")
    assert (tmp_path / "plan.html").read_text(encoding="utf-8") == page.html
    assert repr(page).startswith("<deft.PlanPage: ")
    assert '"label":"query"' in plan.html(against=other) and '"label":"query"' not in page.html


def test_a_page_says_what_it_cannot_show(att, family):
    plan, stale = att.plan(family), att.plan(family)
    with pytest.raises(deft.UsageError, match="against is .*, it must be a Plan or a PagedBatch"):
        plan.html(against="query")
    with pytest.raises(deft.UsageError, match="height = 7, it must be from 100"):
        plan.show(height=7)
    family.append(1)
    with pytest.raises(deft.UsageError, match="the tree has changed since") as error:
        att.plan(family).html(against=stale)
    assert error.value.field == "against"


def test_overlapping_places_are_found_where_asked_for(att, family):
    family.place(2, 99)
    with pytest.raises(deft.Error, match="node"):
        att.plan(family, check_places=True)
