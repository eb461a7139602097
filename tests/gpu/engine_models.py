"""The models of vllm_engine.py and sglang_engine.py: dimensions of known ones, random weights."""

import zlib
from typing import Callable, NamedTuple

VOCABULARY = 32000


class Model(NamedTuple):
    config: Callable  # of a number of layers and a type, as a checkpoint's config.json has it
    spreads: dict  # of weights, by a part of their names in vLLM, some of which are fused, or in the file; the others are 1
    shapes: Callable  # of a number of layers: {name in the file without .weight: shape}
    own: str  # vLLM's backend on Hopper


def common_config(layers, dtype, **more):
    return {
        "dtype": dtype, "vocab_size": VOCABULARY, "num_hidden_layers": layers, "hidden_act": "silu", "max_position_embeddings": 65536,
        "tie_word_embeddings": False, "bos_token_id": 1, "eos_token_id": 2, **more,
    }


def common_shapes(layers, hidden, inner, attention):
    """`attention`: {name: shape} of a layer."""
    shapes = {"model.embed_tokens": (VOCABULARY, hidden), "lm_head": (VOCABULARY, hidden), "model.norm": (hidden,)}
    mlp = {"gate_proj": (inner, hidden), "up_proj": (inner, hidden), "down_proj": (hidden, inner)}
    for layer in range(layers):
        at = f"model.layers.{layer}."
        shapes |= {at + "self_attn." + name: shape for name, shape in attention.items()}
        shapes |= {at + "mlp." + name: shape for name, shape in mlp.items()}
        shapes |= {at + name: (hidden,) for name in ("input_layernorm", "post_attention_layernorm")}
    return shapes


def common_spreads(hidden, inner, out):
    """Of what is not attention, and of its end, which `out` columns come to."""
    return {"embed_tokens": 1.0, "o_proj": 2 * out**-0.5, "gate_proj": hidden**-0.5, "up_proj": hidden**-0.5,
            "gate_up_proj": hidden**-0.5, "down_proj": inner**-0.5, "lm_head": 3 * hidden**-0.5}


def llama(kv_heads=8):
    """Of Llama-3-8B's dimensions, but for its KV heads."""
    hidden, heads, dim, inner = 4096, 32, 128, 14336

    def config(layers, dtype):
        return common_config(
            layers, dtype, architectures=["LlamaForCausalLM"], model_type="llama", hidden_size=hidden, intermediate_size=inner,
            num_attention_heads=heads, num_key_value_heads=kv_heads, head_dim=dim, rms_norm_eps=1e-5, rope_theta=500000.0)

    attention = {"q_proj": (heads * dim, hidden), "k_proj": (kv_heads * dim, hidden), "v_proj": (kv_heads * dim, hidden),
                 "o_proj": (hidden, heads * dim)}
    spreads = common_spreads(hidden, inner, heads * dim) | dict.fromkeys(("q_proj", "k_proj", "v_proj", "qkv_proj"), 1.4 * hidden**-0.5)
    return Model(config, spreads, lambda layers: common_shapes(layers, hidden, inner, attention), "FLASH_ATTN")


def deepseek():
    """Of DeepSeek-V2-Lite's dimensions, with latent attention. All layers are dense, none has experts."""
    hidden, heads, latent, rope, nope, value, inner = 2048, 16, 512, 64, 128, 128, 10944

    def config(layers, dtype):
        return common_config(
            layers, dtype, architectures=["DeepseekV2ForCausalLM"], model_type="deepseek_v2", hidden_size=hidden, intermediate_size=inner,
            num_attention_heads=heads, num_key_value_heads=heads, kv_lora_rank=latent, q_lora_rank=None, qk_rope_head_dim=rope,
            qk_nope_head_dim=nope, v_head_dim=value, rms_norm_eps=1e-6, rope_theta=10000.0, attention_bias=False,
            first_k_dense_replace=layers, moe_layer_freq=1, moe_intermediate_size=1408, n_routed_experts=64, n_shared_experts=2,
            num_experts_per_tok=6, n_group=1, topk_group=1, topk_method="greedy", scoring_func="softmax", norm_topk_prob=False,
            routed_scaling_factor=1.0)

    attention = {"q_proj": (heads * (nope + rope), hidden), "kv_a_proj_with_mqa": (latent + rope, hidden), "kv_a_layernorm": (latent,),
                 "kv_b_proj": (heads * (nope + value), latent), "o_proj": (hidden, heads * value)}
    spreads = common_spreads(hidden, inner, heads * value)
    spreads |= {"q_proj": 1.4 * hidden**-0.5, "kv_a_proj_with_mqa": 1.4 * hidden**-0.5, "kv_b_proj": 1.4 * latent**-0.5}
    return Model(config, spreads, lambda layers: common_shapes(layers, hidden, inner, attention), "FLASH_ATTN_MLA")


MODELS = {"llama": llama(), "deepseek": deepseek(), "one_kv_head": llama(1)}


def spread_of(model, name):
    """None: of a norm, whose weights are 1."""
    return next((spread for part, spread in model.spreads.items() if part in name.split(".")), None)


def generator_of(name, device):
    import torch

    return torch.Generator(device=device).manual_seed(zlib.crc32(name.encode()))


def give_weights(kind):
    """A function that gives a model in memory its weights. vLLM's dummy ones are so small that attention is a mean and logits are
    ties; these make it matter. What vLLM has made of weights as it loaded them stays: of latent attention, write a file."""

    def give(model):
        for name, weight in model.named_parameters():
            spread = spread_of(MODELS[kind], name)
            if spread is None:
                weight.data.fill_(1)
            else:
                weight.data.normal_(0, spread, generator=generator_of(name, weight.device))

    return give


def write_weights(kind, folder, layers, dtype):
    """Weights like those of give_weights in a file, so that any number of ranks reads the same model."""
    import torch
    from safetensors.torch import save_file

    device = "cuda" if torch.cuda.is_available() else "cpu"
    weights = {}
    for name, shape in MODELS[kind].shapes(layers).items():
        spread = spread_of(MODELS[kind], name)
        if spread is None:
            made = torch.ones(shape)
        else:
            made = torch.randn(shape, generator=generator_of(name, device), device=device) * spread
        weights[name + ".weight"] = made.to(getattr(torch, dtype)).cpu()
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
