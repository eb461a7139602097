"""Sections on features: their cost beside plain attention, and latent caches beside their peer."""

import json

from records import card_of, link, mean, times, us
from kernels import ROWS
from lists import BENCHES

import eight_bit_accuracy  # noqa: E402  (of BENCHES)


LATENT_GOALS = ((60, 1.3), (20, 1.7), (0, 2.2))  # from a floor of so many us on: times the floor
FASTER_GOALS = {"latent_64_below_8k_16": 3, "latent_32_below_32k_16": 3}  # times the peer's speed


def latent_goal(floor_us):
    return next(goal for least, goal in LATENT_GOALS if floor_us >= least)


def latent_losses(page, rows, over_peer, peer):
    """Rows that miss the targets for them."""
    over = {row: facts["cold_us"] / facts["floor_us"] for row, facts in rows.items()}
    for at, (least, goal) in enumerate(LATENT_GOALS):
        of_kind = [row for row, facts in rows.items() if latent_goal(facts["floor_us"]) == goal]
        missed = [row for row in of_kind if over[row] > goal]
        words = f"of {least} us and more" if at == 0 else f"of {least} to {LATENT_GOALS[at - 1][0]} us" if least else f"below {LATENT_GOALS[at - 1][0]} us"
        if missed:
            page.loss(f"latent caches, rows with a floor {words}: {len(missed)} of {len(of_kind)} take more than {goal} times it, the target: " + ", ".join(f"{row} {times(over[row], 3)}" for row in missed))
    for row, goal in FASTER_GOALS.items():
        if over_peer[row] < goal:
            page.loss(f"{row}: {times(over_peer[row])} times the speed of {peer}; the target was {goal}")


def latent(page, records):
    name = "h200-latent.json"
    bench, rows = records.read(name), {row: facts for row, facts in records.rows(name).items() if not row.endswith(("_656", "_e4m3"))}
    peers = bench["latent_peers"]
    page.heading("Latent caches (MLA)")
    page.add(f"{card_of(bench['device']['name'])}, commit {bench['commit']} ({link(name)}): 512 + 64 columns, bf16, pages of 64, {peers['peer']} next, on the same card. "
             "A row's name ends with its number of query heads. In rows of drafts FlashInfer verifies a chain, deftc a tree.")
    page.table(["row", "deftc us", "floor us", "time over the floor", peers["peer"] + " us", "deftc's speed-up"], [
        [row, us(facts["cold_us"]), us(facts["floor_us"]), times(facts["cold_us"] / facts["floor_us"]), us(peers["rows"].get(row)),
         times(peers["rows"][row] / facts["cold_us"]) if row in peers["rows"] else None] for row, facts in rows.items()])
    both = {row: us_of_peer / rows[row]["cold_us"] for row, us_of_peer in peers["rows"].items()}
    slower = [row for row, ratio in both.items() if ratio < 1]
    page.add(f"deftc is faster on {len(both) - len(slower)} of the {len(both)} rows that both run, by {times(max(both.values()))}x at most.")
    if slower:
        page.loss(f"latent caches: {peers['peer']} is faster on {', '.join(slower)}; deftc has {times(min(both.values()))} of its speed at worst")
    latent_losses(page, rows, both, peers["peer"])
    page.command("deftc bench latent tests/bench/latent_rows.deft --json latent.json", "tests/gpu/latent_peers.py --json peers.json")


def flash_mla(page, records):
    """FlashMLA beside deftc: in the same call where nothing is shared, else with deftc's times on another card of the same kind."""
    name, of_ours = "h200-flash-mla.json", "h200-latent.json"
    record, elsewhere = records.read(name), records.rows(of_ours)
    page.heading("Latent caches beside FlashMLA", level=3)
    page.add(f"{card_of(record['device'])}, {record['date']}, commit {record['commit']} ({link(name)}): {record['peer']}, bf16, pages of 64. deftc ran in the same call where nothing is shared. "
             f"Its other times are of another H200 ({link(of_ours)}), so a few per cent mean nothing there.")
    lines, slower = [], {}
    for row, facts in record["rows"].items():
        is_same, ours = "deftc_us" in facts, facts.get("deftc_us", elsewhere[row]["cold_us"])
        ratio = facts["flash_mla_us"] / ours
        lines.append([row, us(facts["flash_mla_us"]), us(ours), "yes" if is_same else "no", times(ratio)])
        if ratio < 1:
            slower[row] = ratio
    page.table(["row", "FlashMLA us", "deftc us", "one call", "deftc's speed-up"], lines)
    if slower:
        page.loss(f"latent caches: FlashMLA is faster on {', '.join(f'{row} ({times(ratio)})' for row, ratio in slower.items())}, the cards being two H200s")
    page.command("tests/gpu/latent_peers.py --json peers.json")


def latent_bytes(page, records):
    name = "h200-latent.json"
    bench, rows = records.read(name), records.rows(name)
    page.heading("Latent caches of 8 bits")
    kinds = (("", "bf16"), ("_656", "656 bytes a token"), ("_e4m3", "e4m3"))
    heads = [row for row in rows if row + "_656" in rows]

    def over(row, end):
        return rows[row + end]["cold_us"] / rows[row]["cold_us"] if row + end in rows else None

    page.add(f"{card_of(bench['device']['name'])}, commit {bench['commit']} ({link(name)}): the same call. Products are 16-bit; eight copying warps convert.")
    page.table(["row", *(f"{words}, us" for _, words in kinds), *(f"{words} over bf16" for _, words in kinds[1:])], [
        [row, *(us(rows[row + end]["cold_us"]) if row + end in rows else None for end, _ in kinds), *(times(over(row, end)) for end, _ in kinds[1:])] for row in heads])
    worst = {words: max(over(row, end) or 0 for row in heads) for end, words in kinds[1:]}
    page.loss("latent caches of 8 bits: " + ", ".join(f"{words} takes up to {times(ratio)} times the time of bf16" for words, ratio in worst.items()) + "; the target was 0.80")
    few_rows_of_bytes(page, records)


def few_rows_of_bytes(page, records):
    """Blocks of 16 rows, which keep bytes, beside those of 64 rows, on the trees of one later call."""
    name = "h200-latent-few-bytes.json"
    record = records.read(name)
    page.add(f"Since then units of at most 16 rows have blocks of 16 rows, which keep bytes in their tiles and convert them in registers ({record['date']}, commit {record['commit']}, {link(name)}; 16 heads, one call). Prices choose the faster form on each row.")
    caches = (("us_656", "656 bytes"), ("us_e4m3", "e4m3"))
    page.table(["tree", "bf16 us", *(f"{words} us, {rows} rows" for _, words in caches for rows in (16, 64)), *(f"{words} over bf16" for _, words in caches)], [
        [row["tree"], us(row["us_bf16"]), *(us(row[key + end]) for key, _ in caches for end in ("", "_64_rows")), *(times(best_of(row, key) / row["us_bf16"]) for key, _ in caches)] for row in record["rows"]])
    flat = record["rows"][0]
    for key, words in caches:
        ratio = best_of(flat, key) / flat["us_bf16"]
        if ratio > 0.8:
            page.loss(f"latent caches of 8 bits, 16 heads, nothing shared: {words} takes {times(ratio)} times the time of bf16; the target was 0.80")


def best_of(row, key):
    return min(row[key], row[key + "_64_rows"])


def variants(page, records):
    bench = records.read(ROWS)
    page.heading("Scores, masks and types")
    page.add(f"Time with a hook divided by the time of plain f16 attention on the same tree in the same run ({link(ROWS)}); the median of three.")
    trees = list(dict.fromkeys(row["tree"] for row in bench["variants"]))
    kinds = list(dict.fromkeys(row["variant"] for row in bench["variants"]))
    by_place = {(row["tree"], row["variant"]): row for row in bench["variants"]}
    page.table(["tree", *kinds], [[tree, *(times(by_place[tree, kind]["ratio"]) if (tree, kind) in by_place else None for kind in kinds)] for tree in trees])
    worst = max(bench["variants"], key=lambda row: row["ratio"])
    page.add(f"The most expensive is {worst['variant']} on {worst['tree']}: {worst['ratio']:.2f}x.")
    if worst["ratio"] > 1.1:
        page.loss(f"{worst['variant']} on {worst['tree']} takes {worst['ratio']:.2f} times plain attention's time; the target was 1.10")


BOUND_BY_BYTES = 1.2  # a 16-bit row is bound by bytes if it takes at most this many times its floor


def of_heads(ratio):
    """Rows by their heads."""
    return [(heads, [row for row in ratio if row.endswith(ending)]) for heads, ending in (("32/8", "_g4"), ("32/32", "_g1"), ("16/1", "_g16"))]


def of_group(words, ratio, rows):
    """A table's line on some rows' ratios: how many, their mean, the least and the largest."""
    found = {row: ratio[row] for row in rows}
    ends = (min(found, key=found.get), max(found, key=found.get))
    return [words, len(rows), times(mean(found.values())), *(f"{times(found[row])} ({row})" for row in ends)]


def caches_of_8_bits(page, records):
    page.heading("8-bit caches")
    page.add("Time of FastTree's trees with `dtype = fp8_e4m3` caches divided by their time with f16, both untuned, in one call. The memory is half. *Memory-bound* rows are those whose 16-bit kernel takes at most "
             f"{BOUND_BY_BYTES} times its floor.")
    lines = []
    for name in ("h200-fp8.json", "h100-fp8.json"):
        record = records.read(name)
        ratio = {row["row"]: row["fp8_us"] / row["bits_16_us"] for row in record["rows"]}
        bound = [row["row"] for row in record["rows"] if row["bits_16_us"] <= BOUND_BY_BYTES * row["bits_16_floor_us"]]
        card = card_of(record["device"])
        groups = [("all", list(ratio)), ("memory-bound", bound), *of_heads(ratio)]
        lines += [[f"{card} ({link(name)})", *of_group(words, ratio, rows)] for words, rows in groups]
        slower = [row for row in ratio if ratio[row] > 1.05]
        page.loss(f"8-bit caches ({card}) take more than 1.05 times the time of 16-bit ones on {len(slower)} of {len(ratio)} rows, {max(ratio.values()):.2f} at worst; "
                  f"memory-bound rows take {mean(ratio[row] for row in bound):.2f} on average; the target was 0.60")
    page.table(["card", "rows", "how many", "mean", "best", "worst"], lines)
    products_of_8_bits(page, records)
    kernels_over_bytes(page, records)
    page.command(record["command"].split("; the same of the attentions of ")[0])


def products_of_8_bits(page, records):
    name = "h200-fp8-products.json"
    record = records.read(name)
    ratios = {words: {row["row"]: row[of] / row["bits_16_us"] for row in record["rows"]} for words, of in (("products of 16 bits", "fp8_us"), ("products of 8 bits", "products_us"), ("the same, third design (not in use)", "third_us"))}
    bound = [row["row"] for row in record["rows"] if row["bits_16_us"] <= BOUND_BY_BYTES * row["bits_16_floor_us"]]
    page.add(f"The same on an {card_of(record['device'])}, with products of 16 bits and with `products = fp8_e4m3`, in one call ({link(name)}):")
    lines = [[words, *of_group(group, ratio, rows)] for words, ratio in ratios.items() for group, rows in (("all", list(ratio)), ("memory-bound", bound))]
    page.table(["8-bit cache", "rows", "how many", "mean", "best", "worst"], lines)
    accuracy = json.loads((BENCHES / "eight_bit_accuracy.json").read_text(encoding="utf-8"))
    page.add(f"How exact they are ({accuracy['date']}, commit {accuracy['commit']}, processors, [record](../../tests/bench/python/eight_bit_accuracy.json)): the relative error beside double precision over the numbers before any "
             f"rounding, {accuracy['rows']} rows of 128 columns. *Outliers*: four columns of the keys are 30 times as large. *Needle*: one token has about half of the weight; the last columns say which weight results give it.",
             eight_bit_accuracy.table(accuracy))
    page.command("tests/bench/python/eight_bit_accuracy.py run accuracy.json")
    ratio = ratios["products of 8 bits"]
    page.loss(f"products of 8 bits take {mean(ratio.values()):.2f} of 16-bit rows' time on average, memory-bound rows {mean(ratio[row] for row in bound):.2f}; the targets were 0.80 and 0.65")


def kernels_over_bytes(page, records):
    """Whether the untuned choice takes the fastest of a tree's kernels."""
    name = "h100-fp8-kernels.json"
    record = records.read(name)
    kinds = ("wide", "light", "dealing")
    over = {row["row"]: row["untuned_us"] / min(row[f"{kind}_us"] for kind in kinds) for row in record["rows"]}
    fastest = [min(kinds, key=lambda kind: row[f"{kind}_us"]) for row in record["rows"]]
    worst = max(over, key=over.get)
    page.add(f"On {len(over)} rows of the {card_of(record['device'])} ({link(name)}) wide blocks are fastest {fastest.count('wide')} times, light blocks {fastest.count('light')} times, "
             f"light blocks that deal {fastest.count('dealing')} times. The untuned choice takes {times(mean(over.values()))} of the fastest's time on average, {times(over[worst])} at worst ({worst}).")


def query_hook(page, records):
    name = "h200-query-hook.json"
    record = records.read(name)
    page.heading("The hook `query`")
    page.add(f"{card_of(record['device'])}, commit {record['commit']} ({link(name)}): time of FastTree's trees with a `query` hook that rotates q, in a kernel before the attention, divided by their time without the hook; both untuned.")
    fasttree = [row for row in record["rows"] if row["row"].startswith("F9_")]
    ratio = {row["row"]: row["hook_us"] / row["plain_us"] for row in fasttree}
    one_row = {row["row"]: row["one_row_us"] / row["plain_us"] for row in fasttree}
    waiting = {row["row"]: row["waiting_us"] / row["waiting_plain_us"] for row in fasttree}
    page.table(["rows", "how many", "mean", "best", "worst"],
               [of_group(words, ratio, rows) for words, rows in [("all", list(ratio)), *of_heads(ratio)]] +
               [of_group("all, earlier form: one row a warp", one_row, list(one_row)),
                of_group("all, first form: also without overlap", waiting, list(waiting))])
    for other in record["rows"]:
        if other not in fasttree:
            page.add(f"`{other['tree']}`, {other['heads']}: {us(other['hook_us'])} us with the hook, {us(other['plain_us'])} without.")
    more = [row["hook_us"] - row["plain_us"] for row in fasttree]
    above = [row for row in ratio if ratio[row] > 1.03]
    page.loss(f"the hook `query` takes {mean(ratio.values()):.2f} times the time without it on average, {max(ratio.values()):.2f} at worst ({min(more):.1f} to {max(more):.1f} us more); {len(above)} of {len(ratio)} rows miss the target of 1.03")
    page.command(record["command"].split(" and the same of ")[0])


def key_hook(page, records):
    name = "h200-key-hook.json"
    record = records.read(name)
    page.heading("The hook `key`")
    page.add(f"{card_of(record['device'])}, commit {record['commit']} ({link(name)}): time of FastTree's trees with a `key` hook that rotates keys as they are read (light blocks of family sm90), divided by their time without the hook "
             "on the kernel that is chosen for it; both untuned.")
    ratio = {row["row"]: row["key_us"] / row["plain_us"] for row in record["rows"]}
    by_sm80 = {row["row"]: row["sm80_key_us"] / row["plain_us"] for row in record["rows"] if "sm80_key_us" in row}
    bound = [row["row"] for row in record["rows"] if row["plain_us"] <= BOUND_BY_BYTES * row["plain_floor_us"]]
    page.table(["rows", "how many", "mean", "best", "worst"],
               [of_group("all", ratio, list(ratio)), of_group("memory-bound", ratio, bound),
                of_group("all, by family sm80", by_sm80, list(by_sm80))])
    for other in record["others"]:
        page.add(f"`{other['tree']}`, {other['heads']}: {other['key_us'] / other['plain_us']:.2f} ({us(other['key_us'])} us with the hook, {us(other['plain_us'])} without).")
    above = [row for row in bound if ratio[row] > 1.3]
    page.loss(f"the hook `key` on memory-bound rows takes {mean(ratio[row] for row in bound):.2f} times the time without it on average of {len(bound)}, {max(ratio[row] for row in bound):.2f} at worst; "
              f"{len(above)} miss the target of 1.3")
    page.command(record["command"].split(" and the same of ")[0])


def token_arrays(page, records):
    name = "h200-token-arrays.json"
    record = records.read(name)
    page.heading("Arrays over tokens")
    page.add(f"{card_of(record['device'])}, commit {record['commit']} ({link(name)}), {len(record['rows'])} of FastTree's trees, untuned, time with an array divided by the time without. One array adds a number for each token to f16 scores. The other holds scales of K and V "
             "for each token and KV head of an 8-bit cache.")
    kinds = (("a number for each token", "weight_us", "plain_us"), ("scales of an 8-bit cache", "scales_us", "fp8_us"))
    lines = []
    for words, key, beside in kinds:
        for family, prefix in (("sm90 (chosen)", ""), ("sm80 (before)", "sm80_")):
            ratios = [row[prefix + key] / row[beside] for row in record["rows"]]
            lines.append([words, family, times(mean(ratios)), times(min(ratios)), times(max(ratios))])
    page.table(["array", "family", "mean", "best", "worst"], lines)
    for words, key, _ in kinds:
        for row in record["rows"]:
            if row[key] > 1.03 * row["sm80_" + key]:
                page.loss(f"{words}: {row['row']} takes {row[key] / row['sm80_' + key]:.2f} times family sm80's time")
    sparse = record["sparse"]
    page.add("20 branches of 32,000 tokens, a sparse layer that reads unions of lists and a dense layer: " + "; ".join(
        f"`{kind}` {us(sparse[kind]['sparse_us'])} us sparse (sm80 {us(sparse[kind]['sm80_sparse_us'])}), {us(sparse[kind]['dense_us'])} dense (sm80 {us(sparse[kind]['sm80_dense_us'])})" for kind in ("weight", "scaled"))
        + f"; without arrays {us(sparse['plain']['sparse_us'])} sparse, {us(sparse['plain']['dense_us'])} dense.")
    page.command(record["command"].split(", all of a row")[0])
