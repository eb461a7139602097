"""The sections on engines' rollouts, drafts in captured graphs and in trees, the host's time of a step, and latent caches of 8 bits."""

from records import card_of, link, times

ROLLOUTS = {"rollout_64x8k": "64 samples of 8k tokens", "rollout_128x16k": "128 samples of 16k tokens", "rollout_64x32k": "64 samples of 32k tokens",
            "grpo_16x16x8k": "16 samples each of 16 prompts of 8k"}
GOALS_MS = {"32": 0.08, "256": 0.15}  # the host's median
GOAL_P99_MS = 0.25


def place(record):
    return f"{card_of(record['device'])}, vLLM {record['vllm']}, {record['date']}"


def rollouts(page, records):
    name = "h200-vllm-rollouts.json"
    record = records.read(name)
    own, deft, beside = record["runs"]
    page.heading("Rollouts in vLLM")
    page.add(f"{place(record)} ({link(name)}): samples of one prompt, 200 new tokens each, Llama-3-8B's dimensions with random weights, {own['layers']} layers, graphs, next to {own['backend']}. Generated tokens a second, and the time of a step:")
    page.table(["workload", own["backend"], "deft", "ratio"], [
        [ROLLOUTS[rate], *(f"{run['rates'][rate]['tokens_s']:,.0f} ({run['rates'][rate]['step_ms']:.1f} ms)" for run in (own, deft)), times(ratio)] for rate, ratio in beside["ratios"].items()])
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
    name = "h200-vllm-host.json"
    record = records.read(name)
    own, deft, _ = record["runs"]
    page.heading("The host's time in vLLM")
    page.add(f"{place(record)} ({link(name)}): the time of the backend's `build`, which makes a step's metadata and plan, inside the engine, {own['layers']} layers, Python included.")
    kinds = (("build", "decoding"), ("build_joins", "requests join"))
    page.table(["requests", "step", f"{own['backend']}: median ms", "99th percentile", "deft: median ms", "99th percentile"], [
        [count, words, *(f"{run['host'][count][kind][figure]:.3f}" for run in (own, deft) for figure in ("median_ms", "p99_ms"))]
        for count in own["host"] for kind, words in kinds])
    for count, goal in GOALS_MS.items():
        host = deft["host"][count]
        if host["build"]["median_ms"] > goal:
            page.loss(f"vLLM's host, {count} requests: planning a step takes {host['build']['median_ms']:.2f} ms (median), {own['backend']} {own['host'][count]['build']['median_ms']:.2f}; the target was {goal}")
        if host["build_joins"]["p99_ms"] > GOAL_P99_MS:
            page.loss(f"vLLM's host, {count} requests, where requests join: {host['build_joins']['p99_ms']:.2f} ms at the 99th percentile; the target was {GOAL_P99_MS}")
    page.command(record["command"].replace("FILE", "host.json"))


def rollouts_sglang(page, records):
    name = "h200-sglang-rollouts.json"
    record = records.read(name)
    [run], logged = record["runs"], record["fa3_log_tokens_s"]
    page.heading("Rollouts in SGLang")
    page.add(f"{card_of(record['device'])}, SGLang {record['sglang']}, {record['date']} ({link(name)}): the same samples, {run['layers']} layers, graphs, one generation. A time limit ended fa3's engine, so its rates are the medians that its own log printed while decoding, "
             "and tokens were not compared.")
    lines = [(ROLLOUTS[rate], sorted(logged[rate])[len(logged[rate]) // 2], found) for rate, found in run["rates"].items()]
    page.table(["workload", "fa3, its log", "deft", "ratio"], [
        [words, f"{own:,.0f}", f"{found['tokens_s']:,.0f} ({found['step_ms']:.1f} ms)", times(found["tokens_s"] / own, 1)] for words, own, found in lines])
    page.command(record["command"].replace("FILE", "rollouts.json"))


def draft_trees_sglang(page, records):
    name = "h200-sglang-steps.json"
    record = records.read(name)
    own, deft = record["runs"]
    page.heading("Draft trees in SGLang")
    page.add(f"{card_of(record['device'])}, SGLang {record['sglang']}, {record['date']} ({link(name)}): a step that verifies trees of {deft['drafts']} drafts, {deft['layers']} layers, next to SGLang's {own['backend']}, in graphs; the better of two. Tokens were not compared with plain decoding.")
    page.table(["context", "requests", f"{own['backend']} ms", "deft ms", "faster by"], [
        [f"{b['context']:,}", f"{b['requests']}{', sharing it' if b['shares'] else ''}", times(a["step_ms"], 1), times(b["step_ms"], 1), times(a["step_ms"] / b["step_ms"])] for a, b in zip(own["rows"], deft["rows"])])
    page.command(record["command"].replace("FILE", "steps.json"))


def latent_bytes_vllm(page, records):
    name = "h200-vllm-mla-bytes.json"
    record = records.read(name)
    by = {found["backend"]: found for found in record["backends"]}
    own, ours, other = by["FLASH_ATTN_MLA"], by["CUSTOM:fp8"], by["TRITON_MLA:fp8"]
    page.heading("vLLM with latent caches of 8 bits")
    page.add(f"{place(record)} ({link(name)}): 4 layers, `few_shot`, graphs, one run; only its printed end was kept. The last column is the difference of the first tokens' log probabilities from FLASH_ATTN_MLA over 16 bits:")
    page.table(["backend", "tokens a second", "ratio", "mean difference"], [
        [found["backend"].replace("CUSTOM", "deft").replace(":", ", "), f"{found['tokens_s']:,}", times(found["tokens_s"] / own["tokens_s"]), times(found.get("first_token_mean"), 3)] for found in record["backends"]])
    page.loss(f"8-bit latent caches in vLLM: {times(ours['tokens_s'] / own['tokens_s'])} of FLASH_ATTN_MLA's tokens a second over 16 bits ({times(other['tokens_s'] / own['tokens_s'])} for TRITON_MLA over 8 bits); "
              f"first tokens' log probabilities differ from 16 bits by {times(ours['first_token_mean'], 3)} on average, TRITON_MLA's by {times(other['first_token_mean'], 3)}, probably because prompts read their own tokens from the cache; they no longer do (not run since)")
    page.command(record["command"].replace(" --pairs", " --pairs --json mla.json"))
