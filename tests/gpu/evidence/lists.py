"""The sections on lists in a trained model (their cost in text, over budgets and over the layers that select) and of a caller."""

import json
import sys
from pathlib import Path

BENCHES = Path(__file__).resolve().parents[2] / "bench/python"
sys.path.append(str(BENCHES))

import selection_models  # noqa: E402
from records import card_of, link, mean, times, us  # noqa: E402

RECORD = BENCHES / "selection_models.json"


def in_a_model(page, _):
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    page.heading("Lists in a trained model")
    page.add(f"{record['model']} ({record['date']}, commit {record['commit']}, [record](../../tests/bench/python/{RECORD.name}), {record['software']}): {record['layers']} layers, "
             f"layers {' and '.join(map(str, record['select']))} select, lists for each KV head, the first {record['keep'][0]} and last {record['keep'][1]} tokens kept. "
             f"It reads {record['context']:,} tokens of each document in full and decodes {record['decoded']} in all. The divergence is from full attention's distributions. "
             "A needle is a number two thirds into a document.", selection_models.table(record))
    default = record["by_selecting_layers"][0]["budget"]
    page.add(f"Layers that select, with lists of {default} tokens and no correction:", selection_models.selecting_table(record))
    page.add("The recall of lists in the sparse layers that read them, and the softmax weight on them:", selection_models.recall_table(record))
    page.command("tests/bench/python/" + record["command"])


def of_a_caller(page, records):
    name = "h200-latent-lists.json"
    record = records.read(name)
    before, after = (record["before_and_after"][part] for part in ("before", "after"))
    page.heading("Lists of a caller")
    page.add(f"{card_of(record['device'])}, {record['date']}, commit {record['commit']} ({link(name)}): {record['topk']:,} tokens for each query, latent caches of bf16 and of 656 bytes a token, L2 cold. "
             "`x4_drafts`: four drafts a request with lists of their own; `x4_agree`: their lists overlap and are read as a union. A row's name ends with its query heads. "
             "The last columns divide the time with tiles prefetched into L2 and eight copying warps by the time before, in one call on another H200.")
    page.table(["row", "bf16 us", "656 bytes us", "floor us", "lists apart us", "after / before, bf16", "656 bytes"], [
        [row, us(facts["us"]), us(facts["us_656"]), us(facts["floor_us"]), us(facts.get("us_apart")), *(times(after[row][key] / before[row][key]) for key in ("us", "us_656"))] for row, facts in record["rows"].items()])
    gains = [after[row]["us"] / before[row]["us"] for row in after if row.startswith(("lists_32", "lists_64")) and not row.endswith("h16")]
    page.add(f"From 32 requests on, with 64 and 128 heads over bf16, the prefetch takes {times(min(gains))} to {times(max(gains))} of the time, {times(mean(gains))} on average.")
    for row, facts in record["rows"].items():
        if facts["us"] > 1.03 * facts.get("us_apart", facts["us"]):
            page.loss(f"{row}: a union of lists takes {us(facts['us'])} us, the lists apart {us(facts['us_apart'])}; with the price of a union since then it is not chosen (not run)")
    few_heads(page, records)
    page.command(record["command"].replace("FILE", "lists.json"))


def few_heads(page, records):
    name = "h200-latent-lists-few.json"
    record = records.read(name)
    page.add(f"Since then lists of at most 16 heads have blocks of 16 rows by family sm90_latent instead of sm80_latent ({record['date']}, commit {record['commit']}; before: {record['before']}, in another call; {link(name)}):")
    page.table(["row", "bf16 us", "656 bytes us", "floor us", "after / before, bf16", "656 bytes"], [
        [row, us(facts["us"]), us(facts["us_656"]), us(facts["floor_us"]), *(times(facts[key] / facts["before"][key]) for key in ("us", "us_656"))] for row, facts in record["rows"].items()])
