"""The section on thousands of beams that change parents in each step."""

import re

from records import card_of, link, times, us


def words_of(name):
    """`beams_5000_below_2000_own_3` in words."""
    _, beams, _, history, *rest = name.split("_")
    facts = dict(zip(rest[::2], rest[1::2])) if rest[0] == "own" else {}
    words = f"{int(beams):,} below {int(history):,}, " + (f"{facts['own']} of their own" if facts else f"{rest[-1]} new tokens")
    return words + (f" below {facts['levels']} levels that they share" if "levels" in facts else "") + (f", heads {facts['heads']}/8" if "heads" in facts else "")


ATTENTION = {"beams_5000_below_2000_own_3": 1.35, "beams_5000_below_8000_own_3": 1.25}  # targets: times the floor
ADDED_US = {3: 300, 128: 600}  # targets by own tokens: reorder, plan and upload of 5,000 beams


def wide_beams(page, records):
    name = "h200-wide-beams.json"
    record = records.read(name)
    rows = {row: {"words": words_of(row), **facts} for row, facts in record["rows"].items()}
    page.heading("Wide beams")
    page.add(f"{card_of(record['device'])}, {record['date']}, commit {record['commit']} ({link(name)}): beams below one history, each with 3 or 128 tokens of its own, heads 16/8 if a row names no others, bf16, pages of 16; each step every beam goes on from a random one. "
             "*Reorder* and *plan* are the host's, in Python. *Added* is what a step takes above one whose plan stays.")
    page.table(["beams, tokens of history", "attention us", "floor us", "over the floor", "reorder us", "plan us", "added us"], [
        [row["words"], us(row["attention_us"]), us(row["floor_us"]), times(row["attention_us"] / row["floor_us"]), us(row["reorder_us"]), us(row["plan_us"]), us(row["added_us"])] for row in rows.values()])
    page.add("Whole searches of a model of Qwen3-0.6B's dimensions with random weights, by the tree and path by path:")
    page.table(["search", "tree ms", "by path ms", "ratio", "same tokens"], [
        [words_of(search), times(found["tree_ms"], 1), times(found["path_ms"], 1), times(found["path_ms"] / found["tree_ms"]), "yes" if found["tokens_are_the_same"] else "no"]
        for search, found in record["searches"].items()])
    for row, goal in ATTENTION.items():
        ratio = rows[row]["attention_us"] / rows[row]["floor_us"]
        if ratio > goal:
            page.loss(f"beams, {rows[row]['words']}: attention takes {times(ratio)} times its floor; the target was {goal}")
    for own, goal in ADDED_US.items():
        widest = [facts["added_us"] for row, facts in rows.items() if re.fullmatch(f"beams_5000_.*_own_{own}", row)]
        if max(widest) > goal:
            page.loss(f"5,000 beams with {own} tokens of their own: reorder, plan and upload add up to {max(widest) / 1000:.2f} ms to a step; the target was {goal / 1000}")
    page.no_record("whole searches of SGLang beside deft.hf's", "`tests/gpu/sglang_beams.py` with SGLang 0.5.19 or later")
    page.command(record["command"].replace("FILE", "beams.json"))
