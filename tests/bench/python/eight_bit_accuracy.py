"""How exact products of 8 bits are, over contexts of 1k to 128k tokens, on processors.

One attention of 8 query heads and one KV head of 128 columns reads the same tokens three ways: a 16-bit cache, a cache of e4m3 with
products of 16 bits, and the same cache with `products = fp8_e4m3` (rule A12). Errors are those of results beside attention in
double precision over the numbers before any rounding: the norm of the difference divided by the norm of the result, over all rows.

- `normal`: keys, values and queries are normal.
- `outliers`: four columns of the keys are 30 times as large, as some models have them.
- `needle`: one token's key makes its score stand out of the others' so far that about a half of the softmax is on it. The weight that a result gives to the token's value is projected out of the result; *found* says how many of
  the rows are nearer to that value than to any of 63 others.

usage: eight_bit_accuracy.py run RECORD.json [--contexts N ...] [--rows N]      some minutes on two cores
       eight_bit_accuracy.py table RECORD.json
"""

import argparse
import datetime
import json
import math
import os
import sys
from pathlib import Path

HEADS, DIM, PAGE = 8, 128, 64
CONTEXTS = (1024, 4096, 16384, 65536, 131072)
WAYS = {"16-bit cache": "", "8-bit cache": "dtype = fp8_e4m3", "8-bit products": "dtype = fp8_e4m3"}
KINDS = ("normal", "outliers", "needle")


def spec(way):
    cache = ", ".join(filter(None, (f"page_size = {PAGE}, order = nhd", WAYS[way])))
    products = "products = fp8_e4m3; " if way == "8-bit products" else ""
    return (f"attention a {{ query_heads = {HEADS}; kv_heads = 1; head_dim = {DIM}; dtype = f16; output = f16 with lse; {products}"
            f"kv_cache = paged({cache}); }}")


def draw(kind, context, rows, numpy, seed):
    """q [rows, heads, dim], k and v [context, dim], and the needle's place."""
    random = numpy.random.default_rng(seed)
    q, k, v = (random.standard_normal(shape) for shape in ((rows, HEADS, DIM), (context, DIM), (context, DIM)))
    needle = None
    if kind == "outliers":
        k[:, :4] *= 30
    if kind == "needle":
        needle = context // 3
        shared = random.standard_normal(DIM)
        shared *= (DIM / (shared @ shared)) ** 0.5
        q = 0.5 * q + shared
        spread = 1.25  # the variance of the other scores: their exponentials are exp(spread / 2) on average
        k[needle] = shared * (math.log(context) + spread / 2) / DIM**0.5
    return q, k, v, needle


def exact(q, k, v, numpy):
    scores = numpy.einsum("rhd,td->rht", q, k) / DIM**0.5
    weights = numpy.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return numpy.einsum("rht,td->rhd", weights, v), weights


def attend(attention, way, q, k, v, deft, numpy):
    import ml_dtypes

    stored = numpy.float16 if way == "16-bit cache" else ml_dtypes.float8_e4m3fn
    pages = [part.astype(numpy.float32).astype(stored).reshape(-1, PAGE, 1, DIM) for part in (k, v)]
    tree = deft.Tree()
    root = tree.add_root(len(k), location=0)
    for _ in range(len(q)):
        tree.add_query(root)
    out, _ = attention.run(tree, q.astype(numpy.float16), *pages, numpy.arange(len(k) // PAGE, dtype=numpy.int32), return_lse=True)
    return numpy.asarray(out, dtype=numpy.float64)


def measure(kind, context, rows, attentions, deft, numpy):
    q, k, v, needle = draw(kind, context, rows, numpy, seed=context)
    q = q.astype(numpy.float16).astype(numpy.float64)
    right, weights = exact(q, k, v, numpy)
    found = {"kind": kind, "context": context, "ways": {}}
    if needle is not None:
        found["needle_weight"] = float(weights[:, :, needle].mean())
    for way, attention in attentions.items():
        out = attend(attention, way, q, k, v, deft, numpy)
        one = {"error": float(numpy.linalg.norm(out - right) / numpy.linalg.norm(right))}
        if needle is not None:
            value = v[needle]
            one["needle_weight"] = float((out @ value / (value @ value)).mean())
            others = v[numpy.linspace(0, len(v) - 1, 64).astype(int)]
            others[0] = value
            apart = numpy.linalg.norm(out[:, :, None] / one["needle_weight"] - others, axis=-1)
            one["found"] = float((apart.argmin(-1) == 0).mean())
        found["ways"][way] = one
    return found


def run(options):
    import deft
    import numpy

    attentions = {way: deft.compile(spec(way)) for way in WAYS}
    results = []
    for kind in KINDS:
        for context in options.contexts:
            results.append(measure(kind, context, options.rows, attentions, deft, numpy))
            print(json.dumps(results[-1]), flush=True)
    record = {"date": str(datetime.date.today()), "commit": options.commit, "deft": deft.__version__, "rows": options.rows * HEADS,
              "command": " ".join(["eight_bit_accuracy.py", *map(os.path.basename, sys.argv[1:])]), "results": results}
    options.record.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def table(record):
    """For docs/evidence: lines of errors, and of the needle."""
    head = ["keys", "tokens", *(f"error, {way}" for way in WAYS), *(f"needle's weight, {way}" for way in ("exact", *WAYS)), "found by all ways"]
    lines = [head, ["---"] * len(head)]
    for one in record["results"]:
        ways = one["ways"].values()
        cells = [one["kind"], f"{one['context']:,}", *(f"{way['error']:.4f}" for way in ways)]
        if "needle_weight" in one:
            cells += [f"{one['needle_weight']:.3f}", *(f"{way['needle_weight']:.3f}" for way in ways), f"{min(way['found'] for way in ways):.0%}"]
        else:
            cells += [""] * (len(WAYS) + 2)
        lines.append(cells)
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("run", "table"))
    parser.add_argument("record", type=Path)
    parser.add_argument("--contexts", type=int, nargs="+", default=CONTEXTS)
    parser.add_argument("--rows", type=int, default=16)
    parser.add_argument("--commit", default="")
    options = parser.parse_args()
    if options.what == "run":
        return run(options)
    print(table(json.loads(options.record.read_text(encoding="utf-8"))))


if __name__ == "__main__":
    main()
