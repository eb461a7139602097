#!/usr/bin/env python3
"""Times of decode attention over trees on a processor: deftc tuned and untuned, each request's path by itself (partition
`query`), and torch's SDPA over contiguous copies of the paths, where torch is installed.

  tests/bench/python/cpu_rows.py --deftc DEFTC [--spec SPEC] [--tune TIME] [--threads N] [--json FILE]

`deftc tune` looks for configs first, for TIME (0s: what is tuned already stays), into a cache of its own. The rows of a tree
are timed in turn, and torch's call in the minute after them. Prints a line a tree; with --json a record, too. Leave the
machine alone meanwhile.
"""

import argparse
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time

HEADS, KV_HEADS, DIM = 32, 8, 128  # of llama3_8b
# Each tree, and its requests' tokens as torch has them: (requests, tokens).
TREES = {
    "few_shot:prompt=1000,branches=8": (8, 1001),
    "few_shot:prompt=4000,branches=20": (20, 4001),
    "few_shot:prompt=4000,branches=50": (50, 4001),
    "token_tree:prompt=4000,tokens=32": (32, 4004),
    "token_tree:prompt=4000,tokens=64": (64, 4004),
    "levels:nodes=1,4,16,tokens=1000,200,100": (16, 1300),
    "levels:nodes=1,16,64,tokens=1024,256,32": (64, 1312),
    "no_sharing:requests=8,tokens=1000": (8, 1000),
}
FAMILIES = ("few_shot", "speculative", "multi_level", "no_sharing")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--deftc", required=True)
    parser.add_argument("--spec", default="llama3_8b", help="with the dims of llama3_8b, its default")
    parser.add_argument("--tune", default="10m", metavar="TIME")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", metavar="FILE")
    return parser.parse_args()


def processor():
    """Its name, as the system has it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def commit():
    """Of this checkout; empty where there is none."""
    return subprocess.run(["git", "-C", pathlib.Path(__file__).parent, "rev-parse", "--short", "HEAD"], check=False,
                          capture_output=True, text=True).stdout.strip()


def tune(arguments, environment):
    command = [arguments.deftc, "tune", arguments.spec, "--backend", "cpu", "--budget", arguments.tune, "--threads",
               str(arguments.threads)]
    for family in FAMILIES:
        command += ["--workload", family]
    subprocess.run(command, check=True, env=environment)


def compared(arguments, environment, tree):
    """Medians in us: by the tuned config, where there is one, by the untuned choice, and path by path."""
    command = [arguments.deftc, "compare", arguments.spec, "--backend", "cpu", "--workload", tree, "--partition", "query",
               "--rounds", str(arguments.rounds), "--threads", str(arguments.threads), "--json", "-"]
    rows = json.loads(subprocess.run(command, check=True, env=environment, capture_output=True, text=True).stdout)["rows"]
    chosen = [row for row in rows if row["chosen"]]
    times = {"untuned_us": None, "tuned_us": None, "flat_us": None}
    for row in chosen:
        times["tuned_us" if row["tuned"] else "untuned_us"] = row["median_us"]
    times["flat_us"] = min(row["median_us"] for row in rows if row["partition"] == "query")
    times["spread"] = max((row["most_us"] - row["least_us"]) / 2 / row["median_us"] for row in rows)
    times["partition"] = next((row["partition"] for row in chosen if row["tuned"]), chosen[0]["partition"])
    return times


def torch_us(torch, dtype, requests, tokens, rounds):
    """A call over copies of the paths, one token a request."""
    q = torch.randn(requests, HEADS, 1, DIM).to(dtype)
    k, v = (torch.randn(requests, KV_HEADS, tokens, DIM).to(dtype) for _ in range(2))
    times = []
    for _ in range(rounds + 1):
        began = time.perf_counter()
        torch.nn.functional.scaled_dot_product_attention(q, k, v, enable_gqa=True)
        times.append((time.perf_counter() - began) * 1e6)
    return statistics.median(times[1:])


def main():
    arguments = parse_arguments()
    try:
        import torch
        torch.set_num_threads(arguments.threads)
    except ImportError:
        torch = None
    record = {"format": "deftc-cpu-record", "version": 1, "device": processor(), "threads": arguments.threads,
              "date": time.strftime("%Y-%m-%d"), "commit": commit(), "torch": torch and torch.__version__,
              "command": " ".join(["tests/bench/python/cpu_rows.py", *sys.argv[1:]]), "rows": []}
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "DEFT_CACHE_DIR": cache}
        if arguments.tune != "0s":
            tune(arguments, environment)
        for tree, (requests, tokens) in TREES.items():
            row = {"tree": tree, **compared(arguments, environment, tree)}
            for dtype in ("bfloat16", "float32") if torch else ():
                row[f"torch_{dtype}_us"] = torch_us(torch, getattr(torch, dtype), requests, tokens, arguments.rounds)
            record["spread"] = max(record.get("spread", 0), row.pop("spread"))  # half of a row's range, over its median
            record["rows"].append(row)
            print("  ".join(f"{key} {value:.0f}" if isinstance(value, float) else f"{key} {value}"
                            for key, value in row.items()), flush=True)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(record, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
