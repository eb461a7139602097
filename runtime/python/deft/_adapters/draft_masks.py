"""Masks of drafts: which of the last tokens of its request each of these sees. They are read where they lie, and nothing waits for
them."""

from __future__ import annotations

import functools
import re
from typing import Callable, NamedTuple

import torch

from .._errors import UsageError
from .outside import outside
from .steps import Room

MOST_DRAFTS = 256  # of a request: those of a deft.PagedBatch
_WORD = 32
_BLOCK = 64  # elements that are looked at together
_MOST_SUMS = 1 << 24  # four bytes each
_ROW = re.compile(r"bits\[(\d+)\]\[(\d+)\]")  # the field of an error about a row of the mask: [request][row]
_RULE = "each query sees the whole context and, of the last q_len tokens, itself and those above it in a tree"
_PLANNED_TOGETHER = 16  # drafts for which a tree has one leaf while it is planned (tree::DraftStandIn)


class Drafts(NamedTuple):
    """As deft.PagedBatch takes them."""

    counts: torch.Tensor  # of each request, on the host
    lengths: torch.Tensor  # of each request, without them, on the host
    bits: torch.Tensor
    depths: torch.Tensor | None


class Rows(NamedTuple):
    """The row of each query in a mask, [requests, most queries]; all where the mask is."""

    begin: torch.Tensor  # its first element; rows that are not there have no elements
    end: torch.Tensor  # of the context: its first element of the request's last q_len
    is_there: torch.Tensor
    counts: torch.Tensor  # [requests, 1, 1]


def no_tree(why: str) -> NotImplementedError:
    return outside("custom_mask", "Tensor", f"{why}: {_RULE}")


class speaking_of_masks:
    """A plan finds drafts that are no tree, and its error's field names them; here they are queries of a mask."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        row = _ROW.fullmatch(error.field) if isinstance(error, UsageError) else None
        if row:
            raise no_tree(f"what query {row[2]} of request {row[1]} sees is no tree") from None


@functools.lru_cache(maxsize=64)
def numbers(count: int, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    return torch.arange(count, dtype=dtype, device=device)


def rows_of(starts: list[int], counts: list[int], lengths: list[int], device: torch.device) -> Rows:
    contexts = [length - count for count, length in zip(counts, lengths)]
    each = torch.tensor([starts, counts, lengths, contexts], dtype=torch.int64).to(device, non_blocking=True)  # in one copy
    starts_there, counts_there, lengths_there, contexts_there = each[..., None].unbind()
    row = numbers(max([1, *counts]), torch.int64, device)
    is_there = row < counts_there
    begin = (starts_there + row * lengths_there) * is_there
    return Rows(begin, begin + contexts_there * is_there, is_there, counts_there[..., None])


def words_of(seen: Bits, rows: Rows, has_padding: bool) -> torch.Tensor:
    """Which queries of its request each query sees, int32 [requests, most queries, words]."""
    most = rows.begin.shape[1]
    other = numbers(-(-most // _WORD) * _WORD, torch.int64, rows.begin.device)
    is_there = rows.is_there[..., None] & (other < rows.counts)
    sees = seen.at((rows.end[..., None] + other) * is_there) & is_there
    if has_padding:
        shows_all = (sees == is_there).flatten(1).all(1)
        is_padding = shows_all.flip(0).cumprod(0).flip(0).bool() & ~shows_all.all()
        sees = sees & (~is_padding[:, None, None] | (other <= other[:most, None]))
    bits = sees.view(*sees.shape[:2], -1, _WORD) * _bit_of_word(rows.begin.device)
    return bits.sum(-1, dtype=torch.int32)  # no two have one in common


@functools.lru_cache(maxsize=64)
def _bit_of_word(device: torch.device) -> torch.Tensor:
    return torch.ones(_WORD, dtype=torch.int32, device=device) << torch.arange(_WORD, dtype=torch.int32, device=device)


class Bits:
    """A mask of truth values or of bits in bytes, by the numbers of its elements."""

    def __init__(self, flat: torch.Tensor, is_packed: bool) -> None:
        self._is_packed = is_packed
        flat = flat if flat.numel() else flat.new_zeros(1)  # so that there is one that nobody asks for
        self._flat = flat if is_packed or flat.dtype == torch.bool else flat != 0

    def at(self, elements: torch.Tensor) -> torch.Tensor:
        """Whether these are set."""
        if not self._is_packed:
            return self._flat[elements]
        return (self._flat[elements >> 3] >> (elements & 7).to(torch.uint8) & 1).bool()

    def all_between(self, begin: torch.Tensor, end: torch.Tensor) -> torch.Tensor:
        """Whether all from `begin` to `end` are set, for each of these."""
        if not self._is_packed:
            return _all_between(self._flat, begin, end)
        first, last = (begin + 7) >> 3, end >> 3  # whole bytes
        before, behind = (begin, end.minimum(first << 3)), (begin.maximum(last << 3), end)
        return _all_between(self._flat == 255, first, last.maximum(first)) & _all_near(self.at, before, behind, 7)


def _all_between(flags: torch.Tensor, begin: torch.Tensor, end: torch.Tensor) -> torch.Tensor:
    """By sums of those that are not set: of single flags, or where these are many of blocks, and single flags at both ends."""
    if flags.numel() <= _MOST_SUMS:
        wrong = _sums(~flags)
        return wrong[end.clamp(max=flags.numel())] == wrong[begin.clamp(max=flags.numel())]
    blocks = flags.numel() // _BLOCK
    wrong = _sums(~flags[: blocks * _BLOCK].view(blocks, _BLOCK).all(1))
    first, last = (begin + _BLOCK - 1) // _BLOCK, end // _BLOCK  # whole blocks
    whole = wrong[last.maximum(first).clamp(max=blocks)] == wrong[first.clamp(max=blocks)]
    before, behind = (begin, end.minimum(first * _BLOCK)), (begin.maximum(last * _BLOCK), end)
    return whole & _all_near(flags.__getitem__, before, behind, _BLOCK - 1)


def _sums(flags: torch.Tensor) -> torch.Tensor:
    """[i]: of those before i."""
    sums = torch.zeros(flags.numel() + 1, dtype=torch.int32, device=flags.device)
    torch.cumsum(flags, 0, out=sums[1:])
    return sums


_Stretch = tuple[torch.Tensor, torch.Tensor]


def _all_near(at: Callable[[torch.Tensor], torch.Tensor], one: _Stretch, other: _Stretch, most: int) -> torch.Tensor:
    """Whether all of two short stretches are set."""
    begin, end = (torch.stack(pair)[..., None] for pair in zip(one, other))
    element = begin + numbers(most, torch.int64, begin.device)
    is_there = element < end
    return (at(element * is_there) | ~is_there).all(-1).all(0)


def room_for_drafts(requests: int, queries: int, tokens: int, most: int) -> Room:
    """Of a captured graph of so many requests, each with at most `most` drafts. Drafts are read in blocks, each with what comes
    before it."""
    blocks = -(-max(most, 1) // _PLANNED_TOGETHER)
    return Room(requests * blocks, queries * (blocks + 1) // 2, tokens)
