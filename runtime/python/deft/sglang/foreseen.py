"""Page tables of steps that replay a graph, as far as the host knows them before the GPU gives them."""

from __future__ import annotations

from operator import is_
from typing import Any, NamedTuple

import numpy as np
import torch

from .forwards import Forwards

_Numbers = np.ndarray[Any, Any]
MOST_ENTRIES = 1 << 18  # of tables that are compared: more take as long as planning


def pages_of_longest(lengths: _Numbers, page_size: int) -> int:
    return -(-int(np.maximum.reduce(lengths, initial=1)) // page_size)


class Reading:
    """A table on its way from the GPU to the host. One that does not fit into `memory` is there at once."""

    def __init__(self, table: torch.Tensor, memory: torch.Tensor | None) -> None:
        """`memory`: page-locked; None on processors."""
        self._arrived: torch.cuda.Event | None = None
        if memory is None or table.numel() > memory.numel():
            self._host = table.cpu()
            return
        self._host = memory[: table.numel()].view(table.shape)
        self._host.copy_(table, non_blocking=True)
        self._arrived = torch.cuda.Event()
        self._arrived.record()

    def wait(self) -> torch.Tensor:
        """In memory that the next reading overwrites."""
        if self._arrived is not None:
            self._arrived.synchronize()
        return self._host


class Expected(NamedTuple):
    """A table to plan with. If it is not certain, the one that is read decides."""

    table: torch.Tensor
    is_certain: bool
    begins_pages: bool


class Foreseen:
    """The tables of the steps of one graph.

    As long as no request joins or leaves, each is a token longer in each step and keeps its pages. A page that it begins is its
    own, whichever that is. So a step is planned while the GPU is still busy with the step before, with stand-ins for the pages that
    begin. Where SGLang says that the forward before was of the same requests, that is all. Elsewhere the table is read; when it
    arrives, a step that was planned with another one is planned again. Runs read the GPU's own table."""

    def __init__(self, page_size: int, rows: int, most_pages: int, first_stand_in: int) -> None:
        """Stand-ins are pages that no request has, from the first one on."""
        self._page_size, self._first_stand_in, self._stand_ins = page_size, first_stand_in, 0
        self._lengths: _Numbers | None = None  # of the last step; None: the next one is not foreseen
        self._requests: list[str] | None = None  # of the last step
        self._forward = 0  # the last step's number
        self._is_read = False  # whether `_read` is the last step's table
        self._steps_within_pages = 0  # of the same requests after the last one, before one begins a page
        # Of both only the columns in use are ever touched.
        self._read = np.zeros((rows, most_pages), np.int32)
        self._planned = torch.empty((rows, most_pages), dtype=torch.int32)  # what was read, and stand-ins
        self._table = self._planned[:, :0]  # of the last step

    def foresee(self, lengths: _Numbers, forwards: Forwards) -> Expected | None:
        """The table of a step of so many tokens; None: it is not known."""
        before = self._lengths
        if before is None:
            return None
        is_certain = self._goes_on(lengths, before, forwards)
        if is_certain and self._steps_within_pages:
            return Expected(self._table, is_certain=True, begins_pages=False)
        if not is_certain and (not self._is_read or ((lengths - before) >> 1).any()):
            return None  # else each is a token longer, or fills a graph up and stays as it is
        places = self._begun(before, lengths)
        count = len(places[0])
        if count:
            self._planned.numpy()[places] = self._first_stand_in + (self._stand_ins + np.arange(count)) % self._planned.numel()
            self._stand_ins += count
        width = pages_of_longest(lengths, self._page_size)
        if width != self._table.shape[1]:  # else it is the same object, which was read before
            self._table = self._planned[:, :width]
        return Expected(self._table, is_certain, count > 0)

    def _goes_on(self, lengths: _Numbers, before: _Numbers, forwards: Forwards) -> bool:
        """Whether the forward before was of the same requests, and each is a token longer."""
        requests, known = forwards.requests, self._requests
        if requests is None or known is None or len(requests) != len(known) or forwards.number != self._forward + 1:
            return False
        count = len(known)
        return all(map(is_, requests, known)) and bool(np.logical_and.reduce(lengths[:count] - before[:count] == 1))

    def go_on(self, lengths: _Numbers, forwards: Forwards) -> None:
        """The next step is foreseen from this one, whose table is certain and was not read."""
        if self._steps_within_pages:
            self._steps_within_pages -= 1
        else:
            self._steps_within_pages = self._steps_before_a_page(lengths)
        self._lengths, self._forward, self._is_read = lengths, forwards.number, False

    def is_right(self, lengths: _Numbers, table: torch.Tensor, forwards: Forwards) -> bool:
        """Whether `table` has the pages that foresee() took it to have. If so, the next step is foreseen from it."""
        before, read = self._lengths, table.numpy()
        assert before is not None
        used = self._pages_of(before)
        # Rows that fill a graph up are the last ones, of a page each.
        real = len(used) - int(np.argmax(used[::-1] > 1)) if used.max() > 1 else 0
        if not (
            np.array_equal(read[real:, :1], self._read[real:, :1])
            and self._has_pages(read[:real], self._read[:real], used[:real])
        ):
            return False
        places = self._begun(before, lengths)
        self._read[places] = read[places]
        self._remember(lengths, forwards, is_read=True)
        return True

    def _remember(self, lengths: _Numbers, forwards: Forwards, is_read: bool) -> None:
        self._lengths, self._is_read = lengths, is_read
        self._requests, self._forward = forwards.requests, forwards.number
        self._steps_within_pages = 0 if forwards.requests is None else self._steps_before_a_page(lengths)

    def _steps_before_a_page(self, lengths: _Numbers) -> int:
        assert self._requests is not None
        left = -lengths[: len(self._requests)] % self._page_size
        return int(np.minimum.reduce(left, initial=self._page_size - 1))

    @staticmethod
    def _has_pages(read: _Numbers, known: _Numbers, used: _Numbers) -> bool:
        """Whether the first `used` pages of each row are known ones."""
        if not len(used):
            return True
        least, most = int(used.min()), int(used.max())
        differs = read[:, least:most] != known[:, least:most]
        is_used = np.arange(least, most) < used[:, None]
        return np.array_equal(read[:, :least], known[:, :least]) and not (differs & is_used).any()

    def learn(self, lengths: _Numbers, table: torch.Tensor, forwards: Forwards) -> torch.Tensor:
        """Takes a table as it is and returns it, to plan with, in memory that stays."""
        width = table.shape[1]
        self._planned = torch.empty_like(self._planned)  # the step before still has the other memory
        self._planned[:, :width] = table
        is_small = table.numel() <= MOST_ENTRIES
        if is_small:
            self._read[:, :width] = table.numpy()
        self._remember(lengths, forwards, is_small)
        self._table = self._planned[:, :width]
        return self._table

    def forget(self) -> None:
        self._lengths = None

    def _begun(self, before: _Numbers, lengths: _Numbers) -> tuple[_Numbers, _Numbers]:
        """Rows in which a token begins a page, and which page of the row."""
        (rows,) = ((lengths > before) & (before % self._page_size == 0)).nonzero()
        return rows, before[rows] // self._page_size

    def _pages_of(self, lengths: _Numbers) -> _Numbers:
        return -(-lengths // self._page_size)
