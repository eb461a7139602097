"""Turns vLLM's metadata of a step into deft's plans. Uses vLLM's types only through their attributes."""

from __future__ import annotations

import functools
import operator
from array import array
from ctypes import Array, c_char
from typing import Any, Iterable, NamedTuple

import torch

from .._adapters.outside import outside
from .._adapters.steps import PagedWork, Room, Steps
from .._adapters.variant import Variant
from .._batch_inputs import BlockTable, read_block_table
from .._ranks import Ranks
from .context import ranks_of
from .host_tables import Known, on_host


class DeftMetadata(NamedTuple):
    """The metadata of a step, for each layer."""

    steps: Steps
    queries: int  # rows of q before those of padding
    slot_mapping: Any


def work_of(
    common: Any,
    page_size: int,
    lengths_are_exact: bool,
    most: int | None = None,
    ranks: Ranks | None = None,
    tables: Tables | None = None,
) -> tuple[PagedWork, int]:
    """Returns the work of a step and its number of queries. Rows of padding have no queries and are left out. `most`: take only
    this many requests, from the first on. With `ranks`, an entry of the table is a page of each rank, and lengths are those of
    all ranks together."""
    if common.causal is not True:
        raise outside("causal", common.causal, "a query sees no later token")
    starts = row_of(common.query_start_loc_cpu, None if most is None else most + 1)
    queries = starts[-1]
    if common.max_query_len == 1:  # who has a query has one
        requests, indptr = queries, None
    else:
        requests = sum(map(operator.lt, starts, starts[1:]))  # those of padding stand behind the others
        indptr = starts[: requests + 1]
    known = getattr(common, "seq_lens_cpu_upper_bound", None) if lengths_are_exact else None
    lengths = row_of(common.seq_lens if known is None else known, requests)
    entry = page_size if ranks is None else page_size * ranks.count  # tokens of one
    table = common.block_table_tensor
    host = on_host(table, lengths, entry)
    if host is None:  # what of it is read is copied
        pages = -(-max(lengths, default=1) // entry)
        return PagedWork(table[:requests, : max(pages, 1)], None, lengths, indptr, ranks=ranks), queries
    read = (Tables() if tables is None else tables).read(table, host)
    return PagedWork(read, None, lengths, indptr, ids=host.ids, ranks=ranks), queries


def row_of(numbers: torch.Tensor, count: int | None) -> array[int]:
    """Copies the first `count` numbers to the host; None copies all. It reads them by their address, because any call of torch
    or NumPy takes longer when a model's layers fill the processor's caches."""
    if numbers.is_cuda:
        numbers = numbers.cpu()
    if numbers.dtype is not torch.int32 or not numbers.is_contiguous():
        numbers = numbers.to(torch.int32).contiguous()
    size = numbers.shape[0]  # for len() torch asks who else might answer
    row = array("i")
    row.frombytes(_bytes(4 * (size if count is None else min(size, count))).from_address(numbers.data_ptr()))
    return row


@functools.cache
def _bytes(count: int) -> type[Array[c_char]]:
    return c_char * count


class Tables:
    """Tables that the host knows, kept by their number of rows: from step to step only the entries differ."""

    def __init__(self) -> None:
        self._of_rows: dict[int, tuple[object, BlockTable]] = {}

    def read(self, table: torch.Tensor, known: Known) -> BlockTable:
        rows = table.shape[0]
        whose, read = self._of_rows.get(rows, (None, None))
        if read is None or whose is not known.table:
            read = read_block_table(table, host_tables=known.entries)
            self._of_rows[rows] = known.table, read
        return read


_JOINING = 512  # tokens of prompts in a step that decodes, for which there is memory from the beginning


class Planner:
    """Plans the steps of one group of layers: one set of plans for eager steps, and one for each kind of batch that replays a
    graph. A graph's requests all have the same number of queries: one, or one more than the drafts of a chain."""

    def __init__(
        self,
        device: torch.device,
        page_size: int,
        tokens: int,
        lengths_are_exact: bool,
        layers: int = 0,
        ranks: Ranks | None = None,
    ) -> None:
        """`tokens`: the most tokens of all requests together, on one rank."""
        self._device, self._page_size, self._layers, self._ranks = device, page_size, layers, ranks
        self._tokens, self._lengths_are_exact = tokens, lengths_are_exact
        self._eager, self._tables = Steps(device), Tables()
        self._of_graphs: dict[tuple[int, int], Steps] = {}  # by requests, and queries of each

    def expect_graph(self, common: Any) -> None:
        """Prepares for a graph of such a batch. vLLM captures it after the next plan."""
        key, tokens = (common.num_reqs, common.max_query_len), common.num_actual_tokens
        if key not in self._of_graphs:
            self._of_graphs[key] = Steps(self._device, Room(common.num_reqs, tokens, self._tokens), self._layers)
            if key == max(self._of_graphs):  # where requests join so many, there are queries of prompts beside those of the graph
                self._eager.expect(Room(common.num_reqs, tokens + common.num_reqs + _JOINING, self._tokens))

    def plan(self, common: Any, variants: Iterable[Variant], most: int | None = None) -> DeftMetadata:
        """Plans a step. `most`: take only this many requests, from the first on."""
        work, queries = work_of(common, self._page_size, self._lengths_are_exact, most, self._ranks, self._tables)
        steps, key = self._eager, (common.num_reqs, common.max_query_len)
        if key in self._of_graphs and common.num_reqs * common.max_query_len == common.num_actual_tokens:
            steps = self._of_graphs[key]
        steps.plan(work, *variants)
        return DeftMetadata(steps, queries, common.slot_mapping)


def planner_of(vllm_config: Any, kv_cache_spec: Any, layers: int, device: torch.device) -> Planner:
    """Makes the planner for a group with this number of layers."""
    own, kept = vllm_config.model_config.dtype, kv_cache_spec.dtype
    if kept != own and kept.itemsize > 1:  # --kv-cache-dtype of another 16-bit type
        raise outside("kv_cache_dtype", kept, f"K and V are of the model's type, {own}, or of 8 bits")
    scheduler, cache = vllm_config.scheduler_config, vllm_config.cache_config
    tokens = scheduler.max_num_seqs * vllm_config.model_config.max_model_len
    if cache.num_gpu_blocks:
        tokens = min(tokens, cache.num_gpu_blocks * cache.block_size)
    ranks = ranks_of(vllm_config, kv_cache_spec.block_size)
    # With drafts, lengths on the host are those of all drafts being accepted.
    return Planner(device, kv_cache_spec.block_size, tokens, vllm_config.speculative_config is None, layers, ranks)


def variants_of(vllm_config: Any, kv_cache_spec: Any, layer_names: Iterable[str]) -> frozenset[Variant]:
    """Returns the variants of a group's layers."""
    layers = vllm_config.compilation_config.static_forward_context
    size, dtype = kv_cache_spec.block_size, vllm_config.model_config.dtype
    return frozenset(layers[name].impl.variant(layers[name], size, dtype) for name in layer_names)
