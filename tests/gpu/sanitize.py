#!/usr/bin/env python3
"""Runs random cases under compute-sanitizer's memcheck, synccheck, initcheck and racecheck, at the same time, and keeps a
record of what each tool said.

    tests/gpu/sanitize.py --random-cases PROGRAM --package FILE.deftpkg --record FILE.json

The program and the package are those of tests/gpu/random. Every run ends in a bounded time. Ends with 1 when a tool reports
something that is not listed below as known to be false, when the cases are wrong, or when a run is not complete.

A newer compute-sanitizer than that of the toolkit sees more of what Hopper's kernels do: --sanitizer takes the program.
"""

import argparse
import collections
import concurrent.futures
import datetime
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

Run = collections.namedtuple("Run", "name tool options cases")

# Racecheck is slow, and looks at no more than so many races in a run, of which what it cannot follow (KNOWN_FALSE) uses up
# most: so families are apart, and sm90 is in parts.
RACECHECK_SM90 = "racecheck sm90"
RACECHECK_PARTS = 6
# Seconds for the last cases of a run, by which it ends in any case: under racecheck one took more than one minute.
PATIENCE = {"racecheck": 180}
MOST_RACES = {"NV_COMPUTE_SANITIZER_MAX_RACECHECK_HAZARDS": "200000000"}  # bytes of one run; ten million by default
RUNS = (
    Run("memcheck", "memcheck", (), ("--every", "4", "--trees", "2", "--invariant-trees", "1", "--most-queries", "64")),
    Run("synccheck", "synccheck", (), ("--every", "4", "--trees", "2", "--invariant-trees", "1", "--most-queries", "64")),
    Run("initcheck", "initcheck", (), ("--every", "6", "--trees", "1", "--invariant-trees", "0", "--most-queries", "16")),
)


def race_runs(suffix):
    """Of the families sm80 and sm90, or with "_latent" of those of latent caches."""

    def run(name, every, start, family):
        return Run(name, "racecheck", ("--racecheck-report", "analysis"),
                   ("--every", str(every), "--from", str(start), "--trees", "1", "--invariant-trees", "0", "--most-queries", "16",
                    "--family", family + suffix))

    return (run(f"racecheck sm80{suffix}", 6, 0, "sm80"),
            *(run(f"{RACECHECK_SM90}{suffix} {part + 1}", 6 * RACECHECK_PARTS, 6 * part, "sm90") for part in range(RACECHECK_PARTS)))

NO_MORE = "Maximum number of hazards reached"

# A race between reads and writes in these files of the kernels of runs that are called so: it was looked into, and there is an
# order.
Known = collections.namedtuple("Known", "run reads writes why")

KNOWN_FALSE = (
    Known(RACECHECK_SM90, {"join.cuh", "result_rows.cuh"}, {"join.cuh", "result_rows.cuh"},
          "Rooms: what one warpgroup hands to the other, and results on their way out. The first uses what the second has "
          "written, or its room, behind a bar.sync of the full barrier, which completes only when each thread of the second "
          "has executed bar.arrive there behind its stores. The second writes behind a bar.sync of an empty barrier, at which "
          "each thread of the first has executed bar.arrive behind its reads and stores. Within a warpgroup bar.sync and "
          "__syncwarp order them. "
          "bar.arrive synchronizes with bar.sync of the same barrier in the PTX memory model, but racecheck 2025.3 knows "
          "no barrier that does not block (its API has a flag for it since): it reported the sums of nearly every unit, and "
          "also of a block's first, before which nobody reads there."),
    Known(RACECHECK_SM90, {"consumer.cuh", "dealt_runs.cuh", "formed_scores.cuh", "ldmatrix.cuh", "tile_slot.cuh", "warp_rows.cuh", "wgmma_bytes.cuh"},
          {"producer.cuh", "write_tile_facts.cuh", "cp_async.cuh", "byte_conversion.cuh"},
          "Places of the ring and of queries that are used again. Read, then write: all lanes of a computing warp read, __syncwarp, lane 0 "
          "arrives at the empty mbarrier with the warp's whole share, and every lane of the one copying warp that fills the "
          "place has waited for that phase before it writes. Write, then read: ordinary stores come before the __syncwarp "
          "behind which lane 0 arrives at the full mbarrier, cp.async counts there by an arrival of each "
          "lane, and readers wait for the phase. Where ptxas knows that a warp has not parted, it leaves a bare NOP "
          "of __syncwarp, since the warp's accesses to shared memory are in order anyhow, and racecheck 2025.3 does not see "
          "one: what it reported was exactly the reads of lanes 1 to 31 of places used again, and none of lane 0's."),
    Known(RACECHECK_SM90 + "_latent", {"consumer.cuh", "ldmatrix.cuh"}, {"consumer.cuh"},
          "Weights and references that one warpgroup leaves in a tile's last block for the other, and sums that both exchange. "
          "Write, then read: the stores come before a __syncwarp behind which lane 0 arrives at the mbarrier of weights, for which "
          "each reader waits; racecheck 2025.3 does not see that __syncwarp where it is a NOP, as above. Read, then write: the reader "
          "arrives at the empty mbarrier of the other part behind its products, the warps that fill the last block wait for "
          "that one, and the writer waits for theirs. Sums have a place for even units and one for odd ones, with a bar.sync of "
          "both warpgroups in each unit, so one between a read and the next write of a place."),
    Known(RACECHECK_SM90 + "_latent", {"consumer.cuh"}, {"copying_warp.cuh"},
          "The head of a unit, which a copying warp writes again two units later. All lanes of a computing warp read it. For the unit between, "
          "they meet at __syncwarp, and lane 0 arrives at the empty mbarrier of the queries. The copying warp waits for that phase before it "
          "writes. racecheck does not see a __syncwarp that is a NOP, as above."),
)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--random-cases", required=True)
    parser.add_argument("--package", required=True, type=pathlib.Path)
    parser.add_argument("--record", required=True, type=pathlib.Path)
    parser.add_argument("--commit", default="unknown", help="of the sources")
    parser.add_argument("--sanitizer", default="compute-sanitizer", help="the program")
    parser.add_argument("--only", action="append", metavar="NAME",
                        help="runs whose name contains this; may be said again: " + ", ".join(run.name for run in (*RUNS, *race_runs(""))))
    parser.add_argument("--family", choices=("sm80", "sm90"), help="kernels of this family alone, in runs of both")
    parser.add_argument("--latent", action="store_true", help="the package's caches are latent")
    parser.add_argument("--one-by-one", action="store_true", help="not at the same time")
    parser.add_argument("--seconds", type=int, default=30, help="after so long a run starts no kernel's cases any more")
    parser.add_argument("--logs", type=pathlib.Path, help="keep what the tools wrote in this folder")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def reports(text):
    """The tool's messages, each as one text without its back trace of the host."""
    found, lines = [], []
    for line in text.splitlines():
        if not line.startswith("========="):
            continue
        body = line[len("========="):]
        starts = re.match(r" (Error|Warning|Invalid|Barrier|Uninitialized|Race|Program hit|Leaked|Unused|Potential|Internal|Fatal"
                          r"|Deadlock|Divergent|Missing|Process|Target|Unable|No attachable)", body)
        if starts or re.match(r" +(ERROR|RACECHECK) SUMMARY", body) or not body.strip():
            if lines:
                found.append("\n".join(lines))
            lines = [body.strip()] if starts else []
        elif lines and "Saved host backtrace" not in body and "Host Frame" not in body:
            lines.append(body.strip())
    found += ["\n".join(lines)] if lines else []
    return [report for report in found if NO_MORE not in report]  # left_out has that


def accesses(report):
    """(Read or Write, function, file) of each access of a race. With line info the function is the inlined one."""
    return re.findall(r"(Read|Write) access at (.+?)\+0x[0-9a-f]+(?: in ([^\s:]+):\d+)?", report)


def generalised(report):
    """What reports have in common that differ in kernels, addresses, threads and counts alone."""
    report = re.sub(r"\b(at|and|in) deft_\w+", r"\1 KERNEL", report)
    report = re.sub(r"\+0x[0-9a-f]+( in \S+:\d+)", r"\1", report)
    report = re.sub(r"0x[0-9a-f]+", "0x", report)
    report = re.sub(r"\((\d+),(\d+),(\d+)\)", "(.)", report)
    return re.sub(r"\d+ hazards?", "hazards", report)


def why_known(run, report):
    found = accesses(report)
    reads = {file for kind, _, file in found if kind == "Read"}
    writes = {file for kind, _, file in found if kind == "Write"}
    for known in KNOWN_FALSE:
        if (run.startswith(known.run) and found and reads <= known.reads and writes <= known.writes
                and all(re.match(r"(\w+ )?deft(_|::)", name) for _, name, _ in found)):  # templates say what they return
            return known.why
    return None


def summarised(run, text):
    """What the tool reported: each kind once, with the kernels that it was reported of."""
    kinds = {}
    for report in reports(text):
        kind = kinds.setdefault(generalised(report), {"count": 0, "hazards": 0, "kernels": set(), "report": report})
        kind["count"] += 1
        kind["hazards"] += sum(int(number) for number in re.findall(r"\[(\d+) hazards?\]", report))
        kind["kernels"].update(re.findall(r"\b(deft_\w+)", report))
    return [{**kind, "kernels": sorted(kind["kernels"]), "known_false": why_known(run, kind["report"])}
            for kind in kinds.values()]


def left_out(text):
    """Why the reports are not all that there is to report; None: they are."""
    unprinted = re.search(r"SUMMARY: (\d+) errors? were not printed", text)
    if unprinted:
        return f"{unprinted.group(1)} errors were not printed"
    shown = re.search(r"RACECHECK SUMMARY: (\d+) hazards? displayed \((\d+) errors?, (\d+) warnings?\)", text)
    if shown and int(shown.group(1)) < int(shown.group(2)) + int(shown.group(3)):
        return f"{shown.group(1)} of {int(shown.group(2)) + int(shown.group(3))} races were printed"
    if NO_MORE in text:
        return "the tool looked at no more races after so many"
    counted = re.search(r"ERROR SUMMARY: ([1-9]\d*) errors?", text)
    return f"{counted.group(1)} errors were counted, and none was understood" if counted and not reports(text) else None


def run_and_stop(line, seconds):
    """Output, exit code; the whole family of processes is ended where it takes longer, with the code -1."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(line, stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
                                   env={**MOST_RACES, **os.environ})
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            code = -1
        output.seek(0)
        return output.read().decode(errors="replace"), code


def run_tool(arguments, run):
    cases = [arguments.random_cases, str(arguments.package), "--seed", str(arguments.seed), "--configs", "1", "--line-info",
             "--no-large-pool", "--seconds", str(arguments.seconds), *run.cases]
    if arguments.family and "--family" not in run.cases:
        cases += ["--family", arguments.family + ("_latent" if arguments.latent else "")]
    line = [arguments.sanitizer, "--tool", run.tool, "--print-limit", "200", "--show-backtrace", "device", *run.options, *cases]
    start = time.monotonic()
    text, code = run_and_stop(line, arguments.seconds + PATIENCE.get(run.tool, 60))
    if arguments.logs:
        arguments.logs.mkdir(parents=True, exist_ok=True)
        (arguments.logs / (run.name.replace(" ", "_") + ".txt")).write_text(text)
    cases_lines = re.findall(r"\d+ cases on .*", text)
    summary = re.findall(r"(?:ERROR|RACECHECK) SUMMARY: .*", text)
    return {"run": run.name, "command": " ".join(line), "exit_code": code, "seconds": round(time.monotonic() - start),
            "summary": summary, "cases": cases_lines[-1] if cases_lines else None, "left_out": left_out(text),
            "reports": summarised(run.name, text), "tail": "" if cases_lines and summary else text[-2000:]}


def is_clean(result):
    """Both summaries came, the cases were right, and nothing unknown was reported or could have been."""
    return (result["cases"] is not None and " 0 wrong" in result["cases"] and bool(result["summary"])
            and all(entry["known_false"] for entry in result["reports"]) and result["left_out"] is None
            and result["exit_code"] == 0)


def had_nothing(result):
    """Whether the package has no attention for this run, which is a part of it."""
    return (result["cases"] or "").startswith("0 cases")


def all_are_clean(results):
    """Of each tool some run had cases, and all that had some are clean."""
    tools = {result["run"].split()[0] for result in results}
    tested = [result for result in results if not had_nothing(result)]
    return bool(results) and tools == {result["run"].split()[0] for result in tested} and all(map(is_clean, tested))


def describe(result):
    if had_nothing(result):
        return f"{result['run']:16s} no case of the package"
    unknown = [entry for entry in result["reports"] if not entry["known_false"]]
    known = len(result["reports"]) - len(unknown)
    lines = [f"{result['run']:16s} {'clean' if is_clean(result) else 'NOT CLEAN'}, {known} kinds of reports known to be false, "
             f"{len(unknown)} others{'; ' + result['left_out'] if result['left_out'] else ''}; "
             f"{'; '.join(result['summary']) or 'no summary'}; {result['cases'] or 'the cases did not end'}; "
             f"{result['seconds']} s"]
    for entry in unknown[:12]:
        lines.append(f"  {entry['count']} times, {', '.join(entry['kernels'][:3])}: " + entry["report"].replace("\n", "\n    "))
    if result["tail"]:
        lines.append("  " + result["tail"].replace("\n", "\n  "))
    return "\n".join(lines)


def main():
    arguments = parse_arguments()
    every = (*RUNS, *race_runs("_latent" if arguments.latent else ""))
    runs = [run for run in every if any(name in run.name for name in arguments.only or [""])]
    with concurrent.futures.ThreadPoolExecutor(1 if arguments.one_by_one else max(len(runs), 1)) as pool:
        results = list(pool.map(lambda run: run_tool(arguments, run), runs))
    version = subprocess.run([arguments.sanitizer, "--version"], capture_output=True, text=True).stdout.strip().splitlines()
    record = {"format": "deftc-sanitizer-record", "version": 2, "date": datetime.date.today().isoformat(),
              "sanitizer": version[-1] if version else "", "commit": arguments.commit, "command": " ".join(sys.argv),
              "results": results}
    arguments.record.parent.mkdir(parents=True, exist_ok=True)
    arguments.record.write_text(json.dumps(record, indent=1) + "\n")
    for result in results:
        print(describe(result))
    sys.exit(0 if all_are_clean(results) else 1)


if __name__ == "__main__":
    main()
