import copy
import gc

import deft
import numpy as np
import pytest


def test_nodes_and_queries_are_what_was_added(family):
    child = family.fork(0, 40)
    first = family.node(child).parent
    assert family.node(first) == deft.Node(None, 40, 0, 0, 0)
    assert family.node(0) == deft.Node(first, 60, 40, 1, 40)
    assert family.nodes == [first, 0, 1, 2, child]
    assert family.queries == [deft.Query(1, None), deft.Query(2, None)]
    assert family.path_tokens(1) == 109 and family.tokens == 114


def test_places_of_many_nodes_are_those_of_each(family):
    nodes = family.nodes
    seen = {one: family.node(one) for one in nodes}
    assert family._places(nodes) == {one: (node.location, node.position, node.tokens) for one, node in seen.items()}
    with pytest.raises(deft.Error, match="77"):
        family._places([nodes[0], 77])


def test_queries_are_set_as_nodes_or_with_a_position(family):
    family.set_queries([2, (0, 7), (1, None)])
    assert [family.path_tokens(i) for i in range(3)] == [109, 7, 105]
    family.remove_query(0)
    assert family.query_count == 2
    family.set_queries(np.array([2, 1]))
    assert family.queries == [deft.Query(2, None), deft.Query(1, None)]
    family.set_queries([np.int64(2), (np.int32(0), np.int64(7))])
    assert family.queries == [deft.Query(2, None), deft.Query(0, 7)]
    family.clear_queries()
    assert family.queries == []


def test_accepting_a_draft_says_where_its_tokens_lie(family):
    draft = family.add_child(1, 1, location=200)
    last = family.add_child(draft, 2, location=210)
    assert family.accept(1, last) == [deft.Stretch(200, 1), deft.Stretch(210, 2)]
    assert family.node(1).tokens == 8 and last not in family


def test_pruning_takes_what_is_below(family):
    family.prune(1)
    assert 1 not in family and family.queries == [deft.Query(2, None)]
    with pytest.raises(deft.Error, match="node 1"):
        family.node(1)


def test_a_copy_and_its_json_are_trees_of_their_own(family):
    for copied in (family.copy(), copy.copy(family), copy.deepcopy(family)):
        copied.append(1)
        assert (copied.tokens, family.tokens) == (115, 114)
    assert deft.Tree.from_json(family.to_json()).to_json() == family.to_json()
    assert "location" not in family.to_json()


def test_a_tree_is_planned_in_another_process_by_its_json_with_locations(rng, family):
    family.prune(1)
    family.place(family.fork(0, 40), 60)
    family.add_query(family.nodes[0])
    family.add_child(2, 1, location=0)
    family.add_query(family.add_child(family.nodes[0], 3, location=3))  # its number is less than that of what stands before it
    sent, nodes = deft.Tree.from_json(family.to_json(locations=True)), family.nodes
    for number, node in zip(sent.nodes, map(family.node, nodes)):
        assert sent.node(number) == node._replace(parent=None if node.parent is None else nodes.index(node.parent))
    att = deft.compile("attention a { query_heads = 4; kv_heads = 2; head_dim = 16; dtype = f16; kv_cache = contiguous; }")
    q, k, v = (rng.standard_normal(shape).astype("float16") for shape in ((3, 4, 16), (114, 2, 16), (114, 2, 16)))
    assert (att.run(sent, q, k, v) == att.run(family, q, k, v)).all()
    nowhere = deft.Tree()
    nowhere.add_root(5)
    with pytest.raises(deft.UsageError, match="node 0 is not placed"):
        nowhere.to_json(locations=True)
    with pytest.raises(deft.DiagnosticError):
        deft.Tree.from_json("{")


def test_a_picture_has_a_box_for_each_node(family):
    picture = family._repr_svg_()
    assert picture.startswith("<svg") and picture.count("<title>") == 3
    assert "node 2: 9 tokens at location 105, 1 queries" in picture
    assert ">2: 9</text>" in picture and "dark edges: queries end there" in picture
    assert deft.Tree()._repr_svg_().startswith("<svg")
    nowhere = deft.Tree()
    nowhere.add_root(5)
    assert "node 0: 5 tokens not placed, 0 queries" in nowhere._repr_svg_()


def test_a_tree_goes_when_nobody_has_it(family):
    att = deft.compile("attention a { query_heads = 2; kv_heads = 1; head_dim = 16; kv_cache = contiguous; }")
    import weakref

    tree = family.copy()
    q, k = np.zeros((2, 2, 16), "uint16"), np.zeros((114, 1, 16), "uint16")
    att.run(tree, q, k, k)
    gone = weakref.ref(tree)
    gc.disable()
    try:
        del tree
        assert gone() is None
    finally:
        gc.enable()
