"""SGLang's batches as what deft plans with. Knows SGLang's types by their attributes alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from .._adapters.draft_masks import room_for_drafts, speaking_of_masks
from .._adapters.dtypes import CACHE_DTYPES, SPEC_DTYPES
from .._adapters.outside import outside
from .._adapters.steps import PagedWork, Room, Steps
from .._adapters.variant import Scales, Variant, make_latent_variant, make_variant
from .._batch_inputs import BlockTable, read_block_table
from .foreseen import MOST_ENTRIES, Expected, Foreseen, Reading, pages_of_longest
from .forwards import Forwards
from .verify import words_for


def _words_of(layer: Any, dtype: torch.dtype, cache_dtype: torch.dtype) -> tuple[str, str]:
    """The types of q and of the cache, once nothing about the layer is outside of what any attention here takes."""
    if layer.is_cross_attention:
        raise outside("is_cross_attention", True, "a layer sees its own request")
    if getattr(layer.attn_type, "value", layer.attn_type) != "decoder":
        raise outside("attn_type", layer.attn_type, "a query sees no later token")
    if layer.logit_cap and layer.logit_capping_method != "tanh":
        raise outside("logit_capping_method", layer.logit_capping_method, "a cap is that of tanh")
    if getattr(layer, "xai_temperature_len", -1) > 0:
        raise outside("xai_temperature_len", layer.xai_temperature_len, "a score does not depend on how long a request is")
    if dtype not in SPEC_DTYPES:
        raise outside("dtype", dtype, "q is float16 or bfloat16")
    in_bytes = CACHE_DTYPES.get(cache_dtype, "")
    if cache_dtype != dtype and not in_bytes:
        raise outside("kv_cache_dtype", cache_dtype, f"K and V are of q's type, {dtype}, or 8-bit floats")
    return SPEC_DTYPES[dtype], in_bytes


def latent_variant_of(layer: Any, page_size: int, dtype: torch.dtype, cache_dtype: torch.dtype) -> Variant:
    """Of a RadixAttention over latent caches, q of `dtype`. SGLang writes them without scales."""
    word, in_bytes = _words_of(layer, dtype, cache_dtype)
    if layer.tp_k_head_num != 1:
        why = "K and V are latent; for prompts with expanded ones choose another --prefill-attention-backend"
        raise outside("num_kv_heads", layer.tp_k_head_num, why)
    for name, value in {"logit_cap": layer.logit_cap, "sliding_window_size": max(layer.sliding_window_size or 0, 0)}.items():
        if value:
            raise outside(name, value, "latent attention has none")
    return make_latent_variant(
        query_heads=layer.tp_q_head_num,
        latent_dim=layer.v_head_dim,
        rope_dim=layer.qk_head_dim - layer.v_head_dim,
        page_size=page_size,
        dtype=word,
        output_dtype=word,
        sm_scale=layer.scaling,
        cache_dtype=in_bytes,
    )


def variant_of(
    layer: Any, page_size: int, dtype: torch.dtype, cache_dtype: torch.dtype, has_sinks: bool = False
) -> Variant:
    """Of a RadixAttention, q of `dtype`."""
    if layer.v_head_dim != layer.qk_head_dim:
        raise outside("v_head_dim", layer.v_head_dim, f"V is as wide as K, {layer.qk_head_dim}")
    word, in_bytes = _words_of(layer, dtype, cache_dtype)
    return make_variant(
        query_heads=layer.tp_q_head_num,
        kv_heads=layer.tp_k_head_num,
        head_dim=layer.qk_head_dim,
        page_size=page_size,
        kv_layout="NHD",
        dtype=word,
        output_dtype=word,
        sm_scale=layer.scaling,
        logits_soft_cap=layer.logit_cap,
        # SGLang counts the tokens before the query's own.
        window_left=-1 if layer.sliding_window_size is None else layer.sliding_window_size,
        cache_dtype=in_bytes,
        has_scales=bool(in_bytes),
        has_sinks=has_sinks,
    )


def scales_of(layer: Any) -> Scales:
    """Of a RadixAttention over an 8-bit cache, as the host knows them; without any, elements were written as they are."""

    def known(name: str) -> float:
        number = getattr(layer, f"{name}_float", None)
        if number is None and getattr(layer, name, None) is not None:
            raise outside(name, "a tensor", f"its number is not in {name}_float, and a step does not wait for the device")
        return 1.0 if number is None else float(number)

    return Scales(known("k_scale"), known("v_scale"))


class Planner:
    """The steps that run eagerly, and those that replay a graph, of each size and number of drafts one."""

    def __init__(
        self, device: torch.device, req_to_token: torch.Tensor, page_size: int, tokens: int, forwards: Forwards
    ) -> None:
        self._device, self._page_size, self._tokens, self._forwards = device, page_size, tokens, forwards
        # Of the slots of each token, a row for each place of a request, those of the first tokens of pages.
        self._first_slots = req_to_token[:, ::page_size]
        self._eager, self._eager_verify = Steps(device), Steps(device)
        self._of_graphs: dict[tuple[int, int], Steps] = {}  # by requests, and drafts of each; 0: they decode
        self._decoding: dict[int, _Decoding] = {}  # by requests
        self._pages: torch.Tensor | None = None  # where captured runs read them
        self._arriving: torch.Tensor | None = None  # page-locked memory for them
        self.own_mask: torch.Tensor | None = None  # into which SGLang writes what drafts see

    def make_room(self, most_requests: int) -> None:
        """Before graphs are captured."""
        shape = (most_requests, self._first_slots.shape[1])
        self._pages = torch.zeros(shape, dtype=torch.int32, device=self._device)
        if self._pages.is_cuda:
            most = min(self._pages.numel(), MOST_ENTRIES)
            self._arriving = torch.empty(most, dtype=torch.int32, pin_memory=True)

    def _table(self, rows: torch.Tensor, lengths: np.ndarray[Any, Any]) -> torch.Tensor:
        table = self._first_slots[:, : pages_of_longest(lengths, self._page_size)].index_select(0, rows)
        return (table if self._page_size == 1 else table.floor_divide_(self._page_size)).to(torch.int32)

    def plan(self, rows: torch.Tensor, lengths: torch.Tensor, query_counts: Any = None) -> Steps:
        """A step that runs eagerly: of each request one query, or as many as `query_counts` says, of its last tokens."""
        known = lengths.cpu().numpy().astype(np.int32)
        starts = None
        if query_counts is not None:
            counts = torch.as_tensor(query_counts, dtype=torch.int32).cpu()
            starts = torch.zeros(len(counts) + 1, dtype=torch.int32)
            torch.cumsum(counts, 0, out=starts[1:])
        self._eager.plan(PagedWork(self._table(rows, known), None, known, starts))
        return self._eager

    def plan_verify(self, rows: torch.Tensor, lengths: torch.Tensor, spec_info: Any) -> Steps:
        """The same of drafts behind `lengths` tokens of each request."""
        known, count = lengths.cpu().numpy().astype(np.int32), int(spec_info.draft_token_num)
        work = PagedWork(self._table(rows, known + count), None, known)
        return self._plan_drafts(self._eager_verify, work, spec_info)

    def _plan_drafts(self, steps: Steps, work: PagedWork, spec_info: Any) -> Steps:
        bits = words_for(spec_info, work.lengths, self._device, self.own_mask)
        counts = np.full(len(work.lengths), spec_info.draft_token_num, np.int32)
        with speaking_of_masks():
            steps.check_drafts()  # of the step before: of this one nobody waits for the device
            steps.plan(work._replace(drafts=counts, bits=bits))
        return steps

    def plan_graph(self, rows: torch.Tensor, lengths: torch.Tensor, spec_info: Any = None) -> Steps:
        """A step of the graph of its size, which is captured or replayed behind it. One query of each request, or the drafts of a
        verify input behind its `lengths` tokens."""
        assert self._pages is not None
        known, size = lengths.cpu().numpy().astype(np.int32), len(lengths)
        if spec_info is None:
            return self._plan_decoding(rows, known)
        drafts = int(spec_info.draft_token_num)
        table = self._table(rows, known + drafts)
        pages = self._pages[:size, : table.shape[1]]
        steps = self._steps_of(size, drafts)
        # What planning reads, laid out as `pages`, which change when nothing can be refused any more.
        on_host = torch.empty((size, self._pages.shape[1]), dtype=torch.int32)[:, : table.shape[1]].copy_(table)
        self._plan_drafts(steps, PagedWork(pages, None, known, host_pages=on_host), spec_info)
        pages.copy_(table)
        return steps

    def _steps_of(self, size: int, drafts: int) -> Steps:
        if (size, drafts) not in self._of_graphs:
            # Rows that fill a graph up are of a page beside those of the pool, and have drafts of their own.
            tokens = self._tokens + self._page_size + size * drafts
            room = room_for_drafts(size, size * drafts, tokens, drafts) if drafts else Room(size, size, tokens)
            self._of_graphs[size, drafts] = Steps(self._device, room)
        return self._of_graphs[size, drafts]

    def _plan_decoding(self, rows: torch.Tensor, lengths: np.ndarray[Any, Any]) -> Steps:
        assert self._pages is not None
        size, steps = len(lengths), self._steps_of(len(lengths), 0)
        if size not in self._decoding:
            past_the_pool = -(-self._tokens // self._page_size) + 2
            self._decoding[size] = _Decoding(Foreseen(self._page_size, size, self._pages.shape[1], past_the_pool))
        decoding, forwards, width = self._decoding[size], self._forwards, pages_of_longest(lengths, self._page_size)
        if decoding.pages is None or decoding.pages.shape[1] != width:
            decoding.pages, decoding.first_slots = self._pages[:size, :width], self._first_slots[:, :width]
        foreseen, pages = decoding.foreseen, decoding.pages
        expected = foreseen.foresee(lengths, forwards)
        if expected is not None and expected.is_certain and decoding.plans_ahead(steps, pages, lengths, expected):
            foreseen.go_on(lengths, forwards)
            if expected.begins_pages:  # else they are those of the step before
                torch.index_select(decoding.first_slots, 0, rows, out=pages)
                if self._page_size > 1:
                    pages.floor_divide_(self._page_size)
            return steps
        table = self._table(rows, lengths)
        reading = Reading(table, self._arriving)  # asked for before planning, which goes on while it travels
        is_planned = expected is not None and not expected.is_certain and decoding.plans_ahead(steps, pages, lengths, expected)
        known = reading.wait()
        if not (is_planned and foreseen.is_right(lengths, known, forwards)):
            try:
                steps.plan(PagedWork(decoding.table_of(pages, foreseen.learn(lengths, known, forwards)), None, lengths))
            except BaseException:
                foreseen.forget()
                raise
        pages.copy_(table)
        return steps


class _Decoding:
    """The steps of one graph of decoding. It keeps views of memory as long as their shapes stay, since making one costs as much as
    planning."""

    def __init__(self, foreseen: Foreseen) -> None:
        self.foreseen = foreseen
        self.pages: torch.Tensor | None = None  # as wide as the longest request of the last step
        self.first_slots: torch.Tensor | None = None  # so many of each place
        self._table: BlockTable | None = None
        self._of: tuple[torch.Tensor, torch.Tensor] | None = None  # what `_table` was read from

    def table_of(self, pages: torch.Tensor, known: torch.Tensor) -> BlockTable:
        """`known`: what the host takes `pages` to hold."""
        if self._table is None or self._of is None or self._of[0] is not pages or self._of[1] is not known:
            self._table, self._of = read_block_table(pages, None, known), (pages, known)
        return self._table

    def plans_ahead(self, steps: Steps, pages: torch.Tensor, lengths: np.ndarray[Any, Any], expected: Expected) -> bool:
        """While the GPU is busy with the step before. Where it fails, the table that is read decides: it may be of requests that
        are none."""
        try:
            steps.plan(PagedWork(self.table_of(pages, expected.table), None, lengths, grows=expected.is_certain))
        except Exception:
            return False
        return True
