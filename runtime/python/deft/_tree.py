"""The tree of cached tokens and the queries of a step: which requests share which tokens."""

from __future__ import annotations

from ctypes import byref, c_int32
from functools import partial
from itertools import accumulate
from json import dumps
from math import sqrt
from typing import Any, Iterable, NamedTuple

from . import _abi
from ._arguments import expect_whole, structs_of, text_of
from ._errors import UsageError, wrong
from ._library import Handle, OfThisProcess, check, filled, lib, make, read, sized, take_number, take_row, take_text
from ._ranks import Ranks, proposed_holders, ranks_of_c


class Node(NamedTuple):
    """The state of a node."""

    parent: int | None
    tokens: int
    location: int
    depth: int
    position: int  # of its first token on the path, from 0


class Query(NamedTuple):
    """A query sees the path to its node. Of the node's own tokens it sees the first `position`, or all (None)."""

    node: int
    position: int | None


class Stretch(NamedTuple):
    """Consecutive tokens in the cache."""

    location: int
    tokens: int


def _position(position: int | None) -> int:
    if position is None:
        return _abi.DEFT_WHOLE
    if position == _abi.DEFT_WHOLE:  # which C has for it, and here comes of a sum gone wrong
        raise wrong("position", f"= {position}, it must be 0 or more", "leave it out for all of the node's tokens")
    return position


def _location(location: int | None) -> int:
    return _abi.DEFT_NOT_PLACED if location is None else location


def _query(query: Any) -> tuple[Any, Any]:
    try:
        node, position = query
    except TypeError:  # a number, perhaps NumPy's
        return query, _abi.DEFT_WHOLE
    except ValueError:
        raise UsageError(f"a query is {query!r}, it must be a node, or (node, position)") from None
    return node, _position(position)


def _array_of_queries(queries: Iterable[int | tuple[int, int | None]]) -> Any:
    if not hasattr(queries, "__iter__"):
        raise wrong("queries", f"is {queries!r}, it must be a sequence of nodes, or of (node, position)")
    pairs = [(one, _abi.DEFT_WHOLE) if isinstance(one, int) else _query(one) for one in queries]
    return structs_of("queries", pairs, _abi.deft_query)


class TreeView(OfThisProcess):
    """A read-only tree that another object changes."""

    _sent_as = "copy() makes a Tree; Tree.from_json reads to_json(locations=True)"

    def __init__(self, handle: Any) -> None:
        self._handle = handle
        self._as_parameter_ = handle._as_parameter_
        self._plans: dict[Any, Any] = {}  # of Attention.run, the last one of each attention

    def __contains__(self, node: int) -> bool:
        return bool(lib.deft_tree_is_alive(self._handle, node))

    def node(self, node: int) -> Node:
        facts = filled(_abi.deft_node, lib.deft_tree_get_node, self._handle, node)
        return read(Node, facts, parent=None if facts.parent == _abi.DEFT_NO_NODE else facts.parent)

    def _places(self, nodes: Iterable[int]) -> dict[int, tuple[int, int, int]]:
        """Returns the location and position of each node's first token, and its number of tokens. Every step reads these for
        all nodes; making a Node for each would double the cost of the call."""
        facts = sized(_abi.deft_node)
        there, handle, get_node = byref(facts), self._handle, lib.deft_tree_get_node
        found = {}
        for node in nodes:
            status = get_node(handle, node, there)
            if status:
                check(status)
            found[node] = facts.location, facts.position, facts.tokens
        return found

    def copy(self) -> Tree:
        """Returns an independent tree; it needs its own plans."""
        return Tree._of(make(lib.deft_tree_copy, self._handle))

    @property
    def nodes(self) -> list[int]:
        """Lists the living nodes: parents before children, siblings in order of birth."""
        return take_row(c_int32, None, lib.deft_tree_get_nodes, self._handle)

    @property
    def query_count(self) -> int:
        return lib.deft_tree_query_count(self._handle)

    @property
    def queries(self) -> list[Query]:
        """Lists the queries. Row i of q, out and lse belongs to query i."""
        facts = _abi.deft_query()
        found = []
        for index in range(self.query_count):
            check(lib.deft_tree_get_query(self._handle, index, byref(facts)))
            found.append(Query(facts.node, None if facts.position == _abi.DEFT_WHOLE else facts.position))
        return found

    @property
    def tokens(self) -> int:
        """The number of tokens in all nodes."""
        return lib.deft_tree_tokens(self._handle)

    def path_tokens(self, query: int) -> int:
        """Returns how many tokens a query sees."""
        count = self.query_count
        if not 0 <= expect_whole("query", query) < count:
            raise UsageError(f"there is no query {query}, only {count}")
        return lib.deft_tree_path_tokens(self._handle, query)

    def propose_holders(self, count: int, page_size: int) -> list[int]:
        """Proposes which of `count` ranks holds the page at location p * page_size, for each p. Pages of several queries are
        split evenly; a query's own pages lie on one rank. For Ranks(layout="by_page")."""
        return proposed_holders(self._handle, count, page_size)

    def to_json(self, *, locations: bool = False) -> str:
        """Returns the tree file that `deftc` reads. With `locations` it also has the nodes' locations, for another process with
        the same cache; then nodes are numbered in the order of `nodes`."""
        if not locations:
            return take_text(lib.deft_tree_get_json, self._handle)
        numbers = {node: number for number, node in enumerate(self.nodes)}
        nodes = []
        for node in numbers:
            facts = self.node(node)
            if facts.location == _abi.DEFT_NOT_PLACED:
                raise UsageError(f"node {node} is not placed, so it has no location", "place it, or leave locations out")
            parent = -1 if facts.parent is None else numbers[facts.parent]
            nodes.append({"parent": parent, "tokens": facts.tokens, "location": facts.location})
        queries = [
            {"node": numbers[node], **({} if position is None else {"position": position})} for node, position in self.queries
        ]
        return dumps({"format": "deftc-tree", "version": 2, "nodes": nodes, "queries": queries})

    def __repr__(self) -> str:
        return f"<deft.{type(self).__name__}: {len(self.nodes)} nodes, {self.query_count} queries, {self.tokens} tokens>"

    def _repr_svg_(self) -> str:
        return _picture_of(self)


class ChangingTree(TreeView):
    """The changes that Tree and SequenceTree have in common."""

    _prefix = ""  # of the functions that change it
    _changed: Any  # what they take

    def _change(self, what: str, *arguments: Any) -> None:
        check(getattr(lib, f"{self._prefix}_{what}")(self._changed, *arguments))

    def _number(self, what: str, *arguments: Any) -> int:
        return take_number(getattr(lib, f"{self._prefix}_{what}"), self._changed, *arguments)

    def fork(self, node: int, position: int | None = None) -> int:
        """Adds an empty branch that shares the path to `node`, up to its first `position` tokens if given. If only part of a
        node is shared, the node is cut in two, and its number then means the second part."""
        return self._number("fork", node, _position(position))

    def prune(self, node: int) -> None:
        """Removes the node, its descendants and their queries; the numbers of later queries move up."""
        self._change("prune", node)

    def add_query(self, node: int, position: int | None = None) -> int:
        """Adds a query that sees all tokens of `node`, including later ones, or its first `position` tokens."""
        return self._number("add_query", node, _position(position))

    def set_queries(self, queries: Iterable[int | tuple[int, int | None]]) -> None:
        """Replaces all queries by nodes, or by pairs (node, position). If the queries stay equal, `advance` stays cheap."""
        array = _array_of_queries(queries)
        self._change("set_queries", array, len(array))

    def clear_queries(self) -> None:
        self._change("clear_queries")

    def set_ranks(self, ranks: Ranks | None) -> None:
        """Makes plans read only this rank's tokens; None: all tokens. Peers.merge merges the ranks' results."""
        own, kept = (None, None) if ranks is None else ranks_of_c(ranks)
        self._change("set_ranks", own if own is None else byref(own))
        del kept


class Tree(ChangingTree):
    """The tree (or forest) of one decode step, and its changes between steps. Methods return numbers of nodes and queries. A
    later node may reuse a pruned node's number. A call that fails changes nothing.

    The tree holds no keys or values, only their places. Token t of a location is in slot t % page_size of page
    page_table[t // page_size]; in a contiguous cache it is row t.

    >>> tree = Tree()
    >>> prompt = tree.add_root(1000, location=0)
    >>> answer = tree.add_child(prompt, 20, location=1000)
    >>> query = tree.add_query(answer)
    >>> tree.path_tokens(query)
    1020
    >>> tree.append(answer)
    >>> tree
    <deft.Tree: 2 nodes, 1 queries, 1021 tokens>
    """

    _prefix = "deft_tree"

    def __init__(self) -> None:
        self._own(make(lib.deft_tree_make))

    def _own(self, made: int) -> None:
        super().__init__(Handle(made, lib.deft_tree_destroy))
        self._changed = self._handle

    __copy__ = TreeView.copy

    def __deepcopy__(self, memo: Any) -> Tree:
        return self.copy()

    @classmethod
    def _of(cls, value: int) -> Tree:
        tree = cls.__new__(cls)
        tree._own(value)
        return tree

    @classmethod
    def from_json(cls, json: str) -> Tree:
        """Reads a tree file of `deftc` or of to_json()."""
        return cls._of(make(lib.deft_tree_parse, text_of("json", json)))

    def add_root(self, tokens: int, location: int | None = None) -> int:
        return self._number("add_root", tokens, _location(location))

    def add_child(self, parent: int, tokens: int, location: int | None = None) -> int:
        return self._number("add_child", parent, tokens, _location(location))

    def append(self, leaf: int, tokens: int = 1) -> None:
        """Adds tokens at the end of a leaf, after its last token in the cache. Only leaves grow."""
        self._change("append", leaf, tokens)

    def accept(self, sequence: int, last: int) -> list[Stretch]:
        """Accepts guesses of speculative decoding: the tokens from below `sequence` to the end of `last` become the end of
        `sequence`, and everything else below it is removed. Returns the places of the accepted tokens, in path order. Copy
        their K and V behind the sequence's last token before the next run."""
        return take_row(_abi.deft_stretch, partial(read, Stretch), lib.deft_tree_accept, self._handle, sequence, last)

    def place(self, node: int, location: int) -> None:
        """Sets the location of a node's first token; the others follow it."""
        self._change("place", node, location)

    def remove_query(self, query: int) -> None:
        self._change("remove_query", query)


_WIDTH, _ROW, _GAP, _MARGIN = 900.0, 20.0, 2.0, 8.0
_TALLEST = 700.0
_COLOURS = ("#9cc3e6", "#b9dbb4", "#f3cf9b", "#d9bfe3", "#f0b7b3")
_LEGEND = "a box is a node (number: tokens), its width by the square root of its tokens; dark edges: queries end there"


def _picture_of(tree: TreeView) -> str:
    """Draws the tree. Each node is a box, as wide as its tokens and as tall as the leaves below it, to the right of its parent."""
    facts = {node: tree.node(node) for node in tree.nodes}
    queries: dict[int, int] = {}
    for query in tree.queries:
        queries[query.node] = queries.get(query.node, 0) + 1
    top, leaves = _rows(facts)
    # Square roots, so that a prompt of thousands of tokens leaves room for its branches.
    depths = max((node.depth for node in facts.values()), default=-1) + 1
    widest = [0.0] * depths
    for one in facts.values():
        widest[one.depth] = max(widest[one.depth], sqrt(one.tokens) + 2)
    gap = min(_GAP, _WIDTH / 4 / max(depths, 1))  # of thousands of levels boxes are still left
    scale = (_WIDTH - 2 * _MARGIN - gap * depths) / max(sum(widest), 1)
    left = [_MARGIN + scale * before + gap * depth for depth, before in enumerate(accumulate(widest, initial=0.0))]
    total = sum(leaves[node] for node, one in facts.items() if one.parent is None)
    row = min(_ROW, _TALLEST / max(total, 1))
    boxes = []
    for node, one in facts.items():
        x, y = left[one.depth], _MARGIN + row * top[node]
        width, height = max(min(1.0, 4 * gap), scale * (sqrt(one.tokens) + 2)), max(row * leaves[node] - _GAP * min(1, row / 4), 0.5)
        place = "not placed" if one.location == _abi.DEFT_NOT_PLACED else f"at location {one.location}"
        title = f"node {node}: {one.tokens} tokens {place}, {queries.get(node, 0)} queries"
        boxes.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{_COLOURS[node % len(_COLOURS)]}" '
            f'stroke="#456" stroke-width="{1.6 if node in queries else 0.4}"><title>{title}</title></rect>'
        )
        label = next((text for text in (f"{node}: {one.tokens}", f"{node}") if 6.5 * len(text) + 6 <= width), "")
        if height >= 11 and label:
            middle = y + min(height, 40) / 2 + 4
            boxes.append(f'<text x="{x + 4:.1f}" y="{middle:.1f}" font-size="11">{label}</text>')
    height = 2 * _MARGIN + row * total
    if facts:
        boxes.append(f'<text x="{_MARGIN:.1f}" y="{height + 6:.1f}" font-size="11" fill="#667">{_LEGEND}</text>')
        height += 16
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {_WIDTH:.0f} {height:.0f}" font-family="sans-serif">'
        f'<rect width="100%" height="100%" fill="white"/>{"".join(boxes)}</svg>'
    )


def _rows(facts: dict[int, Node]) -> tuple[dict[int, int], dict[int, int]]:
    """Returns each node's first row and its number of rows: one for each leaf below. `facts` is in preorder."""
    leaves = dict.fromkeys(facts, 0)
    for node in reversed(facts):
        leaves[node] = max(leaves[node], 1)
        parent = facts[node].parent
        if parent is not None:
            leaves[parent] += leaves[node]
    top: dict[int, int] = {}
    free: dict[int | None, int] = {None: 0}
    for node, one in facts.items():
        top[node] = free[node] = free[one.parent]
        free[one.parent] += leaves[node]
    return top, leaves
