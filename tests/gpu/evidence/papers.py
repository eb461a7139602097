"""Sections that compare the papers' tables with ours. Their times are of other cards and whole runs, so only ratios compare."""

from records import card_of, link, mean, times
from kernels import ROWS as BENCH, peer_us
from steps import RECORDED_STEPS

PARTITIONS = "h200-partitions.json"

ROWS = ("FS_b20", "FS_b30", "FS_b50", "TOT_sorting", "TOT_document", "TOT_keyword", "TOT_set", "SP_t32", "SP_t64", "SP_t128", "SP_t256")
STEPS = ("few_shot_b20", "few_shot_b30", "few_shot_b50", "TOT_sorting", "TOT_document", "TOT_keyword", "TOT_set", "speculative_t32", "speculative_t64", "speculative_t128", "speculative_t256")


def ratios(above, below):
    return [None if a is None or b is None else times(a / b) for a, b in zip(above, below)]


def partitions_alone(page, records):
    record = records.read(PARTITIONS)
    if not record:
        page.no_record("partitions beside one another on DeFT's trees (its table 6)", "`deftc bench deft rows.deftpkg --partition node`, then `node_chunk`, `flatten`")
        return
    page.add(f"Partitions with our kernels, untuned, in one call: speed over partition `query` with chunks that fill the GPU ({card_of(record['device'])}, commit {record['commit']}, {link(PARTITIONS)}). "
             "DeFT's *Node* is `node`, its *Node-Chunk* is `node_chunk`:")
    query = record["us"]["query"]
    page.table(["", *ROWS], [[name, *(times(query[row] / us[row]) for row in ROWS)] for name, us in record["us"].items() if name != "query"])


def deft(page, records):
    paper = records.published["deft"]
    rows = records.rows(BENCH, ("deft",))
    steps = {row["row"]: row for name in ("h100-end-to-end.jsonl", RECORDED_STEPS) for row in records.read(name) or []}
    page.heading("DeFT")
    page.add(f"{paper['source']}: {paper['card']}, {paper['model']}, {paper['unit']} ({link('published.json')}). Our figures are single steps: kernels on an H200 ({link(BENCH)}), whole steps on an H100 "
             f"({link('h100-end-to-end.jsonl')}), recorded searches on an H200 ({link(RECORDED_STEPS)}). The tables compare speed-ups over a query-guided kernel on the same card, not seconds.")
    page.heading("Tables 6 and 16: attention over query-guided attention", 3)
    radix = paper["table_6"]["Radix Attention"]
    page.table(["", *paper["columns"]], [
        *[[name + ", A100", *ratios(radix, values)] for name, values in paper["table_6"].items() if name != "Radix Attention"],
        ["deftc, H200", *(times(rows[name]["flat"]["raw_us"] / rows[name]["cold_us"]) for name in ROWS)],
        ["best published kernel, H200", *(times(rows[name]["flat"]["raw_us"] / rows[name]["peer"]["raw_us"]) for name in ROWS)]])
    page.add("**Differences.** DeFT reports the mean of a run in which trees grow and queries come and go; we report one recorded step. Its query-guided kernel is SGLang's Triton kernel, "
             "ours is FlashInfer's on tensor cores.")
    partitions_alone(page, records)
    page.heading("Table 5: decoding, whole steps", 3)
    radix = paper["table_5"]["Radix Attention"]
    ours = [steps.get(name) for name in STEPS]
    page.table(["", *paper["columns"]], [
        ["DeFT-Flatten over Radix, A100", *ratios(radix, paper["table_5"]["DeFT-Flatten"])],
        ["their bound, without attention", *(times(bound) for bound in paper["table_5"]["upper bound"])],
        ["deftc over flat, H100, recorded searches H200", *(times(row["flat"]["ms"] / row["tree"]["ms"]) if row else None for row in ours)],
        ["our bound, without attention", *(times(row["flat"]["ms"] / row["no attention"]["ms"]) if row else None for row in ours)]])
    page.add("**Differences.** Our flat plan uses the same kernels in a graph, and a path of 4,200 tokens stays in L2, so the tree gains less. "
             "Our recorded searches are one step, DeFT's are whole runs.")
    page.heading("Table 17: tokens of the cache that are read", 3)
    page.table(["", *paper["columns"]], [
        ["Radix over DeFT-Flatten, bytes of a run", *ratios(paper["table_17_cache_tb"]["Radix Attention"], paper["table_17_cache_tb"]["DeFT-Flatten"])],
        ["flat over tree, tokens of a step", *(times(row["flat"]["plan"]["tokens_read"] / row["tree"]["plan"]["tokens_read"]) if row else None for row in ours)],
        ["deftc's cache bytes over the tree's (1 = each token read once)", *(times(rows[name]["contiguous"]["chosen"]["bytes"]["cache"] / rows[name]["contiguous"]["chosen"]["bytes"]["cache_once"]) for name in ROWS)]])
    page.add("**Differences.** Flatten reads each token once and pays with partial results. Our `auto` may read a prompt twice or more where that is faster than merging (last line), since the second read "
             "comes from L2.")
    page.heading("Tables 19 to 21: other cards and models", 3)
    other = paper["tables_19_to_21"]
    page.table(["table", *(f"{name} over Radix, {column}" for name in ("Node-Chunk", "Flatten") for column in other["columns"])], [
        [name, *ratios(values["Radix Attention"], values["DeFT-Node-Chunk"]), *ratios(values["Radix Attention"], values["DeFT-Flatten"])]
        for name, values in other.items() if name != "columns"])
    page.add("**Differences.** We have no RTX 4090, and no record of these three trees at heads 64/8 and 32/32. The second suite has few-shot and draft trees with these heads and their floor, without a "
             "query-guided kernel. Our margin over peers is smallest at ratio 1 (Codellama-7B).")
    page.no_record("DeFT's trees at heads 64/8 and 32/32 with a query-guided kernel; any GeForce card", "`deftc bench deft PACKAGE` of such heads with `--partition query`")


def fasttree(page, records):
    paper = records.published["fasttree"]
    peers = records.published["kernels"]["rows"]
    rows = records.rows(BENCH, ("fasttree",))
    page.heading("FastTree")
    page.add(f"{paper['source']}, {paper['card']}, CUDA {paper['cuda']} ({link('published.json')}): {paper['what']}. Its fifteen trees at three ratios are the rows `F9_*` of [the published trees](trees.md), for which "
             "we ran FastTree's artifact on an H200.")
    page.table(["", "mean speed-up"], [
        *[[f"FastTree over {name}, theirs", times(value, 1)] for name, value in paper["mean_speedup_of_fasttree_over"].items()],
        ["FastTree or a faster peer over FlashInfer's decode 0.6.17 on tensor cores, H200", times(mean(peer["query_guided_us"] / peer["best_us"] for name, peer in peers.items() if name.startswith("F9")))],
        ["deftc over FlashInfer's decode 0.6.17 on tensor cores, H200", times(mean(row["flat"]["raw_us"] / row["cold_us"] for row in rows.values()))],
        ["deftc over the best peer of each tree, H200", times(mean(peer_us(row) / row["cold_us"] for row in rows.values()))]])
    page.add("**Differences.** The card differs, and we compare with FlashInfer 0.6.17, they with 0.1.6. At ratio 16 FlashInfer is the best peer of most trees. FastTree's kernels use no feature of Hopper, as "
             "its authors say. Its bars are normalised, so we compare means only.")
    whole = paper["end_to_end_over_sglang_with_flashinfer"]
    steps = {row["row"]: row for row in records.read("h100-end-to-end.jsonl")}
    page.add(f"End to end (its figure 10), over SGLang with FlashInfer: {whole['Llama-2-7B']} on Llama-2-7B, {whole['Mistral-7B']} on Mistral-7B, {whole['largest']} at most. deftc over the flat plan on these four kinds of trees at "
             "Llama-3-8B's dimensions: "
             + ", ".join(f"{name} {steps[name]['flat']['ms'] / steps[name]['tree']['ms']:.2f}" for name in ("system_prompts", "multi_few_shot", "multi_chain_reasoning", "multi_document"))
             + ". **Differences.** FastTree reports an engine's throughput with scheduling, we report a step in a graph, with other models and prompts.")
