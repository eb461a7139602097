"""The classes that vLLM asks a backend for. Imported by vLLM once the backend is chosen."""

from __future__ import annotations

import functools
from typing import Any, ClassVar

import torch
from vllm.distributed import get_tp_group
from vllm.v1.attention.backend import (
    AttentionBackend,
    AttentionCGSupport,
    AttentionImpl,
    AttentionMetadataBuilder,
    AttentionType,
    MultipleOf,
)

from .._adapters.dtypes import SPEC_DTYPES
from .._adapters.outside import outside, refuse_given
from .._adapters.ranks import agree_on_configs
from .._adapters.releases import takes
from .._adapters.variant import Scales, Variant, make_variant
from .host_tables import listen
from .planner import DeftMetadata, Planner

listen()  # vLLM imports this before its model runner makes block tables

_KEPT_AS_IT_IS = ("auto", "float16", "bfloat16")
_KEPT_IN_BYTES = {"fp8": "fp8_e4m3", "fp8_e4m3": "fp8_e4m3", "fp8_e5m2": "fp8_e5m2"}  # as a spec says it


class DeftBackend(AttentionBackend):
    accept_output_buffer: bool = True
    forward_includes_kv_cache_update: bool = False
    supported_dtypes: ClassVar[list[torch.dtype]] = [torch.float16, torch.bfloat16]
    supported_kv_cache_dtypes: ClassVar[list[Any]] = [*_KEPT_AS_IT_IS, *_KEPT_IN_BYTES]

    @staticmethod
    def get_name() -> str:
        return "CUSTOM"  # the member of vLLM's enumeration, by which it finds the backend again

    @staticmethod
    def get_impl_cls() -> type[DeftImpl]:
        return DeftImpl

    @staticmethod
    def get_builder_cls() -> type[DeftMetadataBuilder]:
        return DeftMetadataBuilder

    @staticmethod
    def get_supported_kernel_block_sizes(kv_cache_spec: Any = None) -> list[Any]:
        return [MultipleOf(16)]

    @staticmethod
    def get_kv_cache_shape(
        num_blocks: int, block_size: int, num_kv_heads: int, head_size: int, cache_dtype_str: str = "auto"
    ) -> tuple[int, ...]:
        """V beside K in each row of a head, as releases since 0.29 have it without asking."""
        return (num_blocks, num_kv_heads, block_size, 2 * head_size)

    @staticmethod
    def get_kv_cache_stride_order(include_num_layers_dimension: bool = False) -> tuple[int, ...]:
        from vllm.v1.attention.backends.utils import get_kv_cache_layout  # of the releases that ask

        if include_num_layers_dimension:
            raise NotImplementedError
        return (0, 2, 1, 3) if get_kv_cache_layout() == "NHD" else (0, 1, 2, 3)

    @staticmethod
    def use_cascade_attention(*arguments: Any, **more: Any) -> bool:
        return False  # the planner finds what is shared

    @classmethod
    def supports_head_size(cls, head_size: int) -> bool:
        return head_size % 16 == 0 and 16 <= head_size <= 256

    @classmethod
    def supports_compute_capability(cls, capability: Any) -> bool:
        return capability.major >= 8

    @classmethod
    def supports_attn_type(cls, attn_type: str) -> bool:
        return attn_type == AttentionType.DECODER

    @classmethod
    def supports_sliding_window(cls) -> bool:
        return takes("vLLM", "window")

    @classmethod
    def supports_sink(cls) -> bool:
        return takes("vLLM", "sinks")

    @classmethod
    def supports_alibi_sqrt(cls) -> bool:
        return False

    @classmethod
    def supports_mm_prefix(cls) -> bool:
        return False

    @classmethod
    def supports_non_causal(cls) -> bool:
        return False

    @classmethod
    def supports_per_head_quant_scales(cls) -> bool:
        return takes("vLLM", "fp8_head_scales")

    @classmethod
    def supports_batch_invariance(cls) -> bool:
        return False  # deft's plans can be invariant, but here they are not asked to

    @classmethod
    def supports_kv_connector(cls) -> bool:
        return False

    @classmethod
    def supports_device_cpu_query_lens_mismatch(cls) -> bool:
        return False  # plans are made of the host's lengths


@functools.cache
def _agree_with_other_ranks() -> None:
    """Once, before anything is compiled; all ranks make builders alike."""
    group = get_tp_group()
    if group.world_size > 1:
        agree_on_configs(group.cpu_group)


class DeftMetadataBuilder(AttentionMetadataBuilder[DeftMetadata]):
    _cudagraph_support: ClassVar[AttentionCGSupport] = AttentionCGSupport.UNIFORM_SINGLE_TOKEN_DECODE
    reorder_batch_threshold: int | None = None

    def __init__(self, kv_cache_spec: Any, layer_names: list[str], vllm_config: Any, device: torch.device) -> None:
        super().__init__(kv_cache_spec, layer_names, vllm_config, device)
        own, kept = vllm_config.model_config.dtype, kv_cache_spec.dtype
        if kept != own and kept.itemsize > 1:  # --kv-cache-dtype of another 16-bit type
            raise outside("kv_cache_dtype", kept, f"K and V are of the model's type, {own}, or of 8 bits")
        _agree_with_other_ranks()
        compilation = vllm_config.compilation_config
        mode = compilation.cudagraph_mode
        has_graphs = mode is not None and mode.has_full_cudagraphs()
        scheduler, cache = vllm_config.scheduler_config, vllm_config.cache_config
        tokens = scheduler.max_num_seqs * vllm_config.model_config.max_model_len
        if cache.num_gpu_blocks:
            tokens = min(tokens, cache.num_gpu_blocks * cache.block_size)
        self._planner = Planner(
            device,
            kv_cache_spec.block_size,
            (compilation.cudagraph_capture_sizes or []) if has_graphs else [],
            tokens,
            # With drafts, lengths on the host are those of all drafts being accepted.
            lengths_are_exact=vllm_config.speculative_config is None,
            layers=len(layer_names),
        )

    @functools.cached_property
    def _variants(self) -> frozenset[Variant]:
        """Of the layers, which are there once the first step is planned."""
        layers = self.vllm_config.compilation_config.static_forward_context
        size, dtype = self.kv_cache_spec.block_size, self.vllm_config.model_config.dtype
        return frozenset(layers[name].impl.variant(size, dtype) for name in self.layer_names)

    def build(self, common_prefix_len: int, common_attn_metadata: Any, fast_build: bool = False) -> DeftMetadata:
        return self._planner.plan(common_attn_metadata, self._variants)


class DeftImpl(AttentionImpl):
    supports_dcp: bool = takes("vLLM", "context_parallel")
    can_return_lse_for_decode: bool = False

    def __init__(
        self,
        num_heads: int,
        head_size: int,
        scale: float,
        num_kv_heads: int | None = None,
        alibi_slopes: list[float] | None = None,
        sliding_window: int | None = None,
        kv_cache_dtype: str = "auto",
        logits_soft_cap: float | None = None,
        attn_type: str = AttentionType.DECODER,
        kv_sharing_target_layer_name: str | None = None,
        sinks: torch.Tensor | None = None,
    ) -> None:
        refuse_given("a layer of vLLM has no place for a parameter of a spec", alibi_slopes=alibi_slopes, sinks=sinks)
        if attn_type != AttentionType.DECODER:
            raise outside("attn_type", attn_type, "a query sees no later token")
        if kv_cache_dtype not in _KEPT_AS_IT_IS and kv_cache_dtype not in _KEPT_IN_BYTES:
            known = ", ".join([*_KEPT_AS_IT_IS, *_KEPT_IN_BYTES])
            raise outside("kv_cache_dtype", kv_cache_dtype, f"it is one of {known}")
        self.num_heads, self.head_size, self.scale = num_heads, head_size, float(scale)
        self.num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        self.sliding_window, self.logits_soft_cap = sliding_window, logits_soft_cap
        self.kv_cache_dtype = kv_cache_dtype
        self.kv_sharing_target_layer_name = kv_sharing_target_layer_name

    def variant(self, page_size: int, dtype: torch.dtype) -> Variant:
        """`dtype`: of q."""
        word = SPEC_DTYPES[dtype]
        in_bytes = _KEPT_IN_BYTES.get(self.kv_cache_dtype, "")
        return make_variant(
            query_heads=self.num_heads,
            kv_heads=self.num_kv_heads,
            head_dim=self.head_size,
            page_size=page_size,
            kv_layout="NHD",  # as dimensions stand; strides may be those of the other
            dtype=word,
            output_dtype=word,
            sm_scale=self.scale,
            logits_soft_cap=self.logits_soft_cap,
            # vLLM counts the query's own token.
            window_left=-1 if self.sliding_window is None else self.sliding_window - 1,
            cache_dtype=in_bytes,
            has_scales=bool(in_bytes),
        )

    def _caches(self, kv_cache: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        k, v = kv_cache.transpose(1, 2).split(self.head_size, dim=-1)
        return k, v

    def do_kv_cache_update(self, layer: Any, key: Any, value: Any, kv_cache: torch.Tensor, slot_mapping: Any) -> None:
        from vllm._custom_ops import reshape_and_cache_flash

        k, v = self._caches(kv_cache)
        reshape_and_cache_flash(key, value, k, v, slot_mapping, self.kv_cache_dtype, layer._k_scale, layer._v_scale)

    def forward(
        self,
        layer: Any,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        kv_cache: torch.Tensor,
        attn_metadata: DeftMetadata | None,
        output: torch.Tensor,
        output_scale: torch.Tensor | None = None,
        output_block_scale: torch.Tensor | None = None,
    ) -> torch.Tensor:
        refuse_given("outputs are of 16 bits", output_scale=output_scale, output_block_scale=output_block_scale)
        if attn_metadata is None:  # vLLM looks how much memory a step takes
            return output.fill_(0)
        shape = (-1, self.num_heads, self.head_size)
        k, v = self._caches(kv_cache)
        q = query.view(shape)[: attn_metadata.queries]  # of rows that may have K and V, too
        out = output.view(shape)[: attn_metadata.queries]
        variant = self.variant(k.shape[1], q.dtype)
        # As the host knows them when a graph is captured, for all its replays.
        scales = Scales(layer._k_scale_float, layer._v_scale_float) if variant.has_scales else None
        attn_metadata.steps.run(variant, q, k, v, out, scales=scales)
        return output
