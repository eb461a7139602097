"""Sections on kernels: rows beside floor and peers, and what their time depends on."""

import charts
from records import (PUBLISHED_SUITES, card_of, levels_of, link, mean, ratio_of_heads, readers_of, times, tokens_of, us)

ROWS = "h200-bench-rows.json"  # the newest times
QUICK, UNTUNED = "h200-bench-quick.json", "h200-bench-quick-untuned.json"  # of one call
H100, H100_UNTUNED = "h100-bench.json", "h100-bench-untuned.json"  # of one call
RECORDED = ("speculative_", "reasoning_")  # workloads that are replayed from a folder of recordings


def peer_us(row):
    """None on another card than the peers ran on."""
    return (row.get("peer") or {}).get("scaled_us")


def over_peers(rows):
    return mean(peer_us(row) / row["cold_us"] for row in rows if peer_us(row))


def over_floor(rows):
    return mean(row["cold_us"] / row["floor_us"] for row in rows)


def unscaled(rows):
    """(over the best peers' times as they were measured on their card, names of rows slower than these)."""
    return mean(row["peer"]["raw_us"] / row["cold_us"] for row in rows), [row["name"] for row in rows if row["cold_us"] > row["peer"]["raw_us"]]


def flat_rows(records):
    """Rows that share nothing."""
    return records.rows(ROWS, ("flat",))


def published_rows(page, records):
    bench, rows = records.read(ROWS), records.rows(ROWS, PUBLISHED_SUITES)
    peers = records.published["kernels"]
    page.heading("57 published trees: ours, the floor, the best peers")
    page.add(f"{bench['device']['name']}, driver {bench['device']['driver']}, commit {bench['commit']} ({link(ROWS)}): f16, head dim 128, medians of "
             f"graph replays with a cold L2, pages in order, shipped configs. We ran the peers on another H200 on {peers['date']} ({link('published.json')}): "
             f"{', '.join(peers['programs'])}. *Best* is the fastest of them on that tree, scaled by {bench['ceilings']['read_scale']:.3f}, the ratio of a plain read on the two cards. "
             f"*Query-guided* is {peers['query_guided']}; its column is unscaled. *Floor* is the larger of a plain cold read of the cache and the products at the card's matrix rate, launch included.")
    every = list(rows.values())
    ceilings, (raw, slower) = bench["ceilings"], unscaled(every)
    page.add(f"An empty launch took {ceilings['launch_us']:.1f} us on this machine and {ceilings['recorded']['launch_us']} where the peers ran, while both read a gibibyte at the same rate: so the scale favours us on large rows. "
             f"Beside unscaled times deftc has {raw:.2f}x the speed and is slower on {', '.join(slower) or 'none'}.")
    page.table(["rows", "number", "speed over the best peer", "speed over query-guided", "time over the floor", "worst"], [
        [words, len(chosen), f"{over_peers(chosen):.2f}x", f"{mean(row['flat']['raw_us'] * row['peer']['scaled_us'] / row['peer']['raw_us'] / row['cold_us'] for row in chosen):.2f}x",
         times(over_floor(chosen)), f"{max(row['cold_us'] / row['floor_us'] for row in chosen):.2f}"]
        for words, chosen in (("all", every), ("FastTree's trees, heads 32/8", [row for row in every if row["name"].endswith("_g4")]),
                              ("FastTree's trees, heads 32/32", [row for row in every if row["name"].endswith("_g1")]),
                              ("FastTree's trees, heads 16/1", [row for row in every if row["name"].endswith("_g16")]),
                              ("DeFT's trees", list(records.rows(ROWS, ("deft",)).values())))])
    page.picture("rows", "The 57 rows: times over the floor, ours and the best peer's",
                 charts.bars("Time over the floor, 57 trees (1 is the floor)", "", list(rows),
                             [("deftc", [row["cold_us"] / row["floor_us"] for row in every]),
                              ("best published", [peer_us(row) / row["floor_us"] for row in every])], limit=8, line_at=1))
    page.table(["row", "tree", "heads", "tokens", "deftc us", "floor us", "best peer us", "", "speed-up", "query-guided us"], [
        [name, row["workload"], row["heads"], f"{tokens_of(row):,}", us(row["cold_us"]), us(row["floor_us"]), us(peer_us(row)),
         row["peer"]["name"], times(peer_us(row) / row["cold_us"]), us(row["flat"]["raw_us"])] for name, row in rows.items()])
    recorded = [name for name, row in rows.items() if row["workload"].startswith(RECORDED)]
    page.add(f"**Recordings.** {len(recorded)} of the {len(rows)} rows ({', '.join(f'`{name}`' for name in recorded)}) replay Medusa token trees and Tree-of-Thoughts searches. DeFT's authors "
             "recorded them and publish them under the MIT licence ([LINs-lab/DeFT](https://github.com/LINs-lab/DeFT), folder dataset/generation). This repository does not hold them. The second command below makes "
             "the folder `DIR` from a clone. Without it the bench skips these rows.")
    page.command("git clone https://github.com/LINs-lab/DeFT", "tests/gpu/recorded_workloads.py DeFT DIR",
                 "deftc build tests/bench/kernel_rows.deft --arch sm_90a -o rows.deftpkg",
                 "deftc bench all rows.deftpkg --workloads DIR --commit COMMIT --json bench.json")
    for name, row in rows.items():
        if row["cold_us"] > peer_us(row):
            page.loss(f"{name}: {us(row['cold_us'])} us, {row['peer']['name']} takes {us(peer_us(row))}")


def no_sharing(page, records):
    page.heading("Nothing shared")
    rows, recorded = flat_rows(records), records.published["kernels"]["no_sharing"]
    page.add("Requests that share nothing must not get slower. The best peers here are PAT and FlashInfer's persistent kernel, unscaled:")
    page.table(["requests", "deftc us", "floor us", "over the floor", "best peer us", "its floor us", "over its floor"], [
        [row["workload"].removeprefix("levels:"), us(row["cold_us"]), us(row["floor_us"]), times(row["cold_us"] / row["floor_us"]),
         us(recorded[name]["best_us"]), us(recorded[name]["floor_us"]), times(recorded[name]["best_us"] / recorded[name]["floor_us"])]
        for name, row in rows.items()])


def second_suite(page, records):
    page.heading("The second suite: other heads and head dims")
    rows = records.rows(ROWS, ("other",))
    page.add(f"{len(rows)} trees in bf16 with pages of 16 tokens, from the same record: {over_floor(rows.values()):.2f} times the floor on average. Peers ran on nine of these trees at heads 32/8 ([above](#peers-in-the-same-run)).")
    page.table(["row", "heads", "head dim", "tree", "tokens", "deftc us", "floor us", "over the floor"], [
        [name, row["heads"], row["head_dim"], row["workload"], f"{tokens_of(row):,}", us(row["cold_us"]), us(row["floor_us"]),
         times(row["cold_us"] / row["floor_us"])] for name, row in rows.items()])
    dims = sorted({row["head_dim"] for row in rows.values()})
    page.add("By head dim. The trees differ, so do not compare dims with each other:")
    page.table(["head dim", "rows", "times the floor, mean", "worst"], [
        [dim, len(chosen), times(over_floor(chosen)), times(max(row["cold_us"] / row["floor_us"] for row in chosen))]
        for dim in dims for chosen in [[row for row in rows.values() if row["head_dim"] == dim]]])


def scaling(page, records):
    page.heading("What the time depends on")
    rows = records.rows(ROWS, ("fasttree", "deft", "flat"))
    g4 = [row for row in rows.values() if row["heads"] == "32/8"]
    page.heading("Unique tokens", 3)
    page.add("All rows at heads 32/8. Large trees follow the cold read, whose time grows with tokens. "
             "Trees with many queries on few tokens (`F9_05`, drafts) are compute-bound and lie above it.")
    page.picture("tokens", "Time against unique tokens, log axes",
                 charts.points("Heads 32/8: time by unique tokens", "tokens in the tree", "us", [
                     ("deftc", [(tokens_of(row), row["cold_us"]) for row in g4]),
                     ("best published", [(tokens_of(row), peer_us(row)) for row in g4 if peer_us(row)]),
                     ("floor", [(tokens_of(row), row["floor_us"]) for row in g4])]))
    page.heading("Readers", 3)
    page.add("A query-guided kernel's time for each unique token grows with the number of queries that read it. "
             "Ours stays near the time of one read until it is compute-bound.")
    known = [row for row in g4 if readers_of(row) and tokens_of(row) > 4000]
    page.picture("readers", "Time for a thousand unique tokens against readers",
                 charts.points("Heads 32/8, more than 4,000 tokens", "queries that read a token, on average", "us for 1,000 tokens", [
                     ("deftc", [(readers_of(row), row["cold_us"] * 1000 / tokens_of(row)) for row in known]),
                     ("query-guided", [(readers_of(row), row["flat"]["raw_us"] * 1000 / tokens_of(row)) for row in known if row.get("flat")]),
                     ("floor", [(readers_of(row), row["floor_us"] * 1000 / tokens_of(row)) for row in known])]))
    page.add("Drafts below a prompt of 4,000 tokens, where only the number of readers changes:")
    page.table(["row", "readers", "deftc us", "floor us", "best peer us", "query-guided us"], [
        [name, round(readers_of(rows[name])), us(rows[name]["cold_us"]), us(rows[name]["floor_us"]), us(peer_us(rows[name])),
         us(rows[name]["flat"]["raw_us"])] for name in ("SP_t32", "SP_t64", "SP_t128", "SP_t256")])
    page.heading("Width", 3)
    page.table(["row", "branches", "tokens", "deftc us", "us for 1,000 tokens", "best peer us"], [
        [name, rows[name]["workload"].split("nodes=1,")[1].split(",")[0], f"{tokens_of(rows[name]):,}", us(rows[name]["cold_us"]),
         times(rows[name]["cold_us"] * 1000 / tokens_of(rows[name])), us(peer_us(rows[name]))] for name in ("FS_b20", "FS_b30", "FS_b50")])
    page.heading("Depth", 3)
    page.add("FastTree's trees of 1,024 leaves and similar numbers of tokens, by their number of levels:")
    page.table(["row", "levels", "tokens", "deftc us", "over the floor", "best peer us"], [
        [name, len(levels_of(rows[name])), f"{tokens_of(rows[name]):,}", us(rows[name]["cold_us"]),
         times(rows[name]["cold_us"] / rows[name]["floor_us"]), us(peer_us(rows[name]))]
        for name in ("F9_11_g4", "F9_12_g4", "F9_13_g4", "F9_14_g4", "F9_15_g4")])
    ratio_and_pages(page, records)


def ratio_and_pages(page, records):
    rows = records.rows(ROWS, ("fasttree",))
    page.heading("Ratio of query heads to KV heads", 3)
    page.add("FastTree's fifteen trees. At 16/1 a tree has one thirty-second of the bytes of 32/32, so the floor is close to an empty launch.")
    page.table(["heads", "ratio", "time over the floor, mean", "worst", "speed over the best peer"], [
        [chosen[0]["heads"], ratio_of_heads(chosen[0]), times(over_floor(chosen)), times(max(row["cold_us"] / row["floor_us"] for row in chosen)),
         f"{over_peers(chosen):.2f}x"] for chosen in
        [[row for row in rows.values() if row["name"].endswith(ending)] for ending in ("_g1", "_g4", "_g16")]])
    page.heading("Pages", 3)
    every = list(records.rows(ROWS, PUBLISHED_SUITES).values())
    page.add(f"Time of the 57 rows with pages scattered over the cache, divided by their time with pages in order ({link(ROWS)}):")
    page.table(["pages", "mean", "worst", "row"], [
        [words, times(mean(row[key] for row in every), 3), times(max(row[key] for row in every), 3), max(every, key=lambda row: row[key])["name"]]
        for words, key in (("of 1 token", "scattered_over_contiguous"), ("of 16 tokens", "scattered_pages_of_16_over_contiguous"))])
    page.add(f"With a warm L2 the rows take {mean(row['warm_us'] / row['cold_us'] for row in every):.2f} of their cold time on average.")


def windows(page, records):
    name = "h200-windows.json"
    bench, rows = records.read(name), records.rows(name)
    peers = bench["window_peers"]
    page.heading("Windows and attention sinks")
    page.add(f"{card_of(bench['device']['name'])}, commit {bench['commit']} ({link(name)}): 16 requests, bf16, heads 32/8, {peers['peer']} with `window_left` in the same call. "
             "Tokens outside the window are neither read nor planned, so the time does not grow with the context.")
    page.table(["row", "deftc us", "floor us", peers["peer"] + " us"], [
        [row, us(facts["cold_us"]), us(facts["floor_us"]), us(peers["rows"].get(row))] for row, facts in rows.items()])
    context = {"_and_1k": None, "_16k": 16, "_64k": 64, "_128k": 128}
    series = [(words, [(size, rows[prefix + ending]["cold_us"]) for ending, size in context.items() if size])
              for words, prefix in (("128", "w128"), ("4,096", "w4096"), ("4 sinks + 4,096", "sink4_w4096"))]
    series.append(("FlashInfer, 4,096", [(size, peers["rows"]["w4096" + ending]) for ending, size in context.items() if size]))
    page.picture("windows", "Time against context with a window", charts.points(
        "Windows: time by context", "tokens of context, thousands", "us", series, log_x=False, log_y=False, lines=True))
    page.command("deftc bench windows windows.deftpkg --json windows.json", "tests/gpu/window_peers.py --json peers.json")


def tuned(page, records):
    page.heading("Tuned against untuned")
    shipped, plain, bench = records.rows(QUICK), records.rows(UNTUNED), records.read(QUICK)
    gains = {name: plain[name]["cold_us"] / row["cold_us"] for name, row in shipped.items() if name in plain}
    page.add(f"Of {len(gains)} rows on the H200, both in one call at {bench['commit']} ({link(QUICK)}, {link(UNTUNED)}), the untuned choice takes {mean(gains.values()):.3f} times the time of the "
             f"shipped configs on average. The cost model's prices were fitted on this card.")
    ordered = sorted(gains.items(), key=lambda gain: -gain[1])
    page.table(["where tuning gains most", "untuned over tuned"], [[name, times(gain, 3)] for name, gain in ordered[:5]])
    page.table(["where it loses most", "untuned over tuned"], [[name, times(gain, 3)] for name, gain in ordered[-3:]])
    for name, gain in ordered:
        if gain < 0.97:
            page.loss(f"{name}: the shipped config takes {1 / gain:.3f} times the untuned choice's time")
    held = records.read("h200-held-out-pages-of-16.json")
    page.add(f"Tuned over untuned on trees that were not used for tuning ({link('h200-held-out-pages-of-16.json')}):")
    page.table(["attention", "trees", "mean", "best", "worst"], [
        [entry["of"].split("#")[-1], entry["trees"], times(entry["mean"], 3), times(entry["best"], 3), times(entry["worst"], 3)] for entry in held["summaries"]])
    tuned_elsewhere(page, records)


def tuned_elsewhere(page, records):
    """The same on the other card that ships entries: its own, the H200's where it has none."""
    shipped, plain = records.rows(H100), records.rows(H100_UNTUNED)
    if not shipped or not plain:
        page.no_record("tuned against untuned on an H100", "`deftc bench all PACKAGE...` with and without `--untuned`, after `tests/gpu/renew_on_card.py`")
        return
    bench = records.read(H100)
    gains = {name: plain[name]["cold_us"] / row["cold_us"] for name, row in shipped.items() if name in plain}

    def config_of(row):
        return row["contiguous"]["chosen"]["config"]

    others = [name for name in gains if config_of(shipped[name]) != config_of(plain[name])]
    same = [gain for name, gain in gains.items() if name not in others]
    page.add(f"Of {len(gains)} rows on an {card_of(bench['device']['name'])}, both in one call at {bench['commit']} ({link(H100)}, {link(H100_UNTUNED)}), with that card's own entries, or the H200's where it has none "
             f"(rule `sibling`): the untuned choice takes {mean(gains.values()):.3f} times the time of the entries on average, {min(gains.values()):.3f} at least. "
             + (f"On {len(same)} rows both choose the same config (ratio {mean(same):.3f}). The others:" if same else "They choose different configs on every row:"))
    page.table(["row", "rule", "untuned over tuned"], [
        [name, "`" + shipped[name]["selection"]["rule"] + "`", times(gains[name], 3)] for name in sorted(others, key=lambda name: -gains[name])])
    for name in others:
        if gains[name] < 0.97:
            page.loss(f"{name} on the H100: the tuned entry takes {1 / gains[name]:.3f} times the untuned choice's time")
