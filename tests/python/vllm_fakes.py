"""vLLM as the plug-in knows it, where it is not installed: modules, a step's metadata, and two layers of a model."""

import dataclasses
import enum
import importlib
import sys
from types import SimpleNamespace

import pytest
import torch
from engine_fakes import Support, forget, install

PAGE = 16
IN_BYTES = {"fp8": torch.float8_e4m3fn, "fp8_e5m2": torch.float8_e5m2}
MODULES = ("deft.vllm.backend", "deft.vllm.mla")  # imported anew in each test


def ints(values):
    return torch.tensor(values, dtype=torch.int32)


@pytest.fixture
def registry(monkeypatch):
    """What was registered."""
    registered = {}

    class Backends(enum.Enum):
        CUSTOM = None

        def is_overridden(self):
            return self in registered

        def get_path(self):
            return registered[self]

    class Base:
        def __class_getitem__(cls, item):
            return cls

        def __init__(self, kv_cache_spec, layer_names, vllm_config, device):
            self.kv_cache_spec, self.layer_names, self.vllm_config, self.device = kv_cache_spec, layer_names, vllm_config, device

    def write(key, value, k_cache, v_cache, slots, dtype, k_scale, v_scale):
        if dtype in IN_BYTES:
            scales = [scale.view(-1, 1) for scale in (k_scale, v_scale)]  # of all heads, or of each
            key, value = ((new / scale).to(IN_BYTES[dtype]).view(torch.uint8) for new, scale in zip((key, value), scales))
        for row, slot in enumerate(slots.tolist()):
            if slot >= 0:
                k_cache[slot // PAGE, slot % PAGE], v_cache[slot // PAGE, slot % PAGE] = key[row], value[row]

    modules = {
        "vllm.v1.attention.backends.registry": {
            "AttentionBackendEnum": Backends,
            "register_backend": lambda member, path: registered.__setitem__(member, path),
        },
        "vllm.v1.attention.backend": {
            "AttentionBackend": object,
            "AttentionCGSupport": Support,
            "AttentionImpl": object,
            "AttentionMetadataBuilder": Base,
            "AttentionType": SimpleNamespace(DECODER="decoder"),
            "MultipleOf": lambda base: base,
        },
        "vllm.v1.attention.backends.utils": {"get_kv_cache_layout": lambda: "NHD"},
        "vllm._custom_ops": {"reshape_and_cache_flash": write},
        "vllm.config": {"get_current_vllm_config_or_none": lambda: None},
        "vllm.distributed": {"get_tp_group": lambda: SimpleNamespace(world_size=1)},
        **mla_modules(),
    }
    install(monkeypatch, "vllm", "0.26.0", modules)
    forget(monkeypatch, *MODULES)
    yield registered
    forget(monkeypatch, *MODULES)


def common(table, lengths, counts, *, padded=0, slots=None):
    """As vLLM pads: rows of padding have no queries, the tokens count them."""
    starts = [0]
    for count in counts + [0] * padded:
        starts.append(starts[-1] + count)
    return SimpleNamespace(
        query_start_loc_cpu=ints(starts),
        seq_lens=ints(lengths + [0] * padded),
        seq_lens_cpu_upper_bound=ints(lengths + [0] * padded),
        num_reqs=len(lengths) + padded,
        num_actual_tokens=starts[-1] + padded,
        max_query_len=max(counts),
        max_seq_len=max(lengths),
        block_table_tensor=table,
        slot_mapping=slots,
        causal=True,
    )


def config_of(layers):
    """What builders ask of vLLM's config."""
    return SimpleNamespace(
        compilation_config=SimpleNamespace(static_forward_context=layers),
        scheduler_config=SimpleNamespace(max_num_seqs=4),
        model_config=SimpleNamespace(max_model_len=128, dtype=torch.bfloat16),
        cache_config=SimpleNamespace(num_gpu_blocks=10, block_size=PAGE),
        speculative_config=None,
    )


class Engine:
    """Two layers of a model as vLLM holds them."""

    def __init__(self, kv_dtype=torch.bfloat16, kept="auto", has_sinks=False, has_head_scales=False, additional_config=None):
        """`additional_config`: what the user gives vLLM for plug-ins."""
        backend = importlib.import_module("deft.vllm.backend")
        given = None if additional_config is None else SimpleNamespace(additional_config=additional_config)
        sys.modules["vllm.config"].get_current_vllm_config_or_none = lambda: given
        self.backend = backend.DeftBackend
        impl = self.backend.get_impl_cls()
        # Loaded behind the layers, as weights are.
        self.sinks = [torch.zeros(4, dtype=torch.bfloat16) if has_sinks else None for _ in range(2)]
        self.impls = [
            impl(4, 64, 0.125, 2, kv_cache_dtype=kept, sinks=self.sinks[0]),
            impl(4, 64, 0.125, 2, sliding_window=9, logits_soft_cap=5.0, kv_cache_dtype=kept, sinks=self.sinks[1]),
        ]
        factors = torch.tensor([1.0, 3.0] if has_head_scales else 1.0)
        layers = {
            f"layer{i}": SimpleNamespace(
                impl=impl,
                _k_scale=(0.5 + i) * factors,
                _v_scale=(0.25 + i) / factors,
                _q_scale=torch.tensor(0.125),
                _q_scale_float=0.125,
                _k_scale_float=((0.5 + i) * factors).max().item(),
                _v_scale_float=((0.25 + i) / factors).max().item(),
            )
            for i, impl in enumerate(self.impls)
        }
        self.load(0.5)
        self.layers = list(layers.values())
        config = config_of(layers)
        spec = SimpleNamespace(block_size=PAGE, dtype=kv_dtype)
        self.builder = self.backend.get_builder_cls()(spec, list(layers), config, torch.device("cpu"))
        shape = self.backend.get_kv_cache_shape(10, PAGE, 2, 64)
        order = self.backend.get_kv_cache_stride_order()
        back = [order.index(i) for i in range(len(order))]
        self.caches = [
            torch.zeros([shape[i] for i in order], dtype=kv_dtype).permute(*back) for _ in self.layers
        ]

    def load(self, first):
        """Of sinks, the weights of a checkpoint."""
        for i, (impl, sinks) in enumerate(zip(self.impls, self.sinks)):
            if sinks is not None:
                sinks.copy_(first + i - torch.arange(4.0))
            impl.process_weights_after_loading(torch.bfloat16)



def mla_modules():
    """What the plug-in takes from vLLM for latent attention, as 0.26 has it."""

    class Length(enum.Enum):
        SINGLE_ONLY, UNIFORM, VARLEN = range(3)

    class Backend:
        @classmethod
        def get_supported_head_sizes(cls):
            return [320, 576]

        @classmethod
        def is_mla(cls):
            return True

    @dataclasses.dataclass
    class Metadata:
        num_actual_tokens: int
        num_decodes: int
        num_decode_tokens: int
        num_prefills: int

    class Builder:
        query_len_support = Length.SINGLE_ONLY
        reorder_batch_threshold = 1

        def __init__(self, kv_cache_spec, layer_names, vllm_config, device, metadata_cls=Metadata, supports_dcp_with_varlen=False):
            self.metadata_cls = metadata_cls  # and no super().__init__, as in vLLM

        def build(self, common_prefix_len, common, fast_build=False):
            """A step's requests come with the short ones first; those of padding have no queries."""
            starts = common.query_start_loc_cpu
            counts = starts[1:] - starts[:-1]
            is_long = counts > self.reorder_batch_threshold
            decodes = int(is_long.int().argmax()) if is_long.any() else common.num_reqs
            tokens = int(starts[decodes]) if is_long.any() else common.num_actual_tokens
            return self.metadata_cls(common.num_actual_tokens, decodes, tokens, common.num_reqs - decodes)

        def build_for_cudagraph_capture(self, common):
            return self.build(0, common)

    class Impl:
        supports_quant_query_input = True

        def __init__(
            self, num_heads, head_size, scale, num_kv_heads, alibi_slopes, sliding_window, kv_cache_dtype, logits_soft_cap,
            attn_type, kv_sharing_target_layer_name, q_lora_rank, kv_lora_rank, qk_nope_head_dim, qk_rope_head_dim, qk_head_dim,
            v_head_dim, kv_b_proj, indexer=None, q_pad_num_heads=None,
        ):  # fmt: skip
            self.num_heads, self.scale, self.kv_cache_dtype = num_heads, float(scale), kv_cache_dtype
            self.kv_lora_rank, self.qk_rope_head_dim = kv_lora_rank, qk_rope_head_dim

    return {
        "vllm.model_executor.layers.attention.mla_attention": {
            "MLACommonBackend": Backend,
            "MLACommonImpl": Impl,
            "MLACommonMetadata": Metadata,
            "MLACommonMetadataBuilder": Builder,
            "QueryLenSupport": Length,
        }
    }
