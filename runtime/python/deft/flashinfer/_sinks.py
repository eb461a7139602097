"""FlashInfer's wrappers with sinks in each run: one logit for each query head, which enters only the denominator and the lse."""

from __future__ import annotations

import functools
from typing import Any

import torch

from ._arguments import check_position_encoding
from ._decode import BatchDecodeWithPagedKVCacheWrapper
from ._prefill import BatchPrefillWithPagedKVCacheWrapper
from ._run import sinks_and_scale


class BatchAttentionWithAttentionSinkWrapper(BatchPrefillWithPagedKVCacheWrapper):
    """Works like flashinfer.BatchAttentionWithAttentionSinkWrapper: `run(q, paged_kv_cache, sinks, sm_scale)`. plan repeats the
    types, heads and windows given here; the values given to plan count."""

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
        pos_encoding_mode: str = "NONE",
        use_fp16_qk_reduction: bool = False,
        q_data_type: Any = torch.bfloat16,
        kv_data_type: Any = torch.bfloat16,
        head_dim_qk: int = 128,
        head_dim_vo: int = 128,
        window_left: int = -1,
    ) -> None:
        check_position_encoding(pos_encoding_mode)
        super().__init__(
            float_workspace_buffer, kv_layout, use_cuda_graph, qo_indptr_buf, paged_kv_indptr_buf, paged_kv_indices_buf,
            paged_kv_last_page_len_buf, custom_mask_buf, mask_indptr_buf, backend,
        )  # fmt: skip
        self._takes_sinks = True


class BatchDecodeWithAttentionSinkWrapper(BatchDecodeWithPagedKVCacheWrapper):
    """Works like flashinfer.BatchDecodeWithAttentionSinkWrapper, for decoding."""

    def __init__(
        self,
        float_workspace_buffer: torch.Tensor,
        kv_layout: str = "NHD",
        backend: str = "auto",
        q_data_type: Any = torch.bfloat16,
        kv_data_type: Any = torch.bfloat16,
        head_dim_qk: int = 128,
        head_dim_vo: int = 128,
        window_left: int = -1,
        **kwargs: Any,
    ) -> None:
        super().__init__(float_workspace_buffer, kv_layout, use_tensor_cores=True, backend=backend, **kwargs)
        self._takes_sinks = True

    def run(self, q: torch.Tensor, paged_kv_cache: Any, *args: Any, q_scale: Any = None, **more: Any) -> Any:
        sinks, sm_scale = sinks_and_scale(args, more.pop("sinks", None), self._sm_scale)
        if sm_scale != self._sm_scale:
            q_scale = sm_scale / self._sm_scale * (1 if q_scale is None else q_scale)
        return super().run(q, paged_kv_cache, q_scale=q_scale, sinks=sinks, **more)

    run_return_lse = functools.partialmethod(run, return_lse=True)
