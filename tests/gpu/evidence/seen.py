"""GPU runs on record for each feature of the support table (runtime/doctor/Features.h), as runtime/doctor/declared/seen.json.

A record of random cases counts what it drew. A feature was seen where a record drew it on a card and nothing was wrong.
"""

import json
import re

from records import card_of

ARCHITECTURES = {"H100": "sm_90a", "H200": "sm_90a"}
# Feature: the count, a pattern for its values, and a pattern for names of records whose caches are meant.
GQA, BYTES, LATENT = r"random-cases(?!-fp8|-latent|-products|-token-scales)", "random-cases-fp8", "random-cases-latent"
DRAWN = {
    "f16": ("dtype", "f16", GQA), "bf16": ("dtype", "bf16", GQA),
    "head_dim_64": ("head_dim", "64", GQA), "head_dim_256": ("head_dim", "256", GQA), "head_dim_72": ("head_dim", "72", GQA),
    "ratio_1": ("ratio", "1", GQA), "ratio_128": ("ratio", "128", GQA),
    "fp8_e4m3": ("dtype", ".*", BYTES),
    "fp8_products": ("dtype", ".*", "random-cases-products"),
    "fp8_scales": ("hook", r".*scaled_rows", "random-cases-token-scales"),
    "latent": ("head_dim", "576", LATENT), "latent_128_heads": ("ratio", "128", LATENT), "latent_other_dims": ("head_dim", "(?!576).*", LATENT),
    "window": ("hook", r"(.*_)?(window|fixed_window)", GQA), "documents": ("hook", r"(.*_)?documents(_in_window)?", GQA),
    "path": ("hook", r"(.*_)?(prefix|both_ways)", GQA), "softcap": ("hook", "softcap", GQA), "alibi": ("hook", "alibi", GQA),
    "sinks": ("hook", "(learned_)?sink", GQA), "sigmoid": ("hook", "sigmoid", GQA), "query": ("hook", r"(.*_)?rope|(.*_)?normed_rope", GQA),
    "key": ("hook", r"(.*_)?turned_keys", GQA), "output": ("hook", "gated", GQA), "value": ("hook", r"(.*_)?weighed_tokens", GQA),
}
# Records that count nothing.
NAMED = {"select": ["h200-random-cases-selecting.txt"]}


def entry(records, name):
    card = card_of(name.split("-")[0].upper())
    return {"card": card, "arch": ARCHITECTURES[card], "date": records.date(name), "record": name}


def has_drawn(run, count, value):
    return run.get("wrong") == 0 and any(cases and re.fullmatch(value, drawn) for drawn, cases in run.get("counts", {}).get(count, {}).items())


def seen(records):
    """The file's text: {feature: [{card, arch, date, record}]}, the newest record of each card."""
    drawn = {path.name: records.read(path.name) for path in sorted(records.folder.glob("*random-cases*.json"))}
    found = {feature: [entry(records, name) for name in names] for feature, names in NAMED.items()}
    for feature, (count, value, caches) in DRAWN.items():
        newest = {}
        for name, record in drawn.items():
            if re.search(caches, name) and any(has_drawn(run, count, value) for run in record.get("runs", [record])):
                one = entry(records, name)
                if one["date"] >= newest.get(one["card"], one)["date"]:
                    newest[one["card"]] = one
        if newest:
            found[feature] = [newest[card] for card in sorted(newest)]
    return "{\n" + ",\n".join(f' "{feature}": [' + ", ".join(map(json.dumps, runs)) + "]" for feature, runs in sorted(found.items())) + "\n}\n"
