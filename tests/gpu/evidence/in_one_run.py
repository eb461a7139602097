"""The section on peers that ran beside deftc in one run."""

from records import card_of, link, mean, times, us

NAMES = {"h200-peers.json": "h200-bench-rows.json", "h100-peers.json": "h100-bench.json"}  # and the bench on such a card
# Records without a bench: their caption, and the gap that the losses page names where one is missing.
FURTHER = (
    ("h200-peers-other.json", "Trees of the second suite at heads 32/8 (FastTree's artifact supports ratios 1, 4 and 16 only):",
     "peers on the second suite", "`tools/bench_peers --tree FILE` on trees that `deftc workloads` writes"),
    ("h100-peers-head-dims.json", "Head dims 64 and 256:",
     "head dims 64 and 256 beside peers in the same run", "`tools/bench_peers --heads 64/8 --dim 64`, `--heads 16/8 --dim 256`"),
    *((f"{card}-peers-fp8.json", f"Caches of e4m3 with q of f16, kernels that support them ({card.upper()}):",
       f"8-bit caches beside FlashInfer in the same run on an {card.upper()}", "`tools/bench_peers --fp8`") for card in ("h200", "h100")),
    ("h200-peers-products.json", "The same with products of 8 bits, where q has 8 bits before FlashAttention 3's time begins:",
     "products of 8 bits beside FlashInfer and FlashAttention 3 in the same run", "`tools/bench_peers --fp8 --products`"))
OWN = "deftc_byte_products"  # beside the row `deftc`
WORDS = {OWN: "deftc, products of 8 bits", "fa3_byte_products": "FlashAttention 3, q and products of 8 bits", "sdpa_by_path": "torch SDPA, path by path", "sdpa_by_level": "torch flash by level, merged", "flex": "FlexAttention, the tree as a mask",
         "fasttree": "FastTree", "deft_in_fasttree": "DeFT, rewritten in FastTree's artifact", "flashinfer_decode": "FlashInfer decode, tensor cores",
         "flashinfer_persistent": "FlashInfer persistent", "flashinfer_cascade": "FlashInfer cascade"}


def peers_in_one_run(page, records):
    page.heading("Peers in the same run")
    page.add("`tools/bench_peers` runs every installed peer on the same tensors and checks each result. Times are microseconds and include the cost of events. An empty cell means that the peer failed or was wrong; the record has the reason.")
    found = [(name, record) for name in NAMES for record in [records.read(name)] if record]
    for name, record in found:
        of_one_card(page, name, record, records.rows(NAMES[name]))
    commands = [found[0][1]["command"]]
    for name, words, what, command in FURTHER:
        record = records.read(name)
        if record:
            page.add(words)
            of_one_card(page, name, record, {})
            commands.append(record["command"])
        else:
            page.no_record(what, command)
    page.command(*dict.fromkeys(command.split(", ")[0] for command in commands))
    first_results(page, found)
    page.no_record("DeFT's own kernels and PAT in the same run as ours", "`tools/bench_peers --peer FILE`")


def first_results(page, found):
    """The wait after an installation: the first row's time, with nothing compiled before."""
    timed = [(name, record, seconds) for name, record in found
             for seconds in [{peer: times_of["first_s"] for peer, times_of in next(iter(record["rows"].values())).items() if "first_s" in times_of}] if seconds]
    if not timed:
        page.no_record("the time to compile kernels (NVRTC) beside FlashInfer's JIT", "`tools/bench_peers` where FlashInfer is installed and nothing has been compiled")
        return
    name, record, seconds = timed[0]
    page.add(f"Seconds to the first result with empty kernel caches on 16 processors ({card_of(record['device'])}, {link(name)}). They include compiling, planning and running.")
    page.table(["", "seconds"], [[WORDS.get(peer, peer), times(took)] for peer, took in sorted(seconds.items(), key=lambda entry: entry[1])])


def of_one_card(page, name, record, bench):
    rows = record["rows"]
    names = [peer for peer in WORDS if any(peer in times_of for times_of in rows.values())]
    card = card_of(record["device"])
    versions = ", ".join([f"torch {record['torch']}", *(found for found in [record.get("artifact")] if found),
                          *(f"{words} {record[key]}" for key, words in (("flashinfer", "FlashInfer"), ("flash_attn_3", "FlashAttention"), ("sgl_kernel", "SGLang's kernels")) if record.get(key))])
    page.add(f"{card}, {versions}, {record['date']} ({link(name)}):")
    page.table(["tree", "deftc", *(WORDS[peer] for peer in names)], [
        [row, us(found["deftc"]["us"]), *(us(found.get(peer, {}).get("us")) for peer in names)] for row, found in rows.items()])
    page.table(["peer", "rows", "time over deftc's, mean", "least"], [
        [WORDS[peer], len(ratios), times(mean(ratios)), times(min(ratios))] for peer in names
        for ratios in [[found[peer]["us"] / found["deftc"]["us"] for found in rows.values() if "us" in found.get(peer, {})]] if ratios])
    over = {row: found["deftc"]["us"] / bench[row.removesuffix(" 32/8") + "_g4"]["cold_us"] for row, found in rows.items()
            if row.removesuffix(" 32/8") + "_g4" in bench}
    if over:
        worst = max(over, key=over.get)
        page.add(f"deftc's times here are {min(over.values()):.2f} to {over[worst]:.2f} times ({worst}) those of the bench {link(NAMES[name])}, {mean(over.values()):.2f} on average. "
                 "Both evict L2 by reading. Here the graph also has room for a growing tree.")
    for row, found in rows.items():
        for peer in names:
            if peer != OWN and found.get(peer, {}).get("us", float("inf")) < found["deftc"]["us"]:
                page.loss(f"{row} on the {card}: {found['deftc']['us']:.1f} us, {WORDS[peer]} takes {found[peer]['us']:.1f}")
