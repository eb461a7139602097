"""A tree with its tokens in a pool of pages, for hosts without a cache manager of their own."""

from __future__ import annotations

from ctypes import POINTER, byref, c_int32, c_size_t, c_void_p, cast
from functools import partial
from typing import Any, Iterable, NamedTuple, Sequence

from . import _abi
from ._arguments import row_of, structs_of
from ._gpu import GpuHandle, gpu
from ._library import Borrowed, Handle, check, lib, make, read, sized, take_row
from ._tensors import View
from ._tree import ChangingTree


class NodeTokens(NamedTuple):
    """Consecutive tokens of a node."""

    node: int
    first: int
    tokens: int


class TokenCopy(NamedTuple):
    """Tokens to copy in K and V of every layer. Slot s is place s % page_size of page s // page_size."""

    source: int
    target: int
    tokens: int


class SequenceTree(ChangingTree):
    """A tree that assigns places in the cache. Branches share pages. A page is copied when a branch writes to a shared one, and
    is free again when its last branch ends. You own the bytes: first make the copies that a call returns, in their order, then
    write K and V of new tokens (`slot` gives the place).

    Operations are those of Tree. A call that fails, for example for lack of pages, changes nothing. `page_size=0` makes a
    contiguous cache, with `pages` counted in tokens.

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

    _prefix = "deft_sequence_tree"

    def __init__(self, pages: int, page_size: int = 16) -> None:
        options = sized(_abi.deft_pool_options, pages=pages, page_size=page_size)
        self._changed = Handle(make(lib.deft_sequence_tree_make, byref(options)), lib.deft_sequence_tree_destroy)
        self.page_size = page_size
        found, count = c_void_p(), c_size_t()
        self._found = found, count, byref(found), byref(count)  # where calls write which copies to make
        super().__init__(Borrowed(lib.deft_sequence_tree_get_tree(self._changed), self._changed))

    @property
    def page_table(self) -> View:
        """The `page_table` of runs: int32 in host memory, -1 for no page. Its address is valid until the next change. Runs and
        numpy.asarray read its current values."""
        found, count = c_void_p(), c_size_t()
        check(lib.deft_sequence_tree_get_page_table(self._changed, byref(found), byref(count)))
        return View(found.value or 0, _abi.DEFT_I32, (count.value,), None, _abi.DEFT_DEVICE_CPU, 0, self)

    @property
    def free_pages(self) -> int:
        return lib.deft_sequence_tree_free_pages(self._changed)

    def slot(self, node: int, index: int) -> int:
        """Returns the slot of token `index` of a node; -1 if there is no such token."""
        return lib.deft_sequence_tree_slot(self._changed, node, index)

    def _copies(self, function: Any, *arguments: Any) -> list[TokenCopy]:
        found, count, found_there, count_there = self._found  # an answer of 64 branches grows 64 leaves a step
        check(function(self._changed, *arguments, found_there, count_there))
        if not count.value:
            lib.deft_free(found)
            return []
        try:
            copies = cast(found, POINTER(_abi.deft_token_copy))[: count.value]
            return [TokenCopy(getattr(one, "from"), one.to, one.tokens) for one in copies]
        finally:
            lib.deft_free(found)

    def add_root(self, tokens: int) -> int:
        return self._number("add_root", tokens)

    def add_child(self, parent: int, tokens: int) -> int:
        return self._number("add_child", parent, tokens)

    def add_token_tree(self, sequence: int, parents: Sequence[int]) -> list[int]:
        """Adds the guessed tokens of a step of speculative decoding below `sequence`, with one node for each token. parents[i]
        is an earlier token of the list, or -1 for the sequence itself."""
        nodes = (c_int32 * len(parents))()
        array = row_of("parents", parents)
        check(lib.deft_sequence_tree_add_token_tree(self._changed, sequence, array, len(parents), nodes))
        return list(nodes)

    def append(self, leaf: int, tokens: int = 1) -> list[TokenCopy]:
        return self._copies(lib.deft_sequence_tree_append, leaf, tokens)

    def accept(self, sequence: int, last: int) -> list[TokenCopy]:
        """Returns the copies that move the accepted tokens behind those of the sequence."""
        return self._copies(lib.deft_sequence_tree_accept, sequence, last)

    def pollute(self, tokens: Iterable[NodeTokens]) -> None:
        """Marks tokens whose K and V were computed with sparse attention (Plan.run_sparse): they differ from those of full
        attention until you compute them again. Branches share marks of shared tokens, and copies keep them. New tokens are not
        marked."""
        array = _array_of(tokens)
        self._change("pollute", array, len(array))

    def polluted(self) -> list[NodeTokens]:
        """Lists all marked tokens, parents before children. To compute them again, run a prefill with full attention in this
        order: one query for each token, at position first + 1, first + 2, ... of its node."""
        read_one = partial(read, NodeTokens)
        return take_row(_abi.deft_node_tokens, read_one, lib.deft_sequence_tree_get_polluted, self._changed)

    def correct(self, tokens: Iterable[NodeTokens]) -> None:
        """Removes marks from tokens that you have computed again."""
        array = _array_of(tokens)
        self._change("correct", array, len(array))


def _array_of(tokens: Iterable[NodeTokens]) -> Any:
    return structs_of("tokens", [NodeTokens(*one) for one in tokens], _abi.deft_node_tokens)


class GpuPageTable:
    """A page table at a fixed address, so that graphs can capture it. `pages` is its size. Branches that share a page have an
    entry each, so it may need more entries than the pool has pages."""

    def __init__(self, device: int, pages: int) -> None:
        made = make(lib.deft_gpu_page_table_make, gpu(device), pages)
        self._handle = GpuHandle(made, lib.deft_gpu_page_table_destroy)
        #: What runs take as `page_table`.
        self.entries = View(
            lib.deft_gpu_page_table_data(self._handle), _abi.DEFT_I32, (pages,), None, _abi.DEFT_DEVICE_CUDA, device, self
        )

    def upload(self, sequences: SequenceTree, stream: int) -> None:
        """Updates the table to the sequences' current state, for later runs and replays. Only changes are copied. The stream
        must not be capturing."""
        check(lib.deft_gpu_page_table_upload(self._handle, sequences._changed, stream))
