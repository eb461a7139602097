#!/usr/bin/env python3
"""Does the plug-in fit the vLLM that is installed?

Registers it, asks vLLM's own checks what they say of it, listens to vLLM's model runners, and computes a step with vLLM's own
metadata. Needs vLLM, deft and no GPU. Prints what it saw; exit code 1 where something is not as the plug-in has it.

  python3 tests/python/vllm_release.py
"""

import dataclasses
import inspect
import sys
from types import SimpleNamespace

import torch
from plain_attention import plain
from release_checks import Checks

HEADS, KV_HEADS, DIM, PAGE, TOKENS = 4, 2, 64, 16, 20
LATENT, ROPE, NOPE, VALUE = 512, 64, 128, 128
see = Checks()


def registered():
    import deft.vllm
    from vllm.v1.attention.backends.registry import AttentionBackendEnum

    deft.vllm.register()
    custom = AttentionBackendEnum.CUSTOM
    see("CUSTOM is deft", custom.is_overridden() and custom.get_path() == deft.vllm.BACKEND)
    return custom.get_class()


def registered_of_mla():
    """What a model with latent attention is given."""
    import vllm.config
    from vllm.v1.attention.backends.registry import AttentionBackendEnum

    asked = vllm.config.get_current_vllm_config_or_none
    vllm.config.get_current_vllm_config_or_none = lambda: SimpleNamespace(model_config=SimpleNamespace(use_mla=True))
    try:
        return AttentionBackendEnum.CUSTOM.get_class()
    finally:
        vllm.config.get_current_vllm_config_or_none = asked


def check_classes(backend):
    from vllm.v1.attention import backend as engine

    own = {backend: engine.AttentionBackend, backend.get_impl_cls(): engine.AttentionImpl, backend.get_builder_cls(): engine.AttentionMetadataBuilder}
    for mine, theirs in own.items():
        missing = sorted(getattr(mine, "__abstractmethods__", ()))
        see(f"{mine.__name__} has all that {theirs.__name__} asks for {missing or ''}", not missing)
        for name in vars(mine):
            wanted = inspect.getattr_static(theirs, name, None)
            if name.startswith("_") or isinstance(wanted, property) or not callable(getattr(theirs, name, None)):
                continue
            asked, taken = (inspect.signature(getattr(one, name)).parameters for one in (theirs, mine))
            takes_all = any(parameter.kind is parameter.VAR_POSITIONAL for parameter in taken.values())
            if not takes_all and [*asked] != [*taken][: len(asked)]:
                see(f"{mine.__name__}.{name} takes {[*taken]}, it is given {[*asked]}", False)


def check_configurations(backend):
    given = {
        "head_size": 128, "dtype": torch.bfloat16, "kv_cache_dtype": "auto", "block_size": 16, "use_mla": False, "has_sink": False,
        "use_sparse": False, "use_mm_prefix": False, "use_per_head_quant_scales": False,
        "device_capability": SimpleNamespace(major=9, minor=0), "attn_type": "decoder",
    }  # fmt: skip
    for kept in ("auto", "bfloat16", "fp8", "fp8_e5m2"):
        reasons = backend.validate_configuration(**{**given, "kv_cache_dtype": kept})
        see(f"kv_cache_dtype {kept} is taken {reasons or ''}", not reasons)
    known = inspect.signature(backend.validate_configuration).parameters
    for name in {"has_sink", "use_per_head_quant_scales", "use_dcp"} & known.keys():
        see(f"{name}=True is taken", not backend.validate_configuration(**{**given, name: True}))
    refused = {"use_mla": True, "kv_cache_dtype": "fp8_ds_mla", "use_kv_connector": True, "use_pcp": True,
               "use_adaptive_verification": True}  # fmt: skip
    for name, value in refused.items():
        if name in known:
            see(f"{name}={value} is refused", backend.validate_configuration(**{**given, name: value}))


def check_hooks():
    import vllm.v1.worker.block_table as first
    import vllm.v1.worker.gpu.block_table as second
    from deft.vllm.host_tables import listen
    from vllm.v1.worker.gpu.model_runner import GPUModelRunner

    listen()
    for owner, names in (
        (second.BlockTables, ("__init__", "append_block_ids", "gather_block_tables", "get_dummy_block_tables")),
        (GPUModelRunner, ("prepare_attn",)),
        (first.BlockTable, ("get_device_tensor",)),
    ):
        for name in names:
            see(f"{owner.__name__}.{name} is listened to", hasattr(getattr(owner, name), "deft_hook"))


def stand_in_of_the_engine(layer):
    """What a builder asks of vLLM's config."""
    return SimpleNamespace(
        compilation_config=SimpleNamespace(static_forward_context={"layer": layer}),
        scheduler_config=SimpleNamespace(max_num_seqs=4),
        model_config=SimpleNamespace(max_model_len=128, dtype=torch.bfloat16),
        cache_config=SimpleNamespace(num_gpu_blocks=10, block_size=PAGE),
        speculative_config=None,
    )


def check_step(backend, monkey):
    from vllm.v1.attention.backend import CommonAttentionMetadata
    from vllm.v1.kv_cache_interface import FullAttentionSpec

    monkey.get_tp_group = lambda: SimpleNamespace(world_size=1)  # nobody has made groups of processes
    impl = backend.get_impl_cls()(HEADS, DIM, DIM**-0.5, KV_HEADS)
    layer = SimpleNamespace(impl=impl)
    spec = FullAttentionSpec(block_size=PAGE, num_kv_heads=KV_HEADS, head_size=DIM, dtype=torch.bfloat16)
    builder = backend.get_builder_cls()(spec, ["layer"], stand_in_of_the_engine(layer), torch.device("cpu"))

    def ints(values):
        return torch.tensor(values, dtype=torch.int32)

    pages = [3, 1]
    given = {
        "query_start_loc": ints([0, TOKENS]), "query_start_loc_cpu": ints([0, TOKENS]), "seq_lens": ints([TOKENS]), "num_reqs": 1,
        "num_actual_tokens": TOKENS, "max_query_len": TOKENS, "max_seq_len": TOKENS, "block_table_tensor": ints([pages + [0, 0]]),
        "slot_mapping": torch.tensor([pages[i // PAGE] * PAGE + i % PAGE for i in range(TOKENS)]), "causal": True,
        "seq_lens_cpu_upper_bound": ints([TOKENS]),
    }  # fmt: skip
    known = {field.name for field in dataclasses.fields(CommonAttentionMetadata)}
    see(f"metadata of a step has {sorted(set(given) - known) or 'all that is read'}", set(given) <= known)
    metadata = builder.build(0, CommonAttentionMetadata(**{name: value for name, value in given.items() if name in known}))
    q, k, v = (torch.randn(TOKENS, heads, DIM).bfloat16() for heads in (HEADS, KV_HEADS, KV_HEADS))
    cache = torch.zeros(10, PAGE, KV_HEADS, 2 * DIM, dtype=torch.bfloat16).permute(0, 2, 1, 3)  # as vLLM views it
    for part, new in zip(impl._caches(cache), (k, v)):
        for token, slot in enumerate(given["slot_mapping"].tolist()):
            part[slot // PAGE, slot % PAGE] = new[token]
    output = torch.zeros(TOKENS, HEADS * DIM, dtype=torch.bfloat16)
    impl.forward(layer, q, k, v, cache, metadata, output)
    right, _ = plain(q, k, v, range(1, TOKENS + 1))
    error = (output.view(right.shape).float() - right.float()).abs().max().item()
    see(f"a step is computed, largest error {error:.2g}", error < 0.02)


def check_quantized_q(backend):
    """What vLLM's own layers do where the user asks for products of 8 bits."""
    from vllm.config import DeviceConfig, VllmConfig, set_current_vllm_config
    from vllm.model_executor.layers.quantization.input_quant_fp8 import QuantFP8
    from vllm.model_executor.layers.quantization.utils.quant_utils import GroupShape
    from vllm.v1.attention.backend import CommonAttentionMetadata
    from vllm.v1.kv_cache_interface import FullAttentionSpec

    config = VllmConfig(device_config=DeviceConfig(device="cpu"), additional_config={"deft": {"products": "fp8_e4m3"}})
    with set_current_vllm_config(config):
        impl = backend.get_impl_cls()(HEADS, DIM, DIM**-0.5, KV_HEADS, kv_cache_dtype="fp8")
        quantize = QuantFP8(static=True, group_shape=GroupShape.PER_TENSOR, compile_native=False)
    see("vLLM is asked to quantize q", impl.supports_quant_query_input)
    scales = dict.fromkeys(("_k_scale_float", "_v_scale_float"), 1.0)
    layer = SimpleNamespace(impl=impl, _k_scale=torch.tensor(1.0), _v_scale=torch.tensor(1.0), _q_scale_float=0.0625, **scales)
    spec = FullAttentionSpec(block_size=PAGE, num_kv_heads=KV_HEADS, head_size=DIM, dtype=torch.uint8)
    builder = backend.get_builder_cls()(spec, ["layer"], stand_in_of_the_engine(layer), torch.device("cpu"))
    starts, lengths, pages = (torch.tensor(values, dtype=torch.int32) for values in ([0, 1], [TOKENS], [[3, 1, 0, 0]]))
    given = {
        "query_start_loc": starts, "query_start_loc_cpu": starts, "seq_lens": lengths, "num_reqs": 1, "num_actual_tokens": 1,
        "max_query_len": 1, "max_seq_len": TOKENS, "block_table_tensor": pages, "slot_mapping": None, "causal": True,
        "seq_lens_cpu_upper_bound": lengths,
    }  # fmt: skip
    known = {field.name for field in dataclasses.fields(CommonAttentionMetadata)}
    metadata = builder.build(0, CommonAttentionMetadata(**{name: value for name, value in given.items() if name in known}))
    q, k, v = (torch.randn(count, heads, DIM) for count, heads in ((1, HEADS), (TOKENS, KV_HEADS), (TOKENS, KV_HEADS)))
    cache = torch.zeros(10, PAGE, KV_HEADS, 2 * DIM, dtype=torch.uint8).permute(0, 2, 1, 3)
    for part, new in zip(impl._caches(cache), (k, v)):
        for token in range(TOKENS):
            part[int(pages[0, token // PAGE]), token % PAGE] = new[token].to(torch.float8_e4m3fn).view(torch.uint8)
    quantized, _ = quantize(q.bfloat16().flatten(1), torch.tensor(layer._q_scale_float))
    output = torch.zeros(1, HEADS * DIM, dtype=torch.bfloat16)
    impl.forward(layer, quantized, None, None, cache, metadata, output)
    numbers = [quantized.float().view(1, HEADS, DIM) * layer._q_scale_float, *(new.to(torch.float8_e4m3fn).float() for new in (k, v))]
    right, size = plain(*numbers, [TOKENS])[0], plain(*numbers[:2], numbers[2].abs(), [TOKENS])[0]
    error = ((output.view(right.shape).double() - right).abs() / size).max().item()
    see(f"of {quantized.dtype} a step is computed, largest error {error:.2g} of 8 bits' 0.066", error < 0.066)


def merged_by_vllm(group):
    """Its own merge for processors, in place of its kernel."""
    from vllm.v1.attention.ops.dcp_alltoall import _lse_weighted_combine

    def merge(out, lse, given, ctx=None, return_lse=False, is_lse_base_on_e=True):
        parts, lses = torch.stack(group.of_all(out)).float(), torch.stack(group.of_all(lse))
        merged = _lse_weighted_combine(parts, lses, return_lse=True, is_lse_base_on_e=is_lse_base_on_e)
        out, lse = (one.chunk(group.world_size, 1)[group.rank_in_group] for one in merged)
        return (out.bfloat16(), lse) if return_lse else out.bfloat16()

    return merge


def check_context_parallelism(backend):
    """Two ranks with one KV head: their lengths are vLLM's, and their merged outputs the attention of whole requests."""
    import vllm.config
    import vllm.distributed
    from context_fakes import Group, slot_of
    from vllm.v1.attention.backend import CommonAttentionMetadata
    from vllm.v1.attention.backends.utils import get_dcp_local_seq_lens
    from vllm.v1.attention.ops import common as merging
    from vllm.v1.kv_cache_interface import FullAttentionSpec

    group, unit, counts = Group(2), 4, [TOKENS, 3]
    config = stand_in_of_the_engine(None)
    config.parallel_config = SimpleNamespace(decode_context_parallel_size=2, cp_kv_cache_interleave_size=unit, dcp_comm_backend="ag_rs")
    impl = backend.get_impl_cls()
    see(f"{impl.__name__} gives lse with ranks", impl.can_return_lse_for_decode and impl.supports_mtp_with_cp_non_trivial_interleave_size)
    known = {field.name for field in dataclasses.fields(CommonAttentionMetadata)}
    q, k, v = (torch.randn(sum(counts), heads, DIM).bfloat16() for heads in (HEADS, 1, 1))
    pages, starts = torch.tensor([[3, 0], [1, 0]], dtype=torch.int32), torch.tensor([0, TOKENS, sum(counts)], dtype=torch.int32)
    lengths = torch.tensor(counts, dtype=torch.int32)
    given = {
        "query_start_loc": starts, "query_start_loc_cpu": starts, "seq_lens": lengths, "num_reqs": 2, "num_actual_tokens": sum(counts),
        "max_query_len": TOKENS, "max_seq_len": TOKENS, "block_table_tensor": pages, "slot_mapping": None, "causal": True,
        "seq_lens_cpu_upper_bound": lengths,
    }  # fmt: skip

    def on(rank):
        layer = SimpleNamespace(impl=impl(HEADS // 2, DIM, DIM**-0.5, 1))
        config_here = SimpleNamespace(**{**vars(config), "compilation_config": SimpleNamespace(static_forward_context={"layer": layer})})
        spec = FullAttentionSpec(block_size=PAGE, num_kv_heads=1, head_size=DIM, dtype=torch.bfloat16)
        builder = backend.get_builder_cls()(spec, ["layer"], config_here, torch.device("cpu"))
        metadata = builder.build(0, CommonAttentionMetadata(**{name: value for name, value in given.items() if name in known}))
        cache, held = torch.zeros(10, PAGE, 1, 2 * DIM, dtype=torch.bfloat16).permute(0, 2, 1, 3), [0, 0]
        for row, count in enumerate(counts):
            for token in range(count):
                holder, slot = slot_of(pages[row], token, PAGE, 2, unit)
                if holder == rank:
                    held[row] += 1
                    for part, new in zip(layer.impl._caches(cache), (k, v)):
                        part[slot // PAGE, slot % PAGE] = new[int(starts[row]) + token]
        see(f"rank {rank} has {held} tokens", held == get_dcp_local_seq_lens(lengths, 2, rank, unit).tolist())
        output = torch.zeros(sum(counts), HEADS // 2 * DIM, dtype=torch.bfloat16)
        layer.impl.forward(layer, q.chunk(2, 1)[rank], None, None, cache, metadata, output)
        return output.view(-1, HEADS // 2, DIM)

    places = (vllm.config, "get_current_vllm_config_or_none", lambda: config), (vllm.distributed, "get_dcp_group", lambda: group)
    places = (*places, (merging, "cp_lse_ag_out_rs", merged_by_vllm(group)))
    before = [getattr(owner, name) for owner, name, _ in places]
    for owner, name, stand_in in places:
        setattr(owner, name, stand_in)
    try:
        out = torch.cat(group.run(on), 1)
    finally:
        for (owner, name, _), own in zip(places, before):
            setattr(owner, name, own)
    rights = [plain(q[begin:end], k[begin:end], v[begin:end], range(1, end - begin + 1))[0] for begin, end in zip(starts.tolist(), starts.tolist()[1:])]
    error = (out.float() - torch.cat(rights).float()).abs().max().item()
    see(f"two ranks compute a step, largest error {error:.2g}", error < 0.02)


class Projection(torch.nn.Module):
    """kv_b_proj, of whose weights MLAAttention makes those of the absorbed form."""

    quant_method = None

    def __init__(self, columns):
        super().__init__()
        self.weight = torch.nn.Parameter((torch.randn(columns, LATENT) * LATENT**-0.5).bfloat16(), requires_grad=False)

    def forward(self, x):
        return (x @ self.weight.T,)


def check_mla_backend(backend):
    given = {
        "head_size": LATENT + ROPE, "dtype": torch.bfloat16, "block_size": PAGE, "use_mla": True, "has_sink": False,
        "use_sparse": False, "use_mm_prefix": False, "use_per_head_quant_scales": False,
        "device_capability": SimpleNamespace(major=9, minor=0), "attn_type": "decoder",
    }  # fmt: skip
    for kept in ("auto", "bfloat16", "fp8", "fp8_e4m3", "fp8_ds_mla"):
        reasons = backend.validate_configuration(**given, kv_cache_dtype=kept)
        see(f"MLA: kv_cache_dtype {kept} is taken {reasons or ''}", not reasons)
    for name, value in {"use_mla": False, "use_sparse": True, "has_sink": True, "head_size": 128}.items():
        see(f"MLA: {name}={value} is refused", backend.validate_configuration(**{**given, name: value}, kv_cache_dtype="auto"))
    see("MLA: kv_cache_dtype fp8_e5m2 is refused", backend.validate_configuration(**given, kv_cache_dtype="fp8_e5m2"))


def mla_layer(backend, config):
    from vllm.config import set_current_vllm_config
    from vllm.model_executor.layers.attention import mla_attention

    class Prompts:
        """In place of vLLM's own, which need a GPU."""

        def __init__(self, **given): ...

        def clone(self):
            return self

    mla_attention.get_mla_prefill_backend = lambda config: Prompts
    with set_current_vllm_config(config):
        projection = Projection(HEADS * (NOPE + VALUE))
        layer = mla_attention.MLAAttention(
            HEADS, (NOPE + ROPE) ** -0.5, NOPE, ROPE, VALUE, None, LATENT, projection, prefix="layer", attn_backend=backend
        )
        layer.process_weights_after_loading(torch.bfloat16)
    layer.impl.dcp_world_size = config.parallel_config.decode_context_parallel_size
    return layer


class MlaRank:
    """A rank's layer and cache, and vLLM's metadata of its steps."""

    def __init__(self, backend, count, unit):
        from vllm.config import DeviceConfig, VllmConfig
        from vllm.v1.kv_cache_interface import MLAAttentionSpec

        config = VllmConfig(device_config=DeviceConfig(device="cpu"))
        config.parallel_config.decode_context_parallel_size, config.parallel_config.cp_kv_cache_interleave_size = count, unit
        self.layer = mla_layer(backend, config)
        dims = {"kv_lora_rank": LATENT, "q_lora_rank": None, "qk_nope_head_dim": NOPE, "qk_rope_head_dim": ROPE, "v_head_dim": VALUE}
        config.model_config = SimpleNamespace(
            dtype=torch.bfloat16, max_model_len=128, hf_text_config=SimpleNamespace(**dims), get_head_size=lambda: LATENT + ROPE,
            get_num_attention_heads=lambda parallel: HEADS,
        )  # fmt: skip
        config.cache_config.block_size, config.cache_config.num_gpu_blocks = PAGE, 10
        spec = MLAAttentionSpec(block_size=PAGE, num_kv_heads=1, head_size=LATENT + ROPE, dtype=torch.bfloat16)
        self.builder = backend.get_builder_cls()(spec, ["layer"], config, torch.device("cpu"))
        self.cache = torch.zeros(backend.get_kv_cache_shape(10, PAGE, 1, LATENT + ROPE), dtype=torch.bfloat16)

    def step(self, given, q, latent, rotated):
        """The layer's output for `given` of a step's metadata."""
        from vllm.v1.attention.backend import CommonAttentionMetadata

        fields = {field.name for field in dataclasses.fields(CommonAttentionMetadata)}
        metadata = self.builder.build(0, CommonAttentionMetadata(**{name: value for name, value in given.items() if name in fields}))
        output = torch.zeros(len(q), HEADS * VALUE, dtype=torch.bfloat16)
        self.layer.forward_impl(q, latent, rotated, self.cache, metadata, output)
        return output.view(-1, HEADS, VALUE)

    def expanded(self, q, tokens):
        """In float64."""
        up_k, up_v = self.layer.kv_b_proj.weight.view(HEADS, NOPE + VALUE, LATENT).double().split([NOPE, VALUE], 1)
        k = torch.cat([torch.einsum("tl,hdl->thd", tokens[:, :LATENT], up_k), tokens[:, None, LATENT:].expand(-1, HEADS, -1)], -1)
        v = torch.einsum("tl,hdl->thd", tokens[:, :LATENT], up_v)
        return plain(q, k, v, range(len(tokens) - len(q) + 1, len(tokens) + 1), scale=(NOPE + ROPE) ** -0.5)[0]


def check_mla_steps(backend, count=1, unit=1):
    """MLAAttention's own code from q of a head's width to its output, on so many ranks, beside the expanded form."""
    import vllm.distributed
    from context_fakes import Group, slot_of
    from vllm.model_executor.layers.attention import mla_attention
    from vllm.v1.attention.backends.utils import get_dcp_local_seq_lens

    group = Group(count)
    vllm.distributed.get_dcp_group = mla_attention.get_dcp_group = lambda: group
    merge = merged_by_vllm(group)
    mla_attention.cp_lse_ag_out_rs = lambda out, lse, given, is_lse_base_on_e: merge(out, lse, given, None, False, is_lse_base_on_e)
    ranks = group.in_turn(lambda rank: MlaRank(backend, count, unit))
    pages, tokens, worst = torch.tensor([[3, 1, 0, 0]], dtype=torch.int32), torch.zeros(0, LATENT + ROPE).bfloat16(), 0.0
    for queries in (TOKENS, 1, 3):  # a prompt, decoding, a chain of drafts
        latent, rotated = torch.randn(queries, LATENT).bfloat16(), torch.randn(queries, 1, ROPE).bfloat16()
        for token, new in enumerate(torch.cat([latent, rotated[:, 0]], -1), len(tokens)):
            rank, slot = slot_of(pages[0], token, PAGE, count, unit)
            ranks[rank].cache.view(-1, LATENT + ROPE)[slot] = new
        tokens = torch.cat([tokens, torch.cat([latent, rotated[:, 0]], -1)])
        ints = {name: torch.tensor(values, dtype=torch.int32) for name, values in {"starts": [0, queries], "lengths": [len(tokens)]}.items()}
        given = {
            "query_start_loc": ints["starts"], "query_start_loc_cpu": ints["starts"], "seq_lens": ints["lengths"], "num_reqs": 1,
            "num_actual_tokens": queries, "max_query_len": queries, "max_seq_len": len(tokens), "block_table_tensor": pages,
            "slot_mapping": torch.zeros(queries, dtype=torch.int64), "causal": True, "seq_lens_cpu_upper_bound": ints["lengths"],
        }  # fmt: skip
        q = torch.randn(count, queries, HEADS, NOPE + ROPE).bfloat16()

        def on(rank):
            local = {"dcp_local_seq_lens": get_dcp_local_seq_lens(ints["lengths"], count, rank, unit)}
            return ranks[rank].step({**given, **local}, q[rank], latent, rotated)

        for rank, found in enumerate(group.run(on)):
            worst = max(worst, (found.double() - ranks[rank].expanded(q[rank], tokens.double())).abs().max().item())
    see(f"MLA, ranks: {count}: steps are computed as in the expanded form, largest error {worst:.2g}", worst < 0.03)


def main():
    import vllm

    print(f"vllm {vllm.__version__}, torch {torch.__version__}")
    backend = registered()
    check_classes(backend)
    check_configurations(backend)
    check_hooks()
    check_step(backend, sys.modules[backend.__module__])
    check_context_parallelism(backend)
    check_quantized_q(backend)
    of_mla = registered_of_mla()
    check_mla_backend(of_mla)
    check_mla_steps(of_mla)
    check_mla_steps(of_mla, 2)
    check_mla_steps(of_mla, 2, 4)
    return see.exit_code


if __name__ == "__main__":
    sys.exit(main())
