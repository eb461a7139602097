"""Sections that put the papers' own tables beside ours. Their times are of other cards and whole runs; what compares is a ratio."""

from records import card_of, link, mean, times
from kernels import BENCH, peer_us
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
    page.add(f"Partitions alone, all by our kernels and untuned, over partition `query` with the chunks that fill the GPU, in one call ({card_of(record['device'])}, commit {record['commit']}, {link(PARTITIONS)}); "
             "DeFT's *Node* is `node`, its *Node-Chunk* `node_chunk`:")
    query = record["us"]["query"]
    page.table(["", *ROWS], [[name, *(times(query[row] / us[row]) for row in ROWS)] for name, us in record["us"].items() if name != "query"])


def deft(page, records):
    paper = records.published["deft"]
    rows = records.rows(BENCH, ("deft",))
    steps = {row["row"]: row for name in ("h100-end-to-end.jsonl", RECORDED_STEPS) for row in records.read(name) or []}
    page.heading("DeFT's tables beside ours")
    page.add(f"{paper['source']}: {paper['card']}, {paper['model']}, {paper['unit']} ({link('published.json')}). Ours are single steps: kernels on an H200 ({link(BENCH)}), whole steps on an H100 "
             f"({link('h100-end-to-end.jsonl')}), those of the recorded searches on an H200 ({link(RECORDED_STEPS)}). So seconds are not compared, only how much faster the tree is than a query-guided kernel on the same card.")
    page.heading("Tables 6 and 16: attention over query-guided attention", 3)
    radix = paper["table_6"]["Radix Attention"]
    page.table(["", *paper["columns"]], [
        *[[name + ", A100", *ratios(radix, values)] for name, values in paper["table_6"].items() if name != "Radix Attention"],
        ["deftc, H200", *(times(rows[name]["flat"]["raw_us"] / rows[name]["cold_us"]) for name in ROWS)],
        ["best published kernel, H200", *(times(rows[name]["flat"]["raw_us"] / rows[name]["peer"]["raw_us"]) for name in ROWS)]])
    page.add("**The difference.** Theirs is the mean of a run, in which trees grow and queries come and go, ours one recorded step of it; their query-guided kernel is SGLang's Triton kernel, "
             "ours FlashInfer's on tensor cores.")
    partitions_alone(page, records)
    page.heading("Table 5: decoding, whole steps", 3)
    radix = paper["table_5"]["Radix Attention"]
    ours = [steps.get(name) for name in STEPS]
    page.table(["", *paper["columns"]], [
        ["DeFT-Flatten over Radix, A100", *ratios(radix, paper["table_5"]["DeFT-Flatten"])],
        ["their bound, without attention", *(times(bound) for bound in paper["table_5"]["upper bound"])],
        ["deftc over flat, H100, recorded searches H200", *(times(row["flat"]["ms"] / row["tree"]["ms"]) if row else None for row in ours)],
        ["our bound, without attention", *(times(row["flat"]["ms"] / row["no attention"]["ms"]) if row else None for row in ours)]])
    page.add("**The difference.** Our flat plan runs by kernels as good as the tree's, in a graph, and a path of 4,200 tokens stays in its L2, so there is less to gain. "
             "A recorded search is one step of it, theirs the whole run.")
    page.heading("Table 17: tokens of the cache that are read", 3)
    page.table(["", *paper["columns"]], [
        ["Radix over DeFT-Flatten, bytes of a run", *ratios(paper["table_17_cache_tb"]["Radix Attention"], paper["table_17_cache_tb"]["DeFT-Flatten"])],
        ["flat over tree, tokens of a step", *(times(row["flat"]["plan"]["tokens_read"] / row["tree"]["plan"]["tokens_read"]) if row else None for row in ours)],
        ["deftc's cache bytes over the tree's (1: each read once)", *(times(rows[name]["contiguous"]["chosen"]["bytes"]["cache"] / rows[name]["contiguous"]["chosen"]["bytes"]["cache_once"]) for name in ROWS)]])
    page.add("**The difference.** Flatten reads each token once and pays in partial results. Our `auto` may read a prompt twice or more where that is cheaper than merging (last line), since the second read "
             "comes from L2: fewer bytes is not the aim, time is.")
    page.heading("Tables 19 to 21: other cards and models", 3)
    other = paper["tables_19_to_21"]
    page.table(["table", *(f"{name} over Radix, {column}" for name in ("Node-Chunk", "Flatten") for column in other["columns"])], [
        [name, *ratios(values["Radix Attention"], values["DeFT-Node-Chunk"]), *ratios(values["Radix Attention"], values["DeFT-Flatten"])]
        for name, values in other.items() if name != "columns"])
    page.add("**The difference.** We have no RTX 4090, and no record of these three trees at heads 64/8 and 32/32; the second suite has few-shot and draft trees of these heads beside their floor, without a "
             "query-guided kernel. At ratio 1 (Codellama-7B) our margin over peers is smallest (first table).")
    page.no_record("DeFT's trees at heads 64/8 and 32/32 beside a query-guided kernel; any GeForce card", "`deftc bench deft PACKAGE` of such heads with `--partition query`")


def fasttree(page, records):
    paper = records.published["fasttree"]
    peers = records.published["kernels"]["rows"]
    rows = records.rows(BENCH, ("fasttree",))
    page.heading("FastTree's figure 9 beside ours")
    page.add(f"{paper['source']}, {paper['card']}, CUDA {paper['cuda']} ({link('published.json')}): {paper['what']}. The fifteen trees at three ratios are rows `F9_*` of the first table, where "
             "FastTree's artifact was run by us on an H200.")
    page.table(["", "mean speed-up"], [
        *[[f"FastTree over {name}, theirs", times(value, 1)] for name, value in paper["mean_speedup_of_fasttree_over"].items()],
        ["FastTree or a faster peer over FlashInfer's decode 0.6.17 on tensor cores, H200", times(mean(peer["query_guided_us"] / peer["best_us"] for name, peer in peers.items() if name.startswith("F9")))],
        ["deftc over FlashInfer's decode 0.6.17 on tensor cores, H200", times(mean(row["flat"]["raw_us"] / row["cold_us"] for row in rows.values()))],
        ["deftc over the best peer of each tree, H200", times(mean(peer_us(row) / row["cold_us"] for row in rows.values()))]])
    page.add("**The difference.** Another card, and FlashInfer 0.6.17 beside 0.1.6: at ratio 16 it is itself the best peer of most trees. FastTree's kernels use nothing that Hopper has over an A100, as "
             "its authors say. Its bars are normalised, so only means can stand here.")
    whole = paper["end_to_end_over_sglang_with_flashinfer"]
    steps = {row["row"]: row for row in records.read("h100-end-to-end.jsonl")}
    page.add(f"End to end (its figure 10), over SGLang with FlashInfer: {whole['Llama-2-7B']} on Llama-2-7B, {whole['Mistral-7B']} on Mistral-7B, {whole['largest']} at most. Ours of these four kinds of trees at "
             "Llama-3-8B's dimensions over the flat plan: "
             + ", ".join(f"{name} {steps[name]['flat']['ms'] / steps[name]['tree']['ms']:.2f}" for name in ("system_prompts", "multi_few_shot", "multi_chain_reasoning", "multi_document"))
             + ". **The difference.** Theirs is throughput of an engine with its scheduling, ours a step in a graph; other models, other prompts.")
