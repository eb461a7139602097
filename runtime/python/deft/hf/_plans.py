"""Plans of a step's tree: one for each kind of layer."""

from __future__ import annotations

from typing import Any, Mapping

import torch

from .._adapters.dtypes import SPEC_DTYPES
from .._attention import Attention, Plan, compile
from .._plans import ConfigChoice
from .._sequence_tree import GpuPageTable
from .._tensors import View
from .._tree import TreeView
from ._cache import PagedCache
from ._kinds import Kind


class Plans:
    """The plans of one place in the program. They are made at the first need, then advanced. Plans for prompts and plans for
    single tokens are kept apart, because one plan for both would be remade each time."""

    def __init__(
        self,
        cache: PagedCache,
        attentions: Mapping[Kind, Attention],
        partition: str | None,
        runs_ahead: Mapping[Kind, int],
        tree: TreeView | None = None,
    ) -> None:
        """`runs_ahead`: how many runs a captured step makes of each plan; empty if steps are not captured. `tree`: the tree of
        the plans, by default the sequences."""
        self._cache = cache
        self._tree = cache.sequences if tree is None else tree
        self._attentions = attentions
        self._partition = partition
        self._runs_ahead = runs_ahead
        self._plans: dict[Kind, Plan] = {}
        #: False: runs give the results over this rank's tokens.
        self.merges = cache.peers is not None

    def advance(self) -> None:
        """Updates the plans to the tree's current state."""
        for kind in self._attentions:
            plan = self._plans.get(kind)
            if plan is None:
                self._plans[kind] = self._make(kind)
            else:
                plan.advance()

    def _make(self, kind: Kind) -> Plan:
        return self._attentions[kind].plan(
            self._tree,
            device="cpu" if self._cache.device.type == "cpu" else self._cache.device,
            partition=self._partition,
            runs_ahead=self._runs_ahead.get(kind, 0),
            budget=self._budget(kind),
        )

    def _budget(self, kind: Kind) -> int | None:
        """Returns the tokens of a list if layers of this kind select, else None."""
        return None

    def upload(self) -> None:
        """Uploads the plans on a GPU's current stream, which must not be capturing."""
        for plan in self._plans.values():
            plan.upload()

    def check_replays(self) -> None:
        for plan in self._plans.values():
            plan.check_replays()
        if self._cache.peers is not None:
            self._cache.peers.check()

    def run(self, kind: Kind, layer: int, q: torch.Tensor, page_table: Any) -> torch.Tensor:
        """Runs one layer. q is [1, heads, tokens, key_dim], the result [tokens, heads, value_dim]."""
        plan, peers = self._plans[kind], self._cache.peers
        if peers is None:
            return plan.run(*self._tensors(layer, q), page_table)
        out, lse = plan.run(*self._tensors(layer, q), page_table, return_lse=True)
        return peers.merge(out, lse)[0] if self.merges else out

    def _tensors(self, layer: int, q: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
        """Returns the tensors for a plan's runs."""
        rows = q[0].transpose(0, 1).to(self._cache.dtype).contiguous()
        return rows, *self._cache.layer(layer)

    def summary(self) -> dict[Kind, Any]:
        return {kind: plan.summary() for kind, plan in self._plans.items()}

    def choices(self) -> dict[Kind, ConfigChoice]:
        return {kind: plan.choice() for kind, plan in self._plans.items()}


def compile_kinds(
    kinds: list[Kind], dtype: torch.dtype, page_size: int, more: Mapping[Kind, str]
) -> dict[Kind, Attention]:
    """Compiles an attention for each kind. `more` is added to the specs of some kinds."""
    return {
        kind: compile(
            kind.spec(SPEC_DTYPES[dtype], page_size, more.get(kind, "")), name=f"layer {kinds.index(kind)}"
        )
        for kind in dict.fromkeys(kinds)
    }


class PageTable:
    """The sequences' page table on the model's device."""

    #: Branches that share a page have an entry each in the table, of 4 bytes. Beams that part often had 5 a page.
    ENTRIES_A_PAGE = 64

    def __init__(self, cache: PagedCache) -> None:
        self._cache = cache
        self._on_gpu: GpuPageTable | None = None
        if cache.device.type == "cuda":
            self._on_gpu = GpuPageTable(cache.device.index or 0, self.ENTRIES_A_PAGE * cache.pages.shape[2])

    def upload(self) -> View:
        """Uploads the table and returns it for the runs that follow."""
        if self._on_gpu is None:
            return self._cache.sequences.page_table
        self._on_gpu.upload(self._cache.sequences, torch.cuda.current_stream(self._cache.device).cuda_stream)
        return self._on_gpu.entries
