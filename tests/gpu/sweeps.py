#!/usr/bin/env python3
"""How the time of one step's attention goes with its tree and its heads: sweeps that each change one thing.

  tests/gpu/sweeps.py --deftc DEFTC --package sweeps.deftpkg [--only TEXT] [--repeat N] [--json FILE]

The package is built of tests/gpu/sweeps.deft for the GPU. Each point is a `deftc run --check` of its own: the median of so many
launches with a cold L2, checked against float64. Exit code 1 where a point fails or is wrong.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path


def few_shot(prompt=8192, branches=32, step=64):
    return f"few_shot:prompt={prompt},branches={branches},step={step},iterations={step}"


def chain(depth, tokens=8192, readers=32):
    """A path of so many nodes with as many tokens in all, and leaves below it."""
    nodes = ",".join(["1"] * depth + [str(readers)])
    return f"levels:nodes={nodes},tokens={','.join([str(tokens // depth)] * depth + ['64'])}"


# Of each sweep, what changes and its points: (value, attention, workload).
SWEEPS = {
    "tokens": [(n, "base", few_shot(prompt=n)) for n in (512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072)],
    "own_tokens": [(32 * n, "base", few_shot(prompt=1024, step=n)) for n in (32, 64, 128, 256, 512, 1024, 2048, 4096)],
    "readers": [(n, "base", few_shot(branches=n, step=1)) for n in (1, 2, 4, 8, 16, 32, 64, 128, 256)],
    "depth": [(n, "base", chain(n)) for n in (1, 2, 4, 8, 16, 32, 64)],
    "page_size": [(n, "base" if n == 16 else f"page_{n}", few_shot()) for n in (1, 16, 32, 64, 128, 256)],
    "head_dim": [(n, "base" if n == 128 else f"dim_{n}", few_shot()) for n in (64, 96, 128, 192, 256)],
    "ratio": [(n, "base" if n == 4 else f"ratio_{n}", few_shot()) for n in (1, 2, 4, 8, 16, 32)],
    "sink": [("none, 128", "base", few_shot()), ("a sink, 128", "sink", few_shot()), ("none, 64", "dim_64", few_shot()),
             ("a sink, 64", "sink_64", few_shot())],
}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--deftc", required=True)
    parser.add_argument("--package", required=True)
    parser.add_argument("--only", default="", help="sweeps whose name contains this")
    parser.add_argument("--repeat", type=int, default=21)
    parser.add_argument("--commit", default="", help="of the sources, for the record")
    parser.add_argument("--json")
    return parser.parse_args()


def run(options, attention, workload):
    """The report of a run, or what it said."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [options.deftc, "run", f"{options.package}#{attention}", "--workload", workload, "--steps", "1", "--backend",
                   "cuda", "--untuned", "--check", "--repeat", str(options.repeat), "--json", str(report)]
        if attention.startswith("sink"):
            command += ["--param", "sinks=0.5"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode or not report.exists():
            return (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        return json.loads(report.read_text(encoding="utf-8"))


def point(value, attention, workload, report):
    time = report["time"]
    return {"value": value, "attention": attention, "workload": workload, "us": time["median_us"], "least_us": time["fastest_us"],
            "most_us": time["slowest_us"], "floor_us": report["floor"]["us"] if "floor" in report else None, "cache_bytes": report["cache_bytes"]}


def main():
    options = parse_arguments()
    record = {"format": "deftc-sweeps", "version": 1, "device": None, "commit": options.commit, "command": " ".join(sys.argv),
              "sweeps": {}}
    failed = 0
    for name, points in SWEEPS.items():
        if options.only not in name:
            continue
        for value, attention, workload in points:
            report = run(options, attention, workload)
            if isinstance(report, str):
                print(f"{name} {value}: {report}", flush=True)
                failed += 1
                continue
            record["device"] = report["device"]
            one = point(value, attention, workload, report)
            record["sweeps"].setdefault(name, []).append(one)
            print(f"{name} {value}: {one['us']:.1f} us", flush=True)
    if options.json:
        Path(options.json).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
