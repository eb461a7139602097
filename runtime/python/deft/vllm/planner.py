"""vLLM's metadata of a step as what deft plans with. Knows vLLM's types by their attributes alone."""

from __future__ import annotations

from typing import Any, Iterable, NamedTuple

import numpy as np
import torch

from .._adapters.outside import outside
from .._adapters.steps import PagedWork, Room, Steps
from .._adapters.variant import Variant
from .host_tables import on_host


class DeftMetadata(NamedTuple):
    """What each layer of the step is given."""

    steps: Steps
    queries: int  # rows of q before those of padding
    slot_mapping: Any


def work_of(common: Any, page_size: int, lengths_are_exact: bool) -> tuple[PagedWork, int]:
    """With how many queries there are. Rows of padding have none, and are left out."""
    if common.causal is not True:
        raise outside("causal", common.causal, "a query sees no later token")
    # In NumPy, whose calls cost a fifth of torch's where arrays are small.
    starts = common.query_start_loc_cpu.numpy().astype(np.int32)
    requests = int(np.count_nonzero(starts[1:] > starts[:-1]))  # those of padding stand behind the others
    starts = starts[: requests + 1]
    known = getattr(common, "seq_lens_cpu_upper_bound", None) if lengths_are_exact else None
    lengths = (common.seq_lens if known is None else known)[:requests].cpu().numpy().astype(np.int32)
    pages = (lengths + (page_size - 1)) // page_size
    table = common.block_table_tensor[:requests, : max(int(pages.max()), 1) if requests else 1]
    return PagedWork(table, None, lengths, starts, on_host(table, pages)), int(starts[-1])


_CALLER = "a layer of vLLM"  # in errors


class Planner:
    """The steps of one group of layers: those that run eagerly, and those that replay a graph, of each size one."""

    def __init__(
        self,
        device: torch.device,
        page_size: int,
        graph_sizes: Iterable[int],
        tokens: int,
        lengths_are_exact: bool,
        layers: int = 0,
    ) -> None:
        self._device, self._page_size, self._layers = device, page_size, layers
        self._graph_sizes, self._tokens = frozenset(graph_sizes), tokens
        self._lengths_are_exact = lengths_are_exact
        self._eager = Steps(_CALLER, device)
        self._of_graphs: dict[int, Steps] = {}

    def plan(self, common: Any, variants: Iterable[Variant]) -> DeftMetadata:
        work, queries = work_of(common, self._page_size, self._lengths_are_exact)
        steps = self._eager
        size = common.num_reqs
        if common.max_query_len == 1 and common.num_actual_tokens == size and size in self._graph_sizes:
            if size not in self._of_graphs:
                self._of_graphs[size] = Steps(_CALLER, self._device, Room(size, size, self._tokens), self._layers)
            steps = self._of_graphs[size]
        steps.plan(work, *variants)
        return DeftMetadata(steps, queries, common.slot_mapping)
