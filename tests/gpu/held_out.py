#!/usr/bin/env python3
"""Are tuned configs worth it on trees that nobody tuned on? Times, for every entry of the attentions, what it gives on
trees like those of its class (`deftc cache regret --held-out`: other lengths, some leaves fewer, near ones and far ones,
the same class) against the untuned choice for the same tree, side by side in one process with a cold L2.

    tests/gpu/held_out.py --deftc DEFTC --package PACKAGE#ATTENTION... [--workloads FOLDER] [--record FILE.json]
                          [--workload FAMILY...] [--demote CONFIGS.json]

Prints a line for each tree that differs by more than --tell, and for each attention and all together the geometric mean,
the worst, and how many are more than --noise above the untuned choice. Entries that keep the untuned choice count as 1
without being timed twice. With --demote, entries that are more than --noise above the untuned choice on one of these
trees are from then on, in that file, for trees like those that they were tuned on alone, up to half way to what lost;
where that is next to one of these, they keep the untuned choice; so --workload must name what they were tuned on, where
that is less than all.
The entries are those that `deftc` finds (DEFT_CACHE_DIR, or beside it); stale ones count with --stale. Needs a GPU,
Python and verify.py beside it.
"""

import argparse
import json
import math
import pathlib
import shlex
import subprocess
import sys

import verify

LIKENESS, LEAST_WITHIN = 0.1, 0.025  # as the tuner has them


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--deftc", required=True)
    parser.add_argument("--package", required=True, action="append", metavar="PACKAGE#ATTENTION[:in-order]",
                        help="may be repeated; `:in-order` for trees whose pages lie in order")
    parser.add_argument("--workload", action="append", default=[], metavar="FAMILY",
                        help="what was tuned on; may be repeated; all families and rows without it")
    parser.add_argument("--workloads", default="", help="a folder of recorded workloads")
    parser.add_argument("--trees-per-class", type=int, default=2)
    parser.add_argument("--tell", type=float, default=0.03)
    parser.add_argument("--noise", type=float, default=0.02)
    parser.add_argument("--stale", action="store_true")
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--record", type=pathlib.Path)
    parser.add_argument("--demote", type=pathlib.Path, metavar="CONFIGS.json",
                        help="the file that the entries come from; `deftc cache merge FILE -o FILE` puts it in order")
    return parser.parse_args()


def time_rows(arguments, package):
    """Of each row the class, the tree and where it stands, microseconds tuned and untuned, whether it is stale; and where
    the trees stand that the class is tuned on."""
    name, _, pages = package.partition(":")
    line = [arguments.deftc, "cache", "regret", name, "--backend", "cuda", "--held-out", "--limit", "0", "--json",
            "--trees-per-class", str(arguments.trees_per_class), "--pages", pages or "scattered"]
    line += ["--workloads", arguments.workloads] if arguments.workloads else []
    for family in arguments.workload:
        line += ["--workload", family]
    line += ["--stale"] if arguments.stale else []
    done = subprocess.run(line, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"held_out.py: {package}: {done.stderr.strip()}")
    report = json.loads(done.stdout)
    return [{"class": row["class"], "tree": row["tree"], "us": row["us"], "untuned_us": row["offers"][-1]["us"],
             "stale": row["stale"], "at": [round(number, 3) for number in row["at"]], "signature": row["signature"],
             "tuned_on": row["tuned_on"]} for row in report["rows"]]


def summarize(name, rows, noise):
    if not rows:
        return {"of": name, "trees": 0}
    ratios = [row["us"] / row["untuned_us"] for row in rows]
    summary = {"of": name, "trees": len(rows), "mean": math.exp(sum(map(math.log, ratios)) / len(ratios)),
               "best": min(ratios), "worst": max(ratios), "beyond_noise": sum(ratio > 1 + noise for ratio in ratios)}
    print(f"{name}: {len(rows)} trees, tuned takes {summary['mean']:.3f} of the untuned choice's time on average, "
          f"{summary['best']:.3f} at best, {summary['worst']:.3f} at worst; {summary['beyond_noise']} more than "
          f"{100 * noise:.0f} % above it", flush=True)
    return summary


def distance(place, other):
    return max(abs(a - b) for a, b in zip(place, other))


def demote(configs, rows, noise):
    """Entries of which a row says that they lose are for the trees that they were tuned on alone; for none where what lost
    is next to one of these. Gives the names of both kinds."""
    lost = {}
    for row in rows:
        if row["us"] > (1 + noise) * row["untuned_us"]:
            lost.setdefault((row["signature"], row["class"]), []).append(row)
    untuned = {entry["signature"]: entry["config"] for entry in configs["entries"] if entry.get("keeps_default")}
    narrowed, demoted = [], []
    for entry in configs["entries"]:
        key = (entry["signature"], entry["class"])
        if key not in lost or entry.get("keeps_default") or entry["signature"] not in untuned:
            continue
        places = entry.get("only_for", lost[key][0]["tuned_on"])
        near = [min(distance(place, row["at"]) for place in places) for row in lost[key]]
        within = min([entry.get("within", LIKENESS)] + [math.floor(500 * each + 1e-6) / 1000 for each in near])
        if within < LEAST_WITHIN:
            entry.pop("only_for", None)
            entry.pop("within", None)
            entry["config"] = untuned[entry["signature"]]  # to be shown: what runs is the untuned choice for each tree
            entry["keeps_default"] = True
            entry["measurement"]["tuned_us"] = entry["measurement"]["untuned_us"]
            demoted.append(key)
        else:
            entry["only_for"] = places
            if within < LIKENESS:
                entry["within"] = within
            narrowed.append(key)
        entry["provenance"]["note"] = "tests/gpu/held_out.py: what was tuned is slower on a tree that was held out"
    return narrowed, demoted


def main():
    arguments = parse_arguments()
    everything, summaries, results = [], [], {}
    for package in arguments.package:
        rows = time_rows(arguments, package)
        name = package.rpartition("/")[2]
        for row in rows:
            ratio = row["us"] / row["untuned_us"]
            if abs(ratio - 1) > arguments.tell:
                print(f"  {row['class']}, tree {row['tree']}: {row['us']:.1f} us, untuned {row['untuned_us']:.1f}, "
                      f"{ratio:.3f}{', stale' if row['stale'] else ''}")
        summaries.append(summarize(name, rows, arguments.noise))
        everything += rows
        # Of the record, the attention and the families say the rest.
        results[name] = [{key: value for key, value in row.items() if key not in ("signature", "tuned_on")}
                         for row in rows]
    summaries.append(summarize("all together", everything, arguments.noise))
    narrowed, demoted = [], []
    if arguments.demote:
        configs = json.loads(arguments.demote.read_text())
        narrowed, demoted = demote(configs, everything, arguments.noise)
        arguments.demote.write_text(json.dumps(configs, indent=2) + "\n")
        print(f"from now on {len(narrowed)} entries are for the trees that they were tuned on, {len(demoted)} keep the "
              "untuned choice")
    if arguments.record:
        record = {"format": "deftc-held-out", "version": 1, "commit": arguments.commit, "gpu": verify.gpu_facts(),
                  "command": shlex.join(sys.argv), "summaries": summaries,
                  "narrowed": [" ".join(key) for key in narrowed], "demoted": [" ".join(key) for key in demoted]}
        lines = ",\n".join(f'  "{name}": [\n' + ",\n".join("   " + json.dumps(row) for row in rows) + "\n  ]"
                           for name, rows in results.items())
        arguments.record.write_text(json.dumps(record, indent=1)[:-2] + ',\n "rows": {\n' + lines + "\n }\n}\n")


if __name__ == "__main__":
    main()
