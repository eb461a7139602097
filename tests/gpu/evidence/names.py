"""What records call things, and the rows of the support table that they are (runtime/doctor/Features.h, declared/engines.json).

An empty list: the name has no row of its own. A name that is missing here fails `seen_test.py`.
"""

import re

# Masks and scores of random attentions (tests/gpu/random/Specs.cpp). `sink` is a mask of the first tokens, `weighed_tokens` a score.
HOOKS = {
    "alibi": ["alibi"], "bent_query": ["query"], "blocks": [], "both_ways": ["path"], "by_chunk": [], "by_head": [],
    "by_head_on_a_path": ["path", "sigmoid"], "by_query": [], "caps_and_slopes": ["softcap", "alibi"], "constant": [],
    "constant_sigmoid": ["sigmoid"], "depth": [], "documents": ["documents"], "documents_in_window": ["documents", "window"],
    "fixed_window": ["window"], "gated": ["output"], "gated_sigmoid": ["query", "output", "sigmoid"], "gated_sink": ["output", "sinks"],
    "image_in_window": ["path", "sinks"], "keys_of_neighbours": ["key"], "learned_sink": ["sinks"], "normed_keys": ["key", "window"],
    "normed_rope": ["query"], "of_kv_head": [], "of_row": [], "of_token": [], "plain": [], "prefix": ["path"],
    "query_by_head": ["query"], "rope": ["query"], "rope_of_neighbours": ["query"], "scaled_rows": ["value"],
    "scaled_value": ["query", "output"], "sigmoid": ["sigmoid"], "sigmoid_alibi": ["sigmoid", "alibi"],
    "sigmoid_of_scaled_values": ["value", "sigmoid"], "sigmoid_of_tokens": ["sigmoid"], "sigmoid_window": ["sigmoid", "window"],
    "signed_values_in_window": ["value", "window"], "sink": [], "sink_and_window": ["sinks", "window"], "softcap": ["softcap"],
    "temperature_in_window": ["query", "window"], "turned_keys": ["query", "key"], "values_by_position": ["value", "sinks"],
    "weighed_tokens": [], "whole_path": ["path"], "window": ["window"], "window_and_band_behind": [], "window_and_one_far_behind": [],
    "window_behind_a_stretch": ["path"],
}
# Of specs that records of larger scores and invariant plans had.
HOOKS |= {name: [] for name in ("a128c", "b128c", "c128c", "d128c", "e64c", "f80c", "h112c", "m128far", "n128mix", "o128plain", "q128neg")}
HOOKS["p128alibi"] = ["alibi"]
# What keys and values are, as random_cases writes it and shows.json names it for records of before. Hooks, heads and dims count where
# keys and values have 16 bits, as in the specs of their rows.
PLAIN_CACHES = {"f16": ["f16"], "bf16": ["bf16"]}
OTHER_CACHES = {
    "fp8_e4m3": ["fp8_e4m3"], "fp8_e5m2": ["fp8_e5m2"], "fp8_e4m3, products": ["fp8_products"], "latent f16": [], "latent bf16": [],
    "latent fp8_e4m3": ["latent_fp8_e4m3"], "latent fp8_e5m2": [], "latent fp8_e4m3, scales": ["latent_scales"],
    "f16, unlike": ["unlike_dims"], "bf16, unlike": ["unlike_dims"], "fp8_e4m3, unlike": ["unlike_dims"],
}
# Attentions of benches behind their heads (h32_8_softcap), of shipped specs, and of a spec for each row of the table (feature_NAME).
VARIANTS = {"": [], "new": [], "softcap": ["softcap"], "window": ["window"], "alibi": ["alibi"], "sigmoid": ["sigmoid"], "bf16": ["bf16"],
            "w128": ["window"], "w4096": ["window"], "sink4_w4096": []}
LATENT_VARIANTS = {"": [], "e4m3": ["latent_fp8_e4m3"], "656": ["latent_scales"]}
SPECS = {
    "deepseek_v3": ["latent", "latent_128_heads"], "deepseek_v3_tp8": ["latent"], "deepseek_v3_expanded": ["unlike_dims"],
    "deepseek_v3_expanded_tp8": ["unlike_dims"], "deepseek_v3_2": ["latent_scales"], "deepseek_v3_2_tp8": ["latent_scales"],
    "documents": ["documents"], "gemma2_9b": ["bf16", "softcap", "head_dim_256"],
    "gemma2_9b_window": ["bf16", "softcap", "head_dim_256", "window"], "glm_5": ["latent"], "glm_5_tp8": ["latent"],
    "gpt_oss": ["head_dim_64", "sinks"], "gpt_oss_window": ["head_dim_64", "sinks", "window"], "gpt_oss_fp8": ["fp8_e4m3"],
    "gpt_oss_fp8_window": ["fp8_e4m3"], "heads_40": [], "heads_64": ["bf16", "head_dim_64"], "heads_72": ["head_dim_72"],
    "heads_80": ["f16"], "heads_96": ["bf16"], "heads_112": ["f16"], "heads_192": [], "heads_256": ["head_dim_256"],
    "image_block": ["path"], "key_96_value_64": [], "kimi_k2": ["latent"], "kimi_k2_tp8": ["latent"], "latent_64": ["latent_other_dims"],
    "latent_64_fp8": [], "latent_64_scaled": [], "llama2_7b": ["f16", "ratio_1"], "llama3_8b": ["bf16"], "llama3_8b_fp8": ["fp8_e4m3"],
    "llama3_8b_raw_k": ["key"], "llama3_8b_sparse": ["select"], "llama4_scout": ["bf16"], "llama4_scout_full": ["bf16"],
    "llama4_scout_raw_q": ["query"], "llama4_scout_full_raw_q": ["query"], "local_global": ["bf16"], "mistral_7b": ["bf16", "window"],
    "mpt_7b_alibi": ["f16", "alibi", "ratio_1"], "prefix_lm": ["path"], "qwen2_5_7b": ["bf16"], "qwen3_8b": ["bf16"],
    "qwen3_8b_raw_q": ["query"], "sigmoid": ["bf16", "sigmoid"], "speculative_verify": ["f16"], "starcoder_15b": ["bf16"],
    "streaming_sink": ["bf16", "head_dim_64"], "t5_base": ["head_dim_64", "ratio_1"],
}


class UnknownName(Exception):
    """A record has a name that no row of the support table knows."""


def known(table, name, kind):
    if name not in table:
        raise UnknownName(f"{kind} `{name}` is not in tests/gpu/evidence/names.py")
    return table[name]


def of_dims(head_dim, ratio=None):
    """Rows of an attention with keys and values of 16 bits."""
    rows = {"64": ["head_dim_64"], "256": ["head_dim_256"], "72": ["head_dim_72"]}.get(str(head_dim), [])
    return rows + {"1": ["ratio_1"], "128": ["ratio_128"]}.get(str(ratio), [])


def of_random_run(run, caches):
    """`caches`: what shows.json says of a record whose counts have no `attention` (CACHE: HOOK)."""
    counts, rows = run["counts"], set()
    pairs = [drawn.split(": ") for drawn in counts.get("attention", {})]
    hooks = {re.sub(r"^[rh]\d+_(\d+_)?", "", name) for name in counts["hook"]}
    for hook in hooks | {hook for _, hook in pairs}:
        known(HOOKS, hook, "hook")
    pairs = pairs or [(cache, hook) for cache in caches for hook in hooks]
    kinds = {cache for cache, _ in pairs}
    for cache, hook in pairs:
        rows.update(known(PLAIN_CACHES | OTHER_CACHES, cache, "cache"))
        if cache in PLAIN_CACHES:
            rows.update(HOOKS[hook])
        if cache in ("fp8_e4m3", "fp8_e5m2") and hook == "scaled_rows":
            rows.add("fp8_scales")
    if kinds & set(PLAIN_CACHES):
        rows.update(row for dim in counts["head_dim"] for row in of_dims(dim))
        rows.update(row for ratio in counts["ratio"] for row in of_dims(0, ratio))
    if kinds & {"latent f16", "latent bf16"}:
        rows.update("latent" if dim == "576" else "latent_other_dims" for dim in counts["head_dim"])
        rows.update(["latent_128_heads"] if "128" in counts["ratio"] else [])
    return rows


def of_bench_row(row):
    heads, kv_heads = map(int, row["heads"].split("/"))
    latent = re.fullmatch(r"latent_h\d+_?(\w*)", row["attention"])
    if latent:
        rows = known(LATENT_VARIANTS, latent[1], "latent attention")
        return rows or ["latent"] + (["latent_128_heads"] if heads == 128 else [])
    if row["attention"].startswith("expanded_"):
        return ["unlike_dims"]
    variant = re.fullmatch(r"h\d+_\d+(?:_d\d+)?(?:_p\d+)?_?(\w*)", row["attention"])
    rows = known(VARIANTS, variant[1] if variant else row["attention"], "attention")
    if row["dtype"] not in PLAIN_CACHES:
        return known(OTHER_CACHES, row["dtype"], "cache")
    return rows + PLAIN_CACHES[row["dtype"]] + of_dims(row["head_dim"], heads // kv_heads)


def of_attention(name):
    return [name.removeprefix("feature_")] if name.startswith("feature_") else known(SPECS, name, "attention")


def of_engine_run(run):
    """Features of a plug-in that an engine's run had."""
    is_latent, cache = run.get("kind") == "deepseek", run.get("kv_cache_dtype", "auto")
    rows = ["mla"] if is_latent else ["decode", "prefix_cache"]
    if cache == "fp8_ds_mla":
        rows.append("mla_rows")
    elif cache != "auto":
        rows.append("mla_fp8" if is_latent else "fp8")
    is_graph = run.get("mode") == "graphs"
    rows += ["graphs"] if is_graph else []
    if run.get("drafts"):
        rows += ["draft_trees"] if run.get("breadth", 1) > 1 else ["drafts", "draft_graphs"] if is_graph else ["drafts"]
    rows += ["ranks"] if run.get("ranks", 1) > 1 else []
    rows += ["context_parallel"] if run.get("dcp", 1) > 1 else []
    return rows + (["quantized_q"] if run.get("products") else [])


def is_of_deft(run):
    """Whether it is an engine's run with the plug-in (`CUSTOM`, `CUSTOM:fp8`, `fa3+deft`), and no comparison of two."""
    return "compared" not in run and re.fullmatch(r"(.*\+)?(CUSTOM|deft)(:.*)?", run.get("backend", "")) is not None


def engine_of(record):
    return "vLLM" if "vllm" in record else "SGLang" if "sglang" in record else None


def of_record(record, caches=()):
    """Rows of the support table that a record's own facts name: attentions that were right, and an engine's features, as
    "vLLM: mla", right or not."""
    if isinstance(record, list):  # an engine's runs as the programs write them
        heads = [run for run in record if isinstance(run, dict) and run.keys() & {"vllm", "sglang"}]
        record = {"runs": record, **heads[0]} if heads else {}
    rows = set()
    for run in record["runs"] if isinstance(record.get("runs"), list) else [record]:
        if "counts" in run and "hook" in run["counts"] and run["wrong"] == 0:
            rows |= of_random_run(run, caches)
    for suite in record.get("suites", ()):
        rows.update(found for row in suite["rows"] if row["right"] for found in of_bench_row(row))
    for variant in record.get("variants", ()):
        rows.update(known(VARIANTS, variant["variant"], "variant") if variant["right"] else [])
    if record.get("format") == "deftc-gpu-record":
        wrong = {case["attention"] for case in record["results"] if case["exit_code"] != 0}
        rows.update(found for name in {case["attention"] for case in record["results"]} - wrong for found in of_attention(name))
    if engine_of(record):
        runs = [run for part in record.get("parts", [record]) for run in part["runs"] if is_of_deft(run)]
        rows.update(f"{engine_of(record)}: {found}" for run in runs for found in of_engine_run(run))
    return rows
