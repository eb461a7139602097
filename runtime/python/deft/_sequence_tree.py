"""For hosts without a cache manager of their own: a tree whose tokens lie in a pool of pages."""

from __future__ import annotations

from ctypes import POINTER, byref, c_int32, c_size_t, c_void_p, cast
from typing import Any, Iterable, NamedTuple, Sequence

from . import _abi
from ._arguments import row_of, structs_of
from ._library import Handle, check, lib, make, sized
from ._selection import NodeTokens
from ._tensors import View
from ._tree import TreeView, _position, array_of_queries


class TokenCopy(NamedTuple):
    """Tokens to copy in K and in V of every layer. Slot s is place s % page_size of page s // page_size."""

    source: int
    target: int
    tokens: int


class SequenceTree(TreeView):
    """A tree that gives each node its places in the cache and takes them back: pages are shared by branches, copied when
    one of them writes, and free again when the last branch ends. The bytes are the host's: it writes K and V of new
    tokens (`slot` says where), and makes the copies that a call gives, in their order, before it writes anything.

    Operations are those of Tree. A call that fails, also for lack of pages, changes nothing. `page_size=0` makes a
    contiguous cache, whose `pages` are tokens.

    >>> import deft
    >>> sequences = deft.SequenceTree(pages=8, page_size=16)
    >>> prompt = sequences.add_root(20)
    >>> answers = [sequences.fork(prompt) for _ in range(2)]
    >>> [sequences.append(answer) for answer in answers]  # copies to make
    [[], []]
    >>> [sequences.slot(prompt, 19), *(sequences.slot(answer, 0) for answer in answers)]
    [19, 32, 48]
    >>> sequences.set_queries(answers)
    >>> sequences, sequences.free_pages
    (<deft.SequenceTree: 3 nodes, 2 queries, 22 tokens>, 4)
    """

    def __init__(self, pages: int, page_size: int = 16) -> None:
        options = sized(_abi.deft_pool_options, pages=pages, page_size=page_size)
        self._sequences = Handle(make(lib.deft_sequence_tree_make, byref(options)), lib.deft_sequence_tree_destroy)
        self.page_size = page_size
        found, count = c_void_p(), c_size_t()
        self._found = found, count, byref(found), byref(count)  # where calls write which copies to make
        super().__init__(_TreeOf(self._sequences))

    @property
    def page_table(self) -> View:
        """What runs take as `page_table`: int32 in the host's memory; -1 where there is no page. A run takes the table as it
        is by then; the address is that of now, until the next change."""
        found, count = c_void_p(), c_size_t()
        check(lib.deft_sequence_tree_get_page_table(self._sequences, byref(found), byref(count)))
        return View(found.value or 0, _abi.DEFT_I32, (count.value,), None, _abi.DEFT_DEVICE_CPU, 0, self)

    @property
    def free_pages(self) -> int:
        return lib.deft_sequence_tree_free_pages(self._sequences)

    def slot(self, node: int, index: int) -> int:
        """Where token `index` of a node lies; -1 for a token that is not there."""
        return lib.deft_sequence_tree_slot(self._sequences, node, index)

    def _number(self, function: Any, *arguments: Any) -> int:
        number = c_int32()
        check(function(self._sequences, *arguments, byref(number)))
        return number.value

    def _copies(self, function: Any, *arguments: Any) -> list[TokenCopy]:
        found, count, found_there, count_there = self._found  # an answer of 64 branches grows 64 leaves a step
        check(function(self._sequences, *arguments, found_there, count_there))
        if not count.value:
            lib.deft_free(found)
            return []
        try:
            copies = cast(found, POINTER(_abi.deft_token_copy))[: count.value]
            return [TokenCopy(getattr(one, "from"), one.to, one.tokens) for one in copies]
        finally:
            lib.deft_free(found)

    def add_root(self, tokens: int) -> int:
        return self._number(lib.deft_sequence_tree_add_root, tokens)

    def add_child(self, parent: int, tokens: int) -> int:
        return self._number(lib.deft_sequence_tree_add_child, parent, tokens)

    def add_token_tree(self, sequence: int, parents: Sequence[int]) -> list[int]:
        """The guessed tokens of a step of speculative decoding, below `sequence`: a node for each, of one token.
        parents[i] is an earlier token of the list, or -1 for the sequence itself."""
        nodes = (c_int32 * len(parents))()
        array = row_of("parents", parents)
        check(lib.deft_sequence_tree_add_token_tree(self._sequences, sequence, array, len(parents), nodes))
        return list(nodes)

    def append(self, leaf: int, tokens: int = 1) -> list[TokenCopy]:
        return self._copies(lib.deft_sequence_tree_append, leaf, tokens)

    def fork(self, node: int, position: int | None = None) -> int:
        return self._number(lib.deft_sequence_tree_fork, node, _position(position))

    def prune(self, node: int) -> None:
        check(lib.deft_sequence_tree_prune(self._sequences, node))

    def accept(self, sequence: int, last: int) -> list[TokenCopy]:
        """The copies bring the accepted tokens behind those of the sequence."""
        return self._copies(lib.deft_sequence_tree_accept, sequence, last)

    def pollute(self, tokens: Iterable[NodeTokens]) -> None:
        """Says that K and V of these tokens follow from sparse attention (Plan.run_sparse): they differ from what full
        attention would have made of them until somebody computes them again. Branches share what they share of it, and
        copies take it along; new tokens are not polluted."""
        array = _array_of(tokens)
        check(lib.deft_sequence_tree_pollute(self._sequences, array, len(array)))

    def polluted(self) -> list[NodeTokens]:
        """All that are, parents before children: a prefill of a query for each, in this order, at position first + 1,
        first + 2, ... of its node, computes them with full attention."""
        found, count = c_void_p(), c_size_t()
        check(lib.deft_sequence_tree_get_polluted(self._sequences, byref(found), byref(count)))
        try:
            tokens = cast(found, POINTER(_abi.deft_node_tokens))[: count.value]
            return [NodeTokens(one.node, one.first, one.tokens) for one in tokens]
        finally:
            lib.deft_free(found)

    def correct(self, tokens: Iterable[NodeTokens]) -> None:
        """They were computed again."""
        array = _array_of(tokens)
        check(lib.deft_sequence_tree_correct(self._sequences, array, len(array)))

    def add_query(self, node: int, position: int | None = None) -> int:
        return self._number(lib.deft_sequence_tree_add_query, node, _position(position))

    def set_queries(self, queries: Iterable[int | tuple[int, int | None]]) -> None:
        array = array_of_queries(queries)
        check(lib.deft_sequence_tree_set_queries(self._sequences, array, len(array)))

    def clear_queries(self) -> None:
        check(lib.deft_sequence_tree_clear_queries(self._sequences))


def _array_of(tokens: Iterable[NodeTokens]) -> Any:
    return structs_of("tokens", [NodeTokens(*one) for one in tokens], _abi.deft_node_tokens)


class _TreeOf:
    """The tree of sequences, for calls that look; it lives as long as they do."""

    def __init__(self, sequences: Handle) -> None:
        self._as_parameter_ = lib.deft_sequence_tree_get_tree(sequences)
        self._owner = sequences
