"""The classes of an attention backend for vLLM. vLLM imports them when you choose the backend.

Those for models with latent attention are in mla.py."""

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
from .asked import current_config, products_of
from .context import Context, context_of
from .host_tables import listen
from .planner import DeftMetadata, planner_of, variants_of

listen()  # vLLM imports this before its model runner makes block tables

KEPT_AS_IT_IS = ("auto", "float16", "bfloat16")
_KEPT_IN_BYTES = {"fp8": "fp8_e4m3", "fp8_e4m3": "fp8_e4m3", "fp8_e5m2": "fp8_e5m2"}  # as a spec says it


class DeftBackend(AttentionBackend):
    accept_output_buffer: bool = True
    forward_includes_kv_cache_update: bool = False
    supported_dtypes: ClassVar[list[torch.dtype]] = [torch.float16, torch.bfloat16]
    supported_kv_cache_dtypes: ClassVar[list[Any]] = [*KEPT_AS_IT_IS, *_KEPT_IN_BYTES]

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
        """Returns a shape with V next to K in each row of a head, as releases since 0.29 have it by default."""
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
def agree_with_other_ranks() -> None:
    """Makes the ranks agree on configs once, before anything is compiled. All ranks make their builders in the same order."""
    group = get_tp_group()
    if group.world_size > 1:
        agree_on_configs(group.cpu_group)


class DeftMetadataBuilder(AttentionMetadataBuilder[DeftMetadata]):
    _cudagraph_support: ClassVar[AttentionCGSupport] = AttentionCGSupport.UNIFORM_BATCH
    reorder_batch_threshold: int | None = None

    def __init__(self, kv_cache_spec: Any, layer_names: list[str], vllm_config: Any, device: torch.device) -> None:
        super().__init__(kv_cache_spec, layer_names, vllm_config, device)
        agree_with_other_ranks()
        self._planner = planner_of(vllm_config, kv_cache_spec, len(layer_names), device)

    @functools.cached_property
    def _variants(self) -> frozenset[Variant]:
        """The variants of the layers. The layers exist when the first step is planned."""
        return variants_of(self.vllm_config, self.kv_cache_spec, self.layer_names)

    def build_for_cudagraph_capture(self, common_attn_metadata: Any) -> DeftMetadata:
        self._planner.expect_graph(common_attn_metadata)
        return self.build(0, common_attn_metadata)

    def build(self, common_prefix_len: int, common_attn_metadata: Any, fast_build: bool = False) -> DeftMetadata:
        return self._planner.plan(common_attn_metadata, self._variants)


def check_kept(kv_cache_dtype: str, *known: str) -> None:
    if kv_cache_dtype not in known:
        raise outside("kv_cache_dtype", kv_cache_dtype, f"it is one of {', '.join(known)}")


class DeftImpl(AttentionImpl):
    supports_dcp: bool = takes("vLLM", "context_parallel")
    can_return_lse_for_decode: bool = supports_dcp  # to the base e
    supports_mtp_with_cp_non_trivial_interleave_size: bool = supports_dcp  # a plan knows each token's position

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
        refuse_given("a layer of vLLM has no place for a parameter of a spec", alibi_slopes=alibi_slopes)
        if sinks is not None and tuple(sinks.shape) != (num_heads,):
            raise outside("sinks", list(sinks.shape), f"there is one for each of {num_heads} query heads")
        if attn_type != AttentionType.DECODER:
            raise outside("attn_type", attn_type, "a query sees no later token")
        check_kept(kv_cache_dtype, *KEPT_AS_IT_IS, *_KEPT_IN_BYTES)
        self.num_heads, self.head_size, self.scale = num_heads, head_size, float(scale)
        self.num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        self.sliding_window, self.logits_soft_cap = sliding_window, logits_soft_cap
        self.kv_cache_dtype = kv_cache_dtype
        self.kv_sharing_target_layer_name = kv_sharing_target_layer_name
        self._loaded_sinks = sinks
        self._sinks: torch.Tensor | None = None  # in float32, where captured graphs read them
        self._context: Context | None = context_of(current_config())
        if self._context and self.num_kv_heads > 1:
            raise outside("num_kv_heads", self.num_kv_heads, "with context parallelism all heads of a group's ranks read one KV head")
        self._products = products_of(current_config())
        if self._products and _KEPT_IN_BYTES.get(kv_cache_dtype) != self._products:
            raise outside("products", self._products, f"they are made over a cache of that type, and kv_cache_dtype is {kv_cache_dtype}")
        self.supports_quant_query_input = bool(self._products)  # else q keeps its 16 bits

    def process_weights_after_loading(self, act_dtype: torch.dtype) -> None:
        """Copies the sinks in place. When weights are loaded again, captured graphs then read the new ones."""
        if self._loaded_sinks is None:
            return
        if self._sinks is None:
            self._sinks = torch.empty_like(self._loaded_sinks, dtype=torch.float32)
        self._sinks.copy_(self._loaded_sinks)

    def variant(self, layer: Any, page_size: int, dtype: torch.dtype) -> Variant:
        """Returns the variant of `layer`. `dtype` is the type of the output, and of q before it is quantised."""
        word = SPEC_DTYPES[dtype]
        in_bytes = _KEPT_IN_BYTES.get(self.kv_cache_dtype, "")
        return make_variant(
            query_heads=self.num_heads * (self._context.size if self._context else 1),
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
            has_sinks=self._loaded_sinks is not None and self._context is None,
            has_head_scales=bool(in_bytes) and layer._k_scale.numel() > 1,
            is_part=self._context is not None,
            products=self._products,
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
        variant = self.variant(layer, k.shape[1], output.dtype)
        scales = self._scales(layer, variant, q) if variant.has_scales else None
        if self._context is None:
            attn_metadata.steps.run(variant, q, k, v, out, scales=scales, sinks=self._sinks)
        else:
            self._run_part(self._context, attn_metadata, variant, q, k, v, out, scales)
        return output

    def _scales(self, layer: Any, variant: Variant, q: torch.Tensor) -> Scales:
        is_quantized = q.element_size() == 1  # by vLLM
        if variant.has_head_scales:
            return Scales(layer._k_scale * layer._q_scale if is_quantized else layer._k_scale, layer._v_scale)
        # As the host knows them when a graph is captured, for all its replays.
        return Scales(layer._k_scale_float * (layer._q_scale_float if is_quantized else 1.0), layer._v_scale_float)

    def _run_part(
        self,
        context: Context,
        attn_metadata: DeftMetadata,
        variant: Variant,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        out: torch.Tensor,
        scales: Scales | None,
    ) -> None:
        """Runs over this rank's tokens, for the heads of all ranks."""
        part = out.new_empty((q.shape[0], variant.query_heads, self.head_size))
        lse = torch.empty(part.shape[:2], dtype=torch.float32, device=part.device)
        given = None if scales is None else scales._replace(v_scale=None)
        attn_metadata.steps.run(variant, context.gather(q), k, v, part, lse, scales=given)
        merged, lse = context.merge(part, lse)
        if self._sinks is not None:  # of all tokens together
            merged = merged * torch.sigmoid(lse - self._sinks)[..., None]
        if scales is not None and scales.v_scale != 1.0:
            merged = merged * scales.v_scale
        out.copy_(merged)
