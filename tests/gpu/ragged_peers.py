#!/usr/bin/env python3
"""Times of torch's attention on the rows of `deftc bench ragged`: cuDNN's kernels and flash attention, where it is installed.

The same requests without pages and without sharing: heads 32/8, head dim 128, bf16; each request's tokens lie by themselves. A
row with requests of two kinds is one call for each kind. A time is the median of replays of a CUDA graph, the L2 cache evicted
before each, as `deftc bench` has it.

  tests/gpu/ragged_peers.py [--repeat N] [--json FILE]

Prints one line a row, and with --json the same as {"device": ..., "rows": {row: {backend: us}}}; a backend that refuses a row is
left out. Exit code 3: no torch or no GPU.
"""

import argparse
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools/peers"))
from graph_time import graph_time_us  # noqa: E402

HEADS, KV_HEADS, DIM = 32, 8, 128
# Of each row, as tuner/bench/OtherRows.cpp has it: (requests, new tokens of each, all tokens that its last query sees).
ROWS = {
    "prefill_4k": [(1, 4096, 4096)],
    "prefill_16k": [(1, 16384, 16384)],
    "append_512": [(1, 512, 4512)],
    "mixed_60_4": [(60, 1, 2001), (4, 1024, 2024)],
}


def inputs_of(torch, requests, new, tokens):
    """q, k and v."""
    def draw(heads, length):
        return torch.randn(requests, heads, length, DIM, dtype=torch.bfloat16, device="cuda")
    return draw(HEADS, new), draw(KV_HEADS, tokens), draw(KV_HEADS, tokens)


def attend(torch, q, k, v):
    """Each query sees the tokens up to its own, the last ones being the queries'."""
    from torch.nn.attention.bias import causal_lower_right
    attention = torch.nn.functional.scaled_dot_product_attention
    if q.shape[2] == 1:
        return attention(q, k, v, enable_gqa=True)
    if q.shape[2] == k.shape[2]:
        return attention(q, k, v, is_causal=True, enable_gqa=True)
    return attention(q, k, v, attn_mask=causal_lower_right(q.shape[2], k.shape[2]), enable_gqa=True)


def measure(torch, backend, calls, repeat):
    from torch.nn.attention import sdpa_kernel
    inputs = [inputs_of(torch, *call) for call in calls]
    with sdpa_kernel(backend):
        return graph_time_us(torch, lambda: [attend(torch, *one) for one in inputs], repeat)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeat", type=int, default=41)
    parser.add_argument("--json")
    options = parser.parse_args()
    try:
        import torch
        from torch.nn.attention import SDPBackend
    except ImportError as error:
        print(f"ragged_peers: {error}: install torch", file=sys.stderr)
        return 3
    if not torch.cuda.is_available():
        print("ragged_peers: there is no GPU", file=sys.stderr)
        return 3
    backends = {"cudnn": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION}
    result = {"device": torch.cuda.get_device_name(), "peer": f"torch {torch.__version__}", "rows": {}}
    for name, calls in ROWS.items():
        times = {}
        for kind, backend in backends.items():
            try:
                times[kind] = round(measure(torch, backend, calls, options.repeat), 2)
            except RuntimeError as error:
                print(f"ragged_peers: {name}: {kind}: {str(error).splitlines()[0]}", file=sys.stderr)
        result["rows"][name] = times
        print(f"{name:12}" + "".join(f"  {kind} {us:8.1f} us" for kind, us in times.items()), flush=True)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)
            file.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
