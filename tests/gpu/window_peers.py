#!/usr/bin/env python3
"""Times of FlashInfer's decode with `window_left` on the rows of `deftc bench windows`, where it is installed.

The same trees as sixteen requests that share the pages of their prompt: heads 32/8, head dim 128, bf16, pages of 16.
A time is the median of replays of a CUDA graph, the L2 cache evicted before each, as `deftc bench` has it.

  tests/gpu/window_peers.py [--repeat N] [--json FILE]

Prints one line a row, and with --json the same as {"device": ..., "rows": {row: us}}. Exit code 3: no FlashInfer or no GPU.
"""

import argparse
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools/peers"))
from graph_time import graph_time_us  # noqa: E402

WINDOWS = {"w128": 128, "w4096": 4096}
PROMPTS = {"and_1k": None, "16k": 16384, "64k": 65536, "128k": 131072}
BRANCHES, BRANCH, PAGE, HEADS, KV_HEADS, DIM = 16, 20, 16, 32, 8, 128


def rows():
    """Name, window and prompt of each row, as tuner/bench/OtherRows.cpp has them."""
    for kind, window in WINDOWS.items():
        for length, prompt in PROMPTS.items():
            yield f"{kind}_{length}", window, prompt or window + 1024


def table(prompt):
    """Each request's pages: those that the prompt fills are shared, what it begins is each one's own."""
    shared = prompt // PAGE
    own = -(-(prompt + BRANCH) // PAGE) - shared
    indices, indptr = [], [0]
    for request in range(BRANCHES):
        indices += list(range(shared)) + list(range(shared + request * own, shared + (request + 1) * own))
        indptr.append(len(indices))
    last = (prompt + BRANCH - 1) % PAGE + 1
    return indices, indptr, [last] * BRANCHES, shared + BRANCHES * own


def measure(torch, flashinfer, window, prompt, repeat):
    device = torch.device("cuda")
    indices, indptr, last, pages = table(prompt)
    cache = torch.randn(pages, 2, PAGE, KV_HEADS, DIM, dtype=torch.bfloat16, device=device)
    q = torch.randn(BRANCHES, HEADS, DIM, dtype=torch.bfloat16, device=device)
    best = None
    for cores in (True, False):
        wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(
            torch.empty(256 << 20, dtype=torch.uint8, device=device), "NHD", use_tensor_cores=cores)
        ints = [torch.tensor(values, dtype=torch.int32, device=device) for values in (indptr, indices, last)]
        wrapper.plan(*ints, HEADS, KV_HEADS, DIM, PAGE, window_left=window - 1, q_data_type=torch.bfloat16,
                     kv_data_type=torch.bfloat16)
        us = graph_time_us(torch, lambda: wrapper.run(q, cache), repeat)
        best = us if best is None else min(best, us)
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeat", type=int, default=41)
    parser.add_argument("--json")
    options = parser.parse_args()
    try:
        import flashinfer
        import torch
    except ImportError as error:
        print(f"window_peers: {error}: install flashinfer-python and torch", file=sys.stderr)
        return 3
    if not torch.cuda.is_available():
        print("window_peers: there is no GPU", file=sys.stderr)
        return 3
    result = {"device": torch.cuda.get_device_name(), "peer": f"FlashInfer {flashinfer.__version__} decode", "rows": {}}
    for name, window, prompt in rows():
        us = measure(torch, flashinfer, window, prompt, options.repeat)
        result["rows"][name] = round(us, 2)
        print(f"{name:12} {us:8.1f} us", flush=True)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)
            file.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
