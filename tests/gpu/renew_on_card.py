#!/usr/bin/env python3
"""Tunes the entries that ship anew on this machine's GPU, those that are used most first, as far as so many seconds go.

    tests/gpu/renew_on_card.py --deftc DEFTC --packages FOLDER --out FOLDER --seconds N [--workloads DIR]

--packages has kernel_rows.deftpkg, latent_rows.deftpkg (of tests/bench) and heads.deftpkg (of tests/gpu), built for the GPU's architecture;
share/deftc/configs lies beside the program as in an installation. On a card that ships its entries they are measured
again; on another one, whose sibling does, what was found there is measured here (`deftc tune --from-related`). --out
gets configs/DEVICE.json, journals to go on with by the same call, and log.txt (tests/gpu/tune_families). At the end it
says how many entries of each attention it got through, of how many that ship.
"""

import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
# What an engine asks for first: pages of 16, bf16; then the rows of the benchmarks, then the rest. An attention's package,
# its name, the signature of its entries, and on which trees and pages they were tuned.
ORDER = (
    ("heads", "h32_8_bf16", "q32-kv8-d128-bf16-p16nhd-plain"),
    ("kernel_rows", "h32_8", "q32-kv8-d128-f16-p1nhd-plain"),
    ("heads", "h64_8_bf16", "q64-kv8-d128-bf16-p16nhd-plain"),
    ("heads", "h32_8_f16", "q32-kv8-d128-f16-p16nhd-plain"),
    ("heads", "h16_1_bf16", "q16-kv1-d128-bf16-p16nhd-plain"),
    ("kernel_rows", "h16_1", "q16-kv1-d128-f16-p1nhd-plain"),
    ("heads", "h32_32_bf16", "q32-kv32-d128-bf16-p16nhd-plain"),
    ("kernel_rows", "h32_32", "q32-kv32-d128-f16-p1nhd-plain"),
    ("heads", "h64_8_f16", "q64-kv8-d128-f16-p16nhd-plain"),
    ("heads", "h16_1_f16", "q16-kv1-d128-f16-p16nhd-plain"),
    ("heads", "h32_32_f16", "q32-kv32-d128-f16-p16nhd-plain"),
    ("latent_rows", "latent_h16", "q16-kv1-d576k512-bf16-p64nhd-plain"),
    ("latent_rows", "latent_h128", "q128-kv1-d576k512-bf16-p64nhd-plain"),
    ("latent_rows", "latent_h64", "q64-kv1-d576k512-bf16-p64nhd-plain"),
    ("latent_rows", "latent_h8", "q8-kv1-d576k512-bf16-p64nhd-plain"),
)
HOW = {"kernel_rows": {"FAMILIES": "rows", "TUNE_FLAGS": "--from-related --pages in-order", "SESSION": "rows"},
       "heads": {"FAMILIES": "rows all", "TUNE_FLAGS": "--from-related", "SESSION": "families"},
       "latent_rows": {"FAMILIES": "all", "TUNE_FLAGS": "--from-related", "SESSION": "families"}}
# What an entry took on an H200, twice over: an attention that goes astray leaves the rest their time. On an H100
# one took 1 to 9.
SECONDS_OF_ENTRY = 2.0
LEAST_SECONDS = 20  # its kernels have to be compiled first


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--deftc", required=True, type=pathlib.Path)
    parser.add_argument("--packages", required=True, type=pathlib.Path)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--seconds", required=True, type=float)
    parser.add_argument("--workloads", type=pathlib.Path)
    return parser.parse_args()


def entries_by_signature(folder):
    """How many entries each signature has in the one of the folder's files that has most of it."""
    counts = collections.Counter()
    for path in sorted(folder.glob("*.json")) if folder.is_dir() else []:
        counts |= collections.Counter(entry["signature"] for entry in json.loads(path.read_text(encoding="utf-8"))["entries"])
    return counts


def seconds_for(entries, left):
    """What an attention of so many entries may take of the time that is left; 0: too little to begin."""
    seconds = min(left, max(30.0, SECONDS_OF_ENTRY * entries))
    return int(seconds) if seconds >= LEAST_SECONDS else 0


def summary(shipped, renewed):
    """A line of each attention that ships, and one of all."""
    lines = [f"{name}, {signature}: {renewed[signature]} of {shipped[signature]} entries"
             for _, name, signature in ORDER]
    done = sum(min(renewed[signature], shipped[signature]) for _, _, signature in ORDER)
    return [*lines, f"{done} of {sum(shipped.values())} entries that ship are of this card and these kernels now"]


def main():
    arguments = parse_arguments()
    end = time.monotonic() + arguments.seconds
    deftc = arguments.deftc.resolve()
    shipped = entries_by_signature(deftc.parent.parent / "share" / "deftc" / "configs")
    if not shipped:
        sys.exit(f"no entries that ship beside {deftc}: share/deftc/configs is to lie as in an installation")
    arguments.out.mkdir(parents=True, exist_ok=True)
    for package, name, signature in ORDER:
        seconds = seconds_for(shipped[signature], end - time.monotonic())
        if seconds == 0:
            print(f"{name}: the time is over", flush=True)
            continue
        environment = {**os.environ, **HOW[package]}
        if arguments.workloads:
            environment["WORKLOADS"] = str(arguments.workloads)
        began = time.monotonic()
        subprocess.run([HERE / "tune_families", deftc, arguments.packages / f"{package}.deftpkg", arguments.out, str(seconds),
                        name], env=environment, check=False, stdout=subprocess.DEVNULL)
        renewed = entries_by_signature(arguments.out / "configs")
        print(f"{name}: {renewed[signature]} of {shipped[signature]} entries, {time.monotonic() - began:.0f} s", flush=True)
    print("\n".join(summary(shipped, entries_by_signature(arguments.out / "configs"))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
