"""The classes of vLLM's backend for models with latent attention (MLA). vLLM imports them when you choose the backend.

Decoding, drafts and short prompts run here, over the latent cache. vLLM runs longer prompts itself, with K and V expanded. It
also runs all prompts if the cache has 8 bits."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import torch
from vllm.model_executor.layers.attention.mla_attention import (
    MLACommonBackend,
    MLACommonImpl,
    MLACommonMetadata,
    MLACommonMetadataBuilder,
    QueryLenSupport,
)
from vllm.v1.attention.backend import AttentionCGSupport

from .._adapters.dtypes import SPEC_DTYPES
from .._adapters.latent import SCALE_COLUMNS, query_of, token_bytes
from .._adapters.outside import outside
from .._adapters.releases import takes
from .._adapters.variant import Scales, Variant, make_latent_variant
from .asked import current_config, products_of
from .backend import KEPT_AS_IT_IS, DeftBackend, agree_with_other_ranks, check_kept
from .context import context_of
from .planner import DeftMetadata, planner_of, variants_of

_KEPT_IN_BYTES = ("fp8", "fp8_e4m3")  # e4m3, as vLLM views a latent cache of 8 bits
_KEPT_WITH_SCALES = "fp8_ds_mla"  # in the rows of tokens
_TOKEN_BYTES = token_bytes(512, 64)  # of them


class DeftMLABackend(DeftBackend, MLACommonBackend):
    supported_kv_cache_dtypes: ClassVar[list[Any]] = [*KEPT_AS_IT_IS, *_KEPT_IN_BYTES, _KEPT_WITH_SCALES]

    @staticmethod
    def get_impl_cls() -> type[DeftMLAImpl]:
        return DeftMLAImpl

    @staticmethod
    def get_builder_cls() -> type[DeftMLAMetadataBuilder]:
        return DeftMLAMetadataBuilder

    @staticmethod
    def get_kv_cache_shape(
        num_blocks: int, block_size: int, num_kv_heads: int, head_size: int, cache_dtype_str: str = "auto"
    ) -> tuple[int, ...]:
        return (num_blocks, block_size, _TOKEN_BYTES if cache_dtype_str == _KEPT_WITH_SCALES else head_size)

    @staticmethod
    def get_kv_cache_stride_order(include_num_layers_dimension: bool = False) -> tuple[int, ...]:
        return (0, 1, 2, 3) if include_num_layers_dimension else (0, 1, 2)  # as they stand

    @classmethod
    def supports_head_size(cls, head_size: int) -> bool:
        return head_size in MLACommonBackend.get_supported_head_sizes()

    @classmethod
    def supports_sliding_window(cls) -> bool:
        return False

    @classmethod
    def supports_sink(cls) -> bool:
        return False

    @classmethod
    def supports_per_head_quant_scales(cls) -> bool:
        return False


@dataclasses.dataclass
class DeftMLAMetadata(MLACommonMetadata):
    planned: DeftMetadata | None = None  # the step's first requests, of num_decode_tokens queries


class DeftMLAMetadataBuilder(MLACommonMetadataBuilder):
    _cudagraph_support: ClassVar[AttentionCGSupport] = AttentionCGSupport.UNIFORM_BATCH
    query_len_support: ClassVar[QueryLenSupport] = QueryLenSupport.VARLEN
    # Queries of a request that runs here: up to so many, expanding K and V of its whole context costs more. FLASH_ATTN_MLA's.
    reorder_batch_threshold: int = 512

    def __init__(self, kv_cache_spec: Any, layer_names: list[str], vllm_config: Any, device: torch.device) -> None:
        if kv_cache_spec.dtype.itemsize == 1:
            # Prompts are vLLM's, which multiplies their own tokens in 16 bits. Here they would come from the cache.
            self.reorder_batch_threshold = 1  # drafts raise it
        super().__init__(kv_cache_spec, layer_names, vllm_config, device, DeftMLAMetadata, supports_dcp_with_varlen=True)
        agree_with_other_ranks()
        self._planner = planner_of(vllm_config, kv_cache_spec, len(layer_names), device)
        self._variants = variants_of(vllm_config, kv_cache_spec, layer_names)

    def build_for_cudagraph_capture(self, common_attn_metadata: Any) -> DeftMLAMetadata:
        self._planner.expect_graph(common_attn_metadata)
        metadata: DeftMLAMetadata = super().build_for_cudagraph_capture(common_attn_metadata)
        return metadata

    def build(self, common_prefix_len: int, common_attn_metadata: Any, fast_build: bool = False) -> DeftMLAMetadata:
        metadata: DeftMLAMetadata = super().build(common_prefix_len, common_attn_metadata, fast_build)
        if metadata.num_decodes:
            metadata.planned = self._planner.plan(common_attn_metadata, self._variants, metadata.num_decodes)
        return metadata


class DeftMLAImpl(MLACommonImpl):
    supports_dcp: bool = takes("vLLM", "context_parallel")
    supports_pcp: bool = False
    can_return_lse_for_decode: bool = supports_dcp  # to the base e
    supports_mtp_with_cp_non_trivial_interleave_size: bool = supports_dcp  # a plan knows each token's position

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        if products := products_of(current_config()):
            raise outside("products", products, "a latent cache has products of 16 bits")
        self._context = context_of(current_config())
        check_kept(self.kv_cache_dtype, *KEPT_AS_IT_IS, *_KEPT_IN_BYTES, _KEPT_WITH_SCALES)
        self.supports_quant_query_input = False  # q has 16 bits

    def variant(self, layer: Any, page_size: int, dtype: torch.dtype) -> Variant:
        """Returns the variant of `layer`; `dtype` is the type of q."""
        word, in_bytes = SPEC_DTYPES[dtype], self.kv_cache_dtype in _KEPT_IN_BYTES
        has_rows = self.kv_cache_dtype == _KEPT_WITH_SCALES
        if has_rows and word != "bf16":
            raise outside("kv_cache_dtype", self.kv_cache_dtype, f"its rotated elements are bfloat16, and the model's are {dtype}")
        return make_latent_variant(
            query_heads=self.num_heads * (self._context.size if self._context else 1),
            latent_dim=self.kv_lora_rank,
            rope_dim=self.qk_rope_head_dim,
            page_size=page_size,
            dtype=word,
            output_dtype=word,
            sm_scale=self.scale,
            cache_dtype="fp8_e4m3" if in_bytes or has_rows else "",
            has_scales=in_bytes,
            scale_columns=SCALE_COLUMNS if has_rows else 0,
            is_part=self._context is not None,
        )

    def forward_mqa(
        self, q: Any, kv_c_and_k_pe_cache: torch.Tensor, attn_metadata: DeftMLAMetadata, layer: Any
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Runs the step. With context parallelism `q` has the heads of all ranks, and vLLM merges the ranks' results."""
        planned, cache = attn_metadata.planned, kv_c_and_k_pe_cache
        assert planned is not None
        rows = query_of(*q) if isinstance(q, tuple) else q
        variant = self.variant(layer, cache.shape[1], rows.dtype)
        out = rows.new_empty((rows.shape[0], variant.query_heads, self.kv_lora_rank))
        lse = torch.empty(out.shape[:2], dtype=torch.float32, device=out.device) if variant.is_part else None
        scale, scales = 1.0, None
        if variant.has_scales:  # as the host knows it when a graph is captured, for all its replays
            scale = layer._k_scale_float  # V is the first columns of K
            scales = Scales(scale, None if variant.is_part else scale)
        count = planned.queries
        planned.steps.run(variant, rows[:count], cache, None, out[:count], None if lse is None else lse[:count], scales=scales)
        if variant.is_part and scale != 1.0:
            out *= scale
        return out, lse
