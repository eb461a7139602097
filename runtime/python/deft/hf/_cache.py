"""The cache: K and V of all layers, and the tree of its tokens."""

from __future__ import annotations

import ctypes
from typing import Sequence

import torch

from .._adapters.dtypes import SPEC_DTYPES
from .._errors import UsageError
from .._ranks import Ranks
from .._sequence_tree import SequenceTree, TokenCopy
from .._tensors import View
from ..torch_peers import TorchPeers
from ._kinds import Kind


class PagedCache:
    """Pages of K and V on the model's device, and the tree that says which page holds which tokens. With `peers`, a page of the
    tree is one page of each rank, with page_size tokens of it; slots are those of all ranks together."""

    def __init__(
        self,
        kinds: Sequence[Kind],
        pages: int,
        page_size: int,
        dtype: torch.dtype,
        device: torch.device,
        peers: TorchPeers | None = None,
    ) -> None:
        if dtype not in SPEC_DTYPES:
            raise UsageError(f"a cache cannot be of {dtype}", "torch.float16 or torch.bfloat16")
        shapes = {kind.entry_shape for kind in kinds}
        if len(shapes) != 1:
            raise UsageError(f"layers have caches of {len(shapes)} shapes, they must have one")
        ranks = peers.count if peers else 1
        self.sequences = SequenceTree(pages, page_size * ranks)
        self.peers = peers
        self.ranks = Ranks(ranks, peers.rank if peers else 0, unit=page_size)
        if peers:
            self.sequences.set_ranks(self.ranks)
        self.page_size = page_size
        self.device = device
        # Of zeros: what was never written may be NaN, and kernels multiply what they mask by 0. Ranks write the tokens of others to
        # a page behind all others, since a captured step cannot leave out rows.
        parts, *shape = shapes.pop()
        self.pages = torch.zeros((len(kinds), parts, pages + (1 if peers else 0), page_size, *shape), dtype=dtype, device=device)
        self._slots = self.pages.flatten(2, 3)  # [layers, K or V, slots, kv_heads, head_dim]; of latents [layers, 1, slots, dim]
        self._kinds = list(kinds)

    @property
    def dtype(self) -> torch.dtype:
        return self.pages.dtype

    def layer(self, layer: int) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Returns one layer's cache as runs take it: K and V, or latents and None."""
        parts = self.pages[layer]
        return parts[0], parts[1] if len(parts) > 1 else None

    def write(self, layer: int, slots: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> None:
        """Writes K and V to the slots. k and v are [1, kv_heads, tokens, head_dim], as layers pass them."""
        entries = self._kinds[layer].entries(k, v)
        if self.peers:
            slots = self.ranks.place(slots).masked_fill(~self._is_mine(slots), self._slots.shape[2] - 1)
        for which, new in enumerate(entries):
            self._slots[layer, which].index_copy_(0, slots, new.to(self.dtype))

    def _is_mine(self, slots: torch.Tensor) -> torch.Tensor:
        return self.ranks.holder(slots) == self.ranks.rank

    def copy(self, copies: Sequence[TokenCopy]) -> None:
        """Makes the copies that one call of the sequences returned. Copies of one call may run at the same time."""
        if copies:
            source = torch.cat([torch.arange(one.source, one.source + one.tokens) for one in copies])
            target = torch.cat([torch.arange(one.target, one.target + one.tokens) for one in copies])
            if self.peers and not torch.equal(self.ranks.holder(source), self.ranks.holder(target)):
                return self._exchange(self.peers, source, target)
            if self.peers:
                mine = self._is_mine(source)
                source, target = self.ranks.place(source[mine]), self.ranks.place(target[mine])
            self._slots[:, :, target.to(self.device)] = self._slots[:, :, source.to(self.device)]

    def _exchange(self, peers: TorchPeers, source: torch.Tensor, target: torch.Tensor) -> None:
        """Moves accepted guesses to slots of other ranks: each rank sends the tokens that it has, and takes those that it must
        hold."""
        mine = self._is_mine(source)
        shape = (*self._slots.shape[:2], len(source), *self._slots.shape[3:])
        moved = torch.zeros(shape, dtype=torch.float32, device=self.device)
        moved[:, :, mine] = self._slots[:, :, self.ranks.place(source[mine]).to(self.device)].float()
        peers.sum(moved)
        mine = self._is_mine(target)
        self._slots[:, :, self.ranks.place(target[mine]).to(self.device)] = moved[:, :, mine].to(self.dtype)

    def slots_of(self, locations: torch.Tensor) -> torch.Tensor:
        """Returns the slots of tokens, from their locations in the tree; both are on the host."""
        table = as_tensor(self.sequences.page_table)
        page_size = self.page_size * self.ranks.count
        pages = table[locations // page_size].to(torch.int64)
        return pages * page_size + locations % page_size


def as_tensor(table: View) -> torch.Tensor:
    """Views a host's page table as a tensor."""
    entries = (ctypes.c_int32 * table.shape[0]).from_address(table.data)
    return torch.frombuffer(entries, dtype=torch.int32)
