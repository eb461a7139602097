#!/usr/bin/env python3
"""Runs random cases under compute-sanitizer's memcheck, racecheck, synccheck and initcheck, at the same time, and keeps a
record of what each tool said.

    tests/gpu/sanitize.py --random-cases PROGRAM --package FILE.deftpkg --record FILE.json

The program and the package are those of tests/gpu/random. Ends with 1 when a tool reports something that is not listed
below as known to be false, when the cases are wrong, or when a tool does not end in time.
"""

import argparse
import concurrent.futures
import datetime
import json
import pathlib
import re
import subprocess
import sys
import time

TOOLS = ("memcheck", "racecheck", "synccheck", "initcheck")

# Reports that were looked into and are not errors: tool, regular expression over the report, why.
KNOWN_FALSE = []


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--random-cases", required=True)
    parser.add_argument("--package", required=True, type=pathlib.Path)
    parser.add_argument("--record", required=True, type=pathlib.Path)
    parser.add_argument("--commit", default="unknown", help="of the sources")
    parser.add_argument("--tools", default=",".join(TOOLS))
    parser.add_argument("--seconds", type=int, default=120, help="after so long a tool's run starts no new case")
    parser.add_argument("--every", type=int, default=6, help="every n-th attention of the package")
    parser.add_argument("--trees", type=int, default=2, help="of each attention and config")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def reports(text):
    """The tool's messages, each as one text without its back trace of the host."""
    found, lines = [], []
    for line in text.splitlines():
        if not line.startswith("========="):
            continue
        body = line[len("========="):]
        starts = re.match(r" (Error|Warning|Invalid|Barrier|Uninitialized|Race|Program hit|Leaked|Unused|Potential)", body)
        if starts or re.match(r" +(ERROR|RACECHECK) SUMMARY", body) or not body.strip():
            if lines:
                found.append("\n".join(lines))
            lines = [body.strip()] if starts else []
        elif lines and "Saved host backtrace" not in body and "Host Frame" not in body:
            lines.append(body.strip())
    return found + (["\n".join(lines)] if lines else [])


def generalised(report):
    """The same for reports that differ in addresses, threads and counts alone."""
    report = re.sub(r"0x[0-9a-f]+", "0x", report)
    report = re.sub(r"\((\d+),(\d+),(\d+)\)", "(.)", report)
    return re.sub(r"\[\d+ hazards?\]", "[hazards]", report)


def why_known(tool, report):
    for of_tool, pattern, why in KNOWN_FALSE:
        if of_tool == tool and re.search(pattern, report):
            return why
    return None


def run_tool(arguments, tool):
    cases = [arguments.random_cases, str(arguments.package), "--seed", str(arguments.seed), "--trees", str(arguments.trees),
             "--configs", "2", "--invariant-trees", "1", "--every", str(arguments.every), "--no-large-pool",
             "--most-queries", "64", "--seconds", str(arguments.seconds)]
    options = ["--print-limit", "300"] + (["--racecheck-report", "all"] if tool == "racecheck" else [])
    line = ["compute-sanitizer", "--tool", tool, *options, *cases]
    start = time.monotonic()
    try:
        done = subprocess.run(line, capture_output=True, text=True, timeout=2 * arguments.seconds + 60)
        text, code = done.stdout + done.stderr, done.returncode
    except subprocess.TimeoutExpired as late:
        text, code = ((late.stdout or b"") + (late.stderr or b"")).decode(errors="replace"), -1
    distinct = {}
    for report in reports(text):
        distinct.setdefault(generalised(report), {"count": 0, "report": report})["count"] += 1
    listed = [{**entry, "known_false": why_known(tool, entry["report"])} for entry in distinct.values()]
    summary = re.findall(r"(?:ERROR|RACECHECK) SUMMARY: .*", text)
    cases_line = re.findall(r"\d+ cases on .*", text)
    return {"tool": tool, "exit_code": code, "seconds": round(time.monotonic() - start), "summary": summary,
            "cases": cases_line[-1] if cases_line else None, "reports": listed,
            "tail": "" if cases_line and summary else text[-2000:]}


def is_clean(result):
    """Both summaries came, the cases were right, and nothing unknown was reported."""
    return (result["cases"] is not None and " 0 wrong" in result["cases"] and bool(result["summary"])
            and all(entry["known_false"] for entry in result["reports"])
            and (result["exit_code"] == 0 or bool(result["reports"])))


def main():
    arguments = parse_arguments()
    tools = arguments.tools.split(",")
    with concurrent.futures.ThreadPoolExecutor(len(tools)) as pool:
        results = list(pool.map(lambda tool: run_tool(arguments, tool), tools))
    version = subprocess.run(["compute-sanitizer", "--version"], capture_output=True, text=True).stdout.strip().splitlines()
    record = {"format": "deftc-sanitizer-record", "version": 1, "date": datetime.date.today().isoformat(),
              "sanitizer": version[-1] if version else "", "commit": arguments.commit, "command": " ".join(sys.argv),
              "results": results}
    arguments.record.parent.mkdir(parents=True, exist_ok=True)
    arguments.record.write_text(json.dumps(record, indent=1) + "\n")
    for result in results:
        unknown = [entry for entry in result["reports"] if not entry["known_false"]]
        known = len(result["reports"]) - len(unknown)
        print(f"{result['tool']:10s} {'clean' if is_clean(result) else 'NOT CLEAN'}, {known} known to be false; "
              f"{'; '.join(result['summary']) or 'no summary'}; {result['cases'] or 'the cases did not end'}; {result['seconds']} s")
        for entry in unknown[:8]:
            print(f"  {entry['count']} times: " + entry["report"].replace("\n", "\n    "))
        if result["tail"]:
            print("  " + result["tail"].replace("\n", "\n  "))
    sys.exit(0 if all(is_clean(result) for result in results) else 1)


if __name__ == "__main__":
    main()
