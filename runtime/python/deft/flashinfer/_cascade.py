"""FlashInfer's wrapper for shared prefixes that the caller declares."""

from __future__ import annotations

from itertools import accumulate
from typing import Any, NamedTuple, Sequence

import torch

from .._adapters.outside import outside
from .._adapters.steps import Room, Steps, TreeWork
from .._adapters.variant import Variant, make_variant, window_of
from .._tree import Tree
from ._arguments import (
    as_int32,
    cache_word,
    check_layout,
    check_position_encoding,
    check_stride_variant,
    check_workspace,
    host_ints,
    lengths_of,
    one_dtype_word,
)
from ._run import run as run_step


class _Level(NamedTuple):
    """Groups of queries, and the tokens that each group shares; on the host."""

    queries: list[int]  # group g has those from queries[g] on
    pages: list[int]  # and the pages from pages[g] on
    tokens: list[int]
    first_page: int  # of the level, among all levels' pages

    def location(self, group: int, page_size: int) -> int:
        return (self.first_page + self.pages[group]) * page_size


def _level_of(
    queries: torch.Tensor,
    indptr: torch.Tensor,
    indices: torch.Tensor,
    last_page_len: torch.Tensor,
    page_size: int,
    first_page: int,
) -> _Level:
    on_host = host_ints("paged_kv_indptr", indptr)
    pages = on_host.tolist()
    if len(queries) != len(pages):
        raise ValueError(f"qo_indptr has {len(queries)} entries, paged_kv_indptr has {len(pages)}")
    # Behind a level's pages lie those of the next one.
    if pages != sorted(pages) or min(pages) < 0 or max(pages) > len(indices):
        goes = f"paged_kv_indptr goes from {min(pages)} to {max(pages)}"
        raise ValueError(f"{goes}, it must rise from 0 to at most {len(indices)}, the pages of the level")
    lengths = lengths_of(on_host, host_ints("paged_kv_last_page_len", last_page_len), page_size)
    starts = host_ints("qo_indptr", queries).tolist()
    if starts != sorted(starts) or starts[0] != 0:
        raise ValueError(f"qo_indptr is {starts}, it must rise from 0")
    return _Level(starts, pages, lengths.tolist(), first_page)


class MultiLevelCascadeAttentionWrapper:
    """Works like flashinfer.MultiLevelCascadeAttentionWrapper. The levels form a tree, which is planned as a whole."""

    def __init__(
        self,
        num_levels: int,
        float_workspace_buffer: torch.Tensor,
        kv_layout: str = "NHD",
        use_cuda_graph: bool = False,
        qo_indptr_buf_arr: Sequence[torch.Tensor] | None = None,
        paged_kv_indptr_buf_arr: Sequence[torch.Tensor] | None = None,
        paged_kv_indices_buf_arr: Sequence[torch.Tensor] | None = None,
        paged_kv_last_page_len_buf_arr: Sequence[torch.Tensor] | None = None,
    ) -> None:
        check_workspace("float_workspace_buffer", float_workspace_buffer)
        self._num_levels = num_levels
        self._kv_layout = check_layout(kv_layout)
        self._use_cuda_graph = use_cuda_graph
        self._device = float_workspace_buffer.device
        self._variant: Variant | None = None
        self._sm_scale = 0.0  # of the plan; the attention may be of another one, which runs make up for
        self._steps = Steps(self._device)
        self._buffers: list[tuple[int, int]] = []  # of each level for graphs: most groups, most pages
        self._pages: torch.Tensor | None = None  # of all levels, where captured runs read them
        if use_cuda_graph:
            sizes = []
            for name, buffers in (
                ("paged_kv_last_page_len_buf_arr", paged_kv_last_page_len_buf_arr),
                ("paged_kv_indices_buf_arr", paged_kv_indices_buf_arr),
            ):
                if buffers is None or len(buffers) != num_levels:
                    raise ValueError(f"{name} must have a buffer for each of {num_levels} levels where use_cuda_graph is set")
                sizes.append([len(buffer) for buffer in buffers])
            self._buffers = list(zip(*sizes))
            self._pages = torch.zeros(sum(sizes[1]), dtype=torch.int32, device=self._device)

    @property
    def is_cuda_graph_enabled(self) -> bool:
        return self._use_cuda_graph

    def reset_workspace_buffer(
        self, float_workspace_buffer: torch.Tensor, int_workspace_buffers: Sequence[torch.Tensor]
    ) -> None:
        """Checks its arguments; deft writes nothing to the workspace."""
        check_workspace("float_workspace_buffer", float_workspace_buffer)
        for buffer in int_workspace_buffers:
            check_workspace("int_workspace_buffer", buffer)

    def plan(
        self,
        qo_indptr_arr: Sequence[torch.Tensor],
        paged_kv_indptr_arr: Sequence[torch.Tensor],
        paged_kv_indices_arr: Sequence[torch.Tensor],
        paged_kv_last_page_len: Sequence[torch.Tensor],
        num_qo_heads: int,
        num_kv_heads: int,
        head_dim: int,
        page_size: int,
        causal: bool = False,
        pos_encoding_mode: str = "NONE",
        use_fp16_qk_reduction: bool = False,
        sm_scale: float | None = None,
        window_left: int = -1,
        logits_soft_cap: float | None = None,
        rope_scale: float | None = None,
        rope_theta: float | None = None,
        q_data_type: Any = "float16",
        kv_data_type: Any = None,
    ) -> None:
        """Plans the levels of the step, from the tokens that most queries share to each query's own. `use_fp16_qk_reduction` is
        ignored, because it says how FlashInfer computes. `causal` is about the last level, as in FlashInfer."""
        check_position_encoding(pos_encoding_mode)
        if window_of(window_left) >= 0:
            raise outside("window_left", window_left, "FlashInfer's has a window in each level of its own")
        given = (qo_indptr_arr, paged_kv_indptr_arr, paged_kv_indices_arr, paged_kv_last_page_len)
        for name, arrays in zip(("qo_indptr_arr", "paged_kv_indptr_arr", "paged_kv_indices_arr", "paged_kv_last_page_len"), given):
            if len(arrays) != self._num_levels:
                raise ValueError(f"{name} has {len(arrays)} levels, the wrapper was made for {self._num_levels}")
        dtype = one_dtype_word(q_data_type, kv_data_type)
        variant = make_variant(
            query_heads=num_qo_heads,
            kv_heads=num_kv_heads,
            head_dim=head_dim,
            page_size=page_size,
            kv_layout=self._kv_layout,
            dtype=dtype,
            cache_dtype=cache_word(kv_data_type),
            output_dtype=dtype,
            sm_scale=sm_scale,
            logits_soft_cap=logits_soft_cap,
            window_left=-1,
            has_scales=bool(cache_word(kv_data_type)),
        )
        first_pages = self._first_pages(paged_kv_indices_arr)
        levels = []
        for number, arrays in enumerate(zip(*given)):
            try:
                levels.append(_level_of(*arrays, page_size, first_pages[number]))
            except ValueError as error:
                raise ValueError(f"level {number}: {error}") from None
        indices = [as_int32(f"paged_kv_indices_arr[{number}]", level) for number, level in enumerate(paged_kv_indices_arr)]
        pages = torch.cat([level.to(self._device) for level in indices]) if self._pages is None else self._pages
        tree = tree_of(levels, page_size, causal)
        if self._use_cuda_graph and self._variant is None:
            requests = sum(groups for groups, _ in self._buffers)
            room = Room(requests, tree.query_count, sum(most for _, most in self._buffers) * page_size)
            self._steps = Steps(self._device, room)
        planned = variant.at_scale_of(self._variant)
        self._steps.plan(TreeWork(pages, tree), planned.running_at(variant.scale))
        if self._pages is not None:  # now that nothing can be refused: until here a replay is one of the step before
            for level, first in zip(indices, first_pages):
                self._pages[first : first + len(level)].copy_(level)
        self._variant, self._sm_scale = planned, variant.scale

    def prewarm_paged_kv_stride_variant(self, variant: str = "independent") -> None:
        """Checks its arguments; there is nothing to load."""
        check_stride_variant(variant, self._variant is not None)

    begin_forward = plan

    def _first_pages(self, indices: Sequence[torch.Tensor]) -> list[int]:
        """Returns each level's first page among the pages of all levels. With graphs each level has the room of its buffer."""
        rooms = [len(level) for level in indices]
        if self._pages is not None:
            for number, (level, (_, most)) in enumerate(zip(indices, self._buffers)):
                if len(level) > most:
                    raise ValueError(f"level {number} has {len(level)} pages, its buffer has {most}")
            rooms = [most for _, most in self._buffers]
        return list(accumulate(rooms[:-1], initial=0))

    def run(self, q: torch.Tensor, paged_kv_cache: Any) -> torch.Tensor:
        if self._variant is None:
            raise RuntimeError("nothing is planned yet: call plan before run")
        return run_step(self._steps, self._variant, q, paged_kv_cache, score_scale=self._variant.factor_to(self._sm_scale))

    forward = run

    def end_forward(self) -> None:
        """Does nothing, like FlashInfer's."""


def tree_of(levels: Sequence[_Level], page_size: int, causal: bool) -> Tree:
    """Makes a tree with a node for each group of queries in each level. A group that spans several groups of the level before
    gets a node for each."""
    tree = Tree()
    count = levels[-1].queries[-1]
    cuts = sorted({cut for level in levels for cut in level.queries if cut < count})
    at = [0] * len(levels)
    path: list[tuple[int, int | None]] = []  # of the stretch before: the group of each level, its node
    for begin, end in zip(cuts, [*cuts[1:], count]):
        for number, level in enumerate(levels):
            while at[number] + 1 < len(level.queries) and level.queries[at[number] + 1] <= begin:
                at[number] += 1
        kept = 0
        while kept < len(path) and path[kept][0] == at[kept]:
            kept += 1
        del path[kept:]
        node = path[-1][1] if path else None
        for number in range(kept, len(levels)):
            # A level that ends before this query has nothing for it.
            is_there = at[number] + 1 < len(levels[number].queries)
            tokens = levels[number].tokens[at[number]] if is_there else 0
            if tokens > 0 or (number == len(levels) - 1 and (node is None or causal)):
                location = levels[number].location(at[number], page_size) if tokens else 0
                node = tree.add_root(tokens, location) if node is None else tree.add_child(node, tokens, location)
            path.append((at[number], node))
        assert node is not None
        last = levels[-1]
        own = last.tokens[at[-1]]
        first_seen = own - (last.queries[at[-1] + 1] - last.queries[at[-1]]) + 1
        for query in range(begin, end):
            seen = first_seen + query - last.queries[at[-1]]
            tree.add_query(node, max(seen, 0) if causal and seen < own else None)
    return tree
