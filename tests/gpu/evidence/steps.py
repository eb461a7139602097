"""Sections on prompts, drafts, plans, whole steps of models, and engines."""

import charts
from kernels import ROWS
from records import PUBLISHED_SUITES, card_of, link, times, us


def new_tokens(page, records):
    name, beside = "h100-ragged.json", "h100-ragged-peers.json"
    bench, rows, peers = records.read(name), records.rows(name), records.read(beside)
    page.heading("Prompts and appends")
    page.add(f"{card_of(bench['device']['name'])} ({link(name)}), bf16, heads 32/8; {peers['peer']} in the same call ({link(beside)}), cuDNN or flash attention, the faster one.")
    lines = []
    for row, facts in rows.items():
        torch = min(peers["rows"][row].values())
        lines.append([row, facts["workload"], us(facts["cold_us"]), us(facts["floor_us"]), us(torch), times(facts["cold_us"] / torch)])
        if facts["cold_us"] > torch:
            page.loss(f"{row}: deftc takes {facts['cold_us'] / torch:.2f} times the time of torch's cuDNN attention (dense prefill)")
    page.table(["row", "requests", "deftc us", "floor us", "torch us", "deftc over torch"], lines)
    page.add("Torch needs one call for each kind of request, and contiguous tensors without sharing. Only `append_512` and `mixed_60_4` share tokens.")
    newer = records.rows(ROWS, ("ragged",))
    if newer:
        page.add(f"On an H200 ({link(ROWS)}), without torch beside it; `expanded` rows have K of 192 and V of 128 columns, as an expanded latent cache has:")
        page.table(["row", "requests", "heads", "deftc us", "floor us", "over the floor"], [
            [row, facts["workload"], facts["heads"], us(facts["cold_us"]), us(facts["floor_us"]), times(facts["cold_us"] / facts["floor_us"])] for row, facts in newer.items()])
    page.command("deftc bench ragged tests/bench/ragged_rows.deft --json ragged.json", "tests/gpu/ragged_peers.py --json peers.json")


def drafts(page, records):
    aim = 1.10
    page.heading("Draft trees on the device")
    lines, sources = [], []
    for name, card in (("h200-execution.json", "H200"), ("h100-execution.json", "H100")):
        record = records.read(name)
        sources.append(f"{card} at {record['commit']} ({link(name)})")
        for row in record["results"][0]["draft_times"]["facts"]:
            lines.append([card, row["row"], us(row["device_us"]), us(row["host_us"]), times(row["times"]), us(row["mask_us"])])
            if row["times"] > aim:
                page.loss(f"drafts of {row['row']} on an {card} take {row['times']:.3f} times the time of a tree that the host plans; the target was {aim:.2f}")
    page.add(f"On an {' and an '.join(sources)}: attention over drafts whose tree is a bit mask on the device, compared with the same tree planned by the host. "
             "A small kernel reads the mask once a step, for all layers.")
    page.table(["card", "row", "tree on the device, us a layer", "tree on the host, us a layer", "ratio", "mask kernel, us a step"], lines)
    page.command("execution_check rows.deftpkg:h32_8 --json execution.json")


def plans(page, records):
    name = "h200-plan-bench.json"
    bench = records.read(name)
    page.heading("Planning")
    page.add(f"On the host of an H200 ({bench['device']['host']}; {link(name)}): one plan serves all layers of a step. Microseconds for 1,000 queries with the copy to the GPU, means of a round.")
    keys = list(dict.fromkeys(key for entry in bench["rounds"] for key in entry))
    page.table(["operation", "best round", "worst round"], [
        [key, us(min(means)), us(max(means))] for key in keys
        for means in [[entry[key]["mean"] for entry in bench["rounds"] if key in entry]]])
    page.add("Host time of the peers' planners on the 57 rows. These are other trees than the three above, so compare magnitudes only:")
    page.table(["planner", "language", "median ms", "largest ms"], [
        [peer["program"], peer["language"], peer["median_ms"], peer["largest_ms"]] for peer in records.published["kernels"]["plan_host_time"]])
    plan_us = [row["contiguous"]["chosen"]["first_plan_us"] for row in records.rows(ROWS, PUBLISHED_SUITES).values()]
    ordered = sorted(plan_us)
    median, aim = ordered[len(ordered) // 2], 150
    page.add(f"deftc's first plan of each of the 57 rows, when `auto` compares partitions: median {median:.0f} us, largest "
             f"{ordered[-1]:,.0f} us ({link(ROWS)}, `first_plan_us`), while other programs ran on the host.")
    if median > aim:
        page.loss(f"a first plan takes {median:.0f} us (median of the 57 rows) beside other programs; the target was {aim}")
    for peer in records.published["kernels"]["plan_host_time"]:
        if peer["median_ms"] * 1000 < median:
            page.loss(f"a first plan takes {median:.0f} us (median of the 57 rows), {peer['program']} ({peer['language']}) {peer['median_ms'] * 1000:.0f}")
    page.command("gpu_plan_bench --benchmark_filter='(write|plan|advance).*AndUpload' --benchmark_min_time=0.15")


STEPS = ("h200-end-to-end.jsonl", "h100-end-to-end.jsonl")


def whole_steps(page, records):
    page.heading("Whole steps of a model")
    page.add("Llama-3-8B's dimensions with random weights, 32 layers, one CUDA graph a step, transformers with `deft.hf`. *Flat* reads each request's path separately, with our kernels. "
             "*Torch* is SDPA over copies of the caches; it is empty where it did not run or had no room for them. *No attention* is the rest of the step and bounds the gain.")
    for name in STEPS:
        steps_of_card(page, records, name)
    recorded_steps(page, records)
    page.command("tests/gpu/end_to_end.py few_shot_b20 --steps 20 --output steps.jsonl",
                 "deftc workloads --workloads DIR reasoning_sorting:tree=6 --step 1330 -o TOT_sorting.json",
                 "tests/gpu/end_to_end.py --tree TOT_sorting.json --output steps.jsonl")


def steps_of_card(page, records, name):
    rows, card = records.read(name), card_of(records.read(name)[0]["device"])
    page.add(f"{card}, {records.date(name)} ({link(name)}):")
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
            page.loss(f"whole steps of {words} ({card}): {best / tree:.3f} times the speed of flat or torch")
    page.table(["row", "tree ms", "flat ms", "torch ms", "no attention ms", "gain", "gain without attention", "tokens read", "flat reads"], lines)
    if name == STEPS[0]:
        page.picture("steps", "Gains of whole steps", charts.bars("Whole steps: gain over the faster of flat and torch", "", names,
                                                                 [("gain", gains), ("without attention", bounds)], line_at=1))


RECORDED_STEPS = "h200-end-to-end-recorded.jsonl"


def recorded_steps(page, records):
    rows = records.read(RECORDED_STEPS)
    if not rows:
        page.no_record("whole steps on the recorded Tree-of-Thoughts runs (document, keyword, set, sorting)", "`tests/gpu/end_to_end.py --tree FILE` with trees of `deftc workloads`")
        return
    page.add(f"One step of each recorded Tree-of-Thoughts search (rows TOT_*), {card_of(rows[0]['device'])}, commit {rows[0]['commit']} ({link(RECORDED_STEPS)}):")
    lines = []
    for row in rows:
        tree, flat, torch, rest = (row[way]["ms"] for way in ("tree", "flat", "sdpa", "no attention"))
        lines.append([row["row"], times(tree), times(flat), times(torch), times(rest), times(min(flat, torch) / tree), times(min(flat, torch) / rest)])
        if min(flat, torch) < tree:
            page.loss(f"whole steps of {row['row']}: {min(flat, torch) / tree:.3f} times the speed of flat or torch")
    page.table(["row", "tree ms", "flat ms", "torch ms", "no attention ms", "gain", "gain without attention"], lines)


def decoder_on_two_gpus(page, records):
    name = "h200-decoder-ranks.json"
    record = records.read(name)
    page.heading("A decoder on two GPUs")
    page.add(f"{record['device'].replace(' x ', ' ')} of one host, commit {record['commit'].split()[0]} ({link(name)}): `TreeDecoder` under `torchrun` with transformers' tensor-parallel plan, the dimensions of Llama 3 70B "
             f"with {record['layers']} layers, random weights in bf16. With two ranks each has 32 of 64 query heads and 4 of 8 KV heads. One captured graph a step includes NCCL's sums; times are the slowest rank's. "
             "Tokens of the first step that differ from one GPU's are near-ties; the last column has the largest gap:")
    rows = {(row["row"], row["ranks"]): row for row in record["rows"]}
    lines = []
    for (row, ranks), found in rows.items():
        if ranks == 1:
            continue
        one, beside = rows[row, 1]["ms"], found["beside_one"]
        lines.append([row, times(one["tree"]), times(found["ms"]["tree"]), times(found["ms"]["tree"] / one["tree"]), times(found["ms"]["no attention"] / one["no attention"]),
                      f"{beside['tokens_that_differ']} of {beside['tokens']}", f"{beside['largest_gap_of_these']:.3f}"])
    page.table(["row", "one GPU, ms", "two, ms", "ratio", "ratio without attention", "tokens that differ", "largest gap"], lines)
    page.command("tests/gpu/decoder_ranks.py few_shot_b20 few_shot_b50 grpo_16k_16 speculative_t64 chats --json ranks.json")


# The first record has two parts: before and after steps stopped waiting for their block tables.
TWO_GPUS = (("h200-vllm-ranks.json", lambda record: record["parts"][-1]["runs"], "two H200s"),
            ("h100-vllm-ranks.json", lambda record: record["runs"], "two H100s, older: each step waited for its block table"))


def engine_on_two_gpus(page, records):
    lines = []
    for name, runs_of, where in TWO_GPUS:
        rates = {run["backend"]: run["rates"] for run in runs_of(records.read(name)) if run.get("rates") and run["ranks"] == 2}
        ratios = {row: rate["tokens_s"] / rates["FLASH_ATTN"][row]["tokens_s"] for row, rate in rates["CUSTOM"].items()}
        lines.append([f"{where} ({link(name)})", *(f"{rates['FLASH_ATTN'][row]['tokens_s']:,.0f} / {rates['CUSTOM'][row]['tokens_s']:,.0f} ({ratio:.2f})" for row, ratio in ratios.items())])
        for row, ratio in ratios.items():
            if ratio < 1:
                page.loss(f"vLLM on {where}, `{row}`: {ratio:.2f} times FLASH_ATTN's tokens a second")
    page.add("Two GPUs, 8 layers, graphs, bfloat16:")
    page.table(["on", "n16: own / deft", "few_shot", "alone"], lines)


def engine_lines(page, record):
    """A line for each of deftc's runs that has a run of the engine's own backend beside it."""
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
    names = "h100-vllm.json", "h200-vllm.json", "h200-vllm-rates.json"
    every = [records.read(name) for name in names]
    page.heading("vLLM")
    where = "; ".join(f"{card_of(record['device'])}, vLLM {record['vllm']}, torch {record['torch']}, {record['date']} ({link(name)})" for name, record in zip(names, every))
    page.add(f"{where}: generated tokens a second compared with FLASH_ATTN in the same engine, Llama-3-8B's "
             "dimensions with random weights. `n16`: 16 samples of one prompt of 4,096 tokens; `few_shot`: 32 requests that share 4,096 tokens; `alone`: 32 requests of 1,024 tokens that share nothing.")
    page.table(["card", "layers", "mode", "type", "cache", "n16: own / deft", "few_shot", "alone"],
               [line for record in every for line in engine_lines(page, record)])
    kernels = every[1]["profile"]["kernels_us"]
    page.add(f"In a profile of `few_shot` on the H200 ({every[1]['date']}), a layer's attention takes {kernels['FLASH_ATTN']['attend']} us and a combine of {kernels['FLASH_ATTN']['combine']} us with FLASH_ATTN, "
             f"{kernels['CUSTOM']['attend']} us with deftc, whose merge starts beside it and ends {kernels['CUSTOM']['merge']} us after its own start.")
    engine_on_two_gpus(page, records)
    page.command("python3 tests/gpu/vllm_engine.py --layers 32 --modes graphs", "python3 tests/gpu/vllm_engine.py --tensor-parallel 2 --modes graphs")
    caches_of_an_engine(page, every[1])
    page.no_record("SGLang with several ranks or an 8-bit cache on a GPU", "`tests/gpu/sglang_engine.py`")


def engine_latent(page, records):
    name = "h200-vllm-mla.json"
    record = records.read(name)
    own, deft, beside = record["runs"]
    compared = beside["compared"]
    page.heading("vLLM with latent caches")
    page.add(f"{card_of(record['device'])}, vLLM {record['vllm']}, {record['date']} ({link(name)}): DeepSeek-V2-Lite's dimensions with {own['layers']} dense layers, random weights, graphs of whole steps, "
             f"next to {own['backend']}. Generated tokens a second, and the time of a step:")
    page.table(["workload", f"{own['backend']}", "deft", "ratio"], [
        [rate, *(f"{run['rates'][rate]['tokens_s']:,.0f} ({run['rates'][rate]['step_ms']:.2f} ms)" for run in (own, deft)), times(beside["ratios"][rate])] for rate in beside["ratios"]])
    page.add(f"Of {compared['requests']} requests {compared['requests_that_differ']} part at some token, where {own['backend']}'s log probabilities of both tokens are at most {compared['gap_where_they_differ']} apart; "
             f"log probabilities of tokens that agree differ by up to {compared['logprob_difference']}. vLLM's own backends part as often ({record['pairs']['date']}):")
    page.table(["backend", "beside", "requests that part", "largest gap", "log probabilities differ by up to"], [
        [pair["backend"].replace("CUSTOM", "deft"), pair["beside"], f"{pair['requests_that_differ']} of {pair['requests']}", f"{pair['gap_where_they_differ']}", f"{pair['logprob_difference']:.3f}"] for pair in record["pairs"]["compared"]])
    for rate, ratio in beside["ratios"].items():
        if ratio < 0.99:
            page.loss(f"latent caches in vLLM, {own['layers']} layers, `{rate}`: {times(ratio)} of the tokens a second of {own['backend']}; the target was 0.99")
    page.command(record["command"].replace("FILE", "mla.json"))


def caches_of_an_engine(page, record):
    """How far each backend's 8-bit cache is from 16 bits."""
    page.add("8-bit caches: difference of the first tokens' log probabilities from FLASH_ATTN with 16 bits, 32 requests, 8 layers, random weights:")
    page.table(["backend, cache", "mean difference", "largest"],
               [[pair["b"].replace(":auto", ", 16 bits").replace(":", ", "), f"{pair['first_token_mean']:.3f}", f"{pair['first_token_max']:.2f}"] for pair in record["pairs"] if pair["a"] == "FLASH_ATTN:auto"])


def engine_sglang(page, records):
    name = "h200-sglang.json"
    record = records.read(name)
    page.heading("SGLang")
    page.add(f"{card_of(record['device'])}, SGLang {record['sglang']}, torch {record['torch']}, {record['date']} ({link(name)}): the same requests compared with SGLang's own fa3.")
    lines, own = [], {}
    for run in record["runs"]:
        place = (run["layers"], run["mode"] + (f" ({run['date']})" if "date" in run else ""))
        if run["backend"] == "fa3":
            own[place] = run["rates"]
        elif run.get("rates"):
            ratios = {row: rate["tokens_s"] / own[place][row]["tokens_s"] for row, rate in run["rates"].items()}
            lines.append([*place, *(f"{own[place][row]['tokens_s']:,.0f} / {run['rates'][row]['tokens_s']:,.0f} ({ratios[row]:.2f})" if row in ratios else None for row in ("n16", "few_shot", "alone"))])
            for row, ratio in ratios.items():
                if ratio < 1:
                    page.loss(f"SGLang, {place[0]} layers, {place[1]}, `{row}`: {ratio:.2f} times fa3's tokens a second")
    page.table(["layers", "mode", "n16: own / deft", "few_shot", "alone"], lines)
    host = record["host_speed"]
    page.add(f"With 8 layers times vary with the host: three processes took {', '.join(str(one) for one in host['alone_step_ms'])} ms a step for `alone`, fa3 {host['fa3_step_ms']}. In one of them a step took {host['slow_step_ms']} ms "
             f"and, from one step to the next, {host['fast_step_ms']}; the host's part fell from {host['slow_forward_ms']} to {host['fast_forward_ms']} ms. We do not know what slows the host. The record has the steps around the change.")
    gaps = [run["compared"]["gap_where_they_differ"] for run in record["runs"] if run.get("compared")]
    page.add(f"Greedy tokens equal fa3's except at near-ties (at most {max(gaps)} in log probability).")
    page.command("python3 tests/gpu/sglang_engine.py --layers 32 --modes graphs --backends fa3,deft")


def right(page, records):
    page.heading("Correctness")
    page.add("Each bench checks every row after timing it. Random cases draw trees, heads, hooks and configs. Each row of each result may have at most twice the error of a "
             "plain evaluation in the same type, and counting inputs detect a token that is skipped or read twice:")
    lines = []
    for path in sorted(records.folder.glob("*random-cases*.json")):
        record = records.read(path.name)
        for run in record.get("runs", [record]):
            lines.append([link(path.name), card_of(run.get("device") or record.get("device") or ""), run.get("commit") or record.get("commit"),
                          f"{run['cases']:,}", run["wrong"], times(run["largest_error_over_allowed"])])
    page.table(["record", "card", "commit", "cases", "wrong", "largest error / allowed error"], lines)
    specs = records.read("h200-every-spec.json")
    page.add(f"Every shipped spec of {specs['commit']} on twenty trees: {specs['cases']} cases, {specs['wrong']} wrong ({link('h200-every-spec.json')}).")
