#!/usr/bin/env python3
"""Runs every package on every tree on this machine's GPU, checks each result against the oracle, and keeps a record.

    tests/gpu/verify.py --deftc DEFTC --packages FOLDER --trees FOLDER [--sanitizer] --record FILE.json

The packages come from tests/gpu/build_packages. Needs a GPU and Python, nothing else. Ends with 1 when a case is wrong.
With --sanitizer, one case of each attention runs again under compute-sanitizer's memcheck.
"""

import argparse
import concurrent.futures
import datetime
import json
import pathlib
import re
import subprocess
import sys


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--deftc", required=True)
    parser.add_argument("--packages", required=True, type=pathlib.Path)
    parser.add_argument("--trees", required=True, type=pathlib.Path)
    parser.add_argument("--record", required=True, type=pathlib.Path)
    parser.add_argument("--commit", default="unknown", help="of the sources the packages were built from")
    parser.add_argument("--only", default="", help="a regular expression over attention names")
    parser.add_argument("--sanitizer", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def attentions(packages):
    """(package, variant as JSON) of every attention in the folder: PACKAGE.ATTENTION.json lies beside PACKAGE.deftpkg."""
    for facts in sorted(packages.glob("*.*.json")):
        yield packages / f"{facts.name.split('.')[0]}.deftpkg", json.loads(facts.read_text())


def parameters(variant):
    """A value for each parameter that has no default."""
    return [f"{p['name']}={4 if p['type'] == 'i32' else 0.05}" for p in variant.get("params", []) if "default_value" not in p]


def command(arguments, package, variant, tree, pages, extra):
    line = [arguments.deftc, "run", str(package), "--variant", variant["name"], "--tree", str(tree), "--backend", "cuda",
            "--pages", pages, "--seed", str(arguments.seed), "--check", "--json", "-", *extra]
    for value in parameters(variant):
        line += ["--param", value]
    return line


def run_case(arguments, package, variant, tree, pages):
    done = subprocess.run(command(arguments, package, variant, tree, pages, ["--repeat", "11"]), capture_output=True, text=True)
    case = {"attention": variant["name"], "tree": tree.stem, "pages": pages, "exit_code": done.returncode}
    if not done.stdout.startswith("{"):
        case["message"] = (done.stderr or done.stdout).strip()
        return case
    report = json.loads(done.stdout)
    case.update(report["check"])
    case.update({"median_us": report["time"]["median_us"], "floor_us": report.get("floor", {}).get("us"),
                 "device": report["device"], "queries": report["tree"]["queries"], "tokens": report["tree"]["tokens"]})
    return case


def sanitize(arguments, package, variant, tree):
    line = ["compute-sanitizer", "--tool", "memcheck", "--error-exitcode", "99",
            *command(arguments, package, variant, tree, "scattered", ["--repeat", "1"])]
    done = subprocess.run(line, capture_output=True, text=True)
    summary = re.search(r"ERROR SUMMARY: .*", done.stdout + done.stderr)
    return {"attention": variant["name"], "tree": tree.stem, "exit_code": done.returncode,
            "summary": summary.group(0) if summary else (done.stderr or done.stdout).strip()[-500:]}


def gpu_facts():
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    return subprocess.run(query, capture_output=True, text=True).stdout.strip()


def print_times(cases):
    """Time beside the floor, the median over the attentions of each tree."""
    timed = [c for c in cases if c.get("floor_us") and c["pages"] == "in-order"]
    for tree in sorted({c["tree"] for c in timed}):
        ratios = sorted(c["median_us"] / c["floor_us"] for c in timed if c["tree"] == tree)
        print(f"{tree:24s} {ratios[len(ratios) // 2]:5.2f} times the floor ({ratios[0]:.2f} to {ratios[-1]:.2f})")


def record_text(record, cases):
    """JSON with a line for each case, so that two records can be compared line by line."""
    lines = ",\n".join("  " + json.dumps(case) for case in cases)
    return json.dumps(record, indent=1)[:-2] + ',\n "results": [\n' + lines + "\n ]\n}\n"


def main():
    arguments = parse_arguments()
    trees = sorted(arguments.trees.glob("*.json"))
    chosen = [(p, v) for p, v in attentions(arguments.packages) if re.search(arguments.only, v["name"])]
    if not trees or not chosen:
        sys.exit("verify.py: no trees or no packages found")
    cases = []
    for package, variant in chosen:
        for pages in ("in-order", "scattered"):
            of_this = [run_case(arguments, package, variant, tree, pages) for tree in trees]
            wrong = [c for c in of_this if c["exit_code"] != 0]
            print(f"{variant['name']:24s} {pages:10s} {len(of_this) - len(wrong)} of {len(of_this)} right", flush=True)
            for case in wrong:
                print(f"  {case['tree']}: {case}", flush=True)
            cases += of_this
    sanitized = []
    if arguments.sanitizer:
        tree = next((t for t in trees if t.stem == "random"), trees[0])
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            sanitized = list(pool.map(lambda c: sanitize(arguments, *c, tree), chosen))
        for case in sanitized:
            print(f"{case['attention']:24s} memcheck   {case['summary']}", flush=True)
    wrong = [c for c in cases + sanitized if c["exit_code"] != 0]
    record = {"format": "deftc-gpu-record", "version": 1, "date": datetime.date.today().isoformat(), "gpu": gpu_facts(),
              "commit": arguments.commit, "command": " ".join(sys.argv), "cases": len(cases), "wrong": len(wrong),
              "memcheck": sanitized}
    arguments.record.parent.mkdir(parents=True, exist_ok=True)
    arguments.record.write_text(record_text(record, cases))
    print_times(cases)
    print(f"{len(cases) + len(sanitized) - len(wrong)} passed, {len(wrong)} failed")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
