"""One tree over the caches of several ranks."""

from __future__ import annotations

from ctypes import addressof, c_int32
from typing import Any, NamedTuple, Sequence

from . import _abi
from ._arguments import row_of
from ._errors import wrong
from ._library import lib, sized, take_row

LAYOUTS = {
    "interleaved": _abi.DEFT_RANKS_INTERLEAVED,
    "by_page": _abi.DEFT_RANKS_BY_PAGE,
    "by_node": _abi.DEFT_RANKS_BY_NODE,
}


class Ranks(NamedTuple):
    """Says which rank holds which tokens. All ranks pass the same values except `rank`; plans of a tree then read only this
    rank's tokens.

    "interleaved": location x lies on rank (x // unit) % count, there at x // (unit * count) * unit + x % unit. A page of the
    tree has a page of each rank, and all ranks have one page table. vLLM's cp_kv_cache_interleave_size is such a unit.
    "by_page": the page at location x lies on rank holders[x // unit], there at x; `unit` is the page size. "by_node": a node
    lies on rank holders[node]. A holder of -1: no rank holds it yet."""

    count: int
    rank: int
    unit: int = 1
    layout: str = "interleaved"
    holders: Sequence[int] | None = None

    def holder(self, location: Any) -> Any:
        """Returns the rank that holds this location, or these locations (an array), of interleaved tokens."""
        return location // self.unit % self.count

    def place(self, location: Any) -> Any:
        """Returns the location in its holder's cache, for interleaved tokens."""
        return location // (self.unit * self.count) * self.unit + location % self.unit


def ranks_of_c(ranks: Ranks) -> tuple[Any, Any]:
    """Makes a deft_ranks, and the arrays that it points to."""
    if not isinstance(ranks, Ranks):
        raise wrong("ranks", f"is {ranks!r}, it must be deft.Ranks(count, rank, ...)")
    if ranks.layout not in LAYOUTS:
        raise wrong("layout", f"is {ranks.layout!r}, it must be one of {', '.join(LAYOUTS)}")
    own = sized(
        _abi.deft_ranks, count=ranks.count, rank=ranks.rank, layout=LAYOUTS[ranks.layout], unit=ranks.unit
    )
    holders = None if ranks.holders is None else row_of("holders", list(ranks.holders))
    if holders is not None and len(holders):
        own.holders, own.holder_count = addressof(holders), len(holders)
    return own, holders


def proposed_holders(tree: Any, count: int, page_size: int) -> list[int]:
    return take_row(c_int32, None, lib.deft_tree_propose_holders, tree, count, page_size)
