#!/usr/bin/env python3
"""Makes the folder of recorded workloads (`--workloads DIR`) from the tree templates that DeFT's authors publish.

    git clone https://github.com/LINs-lab/DeFT
    tests/gpu/recorded_workloads.py DeFT DIR

Eight rows of the bench need them: four Tree-of-Thoughts searches (`reasoning_*`) and four Medusa token trees
(`speculative_t*`). Only shapes and numbers of tokens are taken; texts stay behind. Seen with commit 728525ec of that repository.
"""

import argparse
import itertools
import json
import sys
from pathlib import Path

TEMPLATES = Path("dataset/generation")
SEARCHES = {"document": "docmerge", "keyword": "keyword", "set": "set128", "sorting": "sorting128"}  # our name: theirs
TOKEN_TREES = (32, 64, 128, 256)
TREES, RECORDS = 8, 4  # the first ones of a file; a bench names one by its number, so more may follow


def search(template):
    """Nodes as specs/TREES.md has them: parent, tokens, first step, last step."""
    nodes = sorted(template["data"].values(), key=lambda node: node["id"])
    parents = {child: node["id"] for node in nodes for child in node["children"]}
    return {"nodes": [[parents[node["id"]] if node["id"] else -1, node["value"], node["start"], node["end"]] for node in nodes]}


def searches(name, templates):
    finished = itertools.islice((one for one in templates if not one["incompleted"]), TREES)
    return {"format": "recorded-tree/1", "name": name, "source": "token counts of the Tree-of-Thoughts records published with DeFT",
            "columns": ["parent", "tokens", "first_step", "last_step"], "trees": [search(one) for one in finished]}


def token_tree(name, template):
    """Their nodes are paths of choices below the last accepted token, ours name their parent's number."""
    numbers = {tuple(path): number for number, path in enumerate([[], *template["Tree_Structure"]])}
    parents = [-1] + [numbers[tuple(path[:-1])] for path in template["Tree_Structure"]]
    records = [{"prompt_characters": len(one["prompt"]), "accepted": one["Accept_length"]} for one in template["Records"][:RECORDS]]
    return {"format": "token-tree/1", "name": name, "source": "Medusa token tree and accepted lengths on APPS, published with DeFT",
            "parents": parents, "records": records}


def workloads(templates):
    """All of them by name."""
    def read(path):
        return json.loads((templates / path).read_text(encoding="utf-8"))
    for ours, theirs in SEARCHES.items():
        yield searches(f"reasoning_{ours}", read(f"Reasoning/{theirs}ToT.json"))
    for size in TOKEN_TREES:
        yield token_tree(f"speculative_t{size}", read(f"Speculative_Decoding/APPS_tree_size{size}.json"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path, metavar="CHECKOUT", help="of https://github.com/LINs-lab/DeFT")
    parser.add_argument("folder", type=Path, metavar="DIR", help="is made, and gets a file for each workload")
    arguments = parser.parse_args()
    if not (arguments.checkout / TEMPLATES).is_dir():
        return f"{arguments.checkout} has no folder {TEMPLATES}: it is no checkout of https://github.com/LINs-lab/DeFT"
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for workload in workloads(arguments.checkout / TEMPLATES):
        (arguments.folder / f"{workload['name']}.json").write_text(json.dumps(workload) + "\n", encoding="utf-8")
        print(workload["name"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
