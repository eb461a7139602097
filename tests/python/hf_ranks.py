"""Decodes over trees with a model that is cut for as many ranks as torchrun starts, and writes what each rank has found.

usage: torchrun --nproc-per-node N hf_ranks.py MODEL_FOLDER OUTPUT_FOLDER      on GPUs where there are N, else on processors
"""

import json
import os
import sys
from pathlib import Path

import deft
import torch
import transformers
from deft.hf import TreeDecoder, beam_search, best_of_n, greedy


def answers_of(model, prompt):
    """What any number of ranks must agree on, and the KV heads that this rank has planned for."""
    decoder = TreeDecoder(model, pages=64)
    torch.manual_seed(5)
    found = [greedy(decoder, prompt, 20), *best_of_n(decoder, prompt, 4, 8), *beam_search(decoder, prompt, 3, 8)]
    root = decoder.prefill(prompt)
    guesses = decoder.verify(root, [7, 8, 9], parents=[-1, 0, 0])
    decoder.accept(root, guesses[2])
    return {
        "tokens": [answer.tokens for answer in found],
        "logits": root.logits.float().cpu().tolist(),
        "kv_heads": [kind.kv_heads for kind in decoder.kinds],
    }


def main():
    folder, output = sys.argv[1:]
    deft.set_threads(1)
    ranks, rank = int(os.environ["WORLD_SIZE"]), int(os.environ["RANK"])
    with_gpus = torch.cuda.device_count() >= ranks
    if with_gpus:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    torch.distributed.init_process_group("nccl" if with_gpus else "gloo")
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, distributed_config=transformers.distributed.DistributedConfig(tp_size=ranks)
    )
    prompt = json.loads(Path(folder, "prompt.json").read_text())
    Path(output, f"{rank}.json").write_text(json.dumps(answers_of(model, prompt)))
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
