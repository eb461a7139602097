#!/usr/bin/env python3
"""Times of sparse runs over lists of tokens in a latent cache, and of FlashMLA's sparse kernels where it is installed.

Decode steps of DeepSeek V3.2: bf16, 512 and 64 columns, pages of 64 tokens, lists of 2,048 tokens drawn at random from each request's
own 32,768; in rows of drafts that agree, four of five tokens of a request's lists are the same. `us_656`: the same over 656 bytes a
token, scaled e4m3. FlashMLA decodes over such caches only (`flash_mla_with_kvcache`), for 64 and 128 heads; its kernel for prompts
(`flash_mla_sparse_fwd`) reads bf16. On Hopper expect deft at 1.2 to 1.4 times the floor from 32 requests on, with 16 heads and with
128, and at twice the floor with 8; of drafts that agree, with 16 heads, half the time that separate lists take (`us_apart`). The floor:
the larger of the lists' different tokens at 4,704 GB/s plus 3.6 us and 2,176 FLOP a head, query and token at 750 TFLOP/s plus 2.8 us
(H200). A time is the median of replays of a CUDA graph, the L2 cache evicted before each. Results are compared with torch's in double
precision before they are timed.

  tests/gpu/latent_lists.py [--repeat N] [--json FILE]

Prints one line a row, and with --json the same. Exit code 1: a wrong result; 3: no torch or no GPU.
"""

import argparse
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/peers"))
import of_flash_mla  # noqa: E402
from graph_time import graph_time_us  # noqa: E402

HEADS, PAGE, CKV, KPE, TOPK, TOKENS, SCALE = (16, 64, 128), 64, 512, 64, 2048, 32768, 192**-0.5
# Requests, queries of each, and the part of a list that is in all of a request's lists.
ROWS = {"1": (1, 1, 0), "8": (8, 1, 0), "32": (32, 1, 0), "64": (64, 1, 0), "64_x4_drafts": (64, 4, 0)}
ROWS |= {"16_x4_agree": (16, 4, 0.8), "64_x4_agree": (64, 4, 0.8)}


def floor_us(heads, requests, each, overlap):
    tokens, different = requests * each * TOPK, requests * TOPK * (overlap + each * (1 - overlap))
    bytes_us = different * (CKV + KPE) * 2 / 4704e3 + 3.6
    return max(bytes_us, 2176 * heads * tokens / 750e6 + 2.8)


class Step:
    def __init__(self, torch, heads, requests, each, overlap):
        generator = torch.Generator(device="cuda").manual_seed(heads + requests)
        make = {"generator": generator, "device": "cuda"}
        self.q = torch.randn(requests, each, heads, CKV + KPE, dtype=torch.bfloat16, **make)
        self.cache = torch.randn(requests * TOKENS // PAGE, PAGE, 1, CKV + KPE, dtype=torch.bfloat16, **make)
        own = torch.rand(requests, each, TOKENS, **make).argsort(-1)[..., :TOPK]
        if overlap:  # one order of a request's tokens: what all have, and then each query's
            order, common = torch.rand(requests, TOKENS, **make).argsort(-1), round(overlap * TOPK)
            alone = order[:, common : common + each * (TOPK - common)].view(requests, each, -1)
            own = torch.cat([order[:, None, :common].expand(-1, each, -1), alone], -1)
            own = own.gather(-1, torch.rand(own.shape, **make).argsort(-1))
        first = torch.arange(requests, device="cuda")[:, None, None] * TOKENS
        self.indices = (own + first).int()

    def pack(self, torch):
        """The cache as 656 bytes a token, and what these stand for."""
        latent, rope = self.cache[..., :CKV].float().unflatten(-1, (CKV // 128, 128)), self.cache[..., CKV:].contiguous()
        scales = latent.abs().amax(-1) / 448
        elements = (latent / scales[..., None]).to(torch.float8_e4m3fn)
        whole = torch.cat([(elements.float() * scales[..., None]).flatten(-2), rope.float()], -1)
        return torch.cat([elements.flatten(-2).view(torch.uint8), scales.view(torch.uint8), rope.view(torch.uint8)], -1), whole

    def error(self, torch, out, cache):
        """The largest distance of a few rows to double precision, relative to the row."""
        worst = 0.0
        for request in range(0, len(self.q), max(1, len(self.q) // 4)):
            q, slots = self.q[request, -1].double(), self.indices[request, -1].long()
            k = cache.view(-1, CKV + KPE)[slots].double()
            right = torch.softmax(q @ k.T * SCALE, -1) @ k[:, :CKV]
            distance = (out[request, -1].double() - right).norm(dim=-1) / right.norm(dim=-1)
            worst = max(worst, float(distance.max()))
        return worst


def time_ours(torch, step, overlap, repeat, has_bytes=False):
    from deft.flash_mla import flash_mla_with_kvcache, get_mla_metadata

    metadata, _ = get_mla_metadata(list_overlap=overlap)
    cache, whole = step.pack(torch) if has_bytes else (step.cache, step.cache)

    def run():
        return flash_mla_with_kvcache(
            step.q, cache, None, None, CKV, metadata, None, SCALE, is_fp8_kvcache=has_bytes, indices=step.indices
        )

    error = step.error(torch, run()[0], whole)
    return graph_time_us(torch, run, repeat), error


def time_prompt_kernel(torch, step, repeat):
    """FlashMLA's for prompts: bf16, any number of queries."""
    flash_mla_sparse_fwd = of_flash_mla.load().flash_mla_sparse_fwd
    q, kv, indices = step.q.flatten(0, 1), step.cache.view(-1, 1, CKV + KPE), step.indices.flatten(0, 1)[:, None]
    return graph_time_us(torch, lambda: flash_mla_sparse_fwd(q, kv, indices, SCALE), repeat)


def time_bytes_kernel(torch, step, repeat):
    """FlashMLA's for decoding: tokens of 656 bytes, whose values do not matter to the time."""
    flash_mla = of_flash_mla.load()
    cache = torch.zeros(*step.cache.shape[:3], 656, dtype=torch.uint8, device="cuda").view(torch.float8_e4m3fn)
    metadata, _ = flash_mla.get_mla_metadata()

    def run():
        return flash_mla.flash_mla_with_kvcache(
            step.q, cache, None, None, CKV, metadata, None, SCALE, is_fp8_kvcache=True, indices=step.indices
        )

    run()
    return graph_time_us(torch, run, repeat)


def time_peer(measure, *given):
    try:
        return round(measure(*given), 2)
    except Exception as error:  # it takes fewer shapes, and its releases differ
        print(f"latent_lists: {measure.__name__}: {error}", file=sys.stderr)
        return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeat", type=int, default=41)
    parser.add_argument("--json")
    options = parser.parse_args()
    try:
        import torch
    except ImportError as error:
        print(f"latent_lists: {error}", file=sys.stderr)
        return 3
    if not torch.cuda.is_available():
        print("latent_lists: there is no GPU", file=sys.stderr)
        return 3
    try:
        of_flash_mla.load()
        peers = {"prompt_bf16": time_prompt_kernel, "decode_656_bytes": time_bytes_kernel}
    except ImportError as error:
        peers = {}
        print(f"latent_lists: FlashMLA is not installed: {error}", file=sys.stderr)
    result = {"device": torch.cuda.get_device_name(), "topk": TOPK, "rows": {}}
    is_right = True
    for name, (requests, each, overlap) in ROWS.items():
        for heads in HEADS:
            step = Step(torch, heads, requests, each, overlap)
            us, error = time_ours(torch, step, overlap, options.repeat)
            is_right = is_right and error < 0.02
            floor = floor_us(heads, requests, each, overlap)
            row = {"us": round(us, 2), "floor_us": round(floor, 2), "error": round(error, 5)}
            us_656, error_656 = time_ours(torch, step, overlap, options.repeat, has_bytes=True)
            is_right = is_right and error_656 < 0.02
            row |= {"us_656": round(us_656, 2), "error_656": round(error_656, 5)}
            if overlap:
                row["us_apart"] = round(time_ours(torch, step, 0, options.repeat)[0], 2)
            row |= {peer: time_peer(measure, torch, step, options.repeat) for peer, measure in peers.items()}
            result["rows"][f"lists_{name}_h{heads}"] = row
            print(f"lists_{name}_h{heads:<4} {us:8.1f} us, floor {row['floor_us']:7.1f}, error {error:.4f}", *(f"{p} {row[p]}" for p in ("us_656", "us_apart", *peers) if p in row), flush=True)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)
            file.write("\n")
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
