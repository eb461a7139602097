"""The section on thousands of beams that change parents in each step."""

from records import card_of, link, times, us


def words_of(name):
    """`beams_5000_below_2000_own_3` in words."""
    _, beams, _, history, *own = name.split("_")
    return f"{int(beams):,} below {int(history):,}, {own[-1]} {'of their own' if own[0] == 'own' else 'new tokens'}"


ATTENTION = {"beams_5000_below_2000_own_3": 1.35, "beams_5000_below_8000_own_3": 1.25}  # targets: times the floor
HOST_US, ADDED_US = 300, 600  # targets of reordering with planning, and of what a step adds


def wide_beams(page, records):
    name = "h200-wide-beams.json"
    record = records.read(name)
    rows = {row: {"words": words_of(row), **facts} for row, facts in record["rows"].items()}
    page.heading("Wide beams")
    page.add(f"{card_of(record['device'])}, {record['date']}, commit {record['commit']} ({link(name)}): beams below one history, each with 3 or 128 tokens of its own, heads 16/8, bf16, pages of 16; each step every beam goes on from a random one. "
             "*Reorder* and *plan* are the host's, in Python. *Added* is what a step takes above one whose plan stays. Other programs ran on the host.")
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
    widest = [row for row in rows.values() if row["words"].startswith("5,000 ")]
    host, added = [row["reorder_us"] + row["plan_us"] for row in widest], [row["added_us"] for row in widest]
    if max(host) > HOST_US or max(added) > ADDED_US:
        page.loss(f"5,000 beams that change parents: reordering and planning take the host {min(host) / 1000:.1f} to {max(host) / 1000:.1f} ms (target {HOST_US / 1000}), a step adds {min(added) / 1000:.1f} to {max(added) / 1000:.1f} ms (target {ADDED_US / 1000})")
    page.command(record["command"].replace("FILE", "beams.json"))
