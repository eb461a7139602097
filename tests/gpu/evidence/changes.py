"""The section on one thing changed at a time: tokens, readers, depth, pages, head dims, ratios, sinks."""

import charts
from records import card_of, link, us

NAME = "h200-sweeps.json"
WHAT = {"tokens": "tokens of a prompt with 32 branches of 64", "own_tokens": "tokens of 32 branches in all, below 1,024",
        "readers": "branches of one token below 8,192", "depth": "nodes of a path of 8,192 tokens with 32 leaves of 64",
        "page_size": "tokens of a page; a prompt of 8,192, 32 branches of 64", "head_dim": "head dim, the same tree",
        "ratio": "query heads for each KV head (32 query heads), the same tree"}


def one_thing_changed(page, records):
    record = records.read(NAME)
    sweeps = record["sweeps"]
    page.heading("One thing changed at a time")
    page.add(f"{card_of(record['device'])}, commit {record['commit']} ({link(NAME)}): bf16, heads 32/8, head dim 128, pages of 16 unless stated, untuned, cold L2, each point checked against float64.")
    page.table(["what", "at", "us", "floor us"], [
        [words, "; ".join(f"{point['value']:,}" for point in points), "; ".join(us(point["us"]) for point in points), "; ".join(us(point["floor_us"]) for point in points)]
        for name, words in WHAT.items() for points in [sweeps[name]]])
    first, last = sweeps["tokens"][-3], sweeps["tokens"][-1]
    added = (last["us"] - first["us"]) / (last["value"] - first["value"]) * 1000
    bytes_us = (last["floor_us"] - first["floor_us"]) / (last["value"] - first["value"]) * 1000
    page.add(f"Time grows linearly with unique tokens, shared or not: {added:.2f} us for each thousand beyond {first['value']:,}; the floor grows by {bytes_us:.2f}.")
    few, many = sweeps["readers"][0], next(point for point in sweeps["readers"] if point["value"] == 16)
    page.add(f"More readers cost nothing until the products bind: one query reads 8,192 tokens in {us(few['us'])} us, 16 queries in {us(many['us'])}, {sweeps['readers'][-1]['value']} in {us(sweeps['readers'][-1]['us'])}. "
             f"A path takes {min(point['us'] for point in sweeps['depth']):.1f} to {max(point['us'] for point in sweeps['depth']):.1f} us, independent of its number of nodes.")
    page.picture("sweep_tokens", "Time against tokens of the tree", charts.points("Time by unique tokens", "tokens", "us", [
        ("shared prompt", [(point["value"], point["us"]) for point in sweeps["tokens"]]),
        ("branches' own", [(point["value"], point["us"]) for point in sweeps["own_tokens"]]),
        ("floor, prompt", [(point["value"], point["floor_us"]) for point in sweeps["tokens"]])], log_x=False, log_y=False, lines=True))
    page.picture("sweep_readers", "Time against readers of the same tokens", charts.points("Time by readers of 8,192 tokens", "readers", "us", [
        ("deftc", [(point["value"], point["us"]) for point in sweeps["readers"]]),
        ("floor", [(point["value"], point["floor_us"]) for point in sweeps["readers"]])], log_y=False, lines=True))
    page.heading("Learned sinks", 3)
    page.table(["head dim", "without sink, us", "with sink, us"], [
        [value, us(without["us"]), us(one["us"])] for value, without, one in
        ((128, *sweeps["sink"][:2]), (64, *sweeps["sink"][2:]))])
    page.command("deftc build tests/gpu/sweeps.deft --arch sm_90a -o sweeps.deftpkg", record["command"])
