"""The section on other cards: what the history of benches has of them, and whole benches that have a record."""

import sys
from pathlib import Path

from kernels import BENCH, UNTUNED, over_floor, over_peers, peer_us
from records import card_of, link, times

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import history  # noqa: E402

OF_THEIR_OWN = (BENCH, UNTUNED, "h200-windows.json", "h100-ragged.json")  # benches that have a section


def other_benches(records):
    """(name, bench) of further records of `deftc bench`."""
    for path in sorted(records.folder.glob("*.json")):
        if path.name not in OF_THEIR_OWN and '"deftc-bench"' in path.read_text(encoding="utf-8")[:200_000]:
            bench = records.read(path.name)
            if isinstance(bench, dict) and bench.get("format") == "deftc-bench":
                yield path.name, bench


def other_cards(page, records):
    ours = records.read(BENCH)["device"]["name"]
    newest = {}
    for (date, card, commit, config), bench in history.benches_of(history.read_lines(records.folder)).items():
        for suite in history.SUITES:
            ratio = history.mean_over_floor(bench, (suite,))
            if card != ours and ratio:
                newest[card, suite, config] = [card_of(card), suite, config, date[:10], commit, sum(name == suite for name, _ in bench), times(ratio)]
    page.heading("Other cards")
    page.add(f"Times over the floor that the same bench measured on its card; configs that ship were tuned on an H200 only. From {link('history.jsonl')}, the newest of each kind:")
    page.table(["card", "suite", "config", "date", "commit", "rows", "over the floor"], list(newest.values()))
    found = list(other_benches(records))
    if found:
        page.add("Further records of benches (peers in them are those of the H200, so their ratios are of two cards):")
        page.table(["record", "card", "suite", "rows", "over the floor", "worst", "over the H200's peers"], [
            [link(name), card_of(bench["device"]["name"]), suite["name"], len(rows), times(over_floor(rows)), times(max(row["cold_us"] / row["floor_us"] for row in rows)),
             times(over_peers(rows)) if any(peer_us(row) for row in rows) else None]
            for name, bench in found for suite in bench["suites"] for rows in [suite["rows"]] if rows and all(row.get("floor_us") for row in rows)])
    if not any("H100" in bench["device"]["name"] for _, bench in found):
        page.no_record("DeFT's trees and the second suite on an H100, with peers of that card", "`deftc bench all PACKAGE... --workloads DIR --json FILE` there, and the peers in the same run")
