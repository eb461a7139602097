"""FlashInfer's wrappers for prompts, and for verifying drafts, over a paged cache."""

from __future__ import annotations

import functools
from typing import Any, Sequence

import torch

from .._adapters.outside import refuse_given
from .._adapters.variant import scale_of, window_of
from ._arguments import as_int32, check_stride_variant, host_ints, lengths_of, split_cache
from ._custom_mask import drafts_of
from ._prefill_wrapper import PrefillWrapper, check_graph_buffers, variant_of
from ._run import older_call_of
from ._visibility import PagedRequests


class BatchPrefillWithPagedKVCacheWrapper(PrefillWrapper):
    """Works like flashinfer.BatchPrefillWithPagedKVCacheWrapper, but reads pages that requests share once.

    A custom mask must be a tree of drafts: each query sees the whole context, and of the last q_len tokens it sees itself and
    its ancestors. On the CPU, plan raises an error for another mask. On a GPU plan does not wait for the mask, and a later run
    or plan raises the error."""

    def __init__(
        self,
        float_workspace_buffer: torch.Tensor,
        kv_layout: str = "NHD",
        use_cuda_graph: bool = False,
        qo_indptr_buf: torch.Tensor | None = None,
        paged_kv_indptr_buf: torch.Tensor | None = None,
        paged_kv_indices_buf: torch.Tensor | None = None,
        paged_kv_last_page_len_buf: torch.Tensor | None = None,
        custom_mask_buf: torch.Tensor | None = None,
        mask_indptr_buf: torch.Tensor | None = None,
        backend: str = "auto",
        jit_args: Sequence[Any] | None = None,
        jit_kwargs: dict[str, Any] | None = None,
        variant_owns_mask: bool = False,
        max_total_num_rows: int | None = None,
    ) -> None:
        masks = custom_mask_buf, mask_indptr_buf
        super().__init__(float_workspace_buffer, kv_layout, use_cuda_graph, backend, jit_args, variant_owns_mask, *masks)
        if max_total_num_rows is not None:
            if not use_cuda_graph:
                raise ValueError("max_total_num_rows is for wrappers with use_cuda_graph")
            if not isinstance(max_total_num_rows, int) or max_total_num_rows < 0:
                raise ValueError(f"max_total_num_rows is {max_total_num_rows!r}, it must be a whole number, not negative")
            self._most_queries = max_total_num_rows
        self._pages: torch.Tensor | None = None
        self._batch_size = 0  # of graphs
        if use_cuda_graph:
            check_graph_buffers(
                qo_indptr_buf=qo_indptr_buf,
                paged_kv_indptr_buf=paged_kv_indptr_buf,
                paged_kv_indices_buf=paged_kv_indices_buf,
                paged_kv_last_page_len_buf=paged_kv_last_page_len_buf,
            )
            assert qo_indptr_buf is not None and paged_kv_indptr_buf is not None and paged_kv_last_page_len_buf is not None
            self._batch_size, self._pages = len(qo_indptr_buf) - 1, paged_kv_indices_buf
            for name, buffer, size in (
                ("paged_kv_indptr_buf", paged_kv_indptr_buf, self._batch_size + 1),
                ("paged_kv_last_page_len_buf", paged_kv_last_page_len_buf, self._batch_size),
            ):
                if len(buffer) != size:
                    raise ValueError(f"{name} has {len(buffer)} entries, it must have {size}")

    def workspace_size(self, *args: Any, **kwargs: Any) -> tuple[int, int]:
        """Returns (0, 0), the bytes of both workspaces: deft writes nothing there. The arguments are plan's; plan checks them."""
        return 0, 0

    def plan(
        self,
        qo_indptr: torch.Tensor,
        paged_kv_indptr: torch.Tensor,
        paged_kv_indices: torch.Tensor,
        paged_kv_last_page_len: torch.Tensor,
        num_qo_heads: int,
        num_kv_heads: int,
        head_dim_qk: int,
        page_size: int,
        head_dim_vo: int | None = None,
        custom_mask: torch.Tensor | None = None,
        packed_custom_mask: torch.Tensor | None = None,
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
        o_data_type: Any = None,
        non_blocking: bool = True,
        prefix_len_ptr: torch.Tensor | None = None,
        token_pos_in_items_ptr: torch.Tensor | None = None,
        token_pos_in_items_len: int = 0,
        max_item_len_ptr: torch.Tensor | None = None,
        seq_lens: torch.Tensor | None = None,
        seq_lens_q: torch.Tensor | None = None,
        block_tables: torch.Tensor | None = None,
        max_token_per_sequence: int | None = None,
        max_sequence_kv: int | None = None,
        fixed_split_size: int | None = None,
        disable_split_kv: bool = False,
        uniform_q_len: int | None = None,
        use_token_head_sf: bool = False,
    ) -> None:
        """Plans the requests of the step. Like FlashInfer's plan, it waits for arguments on a GPU, except for a mask, and
        cannot be captured. If it raises an error, runs and replays still use the step before. Ignored arguments say how
        FlashInfer computes, or repeat others."""
        items = {"prefix_len_ptr": prefix_len_ptr, "token_pos_in_items_ptr": token_pos_in_items_ptr}
        refuse_given("items of a prompt do not hide each other", **items, max_item_len_ptr=max_item_len_ptr)
        refuse_given("the pages are those of paged_kv_indptr and paged_kv_indices", block_tables=block_tables)
        variant = variant_of(
            num_qo_heads, num_kv_heads, head_dim_qk, head_dim_vo, page_size, self._kv_layout, pos_encoding_mode, sm_scale,
            window_left, logits_soft_cap, q_data_type, kv_data_type, o_data_type, use_token_head_sf, self._takes_sinks,
        )  # fmt: skip
        is_invariant = bool(disable_split_kv) or fixed_split_size not in (None, -1)
        is_masked = self._check_mask(custom_mask, packed_custom_mask, is_invariant)
        queries, indptr = host_ints("qo_indptr", qo_indptr), host_ints("paged_kv_indptr", paged_kv_indptr)
        lengths = lengths_of(indptr, host_ints("paged_kv_last_page_len", paged_kv_last_page_len), page_size)
        self._check_queries(queries, len(lengths))
        given = as_int32("paged_kv_indices", paged_kv_indices)
        self._check_fits(len(lengths), len(given))
        pages = given.to(self.device).contiguous() if self._pages is None else self._pages[: len(given)]
        requests = PagedRequests(pages, given.cpu().contiguous(), indptr, lengths, queries)
        if is_masked:
            counts = queries.diff()
            drafts = drafts_of(custom_mask, packed_custom_mask, counts, lengths, self.device, has_padding=self._use_cuda_graph)
            requests = requests._replace(drafts=drafts)
        tokens = 0 if self._pages is None else len(self._pages) * page_size
        self._plan(requests, variant, causal, is_invariant, tokens)
        # Now that nothing can be refused: until here a replay is one of the step before.
        if self._pages is not None and pages.data_ptr() != given.data_ptr():
            pages.copy_(given)

    begin_forward = plan

    def _check_fits(self, batch_size: int, index_count: int) -> None:
        if self._pages is None:
            return
        if batch_size != self._batch_size:
            raise ValueError(f"there are {batch_size} requests, the wrapper for CUDA graphs was made for {self._batch_size}")
        if index_count > len(self._pages):
            raise ValueError(f"paged_kv_indices has {index_count} entries, paged_kv_indices_buf has {len(self._pages)}")

    def prewarm_paged_kv_stride_variant(self, variant: str = "independent") -> None:
        """Checks its arguments; there is nothing to load."""
        check_stride_variant(variant, self._variant is not None)

    def run(
        self,
        q: torch.Tensor,
        paged_kv_cache: Any,
        *args: Any,
        q_scale: Any = None,
        k_scale: Any = None,
        v_scale: Any = None,
        out: torch.Tensor | None = None,
        lse: torch.Tensor | None = None,
        return_lse: bool = False,
        lse_base: str = "log2",
        lse_layout: str = "NH",
        enable_pdl: bool | None = None,
        window_left: int | None = None,
        sinks: torch.Tensor | None = None,
        kv_cache_sf: Any = None,
        skip_softmax_threshold_scale_factor: float | None = None,
        use_fp16_softmax: bool | None = None,
        uses_spcompress: bool | None = None,
    ) -> Any:
        """Returns out, or (out, lse) if `return_lse` is set. `sinks`: one logit for each query head; it enters only the
        denominator and the lse."""
        variant = self._planned()
        refuse_given("no token is left out", skip_softmax_threshold_scale_factor=skip_softmax_threshold_scale_factor)
        refuse_given("scales of blocks of a cache are not read", kv_cache_sf=kv_cache_sf)
        refuse_given("they are of kernels for other GPUs", use_fp16_softmax=use_fp16_softmax, uses_spcompress=uses_spcompress)
        if window_left is not None and window_of(window_left) != variant.window_left:
            raise ValueError(f"window_left is {window_left}, it was planned as {variant.window_left}")
        sinks, sm_scale = self._sinks_and_scale(args, sinks)
        scale = scale_of(sm_scale, variant.head_dim, q_scale, k_scale)
        k, v = split_cache(paged_kv_cache, self._kv_layout)
        return self._run(
            variant, self._causal, scale, q, k, v, v_scale, out, lse, return_lse, sinks, lse_base, lse_layout
        )  # fmt: skip

    run_return_lse = functools.partialmethod(run, return_lse=True)

    def forward(
        self,
        q: torch.Tensor,
        paged_kv_cache: Any,
        causal: bool = False,
        pos_encoding_mode: str = "NONE",
        use_fp16_qk_reduction: bool = False,
        k_scale: Any = None,
        v_scale: Any = None,
        window_left: int = -1,
        logits_soft_cap: float | None = None,
        sm_scale: float | None = None,
        rope_scale: float | None = None,
        rope_theta: float | None = None,
        return_lse: bool = False,
    ) -> Any:
        """Runs by the older call. It repeats plan's causality, window, cap and scale; the values given here count."""
        variant = older_call_of(self._planned(), pos_encoding_mode, window_left, logits_soft_cap)
        scale = scale_of(sm_scale, variant.head_dim, k_scale)
        return self._run(variant, causal, scale, q, *split_cache(paged_kv_cache, self._kv_layout), v_scale, return_lse=return_lse)

    forward_return_lse = functools.partialmethod(forward, return_lse=True)
