"""The sections on engines' rollouts, drafts in captured graphs and in trees, the host's time of a step, and latent caches of 8 bits."""

from records import card_of, link, times

ROLLOUTS = {**{f"rollout_{samples}x{size}k": f"{samples} samples of {size}k tokens" for samples in (64, 128) for size in (8, 16, 32)},
            "grpo_16x16x8k": "16 samples each of 16 prompts of 8k"}
ROLLOUTS |= {f"{name}_after{own}": f"{words}, after {own:,} of their own" for name, words in ROLLOUTS.items() for own in (500, 1000)}
GOALS_MS = {"32": 0.08, "256": 0.15}  # the host's median
GOAL_P99_MS = 0.25


def place(record):
    engine = f"vLLM {record['vllm']}" if "vllm" in record else f"SGLang {record['sglang']}"
    return f"{card_of(record['device'])}, {engine}, {record['date']}"


def rates_of_rollouts(page, own, deft, beside):
    page.table(["workload", own["backend"], "deft", "ratio"], [
        [ROLLOUTS[rate], *(f"{run['rates'][rate]['tokens_s']:,.0f} ({run['rates'][rate]['step_ms']:.1f} ms)" for run in (own, deft)), times(ratio)] for rate, ratio in beside["ratios"].items()])


def rollouts(page, records):
    name = "h200-vllm-rollouts.json"
    record = records.read(name)
    own, deft, beside = record["runs"]
    page.heading("Rollouts in vLLM")
    page.add(f"{place(record)} ({link(name)}): samples of one prompt, 200 new tokens each, Llama-3-8B's dimensions with random weights, {own['layers']} layers, graphs, next to {own['backend']}. Generated tokens a second, and the time of a step:")
    rates_of_rollouts(page, own, deft, beside)
    page.command(record["command"].replace("FILE", "rollouts.json"))


def drafts(page, records):
    name = "h200-vllm-drafts.json"
    record = records.read(name)
    own, _, beside = record["runs"]
    compared = beside["compared"]
    page.heading("Drafts in vLLM's graphs")
    page.add(f"{place(record)} ({link(name)}): chains of {own['drafts']} tokens that vLLM's ngram proposes, in captured graphs. Of {compared['requests']} requests {compared['requests_that_differ']} part from {own['backend']}'s tokens; "
             f"where they part, log probabilities of both tokens are at most {compared['gap_where_they_differ']} apart, a near-tie in bfloat16. Two engines shared the GPU, so the run has no times.")


def host_times(page, records):
    host_of(page, records, "h200-vllm-host.json", "vLLM", "the time of the backend's `build`, which makes a step's metadata and plan")
    host_of(page, records, "h200-sglang-host.json", "SGLang", "the time of the backend's `init_forward_metadata`, without what it waits for the GPU")


def host_of(page, records, name, engine, what):
    record = records.read(name)
    own, deft = record["runs"][:2]
    page.heading(f"The host's time in {engine}")
    page.add(f"{place(record)} ({link(name)}): {what}, inside the engine, {own['layers']} layers, Python included.")
    kinds = (("build", "decoding"), ("build_joins", "requests join"))
    page.table(["requests", "step", f"{own['backend']}: median ms", "99th percentile", "deft: median ms", "99th percentile"], [
        [count, words, *(f"{run['host'][count][kind][figure]:.3f}" for run in (own, deft) for figure in ("median_ms", "p99_ms"))]
        for count in own["host"] for kind, words in kinds])
    for count, goal in GOALS_MS.items():
        host = deft["host"][count]
        if host["build"]["median_ms"] > goal:
            page.loss(f"{engine}'s host, {count} requests: planning a step takes {host['build']['median_ms']:.2f} ms (median), {own['backend']} {own['host'][count]['build']['median_ms']:.2f}; the target was {goal}")
        for kind, words in (("build", "steps of decoding"), ("build_joins", "steps in which requests join")):
            if host[kind]["p99_ms"] > GOAL_P99_MS:
                page.loss(f"{engine}'s host, {count} requests, {words}: {host[kind]['p99_ms']:.2f} ms at the 99th percentile; the target was {GOAL_P99_MS}")
    page.command(record["command"].replace("FILE", "host.json"))


def rollouts_sglang(page, records):
    name = "h200-sglang-rollouts.json"
    record = records.read(name)
    own, deft, beside = record["runs"]
    compared = beside["compared"]
    page.heading("Rollouts in SGLang")
    page.add(f"{place(record)} ({link(name)}): the same samples, {own['layers']} layers, graphs, next to {own['backend']}, one generation each. Of {compared['requests']} greedy requests {compared['requests_that_differ']} part from "
             f"{own['backend']}'s tokens, where log probabilities of both tokens are at most {compared['gap_where_they_differ']} apart.")
    rates_of_rollouts(page, own, deft, beside)
    page.command(record["command"].replace("FILE", "rollouts.json"))


def draft_trees_sglang(page, records):
    name = "h200-sglang-steps.json"
    record = records.read(name)
    page.heading("Draft trees in SGLang")
    page.add(f"{place(record)} ({link(name)}): a step that verifies trees of drafts, breadth 8, 32 layers, next to SGLang's triton, in graphs; the better of two. {record['cards']} Tokens were not compared with plain decoding.")
    sizes = sorted({run["drafts"] for run in record["runs"]})
    taken = {(run["backend"], run["drafts"], *place_of(row)): row["step_ms"] for run in record["runs"] for row in run["rows"]}
    page.table(["context", "requests", *(words for size in sizes for words in (f"{size} drafts: triton ms", "deft ms", "faster by"))], [
        [f"{context:,}", f"{requests}{', sharing it' if shares else ''}",
         *(figure for size in sizes for own, ours in [(taken["triton", size, context, requests, shares], taken["deft", size, context, requests, shares])] for figure in (times(own, 1), times(ours, 1), times(own / ours)))]
        for context, requests, shares in map(place_of, record["runs"][0]["rows"])])
    page.command(*(command.replace("FILE", "steps.json") for command in record["commands"]))


def place_of(row):
    return row["context"], row["requests"], row["shares"]


def latent_bytes_vllm(page, records):
    name = "h200-vllm-mla-bytes.json"
    record = records.read(name)
    by = {of_cache(run): run["rates"]["few_shot"]["tokens_s"] for run in record["runs"] if run.get("rates")}
    own = next(iter(by))
    apart = {run["backend"]: run["compared"] for run in record["runs"] if run.get("beside") == own}
    page.heading("vLLM with latent caches of 8 bits")
    page.add(f"{place(record)} ({link(name)}): 4 layers, `few_shot`, graphs, one run. The last columns are differences of log probabilities from {own} over 16 bits, of the first tokens on average and of tokens that agree at most:")
    page.table(["backend", "tokens a second", "ratio", "mean difference", "largest"], [
        [name.replace("CUSTOM", "deft").replace(":", ", "), f"{rate:,.0f}", times(rate / by[own]),
         *(times(apart[name][key], 3) if name in apart else None for key in ("first_logprob_difference", "logprob_difference"))] for name, rate in by.items()])
    page.loss(f"8-bit latent caches in vLLM: {times(by['CUSTOM:fp8'] / by[own])} of {own}'s tokens a second over 16 bits ({times(by['TRITON_MLA:fp8'] / by[own])} for TRITON_MLA over 8 bits), rows of 656 bytes {times(by['CUSTOM:fp8_ds_mla'] / by[own])}")
    page.command(record["command"].replace("FILE", "mla.json"))


def of_cache(run):
    """As `--backends` names it."""
    return run["backend"] + ("" if run["kv_cache_dtype"] == "auto" else ":" + run["kv_cache_dtype"])


def latent_sglang(page, records):
    name = "h200-sglang-mla.json"
    record = records.read(name)
    own, deft, beside = record["runs"]
    compared, [(rate, ratio)] = beside["compared"], beside["ratios"].items()
    page.heading("SGLang with latent caches")
    page.add(f"{place(record)} ({link(name)}): DeepSeek-V2-Lite's dimensions, {own['layers']} dense layers, random weights, graphs. `{rate}`: {own['backend']} {own['rates'][rate]['tokens_s']:,.0f} tokens a second, deft {deft['rates'][rate]['tokens_s']:,.0f} ({times(ratio)}). "
             f"Of {compared['requests']} requests {compared['requests_that_differ']} part, where log probabilities of both tokens are at most {compared['gap_where_they_differ']} apart.")
    page.command(record["command"].replace("FILE", "mla.json"))


def dcp(page, records):
    name = "h200-vllm-dcp.json"
    record = records.read(name)
    page.heading("Decode context parallelism in vLLM")
    page.add(f"Two {card_of(record['parts'][0]['runs'][0]['device'])}s, vLLM {record['vllm']}, {record['date']} ({link(name)}): `--dcp 2` splits the tokens of each request over both GPUs, graphs of whole steps, random weights. Tokens a second next to vLLM's own backend on the same two GPUs:")
    lines = []
    for part in record["parts"]:
        one, two, own, beside = part["runs"]
        compared = beside["compared"]
        for rate, ratio in beside["ratios"].items():
            lines.append([f"{KINDS[one['kind']]}, {one['layers']} layers", rate, *(f"{run['rates'][rate]['tokens_s']:,.0f}" for run in (own, two)), times(ratio), f"{one['rates'][rate]['tokens_s']:,.0f}",
                          f"{compared['requests_that_differ']} of {compared['requests']}, {compared['gap_where_they_differ']}"])
    page.table(["model", "workload", "own", "deft", "ratio", "deft on one GPU", "requests that part from one GPU's, largest gap"], lines)
    page.command(*(part["command"].replace("FILE", "dcp.json") for part in record["parts"]))


KINDS = {"deepseek": "DeepSeek-V2-Lite's dimensions, dense", "one_kv_head": "Llama-3-8B's with one KV head"}


def texts_sglang(page, records):
    name = "h200-sglang-text.json"
    record = records.read(name)
    page.heading("A trained model with drafts in SGLang")
    drafted = [run for run in record["runs"] if run["drafts"]]
    page.add(f"{place(record)} ({link(name)}): SmolLM2-135M-Instruct answers 16 questions, 256 tokens each, greedily, with {drafted[0]['drafts']} drafts of NGRAM a step, as chains (breadth 1) and as trees; graphs. Tokens a second, and tokens that a step accepts:")
    plain = {run["backend"]: run for run in record["runs"] if not run["drafts"]}
    breadths = sorted({run["breadth"] for run in drafted})
    page.table(["backend", "no drafts", *(f"breadth {breadth}" for breadth in breadths)], [
        [backend, f"{run['tokens_s']:,.0f}", *(f"{found['tokens_s']:,.0f} ({times(found['accepted'])})" for breadth in breadths for found in drafted if (found["backend"], found["breadth"]) == (backend, breadth))]
        for backend, run in plain.items()])
    same = "; ".join(f"{run['backend']}, breadth {run['breadth']}: {run['compared']['same']}" for run in drafted)
    page.add(f"Texts equal to those without drafts, of {drafted[0]['compared']['of']}: {same}. NGRAM learns from what it has written, so accepted tokens depend on that as well.", ties_of(record))
    page.command(*(command.replace("FILE", "text.json") for command in record["commands"]))


def ties_of(record):
    runs = record["ties"]["runs"]
    parted = [part for run in runs if run.get("compared") for part in run["compared"]["parted"]]
    gaps = [part["gap"] for part in parted if part["gap"] is not None]
    return (f"In a second run of deft ({record['ties']['commit']}) {len(parted)} of {sum(run['compared']['of'] for run in runs if run.get('compared'))} texts part, where the log probabilities of both tokens without drafts are "
            f"{min(gaps):.3f} to {max(gaps):.3f} apart: near-ties in bfloat16, where steps of other shapes round differently." if gaps else "")
