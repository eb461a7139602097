#!/usr/bin/env python3
"""Times of FlashInfer's attention over latent caches on the rows of `deftc bench latent`, where it is installed.

Requests of the rows with regular trees, all of whose pages are in one cache: those that share a prefix share its pages. bf16, 512
and 64 columns, pages of 64 tokens, backend fa3. FlashInfer knows no tree of drafts: its row is a chain of as many. A time is the
median of replays of a CUDA graph, the L2 cache evicted before each, as `deftc bench` has it.

  tests/gpu/latent_peers.py [--repeat N] [--json FILE]

Prints one line a row, and with --json the same as {"device": ..., "rows": {row: us}}. Exit code 3: no FlashInfer or no GPU.
"""

import argparse
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools/peers"))
from graph_time import graph_time_us  # noqa: E402

HEADS, PAGE, CKV, KPE = (16, 64, 128), 64, 512, 64
# As tuner/bench/LatentRows.cpp has them: requests, tokens that they share, tokens of each one's own, queries of each.
ROWS = {
    "latent_flat_64x4k": (64, 0, 4096, 1),
    "latent_16_below_8k": (16, 8192, 256, 1),
    "latent_64_below_8k": (64, 8192, 256, 1),
    "latent_32_below_32k": (32, 32768, 512, 1),
    "latent_spec_64_of_16k": (1, 16384, 64, 64),
}


def measure(torch, flashinfer, heads, row, repeat):
    requests, shared, own, queries = row
    device = torch.device("cuda")
    shared_pages, own_pages = shared // PAGE, own // PAGE
    indices, kv_indptr = [], [0]
    for request in range(requests):
        first = shared_pages + request * own_pages
        indices += [*range(shared_pages), *range(first, first + own_pages)]
        kv_indptr.append(len(indices))
    ints = [[queries * i for i in range(requests + 1)], kv_indptr, indices, [shared + own] * requests]
    pages = shared_pages + requests * own_pages
    cache = torch.randn(pages, PAGE, CKV + KPE, dtype=torch.bfloat16, device=device)
    q = torch.randn(requests * queries, heads, CKV + KPE, dtype=torch.bfloat16, device=device)
    wrapper = flashinfer.mla.BatchMLAPagedAttentionWrapper(torch.empty(256 << 20, dtype=torch.uint8, device=device), backend="fa3")
    wrapper.plan(*[torch.tensor(values, dtype=torch.int32, device=device) for values in ints], heads, CKV, KPE, PAGE, queries > 1,
                 192**-0.5, torch.bfloat16, torch.bfloat16)
    parts = q[..., :CKV], q[..., CKV:], cache[..., :CKV], cache[..., CKV:]
    out = torch.empty(requests * queries, heads, CKV, dtype=torch.bfloat16, device=device)
    return graph_time_us(torch, lambda: wrapper.run(*parts, out=out), repeat)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeat", type=int, default=41)
    parser.add_argument("--json")
    options = parser.parse_args()
    try:
        import flashinfer
        import torch
    except ImportError as error:
        print(f"latent_peers: {error}: install flashinfer-python and torch", file=sys.stderr)
        return 3
    if not torch.cuda.is_available():
        print("latent_peers: there is no GPU", file=sys.stderr)
        return 3
    result = {"device": torch.cuda.get_device_name(), "peer": f"FlashInfer {flashinfer.__version__} fa3", "rows": {}}
    for name, row in ROWS.items():
        for heads in HEADS:
            us = measure(torch, flashinfer, heads, row, options.repeat)
            result["rows"][f"{name}_{heads}"] = round(us, 2)
            print(f"{name}_{heads:<4} {us:8.1f} us", flush=True)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)
            file.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
