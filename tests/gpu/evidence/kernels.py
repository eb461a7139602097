"""Sections on kernels: rows beside floor and peers, and what their time depends on."""

import charts
from records import (PUBLISHED_SUITES, card_of, levels_of, link, mean, ratio_of_heads, readers_of, times, tokens_of, us)

BENCH = "h200-bench.json"
QUICK, UNTUNED = "h200-bench-quick.json", "h200-bench-quick-untuned.json"  # of one call
H100, H100_UNTUNED = "h100-bench.json", "h100-bench-untuned.json"  # of one call
README_ROWS = (("few-shot, 20 branches", "FS_b20"), ("reasoning, three levels", "RS_3lvl"),
               ("speculative, 64 drafts", "SP_t64"), ("nine levels, 1,024 leaves", "F9_10_g4"), ("no sharing", "flat_256x1k"))
RECORDED = ("speculative_", "reasoning_")  # workloads that are replayed from a folder of recordings


def peer_us(row):
    """None on another card than the peers ran on."""
    return (row.get("peer") or {}).get("scaled_us")


def over_peers(rows):
    return mean(peer_us(row) / row["cold_us"] for row in rows if peer_us(row))


def over_floor(rows):
    return mean(row["cold_us"] / row["floor_us"] for row in rows)


def summary(records):
    """The figures that the README begins with."""
    bench, rows = records.read(BENCH), records.rows(BENCH)
    compared = list(records.rows(BENCH, PUBLISHED_SUITES).values())
    flat = list(records.rows(BENCH, ("flat",)).values())
    slower = sum(row["cold_us"] > peer_us(row) for row in compared)
    lines = [f"One {bench['device']['name']} at {bench['commit']}, f16, 32 query heads over 8 KV heads, head dim 128, cold L2, microseconds:", "",
             "| tree | queries | tokens | deftc | floor | best published |", "|---|---|---|---|---|---|"]
    for words, name in README_ROWS:
        row = rows[name]
        queries = row["contiguous"]["chosen"]["bytes"]["outputs"] // (32 * 128 * 2)
        lines.append(f"| {words} (`{name}`) | {queries:,} | {tokens_of(row):,} | **{us(row['cold_us'])}** | {us(row['floor_us'])} | {us(peer_us(row))} |")
    peers, last = records.published["kernels"], README_ROWS[-1][1]
    return lines + ["", f"*Best published*: the fastest of the published kernels on that tree, run by us on another {card_of(peers['card'])} on {peers['date']} and scaled by "
                    f"{bench['ceilings']['read_scale']:.3f}, what a plain read takes on the two cards. The last row is not one of the {len(compared)} below; its peer took {us(rows[last]['peer']['raw_us'])} unscaled.",
                    "", f"Over the {len(compared)} published trees: {over_peers(compared):.2f} times faster than the best of these, slower on "
                    f"{slower or 'none'}, {over_floor(compared):.2f} times the floor. No sharing: {over_floor(flat):.2f} times the floor."]


def published_rows(page, records):
    bench, rows = records.read(BENCH), records.rows(BENCH, PUBLISHED_SUITES)
    peers = records.published["kernels"]
    page.heading("57 published trees: ours, the floor, the best peers")
    page.add(f"{bench['device']['name']}, driver {bench['device']['driver']}, commit {bench['commit']} ({link(BENCH)}): f16, head dim 128, medians of "
             f"graph replays with a cold L2, pages in order, configs that ship. Peers: {link('published.json')}, measured on the same kind of "
             f"card on {peers['date']}, not in the same run: {', '.join(peers['programs'])}. *Best* is the fastest of all of them on that tree, scaled by "
             f"what a plain read takes on the two cards ({bench['ceilings']['read_scale']:.3f}). *Query-guided* is {peers['query_guided']}. "
             "*Floor*: the larger of a plain cold read of the cache and the products at the matrix rate, launch included.")
    every = list(rows.values())
    page.table(["rows", "number", "over the best peer", "over query-guided", "times the floor", "worst over the floor"], [
        [words, len(chosen), f"{over_peers(chosen):.2f} x faster", f"{mean(row['flat']['raw_us'] * row['peer']['scaled_us'] / row['peer']['raw_us'] / row['cold_us'] for row in chosen):.2f} x faster",
         times(over_floor(chosen)), f"{max(row['cold_us'] / row['floor_us'] for row in chosen):.2f}"]
        for words, chosen in (("all", every), ("FastTree's trees, heads 32/8", [row for row in every if row["name"].endswith("_g4")]),
                              ("FastTree's trees, heads 32/32", [row for row in every if row["name"].endswith("_g1")]),
                              ("FastTree's trees, heads 16/1", [row for row in every if row["name"].endswith("_g16")]),
                              ("DeFT's trees", list(records.rows(BENCH, ("deft",)).values())))])
    page.picture("rows", "The 57 rows: times over the floor, ours and the best peer's",
                 charts.bars("Time over the floor, 57 trees (1 is the floor)", "", list(rows),
                             [("deftc", [row["cold_us"] / row["floor_us"] for row in every]),
                              ("best published", [peer_us(row) / row["floor_us"] for row in every])], limit=8, line_at=1))
    page.table(["row", "tree", "heads", "tokens", "deftc us", "floor us", "best peer us", "", "faster by", "query-guided us"], [
        [name, row["workload"], row["heads"], f"{tokens_of(row):,}", us(row["cold_us"]), us(row["floor_us"]), us(peer_us(row)),
         row["peer"]["name"], times(peer_us(row) / row["cold_us"]), us(row["flat"]["raw_us"])] for name, row in rows.items()])
    page.add("The query-guided column is unscaled. Rows whose floor counts flops take the matrix rate of that day's card.")
    recorded = [name for name, row in rows.items() if row["workload"].startswith(RECORDED)]
    page.add(f"**Recordings.** {len(recorded)} of the {len(rows)} rows ({', '.join(f'`{name}`' for name in recorded)}) replay Medusa token trees and Tree-of-Thoughts searches that DeFT's authors "
             "recorded and publish under the MIT licence ([LINs-lab/DeFT](https://github.com/LINs-lab/DeFT), its folder dataset/generation). This repository does not hold them: the second command below makes "
             "the folder `DIR` from a clone. Without it the bench leaves these rows out.")
    page.command("git clone https://github.com/LINs-lab/DeFT", "tests/gpu/recorded_workloads.py DeFT DIR",
                 "deftc build tests/bench/kernel_rows.deft --arch sm_90a -o rows.deftpkg",
                 "deftc bench all rows.deftpkg --workloads DIR --commit COMMIT --json bench.json")
    for name, row in rows.items():
        if row["cold_us"] > peer_us(row):
            page.loss(f"{name}: {us(row['cold_us'])} us beside {us(peer_us(row))} of {row['peer']['name']}")


def no_sharing(page, records):
    page.heading("Nothing shared")
    rows, recorded = records.rows(BENCH, ("flat",)), records.published["kernels"]["no_sharing"]
    page.add("Nobody may lose by a tree that has no prefixes. The best peers here are PAT and FlashInfer's persistent kernel, unscaled:")
    page.table(["requests", "deftc us", "floor us", "over the floor", "best peer us", "its floor us", "over its floor"], [
        [row["workload"].removeprefix("levels:"), us(row["cold_us"]), us(row["floor_us"]), times(row["cold_us"] / row["floor_us"]),
         us(recorded[name]["best_us"]), us(recorded[name]["floor_us"]), times(recorded[name]["best_us"] / recorded[name]["floor_us"])]
        for name, row in rows.items()])


def second_suite(page, records):
    page.heading("The second suite: other heads and head dims")
    rows = records.rows(BENCH, ("other",))
    page.add(f"22 trees in bf16 with pages of 16 tokens, the same record; {over_floor(rows.values()):.2f} times the floor in the mean. Peers were timed on nine of these trees at heads 32/8 ([below](#peers-in-the-same-run)).")
    page.table(["row", "heads", "head dim", "tree", "tokens", "deftc us", "floor us", "over the floor"], [
        [name, row["heads"], row["head_dim"], row["workload"], f"{tokens_of(row):,}", us(row["cold_us"]), us(row["floor_us"]),
         times(row["cold_us"] / row["floor_us"])] for name, row in rows.items()])
    dims = sorted({row["head_dim"] for row in rows.values()})
    page.add("By head dim (trees differ, so these are not one tree at several dims):")
    page.table(["head dim", "rows", "times the floor, mean", "worst"], [
        [dim, len(chosen), times(over_floor(chosen)), times(max(row["cold_us"] / row["floor_us"] for row in chosen))]
        for dim in dims for chosen in [[row for row in rows.values() if row["head_dim"] == dim]]])


def scaling(page, records):
    page.heading("What the time depends on")
    rows = records.rows(BENCH, ("fasttree", "deft", "flat"))
    g4 = [row for row in rows.values() if row["heads"] == "32/8"]
    page.heading("Unique tokens", 3)
    page.add("All rows at heads 32/8 by the tokens that the tree has. Large trees lie along the cold read, whose time grows with tokens; "
             "above it stand trees with many queries on few tokens, which products bound (`F9_05`, drafts).")
    page.picture("tokens", "Time against unique tokens, log axes",
                 charts.points("Heads 32/8: time by unique tokens", "tokens in the tree", "us", [
                     ("deftc", [(tokens_of(row), row["cold_us"]) for row in g4]),
                     ("best published", [(tokens_of(row), peer_us(row)) for row in g4 if peer_us(row)]),
                     ("floor", [(tokens_of(row), row["floor_us"]) for row in g4])]))
    page.heading("Readers", 3)
    page.add("Each row by how many queries read a token in the mean. The time for each unique token of a query-guided kernel grows with the "
             "readers; ours stays near that of a read until products bound it.")
    known = [row for row in g4 if readers_of(row) and tokens_of(row) > 4000]
    page.picture("readers", "Time for a thousand unique tokens against readers",
                 charts.points("Heads 32/8, more than 4,000 tokens", "queries that read a token, in the mean", "us for 1,000 tokens", [
                     ("deftc", [(readers_of(row), row["cold_us"] * 1000 / tokens_of(row)) for row in known]),
                     ("query-guided", [(readers_of(row), row["flat"]["raw_us"] * 1000 / tokens_of(row)) for row in known if row.get("flat")]),
                     ("floor", [(readers_of(row), row["floor_us"] * 1000 / tokens_of(row)) for row in known])]))
    page.add("Drafts below a prompt of 4,000 tokens, where only the readers change:")
    page.table(["row", "readers", "deftc us", "floor us", "best peer us", "query-guided us"], [
        [name, round(readers_of(rows[name])), us(rows[name]["cold_us"]), us(rows[name]["floor_us"]), us(peer_us(rows[name])),
         us(rows[name]["flat"]["raw_us"])] for name in ("SP_t32", "SP_t64", "SP_t128", "SP_t256")])
    page.heading("Width", 3)
    page.table(["row", "branches", "tokens", "deftc us", "us for 1,000 tokens", "best peer us"], [
        [name, rows[name]["workload"].split("nodes=1,")[1].split(",")[0], f"{tokens_of(rows[name]):,}", us(rows[name]["cold_us"]),
         times(rows[name]["cold_us"] * 1000 / tokens_of(rows[name])), us(peer_us(rows[name]))] for name in ("FS_b20", "FS_b30", "FS_b50")])
    page.heading("Depth", 3)
    page.add("FastTree's trees of 1,024 leaves and about as many tokens, by how many levels stand above these:")
    page.table(["row", "levels", "tokens", "deftc us", "over the floor", "best peer us"], [
        [name, len(levels_of(rows[name])), f"{tokens_of(rows[name]):,}", us(rows[name]["cold_us"]),
         times(rows[name]["cold_us"] / rows[name]["floor_us"]), us(peer_us(rows[name]))]
        for name in ("F9_11_g4", "F9_12_g4", "F9_13_g4", "F9_14_g4", "F9_15_g4")])
    ratio_and_pages(page, records)


def ratio_and_pages(page, records):
    rows = records.rows(BENCH, ("fasttree",))
    page.heading("Ratio of query heads to KV heads", 3)
    page.add("FastTree's fifteen trees. At 16/1 a tree has a thirty-second of the bytes of 32/32, so the floor is "
             "near an empty launch.")
    page.table(["heads", "ratio", "over the floor, mean", "worst", "over the best peer"], [
        [chosen[0]["heads"], ratio_of_heads(chosen[0]), times(over_floor(chosen)), times(max(row["cold_us"] / row["floor_us"] for row in chosen)),
         f"{over_peers(chosen):.2f} x faster"] for chosen in
        [[row for row in rows.values() if row["name"].endswith(ending)] for ending in ("_g1", "_g4", "_g16")]])
    page.heading("Pages", 3)
    every = list(records.rows(BENCH, PUBLISHED_SUITES).values())
    page.add("The 57 rows with their pages scattered over the cache, over the time with pages in order:")
    page.table(["pages", "mean", "worst", "row"], [
        [words, times(mean(row[key] for row in every), 3), times(max(row[key] for row in every), 3), max(every, key=lambda row: row[key])["name"]]
        for words, key in (("of 1 token", "scattered_over_contiguous"), ("of 16 tokens", "scattered_pages_of_16_over_contiguous"))])
    page.add(f"With a warm L2 the rows take {mean(row['warm_us'] / row['cold_us'] for row in every):.2f} of the cold time in the mean.")


def windows(page, records):
    name = "h200-windows.json"
    bench, rows = records.read(name), records.rows(name)
    peers = bench["window_peers"]
    page.heading("Windows, and tokens that are always seen")
    page.add(f"{card_of(bench['device']['name'])}, commit {bench['commit']} ({link(name)}): 16 requests, bf16, heads 32/8, {peers['peer']} with `window_left` in the same call. What "
             "lies outside of the window is neither read nor planned, so the time does not grow with the context.")
    page.table(["row", "deftc us", "floor us", peers["peer"] + " us"], [
        [row, us(facts["cold_us"]), us(facts["floor_us"]), us(peers["rows"].get(row))] for row, facts in rows.items()])
    context = {"_and_1k": None, "_16k": 16, "_64k": 64, "_128k": 128}
    series = [(words, [(size, rows[prefix + ending]["cold_us"]) for ending, size in context.items() if size])
              for words, prefix in (("128", "w128"), ("4,096", "w4096"), ("4 sinks + 4,096", "sink4_w4096"))]
    series.append(("FlashInfer, 4,096", [(size, peers["rows"]["w4096" + ending]) for ending, size in context.items() if size]))
    page.picture("windows", "Time against context with a window", charts.points(
        "Windows: time by context", "tokens of context, thousands", "us", series, log_x=False, log_y=False, lines=True))
    page.command("deftc bench windows windows.deftpkg --json windows.json", "tests/gpu/window_peers.py --json peers.json")


def variants(page, records):
    bench = records.read(BENCH)
    page.heading("Scores, masks and types beside plain attention")
    page.add(f"The same trees with a hook, over plain f16 attention of the same minutes ({link(BENCH)}); the median of three.")
    trees = list(dict.fromkeys(row["tree"] for row in bench["variants"]))
    kinds = list(dict.fromkeys(row["variant"] for row in bench["variants"]))
    by_place = {(row["tree"], row["variant"]): row for row in bench["variants"]}
    page.table(["tree", *kinds], [[tree, *(times(by_place[tree, kind]["ratio"]) if (tree, kind) in by_place else None for kind in kinds)] for tree in trees])
    worst = max(bench["variants"], key=lambda row: row["ratio"])
    page.add(f"The dearest is {worst['variant']} on {worst['tree']}, {worst['ratio']:.2f} times.")
    if worst["ratio"] > 1.1:
        page.loss(f"{worst['variant']} on {worst['tree']} takes {worst['ratio']:.2f} times plain attention's time; 1.10 was the aim")


BOUND_BY_BYTES = 1.2  # times its floor that a row of 16 bits takes at most


def of_heads(ratio):
    """Rows by their heads."""
    return [(heads, [row for row in ratio if row.endswith(ending)]) for heads, ending in (("32/8", "_g4"), ("32/32", "_g1"), ("16/1", "_g16"))]


def of_group(words, ratio, rows):
    """What a table says of some rows' ratios: how many, their mean, the least and the largest."""
    found = {row: ratio[row] for row in rows}
    ends = (min(found, key=found.get), max(found, key=found.get))
    return [words, len(rows), times(mean(found.values())), *(f"{times(found[row])} ({row})" for row in ends)]


def caches_of_8_bits(page, records):
    page.heading("Caches of 8-bit floats")
    page.add("FastTree's trees with `dtype = fp8_e4m3` caches over the same with f16, both untuned, in one call. Half the memory; of the time, where the 16-bit kernel takes at most "
             f"{BOUND_BY_BYTES} times its floor, so that bytes bind, and by heads:")
    lines = []
    for name in ("h200-fp8.json", "h100-fp8.json"):
        record = records.read(name)
        ratio = {row["row"]: row["fp8_us"] / row["bits_16_us"] for row in record["rows"]}
        bound = [row["row"] for row in record["rows"] if row["bits_16_us"] <= BOUND_BY_BYTES * row["bits_16_floor_us"]]
        card = card_of(record["device"])
        groups = [("all", list(ratio)), ("bytes bind", bound), *of_heads(ratio)]
        lines += [[f"{card} ({link(name)})", *of_group(words, ratio, rows)] for words, rows in groups]
        slower = [row for row in ratio if ratio[row] > 1.05]
        page.loss(f"8-bit caches ({card}) take more than 1.05 times the time of 16-bit ones on {len(slower)} of {len(ratio)} rows, {max(ratio.values()):.2f} times at worst; "
                  f"where bytes bind {mean(ratio[row] for row in bound):.2f} in the mean, 0.60 was the aim")
    page.table(["card", "rows", "how many", "mean", "best", "worst"], lines)
    kernels_over_bytes(page, records)
    page.command(record["command"].split("; the same of the attentions of ")[0])


def kernels_over_bytes(page, records):
    """Whether the untuned choice takes the fastest of the kernels that a tree chooses from."""
    name = "h100-fp8-kernels.json"
    record = records.read(name)
    kinds = ("wide", "light", "dealing")
    over = {row["row"]: row["untuned_us"] / min(row[f"{kind}_us"] for kind in kinds) for row in record["rows"]}
    fastest = [min(kinds, key=lambda kind: row[f"{kind}_us"]) for row in record["rows"]]
    worst = max(over, key=over.get)
    page.add(f"Of {len(over)} rows on the {card_of(record['device'])} ({link(name)}) wide blocks are fastest on {fastest.count('wide')}, light ones on {fastest.count('light')}, "
             f"light ones that deal on {fastest.count('dealing')}; the untuned choice takes {times(mean(over.values()))} of the fastest's time in the mean, {times(over[worst])} at worst ({worst}).")


def query_hook(page, records):
    name = "h200-query-hook.json"
    record = records.read(name)
    page.heading("A hook that makes q")
    page.add(f"{card_of(record['device'])}, commit {record['commit']} ({link(name)}): FastTree's trees over q that `query` turns, which is a kernel before the attention, over the same with q as it is; both untuned.")
    fasttree = [row for row in record["rows"] if row["row"].startswith("F9_")]
    ratio = {row["row"]: row["hook_us"] / row["plain_us"] for row in fasttree}
    one_row = {row["row"]: row["one_row_us"] / row["plain_us"] for row in fasttree}
    waiting = {row["row"]: row["waiting_us"] / row["waiting_plain_us"] for row in fasttree}
    page.table(["rows", "how many", "mean", "best", "worst"],
               [of_group(words, ratio, rows) for words, rows in [("all", list(ratio)), *of_heads(ratio)]] +
               [of_group("all, by a kernel of whose warps each makes one row, before", one_row, list(one_row)),
                of_group("all, likewise and the attention begun when it had ended, before that", waiting, list(waiting))])
    for other in record["rows"]:
        if other not in fasttree:
            page.add(f"`{other['tree']}`, {other['heads']}: {us(other['hook_us'])} us for {us(other['plain_us'])}.")
    more = [row["hook_us"] - row["plain_us"] for row in fasttree]
    above = [row for row in ratio if ratio[row] > 1.03]
    page.loss(f"a hook `query`: {mean(ratio.values()):.2f} times the time without in the mean, {max(ratio.values()):.2f} at worst, {min(more):.1f} to {max(more):.1f} us more; more than the aim of 1.03 on {len(above)} of {len(ratio)} rows")
    page.command(record["command"].split(" and the same of ")[0])


def key_hook(page, records):
    name = "h200-key-hook.json"
    record = records.read(name)
    page.heading("A hook that makes keys")
    page.add(f"{card_of(record['device'])}, commit {record['commit']} ({link(name)}): FastTree's trees with `key` turning keys where they are read, by light blocks of family sm90, over the same with keys as they "
             "are, whatever kernel is chosen for these; both untuned.")
    ratio = {row["row"]: row["key_us"] / row["plain_us"] for row in record["rows"]}
    by_sm80 = {row["row"]: row["sm80_key_us"] / row["plain_us"] for row in record["rows"] if "sm80_key_us" in row}
    bound = [row["row"] for row in record["rows"] if row["plain_us"] <= BOUND_BY_BYTES * row["plain_floor_us"]]
    page.table(["rows", "how many", "mean", "best", "worst"],
               [of_group("all", ratio, list(ratio)), of_group(f"without the hook at most {BOUND_BY_BYTES} times the floor", ratio, bound),
                of_group("all, by family sm80", by_sm80, list(by_sm80))])
    for other in record["others"]:
        page.add(f"`{other['tree']}`, {other['heads']}: {other['key_us'] / other['plain_us']:.2f} times the time ({us(other['plain_us'])} and {us(other['key_us'])} us).")
    above = [row for row in bound if ratio[row] > 1.3]
    page.loss(f"a hook `key` where bytes bind: {mean(ratio[row] for row in bound):.2f} times the time without in the mean of {len(bound)} rows, {max(ratio[row] for row in bound):.2f} at worst, "
              f"more than the aim of 1.3 on {len(above)}")
    page.command(record["command"].split(" and the same of ")[0])


def token_arrays(page, records):
    name = "h200-token-arrays.json"
    record = records.read(name)
    page.heading("Arrays over tokens")
    page.add(f"{card_of(record['device'])}, commit {record['commit']} ({link(name)}), {len(record['rows'])} of FastTree's trees, untuned: a number for each token added to scores of f16, and scales of K and V for each "
             "KV head of each token over an 8-bit cache, over the same without.")
    kinds = (("a number a token", "weight_us", "plain_us"), ("scales of rows, 8 bits", "scales_us", "fp8_us"))
    lines = []
    for words, key, beside in kinds:
        for family, prefix in (("sm90, what is chosen", ""), ("sm80, as it was", "sm80_")):
            ratios = [row[prefix + key] / row[beside] for row in record["rows"]]
            lines.append([words, family, times(mean(ratios)), times(min(ratios)), times(max(ratios))])
    page.table(["array", "family", "mean", "best", "worst"], lines)
    for words, key, _ in kinds:
        for row in record["rows"]:
            if row[key] > 1.03 * row["sm80_" + key]:
                page.loss(f"{words}: {row['row']} takes {row[key] / row['sm80_' + key]:.2f} times what family sm80 takes")
    sparse = record["sparse"]
    page.add("A sparse layer of 20 branches of 32,000 tokens by unions of lists, and a dense one: " + "; ".join(
        f"`{kind}` {us(sparse[kind]['sparse_us'])} us (sm80 {us(sparse[kind]['sm80_sparse_us'])}) and {us(sparse[kind]['dense_us'])} ({us(sparse[kind]['sm80_dense_us'])})" for kind in ("weight", "scaled"))
        + f"; without arrays {us(sparse['plain']['sparse_us'])} and {us(sparse['plain']['dense_us'])}.")
    page.command(record["command"].split(", all of a row")[0])


def tuned(page, records):
    page.heading("Tuned against untuned")
    shipped, plain, bench = records.rows(QUICK), records.rows(UNTUNED), records.read(QUICK)
    gains = {name: plain[name]["cold_us"] / row["cold_us"] for name, row in shipped.items() if name in plain}
    page.add(f"Of {len(gains)} rows on the H200, both in one call at {bench['commit']} ({link(QUICK)}, {link(UNTUNED)}), the untuned choice takes {mean(gains.values()):.3f} times what "
             f"ships takes in the mean. So most of the figures above come of the cost model's choice, on the card that it was fitted on.")
    ordered = sorted(gains.items(), key=lambda gain: -gain[1])
    page.table(["where tuning gains most", "untuned over tuned"], [[name, times(gain, 3)] for name, gain in ordered[:5]])
    page.table(["where it loses most", "untuned over tuned"], [[name, times(gain, 3)] for name, gain in ordered[-3:]])
    for name, gain in ordered:
        if gain < 0.97:
            page.loss(f"what ships takes {1 / gain:.3f} times the untuned choice's time on {name}")
    held = records.read("h200-held-out-pages-of-16.json")
    page.add(f"Trees that no tuning has seen ({link('h200-held-out-pages-of-16.json')}), tuned over untuned:")
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
    page.add(f"Of {len(gains)} rows on an {card_of(bench['device']['name'])}, both in one call at {bench['commit']} ({link(H100)}, {link(H100_UNTUNED)}), with that card's own entries and, where it has none, the H200's "
             f"(rule `sibling`): the untuned choice takes {mean(gains.values()):.3f} times what entries take in the mean, {min(gains.values()):.3f} at least. "
             + (f"On {len(same)} rows both choose the same config, and it takes {mean(same):.3f} there; these are the others:" if same else "Both choose another config on each:"))
    page.table(["row", "rule", "untuned over tuned"], [
        [name, "`" + shipped[name]["selection"]["rule"] + "`", times(gains[name], 3)] for name in sorted(others, key=lambda name: -gains[name])])
    for name in others:
        if gains[name] < 0.97:
            page.loss(f"an entry takes {1 / gains[name]:.3f} times the untuned choice's time on {name}, on the H100")
