"""Where K and V of all layers lie, and for whom."""

from __future__ import annotations

import ctypes
from typing import Any, Sequence

import torch

from .._doors.dtypes import SPEC_DTYPES
from .._errors import UsageError
from .._sequence_tree import SequenceTree, TokenCopy
from .._tensors import View
from ._kinds import LayerKind


class PagedCache:
    """Pages of K and V on the model's device, and the tree that says which of them hold which tokens."""

    def __init__(
        self, kinds: Sequence[LayerKind], pages: int, page_size: int, dtype: torch.dtype, device: torch.device
    ) -> None:
        if dtype not in SPEC_DTYPES:
            raise UsageError(f"a cache cannot be of {dtype}", "torch.float16 or torch.bfloat16")
        shapes = {(kind.kv_heads, kind.head_dim) for kind in kinds}
        if len(shapes) != 1:
            raise UsageError(f"layers have caches of {len(shapes)} shapes, they must have one")
        self.sequences = SequenceTree(pages, page_size)
        self.page_size = page_size
        self.device = device
        # Of zeros: what was never written may be NaN, and kernels multiply what they mask by 0.
        self.pages = torch.zeros((len(kinds), 2, pages, page_size, *shapes.pop()), dtype=dtype, device=device)
        self._slots = self.pages.flatten(2, 3)  # [layers, K or V, slots, kv_heads, head_dim]

    @property
    def dtype(self) -> torch.dtype:
        return self.pages.dtype

    def layer(self, layer: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.pages[layer, 0], self.pages[layer, 1]

    def write(self, layer: int, slots: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> None:
        """k and v are [1, kv_heads, tokens, head_dim], as layers make them."""
        for which, new in enumerate((k, v)):
            self._slots[layer, which].index_copy_(0, slots, new[0].transpose(0, 1).to(self.dtype))

    def copy(self, copies: Sequence[TokenCopy]) -> None:
        """Those of one call to the sequences, which may be made at once."""
        if copies:
            source = torch.cat([torch.arange(one.source, one.source + one.tokens) for one in copies])
            target = torch.cat([torch.arange(one.target, one.target + one.tokens) for one in copies])
            self._slots[:, :, target.to(self.device)] = self._slots[:, :, source.to(self.device)]

    def slots_of(self, locations: torch.Tensor) -> torch.Tensor:
        """Where tokens lie, by their locations in the tree; both on the host."""
        table = as_tensor(self.sequences.page_table)
        pages = table[locations // self.page_size].to(torch.int64)
        return pages * self.page_size + locations % self.page_size


def as_tensor(table: View) -> torch.Tensor:
    """A page table of the host, as it is."""
    entries = (ctypes.c_int32 * table.shape[0]).from_address(table.data)
    return torch.frombuffer(entries, dtype=torch.int32)
