"""Wide beams: thousands of sequences that share a history and change their parents in each step."""

from __future__ import annotations

from array import array
from ctypes import addressof, byref, c_char, c_int32, c_size_t, c_void_p
from typing import Any, Iterable, NamedTuple, Sequence, Union

from . import _abi
from ._arguments import expect_whole, row_of, structs_of
from ._errors import wrong
from ._library import Borrowed, Handle, check, filled, lib, make, sized, take_row
from ._tensors import View, ints
from ._tree import TreeView

#: Of a search: how many tokens it has, or the stretches in which they lie, each (location, tokens).
History = Union[int, Sequence[tuple[int, int]]]


class BeamStep(NamedTuple):
    """One step of the beams. Its arrays are copies and never change."""

    slots: array[int]  # int64, of each beam: where K and V of its new token go
    positions: array[int]  # int32, of each beam's new token: the tokens of its path before it
    new_pages: list[int]  # those that the step has begun to write
    #: Those that beams saw tokens of before the step, and nobody does now; without those that the step has taken again.
    freed_pages: list[int]


class BeamTree(TreeView):
    """The beams of one search or several. In each step every beam continues any beam of the step before and gains a token. A
    beam without a successor ends, and pages that no beam reads are free at once. Nothing is copied. You own the bytes: write K
    and V of new tokens to the slots of the step. Slot s is place s % page_size of page s // page_size.

    Query i of the tree is beam i. Plans follow a BeamTree like a Tree: call `plan.advance()` after each step, or use
    Attention.run. Make plans after the first step, because kernels are chosen for the tree at that moment. A call that fails
    changes nothing.

    >>> import deft, numpy
    >>> att = deft.compile("attention a { query_heads = 4; kv_heads = 2; head_dim = 64; dtype = f16; }")
    >>> beams = deft.BeamTree(page_size=16)
    >>> beams.start(40, pages=100)  # 40 tokens are in the cache's first pages, beams decode into the 100 behind these
    >>> step = beams.advance([0] * 5)  # five beams, which all go on from the history
    >>> step = beams.advance([3, 3, 1])
    >>> step.slots.tolist(), step.positions.tolist(), step.freed_pages
    ([54, 55, 53], [41, 41, 41], [])
    >>> q, cache = numpy.ones((3, 4, 64), "float16"), numpy.ones((103, 16, 2, 64), "float16")
    >>> float(att.run(beams, q, cache, cache, beams.page_table).mean())
    1.0
    """

    _sent_as = "start another with the same history, and advance it by the same parents"

    def __init__(self, page_size: int = 16, max_beams: int | None = None) -> None:
        """Makes an empty tree. A step with more than `max_beams` beams raises an error; None allows one beam for each page."""
        most = 0 if max_beams is None else expect_whole("max_beams", max_beams, least=1)
        options = sized(_abi.deft_beam_tree_options, page_size=page_size, most_beams=most)
        self._beams = Handle(make(lib.deft_beam_tree_make, byref(options)), lib.deft_beam_tree_destroy)
        self.page_size = page_size
        super().__init__(Borrowed(lib.deft_beam_tree_get_tree(self._beams), self._beams))

    def start(
        self, histories: int | Sequence[History], pages: int | Iterable[int], *, table: Sequence[int] | Any = None
    ) -> None:
        """Starts anew, with one beam for each history. A history is the tokens of a search that are already in the cache.
        `histories` is one number of tokens, or a sequence with an entry for each search: a number of tokens, or stretches
        (location, tokens) in path order. Token t of a location is in slot t % page_size of page table[t // page_size]. Without
        `table`, page p of the table is page p of the cache. Histories given as numbers lie one after the other in the table,
        and each begins a page.

        Beams decode into `pages`: page ids of the cache. Without `table` it is a number: how many pages follow those of the
        histories."""
        stretches, indptr = _stretches_of(histories, self.page_size)
        own = sized(_abi.deft_beam_histories, stretch_count=len(stretches), count=len(indptr) - 1)
        arrays = [structs_of("histories", stretches, _abi.deft_stretch), row_of("histories", indptr)]
        own.stretches, own.indptr = (addressof(one) for one in arrays)
        if table is not None:
            entries = ints("table", table)
            own.entries, own.entry_count = entries.address, entries.count
        if hasattr(pages, "__iter__"):
            ids = ints("pages", pages if hasattr(pages, "dtype") else list(pages))
            own.pages, own.page_count = ids.address, ids.count
        else:
            own.page_count = expect_whole("pages", pages, least=0)
        check(lib.deft_beam_tree_start(self._beams, byref(own)))

    def advance(self, parents: Sequence[int] | Any) -> BeamStep:
        """Takes the next step: beam i continues beam parents[i] of the step before and gains a token. After `start`, parents[i]
        is a history. `parents` is int32 on the host, or a list."""
        given = ints("parents", parents)
        check(lib.deft_beam_tree_advance(self._beams, given.address, given.count, None))
        return self.step()

    def step(self) -> BeamStep:
        """Returns the last step. After `start` the slots are -1, because there are no new tokens."""
        own = filled(_abi.deft_beam_step, lib.deft_beam_tree_get_step, self._beams)
        return BeamStep(
            _copied("q", own.slots, own.beams),
            _copied("i", own.positions, own.beams),
            _copied("i", own.new_pages, own.new_page_count).tolist(),
            _copied("i", own.freed_pages, own.freed_page_count).tolist(),
        )

    @property
    def page_table(self) -> View:
        """Returns the `page_table` of runs: int32 in host memory. It stays the same until the beams start anew or pages are
        added or taken. numpy.asarray reads it in place; runs on a GPU use a copy on that GPU."""
        found, count = c_void_p(), c_size_t()
        check(lib.deft_beam_tree_get_page_table(self._beams, byref(found), byref(count)))
        return View(found.value or 0, _abi.DEFT_I32, (count.value,), None, _abi.DEFT_DEVICE_CPU, 0, self)

    @property
    def free_pages(self) -> int:
        return lib.deft_beam_tree_free_pages(self._beams)

    def add_pages(self, pages: Sequence[int] | Any) -> None:
        """Adds pages for the tokens that beams decode."""
        given = ints("pages", pages)
        check(lib.deft_beam_tree_add_pages(self._beams, given.address, given.count))

    def take_pages(self, most: int) -> list[int]:
        """Takes at most `most` free pages; the beams no longer write to these. On a GPU, earlier runs may still read them, on
        their stream."""
        return take_row(c_int32, None, lib.deft_beam_tree_take_pages, self._beams, most)


def _copied(kind: str, address: int | None, count: int) -> array[int]:
    values = array(kind)
    if address and count:
        values.frombytes((c_char * (count * values.itemsize)).from_address(address))
    return values


def _stretches_of(histories: Any, page_size: int) -> tuple[list[tuple[int, int]], list[int]]:
    """Returns the stretches of all histories, and the index of each history's first stretch."""
    stretches: list[tuple[int, int]] = []
    indptr = [0]
    page = 0  # that the next history given as a number begins in
    for place, history in enumerate(histories if hasattr(histories, "__iter__") else [histories]):
        if hasattr(history, "__iter__"):
            try:
                stretches += [(location, tokens) for location, tokens in history]
            except (TypeError, ValueError):
                said = "it must be a number of tokens, or stretches (location, tokens)"
                raise wrong(f"histories[{place}]", f"is {history!r}, {said}") from None
        else:
            tokens = expect_whole(f"histories[{place}]", history)
            stretches.append((page * page_size, tokens))
            page += -(-tokens // page_size)
        indptr.append(len(stretches))
    return stretches, indptr
