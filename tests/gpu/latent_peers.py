#!/usr/bin/env python3
"""Times of FlashInfer's attention over latent caches on the rows of `deftc bench latent`, and of FlashMLA's, where they are installed.

Requests of the rows with regular trees, all of whose pages are in one cache: those that share a prefix share its pages. bf16, 512
and 64 columns, pages of 64 tokens; FlashInfer's backend is fa3. Neither knows a tree of drafts: their row is a chain of as many. A time
is the median of replays of a CUDA graph, the L2 cache evicted before each, as `deftc bench` has it.

  tests/gpu/latent_peers.py [--repeat N] [--json FILE]

Prints one line a row, and with --json the same as {"device": ..., "rows": {row: us}, "flash_mla": {row: us}}. Exit code 3: neither
peer, or no GPU.
"""

import argparse
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools/peers"))
import of_flash_mla  # noqa: E402
from graph_time import graph_time_us  # noqa: E402

HEADS, PAGE, CKV, KPE, SCALE = (16, 64, 128), 64, 512, 64, 192**-0.5
# As tuner/bench/LatentRows.cpp has them: requests, tokens that they share, tokens of each one's own, queries of each.
ROWS = {
    "latent_flat_64x4k": (64, 0, 4096, 1),
    "latent_16_below_8k": (16, 8192, 256, 1),
    "latent_64_below_8k": (64, 8192, 256, 1),
    "latent_32_below_32k": (32, 32768, 512, 1),
    "latent_spec_64_of_16k": (1, 16384, 64, 64),
}


class Requests:
    """A row's tensors, which both peers read in place."""

    def __init__(self, torch, heads, row):
        self.torch, self.heads = torch, heads
        self.count, shared, own, self.queries = row
        shared_pages, own_pages = shared // PAGE, own // PAGE
        first = [shared_pages + request * own_pages for request in range(self.count)]
        self.tables = [[*range(shared_pages), *range(begin, begin + own_pages)] for begin in first]
        self.lengths = [shared + own] * self.count
        make = {"dtype": torch.bfloat16, "device": "cuda"}
        self.cache = torch.randn(shared_pages + self.count * own_pages, PAGE, CKV + KPE, **make)
        self.q = torch.randn(self.count * self.queries, heads, CKV + KPE, **make)

    def ints(self, values):
        return self.torch.tensor(values, dtype=self.torch.int32, device="cuda")

    def time_flashinfer(self, flashinfer, repeat):
        torch, wrapper = self.torch, flashinfer.mla.BatchMLAPagedAttentionWrapper(self.torch.empty(256 << 20, dtype=self.torch.uint8, device="cuda"), backend="fa3")
        pages = len(self.tables[0])
        parts = [[self.queries * i for i in range(self.count + 1)], [pages * i for i in range(self.count + 1)], sum(self.tables, []), self.lengths]
        wrapper.plan(*map(self.ints, parts), self.heads, CKV, KPE, PAGE, self.queries > 1, SCALE, torch.bfloat16, torch.bfloat16)
        tensors = self.q[..., :CKV], self.q[..., CKV:], self.cache[..., :CKV], self.cache[..., CKV:]
        out = torch.empty(*self.q.shape[:2], CKV, dtype=torch.bfloat16, device="cuda")
        return graph_time_us(torch, lambda: wrapper.run(*tensors, out=out), repeat)

    def time_flash_mla(self, flash_mla, repeat):
        q, cache = self.q.view(self.count, self.queries, self.heads, CKV + KPE), self.cache.unsqueeze(2)
        table, lengths, (metadata, _) = self.ints(self.tables), self.ints(self.lengths), flash_mla.get_mla_metadata()

        def run():
            return flash_mla.flash_mla_with_kvcache(q, cache, table, lengths, CKV, metadata, None, SCALE, causal=self.queries > 1)

        run()  # makes the metadata
        return graph_time_us(self.torch, run, repeat)


def peers():
    """By the record's field: what it is called, its module, and what times it."""
    found = {}
    try:
        import flashinfer

        found["rows"] = (f"FlashInfer {flashinfer.__version__} fa3", flashinfer, Requests.time_flashinfer)
    except ImportError as error:
        print(f"latent_peers: {error}", file=sys.stderr)
    try:
        found["flash_mla"] = ("FlashMLA", of_flash_mla.load(), Requests.time_flash_mla)
    except ImportError as error:
        print(f"latent_peers: {error}", file=sys.stderr)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeat", type=int, default=41)
    parser.add_argument("--json")
    options = parser.parse_args()
    try:
        import torch
    except ImportError as error:
        print(f"latent_peers: {error}", file=sys.stderr)
        return 3
    if not torch.cuda.is_available():
        print("latent_peers: there is no GPU", file=sys.stderr)
        return 3
    found = peers()
    if not found:
        return 3
    result = {"device": torch.cuda.get_device_name(), **({"peer": found["rows"][0]} if "rows" in found else {}), **{field: {} for field in found}}
    for name, row in ROWS.items():
        for heads in HEADS:
            requests, said = Requests(torch, heads, row), []
            for field, (title, module, measure) in found.items():
                us = measure(requests, module, options.repeat)
                result[field][f"{name}_{heads}"] = round(us, 2)
                said.append(f"{title} {us:8.1f} us")
            print(f"{name}_{heads:<4}", ", ".join(said), flush=True)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)
            file.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
