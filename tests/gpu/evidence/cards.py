"""The section on other cards, from the history of benches and from records of whole benches."""

import json
import sys
from pathlib import Path

from kernels import ROWS, UNTUNED, over_floor, over_peers, peer_us
from records import card_of, link, times

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import history  # noqa: E402

CONFIGS = Path(__file__).resolve().parents[3] / "tuner" / "configs"
OF_THEIR_OWN = (ROWS, UNTUNED, "h200-windows.json", "h200-latent.json", "h200-latent-bytes.json", "h100-ragged.json")  # benches that have a section


def shipped_entries():
    """(card, how many) of the files of entries that ship, most first."""
    files = [json.loads(path.read_text(encoding="utf-8")) for path in CONFIGS.glob("*.json")]
    return sorted(((card_of(file["device"]["name"]), len(file["entries"])) for file in files), key=lambda card: (-card[1], card[0]))


def other_benches(records):
    """(name, bench) of further records of `deftc bench`."""
    for path in sorted(records.folder.glob("*.json")):
        if path.name not in OF_THEIR_OWN and '"deftc-bench"' in path.read_text(encoding="utf-8")[:200_000]:
            bench = records.read(path.name)
            if isinstance(bench, dict) and bench.get("format") == "deftc-bench":
                yield path.name, bench


def other_cards(page, records):
    ours = records.read(ROWS)["device"]["name"]
    newest = {}
    for (date, card, commit, config), bench in history.benches_of(history.read_lines(records.folder)).items():
        for suite in history.SUITES:
            ratio = history.mean_over_floor(bench, (suite,))
            if card != ours and ratio:
                newest[card, suite, config] = [card_of(card), suite, config, date[:10], commit, sum(name == suite for name, _ in bench), times(ratio)]
    page.heading("Other cards")
    page.add(f"The newest benches of each kind in {link('history.jsonl')}, as times over the card's own floor. Before 2026-11-27 only the H200's configs shipped.")
    page.table(["card", "suite", "config", "date", "commit", "rows", "time over the floor"], list(newest.values()))
    found = list(other_benches(records))
    if found:
        page.add("Further records of benches. Their peers ran on the H200, so the last column compares two cards:")
        page.table(["record", "card", "suite", "rows", "time over the floor", "worst", "speed over the H200's peers"], [
            [link(name), card_of(bench["device"]["name"]), suite["name"], len(rows), times(over_floor(rows)), times(max(row["cold_us"] / row["floor_us"] for row in rows)),
             times(over_peers(rows)) if any(peer_us(row) for row in rows) else None]
            for name, bench in found for suite in bench["suites"] for rows in [suite["rows"]] if rows and all(row.get("floor_us") for row in rows)])
    of_h100 = {suite["name"] for _, bench in found if "H100" in bench["device"]["name"] for suite in bench["suites"] if suite["rows"]}
    for suite, words in (("deft", "DeFT's trees"), ("other", "the second suite")):
        if suite not in of_h100:
            page.no_record(f"{words} on an H100", "`deftc bench all PACKAGE... --workloads DIR --json FILE` there")
