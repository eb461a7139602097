"""What `deftc bench` has measured on GPUs, bench after bench: one line a measurement, a table and a plot of them.

usage: history.py add BENCH.json... [--commit C]    appends to records/history.jsonl, then draws
       history.py draw                              makes records/history.md and records/history.svg of it
       history.py check                             exit code 1 if these are not what `draw` makes

A line says what one row took in one bench: `date` (UTC) tells benches apart, `config` is `shipped` (what ships with that commit) or
`untuned`. Times are microseconds, medians of graph replays: `us` with a cold L2 and pages in order, and, where the bench
measured them, `warm_us`, `scattered_us` (pages of one token in no order) and `pages_of_16_us` (of 16 tokens); `floor_us` is
the bench's own floor on that card. A line of a variant has the plain attention's time of the same minutes, `plain_us`.
"""

import argparse
import datetime
import json
import re
import sys
from math import exp, log
from pathlib import Path

import history_plot

FOLDER = Path(__file__).resolve().parent / "records"
SUITES = ("fasttree", "deft", "flat", "other")
PUBLISHED = ("fasttree", "deft")  # the suites whose rows the published kernels were measured on
SHOWN = 8  # benches that the table has a column for
TIMES = {"warm_us": ("warm_us",), "scattered_us": ("scattered", "chosen", "median_us"),
         "pages_of_16_us": ("scattered_pages_of_16", "chosen", "median_us"), "floor_us": ("floor_us",)}


class Refused(Exception):
    """Why a file cannot be added."""


def value_at(row, path):
    for key in path:
        row = row.get(key) if isinstance(row, dict) else None
    return row


def commit_of(bench, named):
    """The first word of what the bench says its commit is: a bench of a draft has none."""
    text = named or bench.get("commit") or ""
    found = re.match(r"[0-9a-f]{7,40}\b", text)
    if not found:
        raise Refused(f"commit is `{text}`, not a hash: name it with --commit")
    return found[0][:7]


def measurements(bench, commit=None):
    """The lines of one bench, in its order."""
    if not isinstance(bench, dict) or bench.get("format") != "deftc-bench":
        raise Refused("is no result of `deftc bench --json`: its format is not deftc-bench")
    moment = datetime.datetime.fromtimestamp(bench["seconds_since_epoch"], datetime.timezone.utc)
    head = {"date": moment.strftime("%Y-%m-%dT%H:%M:%SZ"), "card": bench["device"]["name"],
            "commit": commit_of(bench, commit), "config": "untuned" if bench["options"]["untuned"] else "shipped"}
    if any(bench["options"].get(option) not in (None, "", -1, 0) for option in ("chunk", "partition", "tile")):
        raise Refused("was made with a chunk, partition or tile of its own: neither what ships nor the untuned choice")
    lines = []
    for suite in bench["suites"]:
        for row in suite["rows"]:
            if not row["right"]:
                raise Refused(f"row {row['name']} was wrong: its time says nothing")
            times = {key: value_at(row, path) for key, path in TIMES.items()}
            lines.append({**head, "suite": suite["name"], "row": row["name"], "us": round(row["cold_us"], 2),
                          **{key: round(us, 2) for key, us in times.items() if us}})
    for row in bench.get("variants", []):
        lines.append({**head, "suite": "variants", "row": f"{row['tree']} {row['variant']}",
                      "us": round(row["cold_us"], 2), "plain_us": round(row["plain_us"], 2)})
    return lines


def key_of(line):
    return tuple(line[key] for key in ("date", "card", "commit", "config", "suite", "row"))


def added(lines, new):
    """Both, in the order of time. A measurement may be there once."""
    known = {key_of(line) for line in lines}
    for line in new:
        if key_of(line) in known:
            raise Refused(f"has {line['row']} of {line['date']}, which is there already")
        known.add(key_of(line))
    return sorted(lines + new, key=lambda line: line["date"])


def benches_of(lines):
    """Lines by bench, in the order of time: {(date, card, commit, config): {(suite, row): line}}. What was
    measured suite by suite within a minute or two, one commit and one config, is one bench."""
    benches, newest = {}, {}
    for line in lines:
        kind = (line["card"], line["commit"], line["config"])
        row = (line["suite"], line["row"])
        last = newest.get(kind)
        if last is None or row in benches[last] or minutes_between(last[0], line["date"]) > 5:
            last = newest[kind] = (line["date"], *kind)
            benches.setdefault(last, {})
        benches[last][row] = line
    return benches


def minutes_between(earlier, later):
    first, second = (datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ") for text in (earlier, later))
    return (second - first).total_seconds() / 60


def rows_of(benches):
    """All rows, by suite, in the order in which benches have them."""
    seen = {}
    for bench in benches.values():
        for suite, row in bench:
            seen.setdefault(suite, {})[row] = None
    return {suite: list(seen[suite]) for suite in (*SUITES, "variants") if suite in seen}


def mean_over_floor(bench, suites):
    """The geometric mean of time over floor, of all rows of these suites; None where the bench lacks one."""
    ratios = [line["us"] / line["floor_us"] for (suite, _), line in bench.items()
              if suite in suites and "floor_us" in line]
    has_all = all(any(suite == name for suite, _ in bench) for name in suites)
    return exp(sum(map(log, ratios)) / len(ratios)) if ratios and has_all else None


def ratio_text(value):
    return "" if value is None else f"{value:.3f}"


def us_text(us):
    return f"{us:.0f}" if us >= 1000 else f"{us:.1f}"


def bench_table(benches):
    out = ["| date (UTC) | commit | card | config | rows | 57 rows over floor | second suite over floor |",
           "|---|---|---|---|---|---|---|"]
    for (date, card, commit, config), bench in benches.items():
        out.append(f"| {date[:10]} {date[11:16]} | {commit} | {card.replace('NVIDIA ', '')} | {config} | {len(bench)} | "
                   f"{ratio_text(mean_over_floor(bench, PUBLISHED))} | {ratio_text(mean_over_floor(bench, ('other',)))} |")
    return out


def row_table(benches, suite, rows):
    """One line a row: the newest time that shipped beside the floor, the best and the first, then the newest benches."""
    shipped = {key: bench for key, bench in benches.items() if key[3] == "shipped"}
    columns = [key for key, bench in shipped.items() if any(name == suite for name, _ in bench)][-SHOWN:]
    beside = "plain" if suite == "variants" else "floor"
    out = [f"| row | over {beside} | untuned | first | best | " + " | ".join(key[2] for key in columns) + " |",
           "|---" * (5 + len(columns)) + "|"]
    for row in rows:
        series = [(key[2], bench[suite, row]) for key, bench in shipped.items() if (suite, row) in bench]
        untuned = [bench[suite, row] for key, bench in benches.items() if key[3] == "untuned" and (suite, row) in bench]
        if not series:
            continue
        newest, (best_at, best) = series[-1][1], min(series, key=lambda point: point[1]["us"])
        cells = [f"{newest['us'] / newest[beside + '_us']:.2f}" if beside + "_us" in newest else "",
                 us_text(untuned[-1]["us"]) if untuned else "", us_text(series[0][1]["us"]),
                 f"{us_text(best['us'])} ({best_at})"]
        cells += [us_text(shipped[key][suite, row]["us"]) if (suite, row) in shipped[key] else "" for key in columns]
        out.append(f"| {row} | " + " | ".join(cells) + " |")
    return out


TITLES = {"fasttree": "FastTree's trees", "deft": "DeFT's trees", "flat": "No sharing",
          "other": "The second suite: other heads and head dims", "variants": "Variants of plain attention"}


def table(lines):
    benches = benches_of(lines)
    out = ["# Times of rows, bench after bench", "",
           f"Made by `tests/gpu/history.py draw` of `history.jsonl` ({len(lines):,} measurements); do not edit. Microseconds, cold L2,",
           "pages in order. `_g4`, `_g1` and `_g16` are heads 32/8, 32/32 and 16/1. The cards of a kind differ: launches took 2.7 to 4.4 us,",
           "memory some 4 %; so compare times over the floor, which is measured in the same bench.", "",
           "![Each row's time over benches](history.svg)", "", "## Benches", "", *bench_table(benches)]
    for suite, rows in rows_of(benches).items():
        out += ["", f"## {TITLES[suite]}", "", *row_table(benches, suite, rows)]
    return "\n".join(out) + "\n"


def drawn(lines):
    """The files that are made of the lines."""
    benches = benches_of(lines)
    means = {key: mean_over_floor(bench, PUBLISHED) for key, bench in benches.items()}
    return {"history.md": table(lines), "history.svg": history_plot.svg(benches, rows_of(benches), means, TITLES)}


def read_lines(folder):
    path = folder / "history.jsonl"
    return [json.loads(text) for text in path.read_text().splitlines()] if path.exists() else []


def draw(folder, lines):
    for name, text in drawn(lines).items():
        (folder / name).write_text(text)


def stale(folder):
    """The names of made files that are not what `draw` would make."""
    return [name for name, text in drawn(read_lines(folder)).items()
            if not (folder / name).exists() or (folder / name).read_text() != text]


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where history.jsonl is")
    commands = parser.add_subparsers(dest="command", required=True)
    add = commands.add_parser("add", help="append benches, then draw")
    add.add_argument("benches", nargs="+", type=Path)
    add.add_argument("--commit", help="of benches that do not say theirs")
    commands.add_parser("draw", help="make the table and the plot")
    commands.add_parser("check", help="whether they are made of the history as it is")
    options = parser.parse_args(arguments)

    lines = read_lines(options.folder)
    if options.command == "check":
        wrong = stale(options.folder)
        for name in wrong:
            print(f"{options.folder / name}: not what `history.py draw` makes", file=sys.stderr)
        return 1 if wrong else 0
    if options.command == "add":
        for path in options.benches:
            try:
                lines = added(lines, measurements(json.loads(path.read_text()), options.commit))
            except Refused as reason:
                print(f"{path}: {reason}", file=sys.stderr)
                return 1
        (options.folder / "history.jsonl").write_text(
            "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
    draw(options.folder, lines)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
