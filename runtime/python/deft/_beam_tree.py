"""Wide beams: thousands of sequences over one history, which change their parents in each step."""

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
    """A step of the beams; copies, which stay as they are."""

    slots: array[int]  # int64, of each beam: where K and V of its new token go
    positions: array[int]  # int32, of each beam's new token: the tokens of its path before it
    new_pages: list[int]  # those that the step has begun to write
    #: Those that beams saw tokens of before the step, and nobody does now; without those that the step has taken again.
    freed_pages: list[int]


class BeamTree(TreeView):
    """The beams of a search, or of several. In each step every beam continues any beam of the step before
    and gains a token; a beam without a successor ends, and pages without a token that a beam sees are free at once.
    Nothing is copied. The bytes are the host's: it writes K and V of new tokens to the slots of the step. Slot s is place
    s % page_size of page s // page_size.

    Query i of the tree is beam i. Plans follow as those of a Tree do: `plan.advance()` after each step, or Attention.run. Make them
    after the first step, since kernels are chosen for the tree as it is then. A call that fails changes nothing.

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
        """`max_beams`: a step of more is an error; None: the number of pages."""
        most = 0 if max_beams is None else expect_whole("max_beams", max_beams, least=1)
        options = sized(_abi.deft_beam_tree_options, page_size=page_size, most_beams=most)
        self._beams = Handle(make(lib.deft_beam_tree_make, byref(options)), lib.deft_beam_tree_destroy)
        self.page_size = page_size
        super().__init__(Borrowed(lib.deft_beam_tree_get_tree(self._beams), self._beams))

    def start(
        self, histories: int | Sequence[History], pages: int | Iterable[int], *, table: Sequence[int] | Any = None
    ) -> None:
        """Begins anew, with a beam for each history, which is what a search has in the cache already. `histories` is the number of
        tokens of one, or a sequence with one for each search: a number of tokens, or stretches (location, tokens) in the order of the
        path. Token t of a location is in slot t % page_size of page table[t // page_size]; without `table` page p of the table is page
        p of the cache. Histories given as numbers lie in the table one behind the other, each from the beginning of a page on.

        `pages` are those that beams decode into, page ids of the cache; or, without `table`, how many pages behind those of the
        histories.
        """
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
        """The next step: beam i goes on from beam parents[i] of the step before (after `start` from history parents[i]) and gains a
        token. `parents` is int32 on the host, or a list."""
        given = ints("parents", parents)
        check(lib.deft_beam_tree_advance(self._beams, given.address, given.count, None))
        return self.step()

    def step(self) -> BeamStep:
        """The last one. After `start` the slots are -1, as nobody has a new token."""
        own = filled(_abi.deft_beam_step, lib.deft_beam_tree_get_step, self._beams)
        return BeamStep(
            _copied("q", own.slots, own.beams),
            _copied("i", own.positions, own.beams),
            _copied("i", own.new_pages, own.new_page_count).tolist(),
            _copied("i", own.freed_pages, own.freed_page_count).tolist(),
        )

    @property
    def page_table(self) -> View:
        """What runs take as `page_table`: int32 in the host's memory. It stays the same until the beams begin anew or pages are
        added or taken. numpy.asarray reads it in place; runs on a GPU take a copy there, too."""
        found, count = c_void_p(), c_size_t()
        check(lib.deft_beam_tree_get_page_table(self._beams, byref(found), byref(count)))
        return View(found.value or 0, _abi.DEFT_I32, (count.value,), None, _abi.DEFT_DEVICE_CPU, 0, self)

    @property
    def free_pages(self) -> int:
        return lib.deft_beam_tree_free_pages(self._beams)

    def add_pages(self, pages: Sequence[int] | Any) -> None:
        """More pages for what the beams decode."""
        given = ints("pages", pages)
        check(lib.deft_beam_tree_add_pages(self._beams, given.address, given.count))

    def take_pages(self, most: int) -> list[int]:
        """Takes up to so many free pages, to which the beams then do not write. On a GPU, runs from before may still read them, on
        their stream."""
        return take_row(c_int32, None, lib.deft_beam_tree_take_pages, self._beams, most)


def _copied(kind: str, address: int | None, count: int) -> array[int]:
    values = array(kind)
    if address and count:
        values.frombytes((c_char * (count * values.itemsize)).from_address(address))
    return values


def _stretches_of(histories: Any, page_size: int) -> tuple[list[tuple[int, int]], list[int]]:
    """Of all histories, and where those of each begin."""
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
