#!/usr/bin/env python3
"""Opens a tuning report in a headless browser and looks at it: what a reader would see must be there.

    tests/report/render_report.py DEFTC [--keep FOLDER]

Makes a journal of a session that never was, lets `deftc report` make a page of it, and renders the page without a
network. Ends with 77 (to ctest: skipped) when the machine has no browser; --keep leaves page and picture behind.
"""

import argparse
import hashlib
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

from browser import SKIPPED, colours, complaints, find_browser, open_page, verdict

WIDTH, HEIGHT = 1100, 2600
CLASSES = ("c1-t13-q5-s4-d1-f0", "c1-t14-q6-s3-d2-f0", "c1-t15-q8-s5-d3-f1")
NOT_BEGUN = "c1-t16-q8-s5-d3-f1"


def line_of(event):
    text = json.dumps(event, separators=(",", ":"), sort_keys=True)
    return json.dumps({"sum": hashlib.sha256(text.encode()).hexdigest()[:8], "event": event}, separators=(",", ":"), sort_keys=True)


def config(partition, chunk, tile_q, tile_kv):
    phase = {"name": "tiles", "rows_above": -1, "family": "sm80", "tile_q": tile_q, "tile_kv": tile_kv, "stages": 2, "warps": 4}
    return {"partition": partition, "chunk_tokens": chunk, "phases": [phase]}


def class_events(name, seed):
    """Forty candidates whose times are made of their numbers, so that plots have a shape."""
    events = [{"event": "class", "class": name, "default": "id0",
               "trees": [{"name": "few_shot:branches=20", "tokens": 4020, "queries": 20, "held_out": False}]}]
    partitions = ("auto", "union", "greedy", "flatten", "node_chunk", "query")
    best = (1000, 0)
    for i in range(40):
        chunk, tile_q, tile_kv = (0, 128, 256, 512, 1024)[i % 5], (16, 32, 64, 128)[i % 4], (32, 64, 128)[(i // 4) % 3]
        ratio = 1000 if i == 0 else 600 + abs(chunk - 256) // 2 + 3 * abs(tile_q - 64) + 40 * ((i * seed) % 7)
        identity = f"id{i}"
        events.append({"event": "candidate", "class": name, "id": identity, "origin": "guided" if i else "default",
                       "config": config(partitions[i % 6], chunk, tile_q, tile_kv), "predicted_us": 100 + i})
        if i % 13 == 12:
            events.append({"event": "rejected", "class": name, "id": identity, "stage": "check",
                           "reason": "wrong result: query 3, head 1: error <0.5>, allowed 0.01"})
            continue
        for turn in range(5 if i % 3 != 2 else 1):
            us = [ratio * (1 + 0.01 * ((i + turn) % 5 - 2))]
            events.append({"event": "measured", "class": name, "id": identity, "tree": 0, "round": turn, "us": us})
        if i % 3 == 2:
            events.append({"event": "dropped", "class": name, "id": identity, "round": 0, "ratio": 2})
        best = min(best, (ratio, i))
    tuned = best[0]
    events.append({"event": "done", "class": name, "winner": f"id{best[1]}", "gain": 1000 / tuned, "gain_error": 0.01,
                   "held_out": {"gain": 1.25, "gain_error": 0.01}, "seconds": 30, "note": "",
                   "entry": {"keeps_default": False, "measurement": {"tuned_us": tuned, "untuned_us": 1000, "spread": 0.01}}})
    return events


def journal():
    events = [{"event": "session", "version": 1, "variant": "made_up", "signature": "q32-kv8-d128-bf16-p16nhd-plain",
               "device": {"kind": "gpu", "name": "No device", "arch": "sm_90", "units": 132}, "backend": "cuda",
               "strategy": "guided", "classes": [*CLASSES, NOT_BEGUN], "command": "deftc tune made_up.deft --workload few_shot",
               "space_size": {"all": 2200, "legal": 880, "broken": {"shared memory": 1320}}, "started": "2026-11-21T09:00:00Z"}]
    for seed, name in enumerate(CLASSES, 3):
        events += class_events(name, seed)
    events.append({"event": "end", "reason": "complete", "made": 120, "reused": 0, "seconds": 90})
    return "".join(line_of(event) + "\n" for event in events)


def check_dom(dom):
    problems = []
    for name in CLASSES:
        if f'id="{name}"' not in dom:
            problems.append(f"no section of class {name}")
    drawings = dom.count("<svg")
    wanted = 1 + 4 * len(CLASSES)  # gains; of each class the winner's plan, the path, chunks and tiles
    if drawings != wanted:
        problems.append(f"{drawings} drawings, not {wanted}")
    if "3 of 4 classes are done: 3 classes have a tuned config" not in dom:
        problems.append("the first sentence does not say the result")
    if dom.count("<circle") < 100:
        problems.append(f"only {dom.count('<circle')} points")
    if "NaN" in dom or "-nan" in dom or 'x="inf' in dom:
        problems.append("a number is none")
    if "error &lt;0.5&gt;" not in dom:
        problems.append("the reason of a rejection is missing")
    return problems


def check_picture(path):
    """The palette of the plots is on the picture, and most of it is paper."""
    counts = colours(path)
    total = sum(counts.values())
    problems = []
    if counts.get(b"\xff\xff\xff", 0) < 0.5 * total:
        problems.append("the page is not mostly white")
    for what, colour in (("bars of gains", "4d9f78"), ("points of union", "0072b2"), ("points of greedy", "d55e00")):
        if counts.get(bytes.fromhex(colour), 0) < 30:
            problems.append(f"no {what} ({colour}) to be seen")
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("deftc")
    parser.add_argument("--keep", type=pathlib.Path)
    arguments = parser.parse_args()
    browser = find_browser()
    if not browser:
        return SKIPPED
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "journal.jsonl").write_text(journal())
        page, picture = folder / "report.html", folder / "report.png"
        subprocess.run([arguments.deftc, "report", str(folder / "journal.jsonl"), "-o", str(page)], check=True)
        dom = open_page(browser, page.as_uri(), folder, "--dump-dom")
        shot = open_page(browser, page.as_uri(), folder, f"--screenshot={picture}", f"--window-size={WIDTH},{HEIGHT}")
        problems = check_dom(dom.stdout.decode()) + complaints(dom, shot)
        problems += check_picture(picture) if picture.exists() else ["no picture was made"]
        if arguments.keep:
            arguments.keep.mkdir(parents=True, exist_ok=True)
            for path in (page, picture):
                if path.exists():
                    shutil.copy(path, arguments.keep)
    return verdict(browser, problems)


if __name__ == "__main__":
    sys.exit(main())
