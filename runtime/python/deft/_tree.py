"""Who shares what: the tree of cached tokens, and the queries of a step."""

from __future__ import annotations

from ctypes import POINTER, byref, c_int32, c_size_t, c_void_p, cast
from json import dumps
from typing import Any, Iterable, NamedTuple

from . import _abi
from ._arguments import expect_whole, structs_of, text_of
from ._errors import UsageError
from ._library import Handle, OfThisProcess, check, lib, make, sized, take_text
from ._tree_picture import draw_tree


class Node(NamedTuple):
    """What is known of a node."""

    parent: int | None
    tokens: int
    location: int
    depth: int
    position: int  # of its first token on the path, from 0


class Query(NamedTuple):
    """A query sees the path to its node: of the node's own tokens the first `position`, or all (None)."""

    node: int
    position: int | None


class Stretch(NamedTuple):
    """Tokens that lie side by side in the cache."""

    location: int
    tokens: int


def _position(position: int | None) -> int:
    if position is None:
        return _abi.DEFT_WHOLE
    if position == _abi.DEFT_WHOLE:  # which C has for it, and here comes of a sum gone wrong
        raise UsageError(f"position = {position}, it must be 0 or more", "leave it out for all of the node's tokens")
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


def array_of_queries(queries: Iterable[int | tuple[int, int | None]]) -> Any:
    if not hasattr(queries, "__iter__"):
        raise UsageError(f"queries is {queries!r}, it must be a sequence of nodes, or of (node, position)")
    pairs = [(one, _abi.DEFT_WHOLE) if isinstance(one, int) else _query(one) for one in queries]
    return structs_of("queries", pairs, _abi.deft_query)


class TreeView(OfThisProcess):
    """Looking at a tree that somebody else changes."""

    _sent_as = "copy() is a Tree of its own, to_json(locations=True) is what Tree.from_json reads"

    def __init__(self, handle: Any) -> None:
        self._handle = handle
        self._as_parameter_ = handle._as_parameter_
        self._plans: dict[Any, Any] = {}  # of Attention.run, the last one of each attention

    def __contains__(self, node: int) -> bool:
        return bool(lib.deft_tree_is_alive(self._handle, node))

    def node(self, node: int) -> Node:
        facts = sized(_abi.deft_node)
        check(lib.deft_tree_get_node(self._handle, node, byref(facts)))
        parent = None if facts.parent == _abi.DEFT_NO_NODE else facts.parent
        return Node(parent, facts.tokens, facts.location, facts.depth, facts.position)

    def _places(self, nodes: Iterable[int]) -> dict[int, tuple[int, int, int]]:
        """The location and the position of each node's first token, and how many tokens it has: what a step asks of every
        node, without a Node for each, which costs as much again as the call."""
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
        """A tree of its own: plans of one are not those of the other."""
        return Tree._of(make(lib.deft_tree_copy, self._handle))

    @property
    def nodes(self) -> list[int]:
        """The living nodes, parents before children, siblings in order of birth."""
        found, count = c_void_p(), c_size_t()
        check(lib.deft_tree_get_nodes(self._handle, byref(found), byref(count)))
        try:
            return cast(found, POINTER(c_int32))[: count.value]
        finally:
            lib.deft_free(found)

    @property
    def query_count(self) -> int:
        return lib.deft_tree_query_count(self._handle)

    @property
    def queries(self) -> list[Query]:
        """Row i of q, out and lse belongs to query i."""
        facts = _abi.deft_query()
        found = []
        for index in range(self.query_count):
            check(lib.deft_tree_get_query(self._handle, index, byref(facts)))
            found.append(Query(facts.node, None if facts.position == _abi.DEFT_WHOLE else facts.position))
        return found

    @property
    def tokens(self) -> int:
        """Of all nodes."""
        return lib.deft_tree_tokens(self._handle)

    def path_tokens(self, query: int) -> int:
        """How many tokens a query sees."""
        count = self.query_count
        if not 0 <= expect_whole("query", query) < count:
            raise UsageError(f"there is no query {query}, only {count}")
        return lib.deft_tree_path_tokens(self._handle, query)

    def to_json(self, *, locations: bool = False) -> str:
        """As `deftc` reads trees. With `locations` it says where the nodes' tokens lie, too, for another process that plans it over
        a cache like this one's; nodes are numbered anew then, in the order of `nodes`."""
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
        return draw_tree(self)


class Tree(TreeView):
    """The tree (or forest) of one decode step, and what happens to it between steps. Nodes and queries are named by the
    numbers that the methods return; a pruned node's number is given to a later node. A call that fails changes nothing.

    The tree holds no keys or values, only where they lie: token t of a location is in slot t % page_size of page
    page_table[t // page_size], in a contiguous cache it is row t.

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

    def __init__(self) -> None:
        super().__init__(Handle(make(lib.deft_tree_make), lib.deft_tree_destroy))

    __copy__ = TreeView.copy

    def __deepcopy__(self, memo: Any) -> Tree:
        return self.copy()

    @classmethod
    def _of(cls, value: int) -> Tree:
        tree = cls.__new__(cls)
        TreeView.__init__(tree, Handle(value, lib.deft_tree_destroy))
        return tree

    @classmethod
    def from_json(cls, json: str) -> Tree:
        """Reads what `deftc` reads, and to_json() writes."""
        return cls._of(make(lib.deft_tree_parse, text_of("json", json)))

    def _number(self, function: Any, *arguments: Any) -> int:
        number = c_int32()
        check(function(self._handle, *arguments, byref(number)))
        return number.value

    def add_root(self, tokens: int, location: int | None = None) -> int:
        return self._number(lib.deft_tree_add_root, tokens, _location(location))

    def add_child(self, parent: int, tokens: int, location: int | None = None) -> int:
        return self._number(lib.deft_tree_add_child, parent, tokens, _location(location))

    def append(self, leaf: int, tokens: int = 1) -> None:
        """Lets a leaf grow by tokens that follow its last one in the cache. Only leaves grow."""
        check(lib.deft_tree_append(self._handle, leaf, tokens))

    def fork(self, node: int, position: int | None = None) -> int:
        """An empty branch that shares the path to `node`, up to its first `position` tokens where that is given. A node
        that is shared in part is cut in two; its number then stands for the second part."""
        return self._number(lib.deft_tree_fork, node, _position(position))

    def prune(self, node: int) -> None:
        """Removes the node, all below it and their queries; the numbers of later queries move up."""
        check(lib.deft_tree_prune(self._handle, node))

    def accept(self, sequence: int, last: int) -> list[Stretch]:
        """Speculative decoding: the tokens from below `sequence` to the end of `last` become the end of `sequence`;
        everything else below goes. Gives where the accepted tokens lie, in path order: copy their K and V behind the
        sequence's last token before the next run."""
        found, count = c_void_p(), c_size_t()
        check(lib.deft_tree_accept(self._handle, sequence, last, byref(found), byref(count)))
        try:
            stretches = cast(found, POINTER(_abi.deft_stretch))[: count.value]
            return [Stretch(one.location, one.tokens) for one in stretches]
        finally:
            lib.deft_free(found)

    def place(self, node: int, location: int) -> None:
        """Says where a node's first token lies; the others follow it."""
        check(lib.deft_tree_place(self._handle, node, location))

    def add_query(self, node: int, position: int | None = None) -> int:
        """A query that sees all tokens up to the end of `node`, also those it gains later; or to its first `position`."""
        return self._number(lib.deft_tree_add_query, node, _position(position))

    def remove_query(self, query: int) -> None:
        check(lib.deft_tree_remove_query(self._handle, query))

    def set_queries(self, queries: Iterable[int | tuple[int, int | None]]) -> None:
        """Replaces all of them: nodes, or (node, position). The same ones as before keep a plan cheap to advance."""
        array = array_of_queries(queries)
        check(lib.deft_tree_set_queries(self._handle, array, len(array)))

    def clear_queries(self) -> None:
        check(lib.deft_tree_clear_queries(self._handle))
