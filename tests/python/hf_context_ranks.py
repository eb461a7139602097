"""Decodes over trees whose cache lies on as many ranks as torchrun starts, and writes what each rank has found.

usage: torchrun --nproc-per-node N hf_context_ranks.py ARCHITECTURE OUTPUT_FOLDER      on processors
"""

import json
import os
import sys
from pathlib import Path

import deft
import torch
from deft.hf import TreeDecoder, beam_search, best_of_n, greedy
from deft.torch_peers import TorchPeers
from hf_models import make_model, random_tokens


def model_of(architecture):
    # Without experts: another one, chosen by a tie, would be another model.
    return make_model(architecture, **({"first_k_dense_replace": 2} if architecture.startswith("deepseek") else {}))


def answers_of(model, prompt, peers=None):
    """What any number of ranks must agree on, and how many bytes of K and V this one has."""
    decoder = TreeDecoder(model, pages=64, page_size=4, peers=peers)
    torch.manual_seed(5)
    found = [greedy(decoder, prompt, 20), *best_of_n(decoder, prompt, 4, 8), *beam_search(decoder, prompt, 3, 8)]
    root = decoder.prefill(prompt)
    guesses = decoder.verify(root, [7, 8, 9], parents=[-1, 0, 1])
    decoder.accept(root, guesses[2])  # the guesses move to places behind the prompt, which other ranks may hold
    logits = decoder.step([root], [11])
    return {
        "tokens": [answer.tokens for answer in found],
        "logits": logits.float().tolist(),
        "tokens_read": [plan.tokens_read for plan in decoder.summary().values()],
    }


def main():
    architecture, output = sys.argv[1:]
    deft.set_threads(1)
    torch.distributed.init_process_group("gloo")
    peers = TorchPeers()
    found = answers_of(model_of(architecture), random_tokens(40), peers)
    Path(output, f"{peers.rank}.json").write_text(json.dumps(found))
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
