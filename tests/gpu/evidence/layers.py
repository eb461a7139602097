"""The section on sparse layers: those that select tokens, and those that read the lists."""

from records import card_of, link, mean, times, us

NAME, IN_MODELS, RUNS = "h200-select.json", "h200-layers.jsonl", "h200-select-runs.json"
TILES = "h200-sparse-tiles.jsonl", "h100-sparse-tiles.jsonl"
TUNED = "h200-sparse-tuned.json"


def selection(page, records):
    record = records.read(NAME)
    page.heading("Sparse layers")
    page.add(f"{card_of(record['card'])}, commit {record['commit']} ({link(NAME)}): f16, heads 32/8, kernels only; lists equal those of a float64 sort. Selection compared with torch's `topk` over the same keys, 8 lists for each query:")
    page.table(["queries", "tokens", "budget", "selection us", "torch.topk us", "ratio"], [
        [row["queries"], f"{row['length']:,}", f"{row['budget']:,}", us(best), us(row["topk_us"]), times(best / row["topk_us"])]
        for row in record["selection"] for best in [min(value for key, value in row.items() if key.startswith("select"))]])
    page.add("A sparse attention compared with a dense one over as many tokens in pages of one, and a selecting layer compared with a full one:")
    page.table(["queries", "tokens", "budget", "full us", "sparse us", "sparse over dense", "selecting over full"], [
        [row["queries"], f"{row['length']:,}", f"{row['budget']:,}", us(row["full_us"]), us(row["sparse_us"]), times(row["sparse_over_dense"]),
         times(row["giving_and_select_us"] / row["full_us"])] for row in record["sparse"]])
    page.add("32 layers (2 full, 2 selecting, 28 sparse) compared with 32 full ones:")
    page.table(["queries", "tokens", "full us", "selecting us", "ratio"], [
        [row["queries"], f"{row['length']:,}", us(row["full_us"]), us(row["selecting_us"]), times(row["ratio"])] for row in record["layers"]])
    rows = records.read(IN_MODELS)
    page.add(f"Whole steps of a model ({card_of(rows[0]['device'])}, commit {rows[0]['commit']}, {link(IN_MODELS)}): Llama-3-8B's dimensions, random weights, requests that share nothing, one captured graph for each step, "
             f"lists of {rows[0]['budget']:,} tokens:")
    page.table(["row", "all layers full, ms", "2 full, 2 selecting, 28 sparse, ms", "no attention, ms", "ratio", "ratio of the attention"], [
        [row["row"], times(full), times(sparse), times(rest), times(sparse / full), times((sparse - rest) / (full - rest))]
        for row in rows for full, sparse, rest in [[row[way]["ms"] for way in ("tree", "sparse", "no attention")]]])
    runs = records.read(RUNS)
    page.add(f"`deftc run` on branches that share a prompt ({card_of(runs['device'])}, commit {runs['commit']}, {link(RUNS)}): the kernel reads the union of their lists, each token once. Queries and keys are random, so lists overlap "
             f"by chance. The last two columns ({runs['apart']}) read each list separately:")
    page.table(["tree", "queries", "full us", "selecting us", "sparse us", "separate lists: selecting us", "sparse us"], [
        [run["workload"], run["queries"], us(run["full_us"]), us(run["selecting_us"]), us(run["sparse_us"]), us(run["apart"]["selecting_us"]), us(run["apart"]["sparse_us"])]
        for run in runs["runs"]])
    clusters = runs["unions_by_clusters"]["runs"]
    page.add("In that record one block made each union. Since then a cluster of eight blocks does. Selecting layers, both in one call:")
    page.table(["tree", "one block us", "eight blocks us"], [[run["workload"], us(run["one_block"]["selecting_us"]), us(run["selecting_us"])] for run in clusters])
    page.add("The first tree with queries whose common part grows from none to all:")
    page.table(["common part", "tokens of the union", "tokens of all lists", "selecting us", "sparse us", "separate lists: sparse us"], [
        [times(row["common"]), f"{row['union_tokens']:,}", f"{row['list_tokens']:,}", us(row["packages"]["unions"]["selecting_us"]), us(row["packages"]["unions"]["sparse_us"]),
         us(row["packages"]["apart"]["sparse_us"])] for row in runs["agreeing"]])
    for name in TILES:
        rows = records.read(name)
        over, before = ([row[which] / row[than] for row in rows] for which, than in (("rule_us", "best_us"), ("three_waves_us", "rule_us")))
        page.add(f"Tile and cut of lists by rule, on an {card_of(rows[0]['card'])} ({link(name)}): {mean(over):.3f} times the best of up to four tiles with seventeen cuts each, on average of {len(rows)} rows, "
                 f"{max(over):.2f} at worst. The former rule (three waves of blocks, before 8fe7bbdd) took {mean(before):.2f} times the time of today's.")
    tuned_layers(page, records)
    cases = runs["random_cases"]
    page.add(f"Random trees, budgets, masks, scores, sinks and types (`{cases['command']}`), checked against float64: {cases['cases']} cases with {cases['lists']:,} lists, {cases['wrong']} wrong.")
    for run in runs["runs"]:
        if run["sparse_us"] > run["full_us"]:
            page.loss(f"a sparse layer on {run['workload']} with random queries takes {run['sparse_us'] / run['full_us']:.2f} times a full layer's time; both read the prompt once")
    page.command(record["command"], "tests/gpu/selection/agreeing_branches.py --deftc deftc llama3_8b_sparse.deftpkg", "tests/gpu/end_to_end.py alone --budget 4096 --without flat --without sdpa --output layers.jsonl", "deftc tune llama3_8b_sparse --sparse")


def tuned_layers(page, records):
    record = records.read(TUNED)
    page.add(f"Shipped results of `deftc tune --sparse` ({card_of(record['device'])}, commit {record['commit']}, {link(TUNED)}): bf16, pages of 16, twelve numbers of queries from 1 to 64, gains over the rules:")
    lines = []
    for entry in record["entries"]:
        gains = [cut["untuned_us"] / cut["tuned_us"] for cut in entry["cuts"]]
        heads, kv_heads, dim = (part.lstrip("qkvd") for part in entry["signature"].split("-")[:3])
        tokens, stages, warps = entry["tile"]
        lines.append([f"{heads}/{kv_heads}", dim, f"{entry['budget']:,}", f"{tokens} tokens, {stages} stages, {warps} warps", f"{mean(gains):.3f}", times(max(gains)), times(min(gains))])
        if min(gains) < 0.99:
            page.loss(f"sparse layers of heads {heads}/{kv_heads} with head dim {dim}, budget {entry['budget']:,}: the shipped tile takes {1 / min(gains):.2f} times the rule's time for one number of queries")
    page.table(["heads", "head dim", "budget", "tile", "gain, mean", "most", "least"], lines)
