"""The common part of FlashInfer's wrappers for prompts, over paged and over ragged K and V."""

from __future__ import annotations

import math
from typing import Any, Sequence

import torch

from .._adapters.outside import outside, refuse_given
from .._adapters.steps import Room
from .._adapters.variant import Variant, make_variant
from ._arguments import (
    cache_word,
    check_backend,
    check_layout,
    check_position_encoding,
    check_workspace,
    dtype_word,
    first_of,
    one_dtype_word,
)
from ._run import check_lse_words, run_scaled, sinks_and_scale
from ._visibility import Plans, Requests


class PrefillWrapper:
    """The common part of both wrappers. Only the workspace's device matters."""

    def __init__(
        self,
        float_workspace_buffer: torch.Tensor,
        kv_layout: str,
        use_cuda_graph: bool,
        backend: str,
        jit_args: Sequence[Any] | None,
        variant_owns_mask: bool,
        custom_mask_buf: torch.Tensor | None = None,
        mask_indptr_buf: torch.Tensor | None = None,
    ) -> None:
        check_backend(backend)
        self._takes_sinks = jit_args is not None and len(jit_args) > 11 and jit_args[11] == "AttentionSink"
        if not self._takes_sinks:
            refuse_given("specs take the place of FlashInfer's kernels", jit_args=jit_args)
        refuse_given("specs take the place of FlashInfer's kernels", variant_owns_mask=variant_owns_mask)
        check_workspace("float_workspace_buffer", float_workspace_buffer)
        self._kv_layout = check_layout(kv_layout)
        self._use_cuda_graph = use_cuda_graph
        self._is_masked = custom_mask_buf is not None and mask_indptr_buf is not None  # where graphs are captured
        self._custom_mask_buf = custom_mask_buf  # engines look at it, too
        self.device = float_workspace_buffer.device
        self._plans = Plans(self.device, use_cuda_graph)
        self._variant: Variant | None = None
        self._sm_scale = 0.0  # of the plan; the attention may be of another one, which runs make up for
        self._causal = False
        self._queries = 0
        self._most_queries: int | None = None  # of a captured graph
        self._was_captured = False  # since the last plan

    @property
    def is_cuda_graph_enabled(self) -> bool:
        return self._use_cuda_graph

    @property
    def _window_left(self) -> int:
        """The planned window. Engines read this attribute and the next."""
        return self._planned().window_left

    @property
    def _logits_soft_cap(self) -> float:
        return self._planned().soft_cap

    def reset_workspace_buffer(self, float_workspace_buffer: torch.Tensor, int_workspace_buffer: torch.Tensor) -> None:
        """Checks its arguments; deft writes nothing to the workspace."""
        check_workspace("float_workspace_buffer", float_workspace_buffer)
        check_workspace("int_workspace_buffer", int_workspace_buffer)

    def end_forward(self) -> None:
        """Does nothing, like FlashInfer's."""

    def _check_queries(self, query_indptr: torch.Tensor, requests: int) -> int:
        """Checks qo_indptr and returns the number of queries."""
        if len(query_indptr) != requests + 1:
            raise ValueError(f"qo_indptr has {len(query_indptr)} entries, there must be {requests + 1} for {requests} requests")
        if int(query_indptr[0]) != 0:
            raise ValueError(f"qo_indptr begins with {int(query_indptr[0])}, it must begin with 0")
        request = first_of(query_indptr.diff() < 0)
        if request is not None:
            ends = [int(end) for end in query_indptr[request : request + 2]]
            raise ValueError(f"request {request}: its queries go from {ends[0]} to {ends[1]}, qo_indptr must not fall")
        count = int(query_indptr[-1])
        if self._use_cuda_graph and self._most_queries is not None and count > self._most_queries:
            raise ValueError(f"qo_indptr has {count} queries, the wrapper for CUDA graphs has room for {self._most_queries}")
        return count

    def _check_mask(self, mask: torch.Tensor | None, packed: torch.Tensor | None, is_invariant: bool) -> bool:
        """Checks the mask and returns whether there is one."""
        if mask is None and packed is None:
            if self._use_cuda_graph and self._is_masked:
                raise ValueError("custom_mask is None, and the wrapper for CUDA graphs was made with custom_mask_buf")
            return False
        if self._use_cuda_graph and not self._is_masked:
            raise ValueError("custom_mask_buf and mask_indptr_buf must be tensors where use_cuda_graph is set and a mask is given")
        if is_invariant:
            raise outside("custom_mask", "Tensor", "with disable_split_kv or fixed_split_size")
        return True

    def _plan(self, requests: Requests, variant: Variant, causal: bool, is_invariant: bool, tokens: int) -> None:
        """Plans the step. `tokens`: the most tokens of a graph's steps."""
        try:
            self._plans.check_mask()
        except NotImplementedError:
            if not self._was_captured:  # engines capture with masks that say nothing, and nobody reads what comes of them
                raise
        count = int(requests.query_indptr[-1])
        most = count if self._most_queries is None else self._most_queries
        planned = variant.at_scale_of(self._variant)
        room = Room(len(requests.lengths), most, tokens)
        self._plans.plan(requests, planned, causal, variant.scale, is_invariant, room)
        self._variant, self._sm_scale, self._causal, self._queries = planned, variant.scale, causal, count
        self._most_queries, self._was_captured = most, False

    def _planned(self) -> Variant:
        if self._variant is None:
            raise RuntimeError("nothing is planned yet: call plan before run")
        return self._variant

    def _sinks_and_scale(self, arguments: tuple[Any, ...], sinks: torch.Tensor | None) -> tuple[torch.Tensor | None, float]:
        """Returns the sinks and the scale of a run. A wrapper with sinks receives both as additional arguments of FlashInfer's
        kernels."""
        if not self._takes_sinks:
            if arguments:
                raise outside("args", arguments, "they are those of kernels that jit_args make")
            return sinks, self._sm_scale
        return sinks_and_scale(arguments, sinks, self._sm_scale)

    def _run(
        self,
        variant: Variant,
        causal: bool,
        scale: float,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        v_scale: Any,
        out: torch.Tensor | None = None,
        lse: torch.Tensor | None = None,
        return_lse: bool = False,
        sinks: torch.Tensor | None = None,
        lse_base: str = "log2",
        lse_layout: str = "NH",
    ) -> Any:
        check_lse_words(lse_base, lse_layout)
        if len(q) != self._queries:
            raise ValueError(f"q has {len(q)} rows, qo_indptr[-1] is {self._queries}")
        if not self._use_cuda_graph:
            self._plans.check_mask()
        elif q.is_cuda and torch.cuda.is_current_stream_capturing():
            self._was_captured = True
        factor = variant.factor_to(scale)
        steps, variant = self._plans.of(variant, causal)
        base = 2 if lse_base == "log2" else math.e
        if lse_layout == "NH" or not (return_lse or lse is not None):
            return run_scaled(steps, variant, q, k, v, out, lse, return_lse, factor, v_scale, sinks, base)
        out, own = run_scaled(steps, variant, q, k, v, out, None, True, factor, v_scale, sinks, base)
        turned = own.t().contiguous() if lse is None else lse.copy_(own.t())
        return (out, turned) if return_lse else out


def variant_of(
    num_qo_heads: int,
    num_kv_heads: int,
    head_dim_qk: int,
    head_dim_vo: int | None,
    page_size: int,
    kv_layout: str,
    pos_encoding_mode: str,
    sm_scale: float | None,
    window_left: int,
    logits_soft_cap: float | None,
    q_data_type: Any,
    kv_data_type: Any,
    o_data_type: Any,
    use_token_head_sf: bool,
    has_sinks: bool,
) -> Variant:
    """Returns the variant for plan's arguments."""
    check_position_encoding(pos_encoding_mode)
    refuse_given("scales of tokens are not read", use_token_head_sf=use_token_head_sf)
    dtype = one_dtype_word(q_data_type, kv_data_type)
    variant = make_variant(
        query_heads=num_qo_heads,
        kv_heads=num_kv_heads,
        head_dim=head_dim_qk,
        head_dim_vo=head_dim_vo,
        page_size=page_size,
        kv_layout=kv_layout,
        dtype=dtype,
        cache_dtype=cache_word(kv_data_type),
        output_dtype=dtype if o_data_type is None else dtype_word("o_data_type", o_data_type),
        sm_scale=sm_scale,
        logits_soft_cap=logits_soft_cap,
        window_left=window_left,
        has_scales=bool(cache_word(kv_data_type)),
    )
    return variant.sinking if has_sinks else variant


def check_graph_buffers(**buffers: torch.Tensor | None) -> None:
    """Checks the buffers that FlashInfer requires of a wrapper for CUDA graphs."""
    for name, buffer in buffers.items():
        if not isinstance(buffer, torch.Tensor):
            raise ValueError(f"{name} should be a torch.Tensor in CUDA graph mode")
