#!/usr/bin/env python3
"""What a sparse layer takes where branches of a prompt agree on what they look for, more or less.

    tests/gpu/selection/agreeing_branches.py --deftc DEFTC PACKAGE [PACKAGE...] [--out rows.json]

PACKAGEs are of one spec that selects (specs/llama3_8b_sparse.deft), say one of today's and one without kernels for unions
of lists. Each branch's query is a part that all have in common and one of its own; `common` is how much of the first
there is, from 0 to 1. Printed for each: how many tokens of the prompt are on some list of a KV head, of how many that all
lists have together, and the time of a layer that selects and of one that reads, by each package.
"""

import argparse
import json
import pathlib
import subprocess
import tempfile

import numpy


def run(deftc, package, *arguments):
    """The report of `deftc run`."""
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        subprocess.run([deftc, "run", package, "--backend", "cuda", "--repeat", "20", "--json", report.name, *arguments], check=True, capture_output=True)
        return json.loads(pathlib.Path(report.name).read_text(encoding="utf-8"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--deftc", required=True)
    parser.add_argument("packages", nargs="+", metavar="PACKAGE")
    parser.add_argument("--prompt", type=int, default=32000)
    parser.add_argument("--branches", type=int, default=20)
    parser.add_argument("--out")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        inputs, outputs = f"{folder}/in", f"{folder}/out"
        run(options.deftc, options.packages[0], "--workload", f"few_shot:prompt={options.prompt},branches={options.branches}", "--steps", "1", "--dump", inputs)
        given = numpy.load(f"{inputs}/q.npy")
        random = numpy.random.default_rng(1)
        common = random.standard_normal(given.shape[1:]) * given.std()
        own = random.standard_normal(given.shape) * given.std()
        for part in (0.0, 0.5, 0.7, 0.85, 0.95, 1.0):
            numpy.save(f"{inputs}/q.npy", (part * common + (1 - part * part) ** 0.5 * own).astype(numpy.float32))
            run(options.deftc, options.packages[0], "--inputs", inputs, "--dump", outputs)
            lists = numpy.load(f"{outputs}/selected.npy")
            union = numpy.mean([len(numpy.unique(ids[(ids >= 0) & (ids < options.prompt)])) for ids in numpy.moveaxis(lists, 1, 0)])
            row = {"common": part, "union_tokens": round(float(union)), "list_tokens": int((lists >= 0).sum() // lists.shape[1]), "packages": {}}
            for package in options.packages:
                select = run(options.deftc, package, "--inputs", inputs)["select"]
                row["packages"][pathlib.Path(package).stem] = {key: round(select[key], 1) for key in ("selecting_us", "sparse_us")}
            rows.append(row)
            print(json.dumps(row), flush=True)
    if options.out:
        pathlib.Path(options.out).write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
