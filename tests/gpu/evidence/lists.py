"""The section on lists in a trained model: their cost in text, over budgets and over the layers that select."""

import json
import sys
from pathlib import Path

BENCHES = Path(__file__).resolve().parents[2] / "bench/python"
sys.path.append(str(BENCHES))

import selection_models  # noqa: E402

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
