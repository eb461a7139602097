"""FlashInfer's wrapper for prompts over K and V that lie request by request."""

from __future__ import annotations

import functools
from typing import Any, Sequence

import torch

from .._adapters.outside import outside, refuse_given
from .._adapters.variant import Variant, scale_of
from ._arguments import cache_word, host_ints
from ._custom_mask import drafts_of
from ._prefill_wrapper import PrefillWrapper, check_graph_buffers, variant_of
from ._run import older_call_of
from ._visibility import PagedRequests, RaggedRequests, Requests


class BatchPrefillWithRaggedKVCacheWrapper(PrefillWrapper):
    """Works like flashinfer.BatchPrefillWithRaggedKVCacheWrapper. Requests share nothing here. With a custom mask or 8-bit
    floats, each token is a page."""

    def __init__(
        self,
        float_workspace_buffer: torch.Tensor,
        kv_layout: str = "NHD",
        use_cuda_graph: bool = False,
        qo_indptr_buf: torch.Tensor | None = None,
        kv_indptr_buf: torch.Tensor | None = None,
        custom_mask_buf: torch.Tensor | None = None,
        mask_indptr_buf: torch.Tensor | None = None,
        backend: str = "auto",
        jit_args: Sequence[Any] | None = None,
        jit_kwargs: dict[str, Any] | None = None,
        variant_owns_mask: bool = False,
    ) -> None:
        super().__init__(float_workspace_buffer, kv_layout, use_cuda_graph, backend, jit_args, variant_owns_mask)
        self._batch_size = 0  # of graphs
        if use_cuda_graph:
            refuse_given("of a ragged wrapper for CUDA graphs", custom_mask_buf=custom_mask_buf)
            check_graph_buffers(qo_indptr_buf=qo_indptr_buf, kv_indptr_buf=kv_indptr_buf)
            assert qo_indptr_buf is not None and kv_indptr_buf is not None
            self._batch_size = len(qo_indptr_buf) - 1
            if len(kv_indptr_buf) != self._batch_size + 1:
                raise ValueError(f"kv_indptr_buf has {len(kv_indptr_buf)} entries, it must have {self._batch_size + 1}")

    def plan(
        self,
        qo_indptr: torch.Tensor,
        kv_indptr: torch.Tensor,
        num_qo_heads: int,
        num_kv_heads: int,
        head_dim_qk: int,
        head_dim_vo: int | None = None,
        custom_mask: torch.Tensor | None = None,
        packed_custom_mask: torch.Tensor | None = None,
        causal: bool = False,
        pos_encoding_mode: str = "NONE",
        use_fp16_qk_reduction: bool = False,
        window_left: int = -1,
        logits_soft_cap: float | None = None,
        sm_scale: float | None = None,
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
        fixed_split_size: int | None = None,
        disable_split_kv: bool = False,
        seq_lens: torch.Tensor | None = None,
        seq_lens_q: torch.Tensor | None = None,
        max_token_per_sequence: int | None = None,
        max_sequence_kv: int | None = None,
        v_indptr: torch.Tensor | None = None,
        o_indptr: torch.Tensor | None = None,
        qo_indptr_cpu: torch.Tensor | None = None,
        kv_indptr_cpu: torch.Tensor | None = None,
        uniform_q_len: int | None = None,
        use_token_head_sf: bool = False,
    ) -> None:
        """Plans the requests of the step, like the paged wrapper's plan. It does not wait for `qo_indptr` and `kv_indptr` on a
        GPU if you pass the host's copies, `qo_indptr_cpu` and `kv_indptr_cpu`."""
        items = {"prefix_len_ptr": prefix_len_ptr, "token_pos_in_items_ptr": token_pos_in_items_ptr}
        refuse_given("items of a prompt do not hide each other", **items, max_item_len_ptr=max_item_len_ptr)
        refuse_given("rows of K, V and the output are those of kv_indptr and qo_indptr", v_indptr=v_indptr, o_indptr=o_indptr)
        is_invariant = bool(disable_split_kv) or fixed_split_size not in (None, -1)
        is_masked = self._check_mask(custom_mask, packed_custom_mask, is_invariant)
        is_paged = is_masked or bool(cache_word(kv_data_type))
        if is_paged and self._use_cuda_graph:
            raise outside("kv_data_type", kv_data_type, "of a ragged wrapper for CUDA graphs")
        variant = variant_of(
            num_qo_heads, num_kv_heads, head_dim_qk, head_dim_vo, int(is_paged), "NHD", pos_encoding_mode, sm_scale,
            window_left, logits_soft_cap, q_data_type, kv_data_type, o_data_type, use_token_head_sf, self._takes_sinks,
        )  # fmt: skip
        queries = host_ints("qo_indptr", qo_indptr if qo_indptr_cpu is None else qo_indptr_cpu)
        starts = host_ints("kv_indptr", kv_indptr if kv_indptr_cpu is None else kv_indptr_cpu)
        self._check(starts, queries)
        requests: Requests = RaggedRequests(starts[:-1], starts.diff(), queries)
        if is_paged:
            pages = torch.arange(int(starts[-1]), dtype=torch.int32)
            requests = PagedRequests(pages.to(self.device), pages, starts, starts.diff(), queries)
            if is_masked:
                drafts = drafts_of(custom_mask, packed_custom_mask, queries.diff(), starts.diff(), self.device)
                requests = requests._replace(drafts=drafts)
        self._plan(requests, variant, causal, is_invariant, int(starts[-1]))

    begin_forward = plan

    def _check(self, starts: torch.Tensor, queries: torch.Tensor) -> None:
        count = len(starts) - 1
        self._check_queries(queries, count)
        if self._use_cuda_graph and count != self._batch_size:
            raise ValueError(f"there are {count} requests, the wrapper for CUDA graphs was made for {self._batch_size}")
        if bool((starts.diff() < 0).any()) or int(starts[0]) < 0:
            raise ValueError(f"kv_indptr is {starts.tolist()}, it must rise and not be negative")

    def _split(self, variant: Variant, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns K and V as the attention reads them."""
        if self._kv_layout == "HND":
            k, v = k.transpose(0, 1), v.transpose(0, 1)
        return (k.unsqueeze(1), v.unsqueeze(1)) if variant.page_size else (k, v)

    def run(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        *args: Any,
        q_scale: float | None = None,
        k_scale: float | None = None,
        v_scale: float | None = None,
        o_scale: float | None = None,
        out: torch.Tensor | None = None,
        lse: torch.Tensor | None = None,
        return_lse: bool = False,
        lse_base: str = "log2",
        lse_layout: str = "NH",
        enable_pdl: bool | None = None,
        kv_cache_sf: Any = None,
    ) -> Any:
        """Returns out, or (out, lse) if `return_lse` is set. As in FlashInfer, scales of K and V count only if these are 8-bit
        floats, and scales of q and the output never count."""
        variant = self._planned()
        refuse_given("scales of blocks of a cache are not read", kv_cache_sf=kv_cache_sf)
        sinks, sm_scale = self._sinks_and_scale(args, None)
        if not variant.cache_dtype:
            k_scale = v_scale = None
        scale = scale_of(sm_scale, variant.head_dim, k_scale)
        k, v = self._split(variant, k, v)
        return self._run(
            variant, self._causal, scale, q, k, v, v_scale, out, lse, return_lse, sinks, lse_base, lse_layout
        )  # fmt: skip

    run_return_lse = functools.partialmethod(run, return_lse=True)

    def forward(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        causal: bool = False,
        pos_encoding_mode: str = "NONE",
        use_fp16_qk_reduction: bool = False,
        window_left: int = -1,
        logits_soft_cap: float | None = None,
        sm_scale: float | None = None,
        rope_scale: float | None = None,
        rope_theta: float | None = None,
        return_lse: bool = False,
    ) -> Any:
        """Runs by the older call. It repeats plan's causality, window, cap and scale; the values given here count."""
        variant = older_call_of(self._planned(), pos_encoding_mode, window_left, logits_soft_cap)
        scale = scale_of(sm_scale, variant.head_dim)
        return self._run(variant, causal, scale, q, *self._split(variant, k, v), None, return_lse=return_lse)

    forward_return_lse = functools.partialmethod(forward, return_lse=True)
