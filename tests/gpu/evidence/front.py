"""The first screen of the evidence, and the README's table: what wins, what loses, against whom, on which card and day."""

import charts
from engines import ROLLOUTS as ROLLOUT_WORDS
from kernels import ROWS, flat_rows, over_floor, over_peers, peer_us, unscaled
from records import PUBLISHED_SUITES, card_of, mean

LATENT, STEPS, VLLM, SGLANG = "h200-latent.json", "h200-end-to-end.jsonl", "h200-vllm-rates.json", "h200-sglang.json"
ROLLOUTS, ROLLOUTS_SGLANG, DRAFTS = "h200-vllm-rollouts.json", "h200-sglang-rollouts.json", "h200-sglang-steps.json"
CACHES, QUERY, KEY = "h200-fp8.json", "h200-query-hook.json", "h200-key-hook.json"
STEP_ROWS = (("rollout_128x16k", "128 samples of 16k tokens"), ("speculative_t256", "256 drafts below 4k tokens"),
             ("chats", "64 chats that share little"))
README_ROLLOUTS = ("rollout_128x16k",)
ENGINE_ROWS = (("n16", "16 samples of 4k tokens"), ("few_shot", "32 requests that share 4k"), ("alone", "32 requests that share nothing"))


def span(values):
    return f"{min(values):.2f} to {max(values):.2f}"


def kernels(records):
    """(over the best peers, over the floor, rows slower than a peer, over the floor where nothing is shared)."""
    compared = list(records.rows(ROWS, PUBLISHED_SUITES).values())
    return over_peers(compared), over_floor(compared), [row["name"] for row in compared if row["cold_us"] > peer_us(row)], over_floor(flat_rows(records).values())


def latent(records):
    """A row's speed over the peer's in the same call."""
    rows = records.rows(LATENT)
    return {row: us / rows[row]["cold_us"] for row, us in records.read(LATENT)["latent_peers"]["rows"].items()}


def steps(records):
    """A row's gain over the faster of the flat plan and torch."""
    return {row["row"]: min(row["flat"]["ms"], row.get("sdpa", {}).get("ms", row["flat"]["ms"])) / row["tree"]["ms"]
            for row in records.read(STEPS) if not row.get("partition")}


def engines(records):
    """Tokens a second over those of the engine's own backend, 32 layers in graphs: by engine, by row."""
    found = {}
    for engine, name, own in (("vLLM", VLLM, "FLASH_ATTN"), ("SGLang", SGLANG, "fa3")):
        rates = {run["backend"]: run["rates"] for run in records.read(name)["runs"] if run.get("rates") and run["layers"] == 32 and run["mode"] == "graphs"}
        [ours] = [backend for backend in rates if backend != own]
        found[engine] = {row: rates[ours][row]["tokens_s"] / rates[own][row]["tokens_s"] for row, _ in ENGINE_ROWS}
    return found


def rollouts(records, name=ROLLOUTS):
    """Tokens a second over those of the engine's own backend, many samples of long prompts."""
    return next(run["ratios"] for run in records.read(name)["runs"] if run.get("ratios"))


def draft_steps(records, context):
    """How much faster SGLang verifies one request's trees of drafts than with its triton."""
    taken = {run["backend"]: row["step_ms"] for run in records.read(DRAFTS)["runs"] for row in run["rows"] if (run["drafts"], row["context"], row["requests"]) == (60, context, 1)}
    return taken["triton"] / taken["deft"]


def features(records):
    """A feature's time over plain attention's: {words: [ratios]}."""
    variants = {}
    for row in records.read(ROWS)["variants"]:
        variants.setdefault(row["variant"], []).append(row["ratio"])
    hooks = [(QUERY, "hook `query`", "hook_us"), (KEY, "hook `key`", "key_us")]
    found = dict(variants)
    found |= {words: [row[key] / row["plain_us"] for row in records.read(name)["rows"] if row["row"].startswith("F9_")] for name, words, key in hooks}
    found["8-bit cache"] = [row["fp8_us"] / row["bits_16_us"] for row in records.read(CACHES)["rows"]]
    return found


def how_peers_ran(records):
    bench, peers = records.read(ROWS), records.published["kernels"]
    speed, slower = unscaled(list(records.rows(ROWS, PUBLISHED_SUITES).values()))
    return (f"We ran the published kernels on another {card_of(peers['card'])} on {peers['date']}, not in the same run, and scaled their times by {bench['ceilings']['read_scale']:.3f}, "
            f"the ratio of a plain read on the two cards (unscaled: {speed:.2f}x, slower on {', '.join(slower) or 'none'}).")


def readme(records):
    """The README's table, users' gains first."""
    speed, floor, slower, flat = kernels(records)
    both, gain, rates = latent(records), steps(records), engines(records)
    of_latent = records.read(LATENT)["latent_peers"]["peer"]
    shared = [ratio for row, ratio in both.items() if "_flat_" not in row]
    lines = ["| what | compared with | speed | card, day |", "|---|---|---|---|"]
    lines += [f"| step of a model: {words} | our kernels, each path read separately | {gain[row]:.2f}x | H200, {records.date(STEPS)} |" for row, words in STEP_ROWS]
    lines += [f"| tokens/s in vLLM: {ROLLOUT_WORDS[row]} | its FLASH_ATTN | {ratio:.2f}x | H200, {records.date(ROLLOUTS)} |" for row, ratio in rollouts(records).items() if row in README_ROLLOUTS]
    lines += [f"| tokens/s in SGLang: {ROLLOUT_WORDS[row]} | its fa3 | {ratio:.2f}x | H200, {records.date(ROLLOUTS_SGLANG)} |" for row, ratio in rollouts(records, ROLLOUTS_SGLANG).items() if row in README_ROLLOUTS]
    lines += [f"| step in SGLang: 60 drafts below 8k tokens | its triton | {draft_steps(records, 8192):.2f}x | H200, {records.date(DRAFTS)} |"]
    for engine, name, own in (("vLLM", VLLM, "FLASH_ATTN"), ("SGLang", SGLANG, "fa3")):
        lines += [f"| tokens/s in {engine}: {words} | its {own} | {rates[engine][row]:.2f}x | H200, {records.date(name)} |" for row, words in ENGINE_ROWS[1:]]
    lines += [f"| attention, 57 published trees | fastest published kernel | {speed:.2f}x, slower on {len(slower) or 'none'} | H200, {records.date(ROWS)} |",
              f"| latent caches (MLA), shared prefixes or drafts | {of_latent} | {span(shared)}x | H200, {records.date(LATENT)} |",
              f"| latent caches (MLA), nothing shared | {of_latent} | {span([ratio for row, ratio in both.items() if '_flat_' in row])}x | H200, {records.date(LATENT)} |"]
    return lines + ["", f"Whole steps and engines run Llama-3-8B's dimensions with random weights, 32 layers, CUDA graphs. The kernels take {floor:.2f} times the bandwidth or compute bound on the 57 trees "
                    f"(commit {records.read(ROWS)['commit']}), {flat:.2f} times where nothing is shared. {how_peers_ran(records)} The other comparisons share one card and one run."]


def screen(page, records):
    """Five sentences with a picture each."""
    speed, floor, slower, flat = kernels(records)
    groups = [("FastTree, heads 32/8", "_g4"), ("FastTree, heads 32/32", "_g1"), ("FastTree, heads 16/1", "_g16")]
    chosen = [(words, [row for name, row in records.rows(ROWS, ("fasttree",)).items() if name.endswith(ending)]) for words, ending in groups]
    chosen.append(("DeFT's trees", list(records.rows(ROWS, ("deft",)).values())))
    page.add(f"**Kernels.** On 57 published trees deftc has {speed:.2f}x the speed of the fastest published kernel, is slower on {', '.join(slower) or 'none'}, and takes {floor:.2f} times the bandwidth or compute bound, "
             f"{flat:.2f} times where nothing is shared (H200, {records.date(ROWS)}). {how_peers_ran(records)} [Tables](evidence/trees.md)")
    page.picture("kernels", "Time over the floor, deftc and the best published kernel",
                 charts.bars("Time over the floor (1 is the floor)", "", [words for words, _ in chosen],
                             [("deftc", [over_floor(rows) for _, rows in chosen]),
                              ("best published", [mean(peer_us(row) / row["floor_us"] for row in rows) for _, rows in chosen])], line_at=1))
    gain = steps(records)
    worst, best = min(gain, key=gain.get), max(gain, key=gain.get)
    page.add(f"**Whole steps.** A step of a model with the tree has {gain[worst]:.2f} (`{worst}`) to {gain[best]:.2f} times (`{best}`) the speed of our own kernels without it, or of torch where that is faster "
             f"(H200, {records.date(STEPS)}). [Tables](evidence/models.md)")
    page.picture("gains", "Gain of whole steps", charts.bars("Whole steps: speed with the tree over without", "", list(gain), [("deftc", list(gain.values()))], line_at=1))
    rates = engines(records)
    every = [(f"{engine}: {words}", rates[engine][row]) for engine in rates for row, words in ENGINE_ROWS]
    of_samples = rollouts(records)
    page.add(f"**Engines.** For 64 to 256 samples of long prompts deftc generates {span(of_samples.values())} times the tokens a second of vLLM's FLASH_ATTN and {span(rollouts(records, ROLLOUTS_SGLANG).values())} times those of SGLang's fa3 "
             f"(H200, {records.date(ROLLOUTS)}), and elsewhere {min(rate for _, rate in every):.2f} to {max(rate for _, rate in every):.2f} times with 32 layers; with 8 it loses in SGLang. [Tables](evidence/engines.md)")
    every = [(f"{engine}: {ROLLOUT_WORDS[row]}", ratio) for engine, name in (("vLLM", ROLLOUTS), ("SGLang", ROLLOUTS_SGLANG)) for row, ratio in rollouts(records, name).items()] + every
    page.picture("engines", "Tokens a second over the engine's own backend",
                 charts.bars("Engines: tokens a second over the engine's own backend", "", [words for words, _ in every], [("deftc", [rate for _, rate in every])], line_at=1))
    both = latent(records)
    page.add(f"**Latent caches (MLA).** deftc has {span(both.values())} times the speed of {records.read(LATENT)['latent_peers']['peer']} on the same card: faster where requests share a prefix or have drafts, "
             f"slower where nothing is shared (H200, {records.date(LATENT)}). [Tables](evidence/features.md#latent-caches-mla)")
    page.picture("latent", "Speed over FlashInfer's fa3 on latent caches",
                 charts.bars("Latent caches: speed over FlashInfer's fa3", "", [row.removeprefix("latent_") for row in both], [("deftc", list(both.values()))], line_at=1))
    cost = features(records)
    caches = cost["8-bit cache"]
    page.add(f"**Features.** Masks, scores and hooks cost at most {max(max(ratios) for words, ratios in cost.items() if words != '8-bit cache'):.2f} times plain attention's time; "
             f"8-bit caches halve the memory but take {mean(caches):.2f} times the time of 16-bit ones on average (H200, {records.date(CACHES)}). [Tables](evidence/features.md)")
    page.picture("features", "A feature's time over plain attention's",
                 charts.bars("Features: time over plain attention's", "", [words.replace("`", "") for words in cost],
                             [("mean", [mean(ratios) for ratios in cost.values()]), ("worst row", [max(ratios) for ratios in cost.values()])], line_at=1))
