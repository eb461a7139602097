"""The section on one thing changed at a time: tokens, readers, depth, pages, head dims, ratios, sinks."""

import charts
from records import card_of, link, us

NAME = "h200-sweeps.json"
WHAT = {"tokens": "a prompt of so many tokens, 32 branches of 64", "own_tokens": "32 branches with so many tokens in all, below 1,024",
        "readers": "so many branches of one token below 8,192", "depth": "8,192 tokens as a path of so many nodes, 32 leaves of 64 below",
        "page_size": "pages of so many tokens; a prompt of 8,192, 32 branches of 64", "head_dim": "that head dim, the same tree",
        "ratio": "so many query heads a KV head, 32 query heads, the same tree"}


def one_thing_changed(page, records):
    record = records.read(NAME)
    sweeps = record["sweeps"]
    page.heading("One thing changed at a time")
    page.add(f"{card_of(record['device'])}, commit {record['commit']} ({link(NAME)}): bf16, heads 32/8, head dim 128, pages of 16 but where said, untuned, a cold L2, each point checked against float64.")
    page.table(["what", "at", "us", "floor us"], [
        [words, "; ".join(f"{point['value']:,}" for point in points), "; ".join(us(point["us"]) for point in points), "; ".join(us(point["floor_us"]) for point in points)]
        for name, words in WHAT.items() for points in [sweeps[name]]])
    first, last = sweeps["tokens"][-3], sweeps["tokens"][-1]
    added = (last["us"] - first["us"]) / (last["value"] - first["value"]) * 1000
    bytes_us = (last["floor_us"] - first["floor_us"]) / (last["value"] - first["value"]) * 1000
    page.add(f"Time grows with unique tokens as a straight line: {added:.2f} us for each thousand from {first['value']:,} on, {bytes_us:.2f} by the floor; with shared tokens and with the branches' own alike.")
    few, many = sweeps["readers"][0], next(point for point in sweeps["readers"] if point["value"] == 16)
    page.add(f"Readers cost nothing until products bound it: one reads 8,192 tokens in {us(few['us'])} us and 16 in {us(many['us'])}, {sweeps['readers'][-1]['value']} in {us(sweeps['readers'][-1]['us'])}. "
             f"A path takes {min(point['us'] for point in sweeps['depth']):.1f} to {max(point['us'] for point in sweeps['depth']):.1f} us, whatever the number of its nodes.")
    page.picture("sweep_tokens", "Time against tokens of the tree", charts.points("Time by unique tokens", "tokens", "us", [
        ("shared prompt", [(point["value"], point["us"]) for point in sweeps["tokens"]]),
        ("branches' own", [(point["value"], point["us"]) for point in sweeps["own_tokens"]]),
        ("floor, prompt", [(point["value"], point["floor_us"]) for point in sweeps["tokens"]])], log_x=False, log_y=False, lines=True))
    page.picture("sweep_readers", "Time against readers of the same tokens", charts.points("Time by readers of 8,192 tokens", "readers", "us", [
        ("deftc", [(point["value"], point["us"]) for point in sweeps["readers"]]),
        ("floor", [(point["value"], point["floor_us"]) for point in sweeps["readers"]])], log_y=False, lines=True))
    page.heading("Learned sinks", 3)
    page.table(["head dim", "without, us", "with a sink, us"], [
        [value, us(without["us"]), us(one["us"])] for value, without, one in
        ((128, *sweeps["sink"][:2]), (64, *sweeps["sink"][2:]))])
    page.command("deftc build tests/gpu/sweeps.deft --arch sm_90a -o sweeps.deftpkg", record["command"])
