"""FlashInfer's wrapper for prompts and decoding in one batch."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch

from .._adapters.outside import refuse_given
from .._adapters.queries import work_of
from .._adapters.steps import Steps
from .._adapters.variant import Variant, attention_of, make_variant, scale_of, soft_cap_of
from ._arguments import as_int32, cache_word, check_layout, check_stride_variant, host_ints, one_dtype_word
from ._run import run as run_step


class BatchAttention:
    """Works like flashinfer.BatchAttention, but reads pages that requests share once."""

    def __init__(self, kv_layout: str = "NHD", device: Any = "cuda") -> None:
        self._kv_layout = check_layout(kv_layout)
        self._steps = Steps(torch.device(device))
        self._device = torch.device(device)
        self._variant: Variant | None = None
        self._sm_scale = 0.0  # of the plan; the attention may be of another one, which runs make up for

    def plan(
        self,
        qo_indptr: torch.Tensor,
        kv_indptr: torch.Tensor,
        kv_indices: torch.Tensor,
        kv_len_arr: torch.Tensor,
        num_qo_heads: int,
        num_kv_heads: int,
        head_dim_qk: int,
        head_dim_vo: int,
        page_size: int,
        causal: bool = False,
        sm_scale: float | None = None,
        logits_soft_cap: float | None = None,
        q_data_type: Any = torch.bfloat16,
        kv_data_type: Any = torch.bfloat16,
        use_profiler: bool = False,
    ) -> None:
        """Plans the requests of the step. `qo_indptr` gives the queries of each."""
        refuse_given("look at the kernels with a profiler of the GPU", use_profiler=use_profiler)
        dtype = one_dtype_word(q_data_type, kv_data_type)
        variant = make_variant(
            query_heads=num_qo_heads,
            kv_heads=num_kv_heads,
            head_dim=head_dim_qk,
            head_dim_vo=head_dim_vo,
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
        # Where a plan reads it until the next one; FlashInfer's keeps the caller's, too.
        pages = as_int32("kv_indices", kv_indices).to(self._device).contiguous()
        given = {"kv_indptr": kv_indptr, "kv_len_arr": kv_len_arr, "qo_indptr": qo_indptr}
        requests = [host_ints(name, values) for name, values in given.items()]
        work = work_of(attention_of(variant), pages, *requests, causal)
        planned = variant.at_scale_of(self._variant)
        self._steps.plan(work, planned.running_at(variant.scale))
        self._variant, self._sm_scale = planned, variant.scale

    def prewarm_paged_kv_stride_variant(self, variant: str = "independent") -> None:
        """Checks its arguments; there is nothing to load."""
        check_stride_variant(variant, self._variant is not None)

    def run(
        self,
        q: torch.Tensor,
        kv_cache: Any,
        out: torch.Tensor | None = None,
        lse: torch.Tensor | None = None,
        k_scale: Any = None,
        v_scale: Any = None,
        logits_soft_cap: float = 0.0,
        profiler_buffer: torch.Tensor | None = None,
        kv_cache_sf: Any = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns (out, lse); lse is to the base 2. The call waits for a `k_scale` on a GPU."""
        refuse_given("look at the kernels with a profiler of the GPU", profiler_buffer=profiler_buffer)
        refuse_given("scales of blocks of a cache are not read", kv_cache_sf=kv_cache_sf)
        variant = self._variant
        if variant is None:
            raise RuntimeError("nothing is planned yet: call plan before run")
        soft_cap = soft_cap_of(logits_soft_cap)
        if soft_cap > 0:
            if variant.soft_cap <= 0:
                raise ValueError(f"logits_soft_cap is {logits_soft_cap}, it was planned without one")
            variant = dataclasses.replace(variant, soft_cap=soft_cap)
        score_scale = variant.factor_to(scale_of(self._sm_scale, variant.head_dim, k_scale))
        return run_step(self._steps, variant, q, kv_cache, out, lse, True, score_scale, v_scale)
