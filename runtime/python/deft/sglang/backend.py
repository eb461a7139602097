"""The class that SGLang asks a backend for. Imported by SGLang once the backend is chosen."""

from __future__ import annotations

from typing import Any

import torch
from sglang.srt.layers.attention.base_attn_backend import AttentionBackend

from .._adapters.dtypes import CACHE_DTYPES
from .._adapters.latent import query_of
from .._adapters.outside import outside, refuse_given
from .._adapters.steps import Steps
from .._adapters.variant import Scales, Variant
from .forwards import Forwards
from .planner import Planner, latent_variant_of, scales_of, variant_of
from .verify import check_speculation, verify_mask


class DeftAttnBackend(AttentionBackend):
    needs_cpu_seq_lens: bool = True

    def __init__(self, runner: Any) -> None:
        super().__init__()
        check_speculation(runner)
        if hasattr(runner.token_to_kv_pool, "translate_loc_from_full_to_swa"):
            raise outside("disable_hybrid_swa_memory", False, "all layers have the same pages")
        if runner.kv_cache_dtype != runner.dtype and runner.kv_cache_dtype not in CACHE_DTYPES:
            raise outside("kv_cache_dtype", runner.kv_cache_dtype, f"K and V are of the model's type, {runner.dtype}, or 8-bit floats")
        self.page_size = runner.page_size
        self._is_latent = bool(runner.use_mla_backend)
        self.token_to_kv_pool = runner.token_to_kv_pool
        self._device, table = torch.device(runner.device), runner.req_to_token_pool.req_to_token
        self._planner = Planner(self._device, table, runner.page_size, runner.max_total_num_tokens, Forwards(runner))
        self.max_context_len = table.shape[1]  # by which SGLang makes masks, where it does not know lengths
        self._most_drafts = runner.server_args.speculative_num_draft_tokens
        self._verify_mask: Any = None
        self._steps: Steps | None = None
        self._sinks: dict[int, torch.Tensor] = {}  # of layers, where captured graphs read them

    def init_forward_metadata(self, forward_batch: Any) -> None:
        """A step that runs eagerly."""
        mode = forward_batch.forward_mode
        if mode.is_idle():
            return
        lengths = forward_batch.seq_lens_cpu
        lengths = forward_batch.seq_lens if lengths is None else lengths
        rows, counts = forward_batch.req_pool_indices, None
        if mode.is_target_verify():
            self._steps = self._planner.plan_verify(rows, lengths, forward_batch.spec_info)
            return
        if not mode.is_decode_or_idle():
            counts = forward_batch.extend_seq_lens_cpu
            counts = forward_batch.extend_seq_lens if counts is None else counts
        self._steps = self._planner.plan(rows, lengths, counts)

    def init_cuda_graph_state(self, max_bs: int, max_num_tokens: int) -> None:
        self._planner.make_room(max_bs)
        if self._most_drafts is not None:
            self._verify_mask = verify_mask(max_bs, self._most_drafts, self._device)
            self._planner.own_mask = None if self._verify_mask is None else self._verify_mask.buffer

    @property
    def verify_mask(self) -> Any:
        return self._verify_mask

    def update_verify_buffers_to_fill_after_draft(self, spec_info: Any, cuda_graph_bs: int | None) -> None:
        """SGLang calls it where it plans a verify step beside the drafting, and masks came later than the plan."""
        raise outside("SGLANG_ENABLE_OVERLAP_PLAN_STREAM", True, "a verify step is planned when its drafts are there")

    def get_cuda_graph_seq_len_fill_value(self) -> int:
        return 1

    def _plan_graph(self, size: int, mode: Any, rows: torch.Tensor, lengths: torch.Tensor, spec_info: Any) -> None:
        drafted = spec_info if mode.is_target_verify() else None
        if drafted is None and not mode.is_decode_or_idle():
            raise outside("forward_mode", mode, "graphs are of decoding, and of verifying drafts")
        self._steps = self._planner.plan_graph(rows[:size], lengths[:size], drafted)

    def init_forward_metadata_out_graph(self, forward_batch: Any, in_capture: bool = False) -> None:
        """Before a graph is captured or replayed."""
        lengths = forward_batch.seq_lens_cpu
        lengths = forward_batch.seq_lens if lengths is None or in_capture else lengths
        rows, spec_info = forward_batch.req_pool_indices, getattr(forward_batch, "spec_info", None)
        self._plan_graph(forward_batch.batch_size, forward_batch.forward_mode, rows, lengths, spec_info)

    def init_forward_metadata_capture_cuda_graph(
        self, bs: int, num_tokens: int, req_pool_indices: Any, seq_lens: Any, encoder_lens: Any, forward_mode: Any, spec_info: Any
    ) -> None:
        """As the one above, of older releases."""
        self._plan_graph(bs, forward_mode, req_pool_indices, seq_lens, spec_info)

    def init_forward_metadata_replay_cuda_graph(
        self,
        bs: int,
        req_pool_indices: Any,
        seq_lens: Any,
        seq_lens_sum: int,
        encoder_lens: Any,
        forward_mode: Any,
        spec_info: Any,
        seq_lens_cpu: Any = None,
    ) -> None:
        """As the one above, of older releases."""
        lengths = seq_lens if seq_lens_cpu is None else seq_lens_cpu
        self._plan_graph(bs, forward_mode, req_pool_indices, lengths, spec_info)

    def _pages(self, buffer: torch.Tensor, layer: Any) -> torch.Tensor:
        slot = (layer.tp_k_head_num, layer.qk_head_dim)
        if buffer.shape[1:] != slot:  # other layouts of the pool have four dimensions, or five
            raise outside("kv_cache_layout", tuple(buffer.shape), f"a slot of the pool is {list(slot)}, heads by head dim")
        return buffer.view(-1, self.page_size, *slot)

    def _forward(
        self, q: Any, k: Any, v: Any, layer: Any, forward_batch: Any, save_kv_cache: bool = True, sinks: Any = None, **more: Any
    ) -> torch.Tensor:
        if self._is_latent:
            return self._forward_latent(q, k, layer, forward_batch, save_kv_cache, sinks=sinks, **more)
        refuse_given("a layer has no more than its cache", **more)
        if save_kv_cache and k is not None:
            self.token_to_kv_pool.set_kv_buffer(
                layer, forward_batch.out_cache_loc, k, v, layer.k_scale, layer.v_scale
            )
        cached_k, cached_v = (self._pages(buffer, layer) for buffer in self.token_to_kv_pool.get_kv_buffer(layer.layer_id))
        variant = variant_of(layer, self.page_size, q.dtype, cached_k.dtype, sinks is not None)
        rows = q.reshape(-1, layer.tp_q_head_num, layer.qk_head_dim)  # a view, with the strides of the projections
        scales = scales_of(layer) if variant.has_scales else None
        kept = None if sinks is None else self._kept_sinks(sinks, layer)
        return self._run(variant, rows, cached_k, cached_v, scales, kept)

    def _kept_sinks(self, sinks: torch.Tensor, layer: Any) -> torch.Tensor:
        """Copied in each run, and in each replay: SGLang may load weights again, and says so to nobody."""
        if tuple(sinks.shape) != (layer.tp_q_head_num,):
            raise outside("sinks", list(sinks.shape), f"there is one for each of {layer.tp_q_head_num} query heads")
        if layer.layer_id not in self._sinks:
            self._sinks[layer.layer_id] = torch.empty_like(sinks, dtype=torch.float32)
        return self._sinks[layer.layer_id].copy_(sinks)

    def _forward_latent(
        self, q: Any, k: Any, layer: Any, forward_batch: Any, save_kv_cache: bool, q_rope: Any = None, k_rope: Any = None, **more: Any
    ) -> torch.Tensor:
        """The absorbed form, in which q has K's width. `q_rope`, `k_rope`: the rotated columns, where q and k are without them."""
        refuse_given("a layer has no more than its cache", **more)
        buffer = self.token_to_kv_pool.get_key_buffer(layer.layer_id)
        variant = latent_variant_of(layer, self.page_size, q.dtype, buffer.dtype)
        if save_kv_cache and k is not None:
            if k_rope is None:
                self.token_to_kv_pool.set_kv_buffer(layer, forward_batch.out_cache_loc, k, None)
            else:
                self.token_to_kv_pool.set_mla_kv_buffer(layer, forward_batch.out_cache_loc, k, k_rope)
        rows = q.reshape(-1, layer.tp_q_head_num, layer.qk_head_dim if q_rope is None else layer.v_head_dim)
        if q_rope is not None:
            rows = query_of(rows, q_rope.reshape(rows.shape[0], layer.tp_q_head_num, -1))
        return self._run(variant, rows, self._pages(buffer, layer).squeeze(2), None)

    def _run(
        self,
        variant: Variant,
        rows: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor | None,
        scales: Scales | None = None,
        sinks: torch.Tensor | None = None,
    ) -> torch.Tensor:
        assert self._steps is not None
        shape = (*rows.shape[:2], variant.value_dim or variant.head_dim)
        out = torch.empty(shape, dtype=rows.dtype, device=rows.device)
        self._steps.run(variant, rows, k, v, out, scales=scales, sinks=sinks)
        return out.view(rows.shape[0], -1)

    def forward_decode(
        self, q: Any, k: Any, v: Any, layer: Any, forward_batch: Any, save_kv_cache: bool = True, **more: Any
    ) -> torch.Tensor:
        return self._forward(q, k, v, layer, forward_batch, save_kv_cache, **more)

    def forward_extend(
        self, q: Any, k: Any, v: Any, layer: Any, forward_batch: Any, save_kv_cache: bool = True, **more: Any
    ) -> torch.Tensor:
        return self._forward(q, k, v, layer, forward_batch, save_kv_cache, **more)
