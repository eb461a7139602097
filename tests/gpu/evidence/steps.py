"""Sections on what is around a kernel: prompts, drafts, plans, whole steps of models, and engines."""

import charts
from records import card_of, link, times, us


def new_tokens(page, records):
    name, beside = "h100-ragged.json", "h100-ragged-peers.json"
    bench, rows, peers = records.read(name), records.rows(name), records.read(beside)
    page.heading("Prompts and appends")
    page.add(f"{card_of(bench['device']['name'])} ({link(name)}), bf16, heads 32/8; {peers['peer']} in the same call ({link(beside)}), the faster of cuDNN's and flash attention.")
    lines = []
    for row, facts in rows.items():
        torch = min(peers["rows"][row].values())
        lines.append([row, facts["workload"], us(facts["cold_us"]), us(facts["floor_us"]), us(torch), times(facts["cold_us"] / torch)])
        if facts["cold_us"] > torch:
            page.loss(f"{row}: {facts['cold_us'] / torch:.2f} times torch's cuDNN attention (dense prefill)")
    page.table(["row", "what", "deftc us", "floor us", "torch us", "deftc over torch"], lines)
    page.add("Torch's row of two kinds of requests is one call for each kind; its requests lie without pages and share nothing, of which only `append_512` and `mixed_60_4` have any here.")
    page.command("deftc bench ragged tests/bench/ragged_rows.deft --json ragged.json", "tests/gpu/ragged_peers.py --json peers.json")


def drafts(page, records):
    aim = 1.10
    page.heading("Drafts whose tree only the GPU knows")
    lines, sources = [], []
    for name, card in (("h200-execution.json", "H200"), ("h100-execution.json", "H100")):
        record = records.read(name)
        sources.append(f"{card} at {record['commit']} ({link(name)})")
        for row in record["results"][0]["draft_times"]["facts"]:
            lines.append([card, row["row"], us(row["device_us"]), us(row["host_us"]), times(row["times"]), us(row["mask_us"])])
            if row["times"] > aim:
                page.loss(f"drafts of {row['row']} on an {card}: {row['times']:.3f} times the time of the tree that the host knows; {aim:.2f} was the aim")
    page.add(f"On an {' and an '.join(sources)}: attention over drafts from a mask of bits on the device, beside the same tree planned by a host that knows it; "
             "and the small kernel that reads the mask, once a step for all layers.")
    page.table(["card", "row", "device knows, us a layer", "host knows, us a layer", "ratio", "mask kernel, us a step"], lines)
    page.command("execution_check rows.deftpkg:h32_8 --json execution.json")


def plans(page, records):
    name = "h200-plan-bench.json"
    bench = records.read(name)
    page.heading("Planning")
    page.add(f"On the host of an H200 ({bench['device']['host']}; {link(name)}): a plan is made once a step, for all layers. Microseconds with the copy to the GPU, means of a round, of 1,000 queries.")
    keys = list(dict.fromkeys(key for entry in bench["rounds"] for key in entry))
    page.table(["what", "best round", "worst round"], [
        [key, us(min(means)), us(max(means))] for key in keys
        for means in [[entry[key]["mean"] for entry in bench["rounds"] if key in entry]]])
    page.add("Peers' host time in the runs of the 57 rows (other trees than the three above, so only the magnitude compares):")
    page.table(["planner", "in", "median ms", "largest ms"], [
        [peer["program"], peer["language"], peer["median_ms"], peer["largest_ms"]] for peer in records.published["kernels"]["plan_host_time"]])
    plan_us = [row["contiguous"]["chosen"]["first_plan_us"] for row in records.rows("h200-bench.json", ("fasttree", "deft")).values()]
    ordered = sorted(plan_us)
    page.add(f"deftc's plans of the 57 rows themselves, the first of a tree, for which `auto` weighs partitions: median {ordered[len(ordered) // 2]:.0f} us, largest "
             f"{ordered[-1]:,.0f} us ({link('h200-bench.json')}, `first_plan_us`).")
    for peer in records.published["kernels"]["plan_host_time"]:
        if peer["median_ms"] * 1000 < ordered[len(ordered) // 2]:
            page.loss(f"a first plan: {ordered[len(ordered) // 2]:.0f} us in the median of the 57 rows beside {peer['median_ms'] * 1000:.0f} of {peer['program']} ({peer['language']})")
    page.command("gpu_plan_bench --benchmark_filter='(write|plan|advance).*AndUpload' --benchmark_min_time=0.15")


def whole_steps(page, records):
    name = "h100-end-to-end.jsonl"
    page.heading("Whole steps of a model")
    rows = records.read(name)
    page.add(f"{card_of(rows[0]['device'])} ({link(name)}): Llama-3-8B's dimensions with random weights, 32 layers, one CUDA graph a step, in transformers by `deft.hf`. *Flat* reads each "
             "request's path by itself, by our kernels; *torch* is its SDPA over copies of the caches; *no attention* is the rest of the step, which no attention can beat.")
    lines, names, gains, bounds = [], [], [], []
    for row in rows:
        tree, flat, rest = row["tree"]["ms"], row["flat"]["ms"], row["no attention"]["ms"]
        torch = row.get("sdpa", {}).get("ms")
        best = min(flat, torch) if torch else flat
        words = row["row"] + (f", {row['partition']}" if row.get("partition") else "")
        names.append(words), gains.append(best / tree), bounds.append(best / rest)
        read = [row[kind]["plan"]["tokens_read"] for kind in ("tree", "flat")]
        lines.append([words, times(tree), times(flat), times(torch), times(rest), times(best / tree), times(best / rest), f"{read[0]:,}", f"{read[1]:,}"])
        if best < tree:
            page.loss(f"whole steps of {words}: {best / tree:.3f} of the faster of flat and torch")
    page.table(["row", "tree ms", "flat ms", "torch ms", "no attention ms", "gain", "gain if attention took no time", "tokens read", "flat reads"], lines)
    page.add("Torch is empty where it was not run, or had no room for its copies.")
    page.picture("steps", "Gains of whole steps", charts.bars("Whole steps: gain over the faster of flat and torch", "", names,
                                                             [("gain", gains), ("if attention took no time", bounds)], line_at=1))
    recorded_steps(page, records)
    page.command("tests/gpu/end_to_end.py few_shot_b20 --steps 20 --output steps.jsonl",
                 "deftc workloads --workloads DIR reasoning_sorting:tree=6 --step 1330 -o TOT_sorting.json",
                 "tests/gpu/end_to_end.py --tree TOT_sorting.json --output steps.jsonl")


RECORDED_STEPS = "h200-end-to-end-recorded.jsonl"


def recorded_steps(page, records):
    rows = records.read(RECORDED_STEPS)
    if not rows:
        page.no_record("whole steps on the recorded Tree-of-Thoughts runs (document, keyword, set, sorting)", "`tests/gpu/end_to_end.py --tree FILE` with trees of `deftc workloads`")
        return
    page.add(f"The same over one step each of the recorded Tree-of-Thoughts searches, those of the rows TOT_*; {card_of(rows[0]['device'])}, commit {rows[0]['commit']} ({link(RECORDED_STEPS)}):")
    lines = []
    for row in rows:
        tree, flat, torch, rest = (row[way]["ms"] for way in ("tree", "flat", "sdpa", "no attention"))
        lines.append([row["row"], times(tree), times(flat), times(torch), times(rest), times(min(flat, torch) / tree), times(min(flat, torch) / rest)])
        if min(flat, torch) < tree:
            page.loss(f"whole steps of {row['row']}: {min(flat, torch) / tree:.3f} of the faster of flat and torch")
    page.table(["row", "tree ms", "flat ms", "torch ms", "no attention ms", "gain", "gain if attention took no time"], lines)


def decoder_on_two_gpus(page, records):
    name = "h200-decoder-ranks.json"
    record = records.read(name)
    page.heading("A decoder on two GPUs")
    page.add(f"{record['device'].replace(' x ', ' ')} of one host, commit {record['commit'].split()[0]} ({link(name)}): `TreeDecoder` under `torchrun` with transformers' tensor-parallel plan, the dimensions of Llama 3 70B "
             f"with {record['layers']} layers, random weights in bf16; a rank of two has 32 of 64 query heads and 4 of 8 KV heads. A captured graph a step, NCCL's sums in it; the slowest rank's time. "
             "Tokens of the first step that differ from one GPU's were ties by that much:")
    rows = {(row["row"], row["ranks"]): row for row in record["rows"]}
    lines = []
    for (row, ranks), found in rows.items():
        if ranks == 1:
            continue
        one, beside = rows[row, 1]["ms"], found["beside_one"]
        lines.append([row, times(one["tree"]), times(found["ms"]["tree"]), times(found["ms"]["tree"] / one["tree"]), times(found["ms"]["no attention"] / one["no attention"]),
                      f"{beside['tokens_that_differ']} of {beside['tokens']}", f"{beside['largest_gap_of_these']:.3f}"])
    page.table(["row", "one GPU, ms", "two, ms", "ratio", "ratio without attention", "tokens that differ", "by"], lines)
    page.command("tests/gpu/decoder_ranks.py few_shot_b20 few_shot_b50 grpo_16k_16 speculative_t64 chats --json ranks.json")


# The parts of the first are before and after steps no longer waited for their block tables.
TWO_GPUS = (("h200-vllm-ranks.json", lambda record: record["parts"][-1]["runs"], "two H200s"),
            ("h100-vllm-ranks.json", lambda record: record["runs"], "two H100s, when each step waited for its block table"))


def engine_on_two_gpus(page, records):
    lines = []
    for name, runs_of, where in TWO_GPUS:
        rates = {run["backend"]: run["rates"] for run in runs_of(records.read(name)) if run.get("rates") and run["ranks"] == 2}
        ratios = {row: rate["tokens_s"] / rates["FLASH_ATTN"][row]["tokens_s"] for row, rate in rates["CUSTOM"].items()}
        lines.append([f"{where} ({link(name)})", *(f"{rates['FLASH_ATTN'][row]['tokens_s']:,.0f} / {rates['CUSTOM'][row]['tokens_s']:,.0f} ({ratio:.2f})" for row, ratio in ratios.items())])
        for row, ratio in ratios.items():
            if ratio < 1:
                page.loss(f"vLLM on {where}, `{row}`: {ratio:.2f} times FLASH_ATTN's tokens a second on the same")
    page.add("On two GPUs, 8 layers, graphs, in bfloat16:")
    page.table(["on", "n16: own / deft", "few_shot", "alone"], lines)


def engine_lines(page, record):
    """A line for each run of deft's that has one of the own backend beside it."""
    def place_of(run):
        cache = run.get("kv_cache_dtype", "auto").replace("auto", "16 bits")
        return card_of(record["device"]), run["layers"], run["mode"], run["dtype"], cache

    timed = [run for run in record["runs"] if run.get("rates")]
    lines, own = [], {place_of(run): run for run in timed if run["backend"] == "FLASH_ATTN"}
    for run in timed:
        place = place_of(run)
        if run["backend"] == "CUSTOM" and place in own:
            ratios = {row: run["rates"][row]["tokens_s"] / own[place]["rates"][row]["tokens_s"] for row in run["rates"]}
            lines.append([*place, *(f"{own[place]['rates'][row]['tokens_s']:,.0f} / {run['rates'][row]['tokens_s']:,.0f} ({ratio:.2f})" for row, ratio in ratios.items())])
            for row, ratio in ratios.items():
                if ratio < 1:
                    page.loss(f"vLLM ({place[0]}), {place[1]} layers, {place[2]}, {place[3]}, cache of {place[4]}, `{row}`: {ratio:.2f} times FLASH_ATTN's tokens a second")
    return lines


def engine(page, records):
    names = "h100-vllm.json", "h200-vllm.json"
    both = [records.read(name) for name in names]
    page.heading("In vLLM")
    where = "; ".join(f"{card_of(record['device'])}, vLLM {record['vllm']}, torch {record['torch']}, {record['date']} ({link(name)})" for name, record in zip(names, both))
    page.add(f"{where}: generated tokens a second beside vLLM's own FLASH_ATTN, in the same engine, Llama-3-8B's "
             "dimensions with random weights. `n16`: 16 samples of one prompt of 4,096 tokens; `few_shot`: 32 requests that share 4,096; `alone`: 32 of 1,024 that share nothing.")
    page.table(["card", "layers", "mode", "type", "cache", "n16: own / deft", "few_shot", "alone"],
               [line for record in both for line in engine_lines(page, record)])
    kernels = both[1]["profile"]["kernels_us"]
    page.add(f"On the H200 a step of 8 layers is the host's: in the profile of `few_shot` a layer's attention takes FLASH_ATTN {kernels['FLASH_ATTN']['attend']} and {kernels['FLASH_ATTN']['combine']} us, "
             f"deft {kernels['CUSTOM']['attend']} us and a merge that is launched beside it and ends {kernels['CUSTOM']['merge']} us after its own start, while vLLM's Python takes " +
             " and ".join(f"{a} or {b} ms" for a, b in both[1]["profile"]["median_step_ms"].values()) + " a step, in the median of two generations each.")
    engine_on_two_gpus(page, records)
    page.command("python3 tests/gpu/vllm_engine.py --layers 32 --modes graphs", "python3 tests/gpu/vllm_engine.py --tensor-parallel 2 --modes graphs")
    caches_of_an_engine(page, both[1])
    page.no_record("SGLang with several ranks or an 8-bit cache on a GPU", "`tests/gpu/sglang_engine.py`")
    page.no_record("a trained model in an engine", "`tests/gpu/vllm_engine.py` with a checkpoint")


def caches_of_an_engine(page, record):
    """Which backend's 8-bit cache is nearest to 16 bits."""
    page.add("Over 8-bit caches, log probabilities of the first tokens of 32 requests beside FLASH_ATTN over 16 bits, 8 layers, random weights:")
    page.table(["backend, cache", "difference in the mean", "at most"],
               [[pair["b"].replace(":auto", ", 16 bits").replace(":", ", "), f"{pair['first_token_mean']:.3f}", f"{pair['first_token_max']:.2f}"] for pair in record["pairs"] if pair["a"] == "FLASH_ATTN:auto"])


def engine_sglang(page, records):
    name = "h200-sglang.json"
    record = records.read(name)
    page.heading("In SGLang")
    page.add(f"{card_of(record['device'])}, SGLang {record['sglang']}, torch {record['torch']}, {record['date']} ({link(name)}): the same requests beside SGLang's own fa3.")
    lines, own = [], {}
    for run in record["runs"]:
        place = (run["layers"], run["mode"])
        if run["backend"] == "fa3":
            own[place] = run["rates"]
        elif run.get("rates"):
            ratios = {row: rate["tokens_s"] / own[place][row]["tokens_s"] for row, rate in run["rates"].items()}
            lines.append([*place, *(f"{own[place][row]['tokens_s']:,.0f} / {run['rates'][row]['tokens_s']:,.0f} ({ratio:.2f})" for row, ratio in ratios.items())])
            for row, ratio in ratios.items():
                if ratio < 1:
                    page.loss(f"SGLang, {place[0]} layers, {place[1]}, `{row}`: {ratio:.2f} times fa3's tokens a second")
    page.table(["layers", "mode", "n16: own / deft", "few_shot", "alone"], lines)
    gaps = [run["compared"]["gap_where_they_differ"] for run in record["runs"] if run.get("compared")]
    page.add(f"Greedy tokens are fa3's but for ties: gaps of at most {max(gaps)} in log probability.")
    page.command("python3 tests/gpu/sglang_engine.py --layers 32 --modes graphs --backends fa3,deft")


def right(page, records):
    page.heading("That results are right")
    page.add("Every row above is checked in its bench after it is timed. Beside that, random trees, heads, hooks and configs, each row of each result held to twice the error of a "
             "plain evaluation in the same type, and tokens told apart by counting inputs:")
    lines = []
    for path in sorted(records.folder.glob("*random-cases*.json")):
        record = records.read(path.name)
        for run in record.get("runs", [record]):
            lines.append([link(path.name), card_of(run.get("device") or record.get("device") or ""), run.get("commit") or record.get("commit"),
                          f"{run['cases']:,}", run["wrong"], times(run["largest_error_over_allowed"])])
    page.table(["record", "card", "commit", "cases", "wrong", "largest error over what is allowed"], lines)
    specs = records.read("h200-every-spec.json")
    page.add(f"Every shipped spec of {specs['commit']} on twenty trees: {specs['cases']} cases, {specs['wrong']} wrong ({link('h200-every-spec.json')}).")
