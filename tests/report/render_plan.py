#!/usr/bin/env python3
"""Opens pictures of plans in a headless browser: items and what the mask hides are told apart, and nothing is complained of.

    tests/report/render_plan.py DEFTC [--keep FOLDER]

Ends with 77 (to ctest: skipped) when the machine has no browser.
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

from browser import SKIPPED, colours, complaints, find_browser, open_page, verdict

TREE = {"format": "deftc-tree", "version": 1,
        "nodes": [{"parent": -1, "tokens": 600}, {"parent": 0, "tokens": 60}, {"parent": 0, "tokens": 90},
                  {"parent": 2, "tokens": 40}, {"parent": 2, "tokens": 25}],
        "queries": [{"node": 1}, {"node": 3}, {"node": 4}]}
PLAIN = "attention plain { query_heads = 8; kv_heads = 2; head_dim = 64; }"
WINDOW = 'import "library.deft"; attention window { query_heads = 8; kv_heads = 2; head_dim = 64; mask = tree && sliding_window(200); }'


def hues(counts, least):
    """Of how many kinds of colour there is much: neither grey nor nearly white."""
    found = set()
    for (red, green, blue), count in ((tuple(colour), count) for colour, count in counts.items()):
        if count >= least and max(red, green, blue) - min(red, green, blue) > 40:
            found.add((red // 24, green // 24, blue // 24))
    return len(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("deftc")
    parser.add_argument("--keep", type=pathlib.Path)
    arguments = parser.parse_args()
    browser = find_browser()
    if not browser:
        return SKIPPED
    problems = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "tree.json").write_text(json.dumps(TREE))
        for spec, text, items in (("plain", PLAIN, 6), ("window", WINDOW, 3)):
            (folder / f"{spec}.deft").write_text(text)
            picture, shot = folder / f"{spec}.svg", folder / f"{spec}.png"
            subprocess.run([arguments.deftc, "plan", str(folder / f"{spec}.deft"), "--tree", str(folder / "tree.json"), "--partition", "union",
                            "--blocks", "16", "-o", str(picture)], check=True)
            told = open_page(browser, picture.as_uri(), folder, f"--screenshot={shot}", "--window-size=1300,600")
            problems += [f"{spec}: {complaint}" for complaint in complaints(told)]
            if not shot.exists():
                problems.append(f"{spec}: no picture was made")
                continue
            seen = hues(colours(shot), 200)
            if seen < items:
                problems.append(f"{spec}: {seen} items can be told apart by colour, not {items}")
            if arguments.keep:
                arguments.keep.mkdir(parents=True, exist_ok=True)
                shutil.copy(shot, arguments.keep)
    return verdict(browser, problems)


if __name__ == "__main__":
    sys.exit(main())
