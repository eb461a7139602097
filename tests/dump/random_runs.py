#!/usr/bin/env python3
"""Random attentions on random trees, recomputed in float64 from `deftc run --dump` by a program that shares nothing with deftc.

An attention is drawn from a seed, once as a text of the language and once as a NumPy function of the same expression.

  tests/dump/random_runs.py build DEFTC FOLDER --seed S --specs N [--tensors KIND] [--lists] [--multiply-bytes]   writes specs and packages with CPU code
  tests/dump/random_runs.py run DEFTC FOLDER --runs M [--jobs J] [--backend cuda] [--json FILE]

`run` needs only the folder and a deftc that runs packages (it may have been built without LLVM). It gives each attention its
share of the M runs: another tree, partition, chunk, order of pages and parameters each. By default a quarter of the attentions
have latent caches, and in another quarter K and V have dims of their own. `--tensors` makes all `alike`, `latent`, `apart` or `packed`.
`latent` and `apart` often have DeepSeek's dims; `packed` has latents of 656 bytes a token. With `--lists` runs also read lists of tokens (rule K7). With
`--multiply-bytes` products are of 8 bits. Exit code 1: a row was wrong, and the lines above say which run and how to make it again.
"""

import argparse
import functools
import json
import math
import random
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from eight_bits import are_scaled, as_bytes, byte_weights_off  # noqa: E402
from npy import Array  # noqa: E402
from random_elements import Hooks, made_rows, rounded  # noqa: E402
from random_expressions import OF_VALUES, SIZED, TABLE, Maker  # noqa: E402

PARTITIONS = ("query", "node", "node_chunk", "flatten", "cascade", "greedy", "union", "auto")


class Attention:
    """What the `index`-th attention of a seed is: its text, and its formula."""

    def __init__(self, seed, index, tensors="any", has_lists=False, byte_products=False):
        self.byte_products = byte_products
        rng = random.Random(f"{seed}/{index}")
        of_dims = random.Random(f"{seed}/{index}/dims")  # so that the rest is the same with other --tensors
        self.kv_heads = rng.choice([1, 1, 2, 3])
        self.heads = self.kv_heads * rng.choice([1, 2, 3, 4, 8])
        self.dim = rng.choice([16, 24, 32, 40, 48, 64, 64, 72, 128, 128, 256])
        dims = [self.dim + 8 * (self.dim % 16 != 0 and byte_products)]
        roll = of_dims.random()
        roll = 1 if byte_products else {"any": roll, "alike": 1, "latent": 0, "packed": 0, "apart": 0.25}[tensors]
        is_deepseek = tensors == "packed" or (tensors in ("latent", "apart") and of_dims.random() < 0.4)
        self.is_latent = roll < 0.25
        if self.is_latent:
            self.kv_heads, self.heads = 1, of_dims.choice([1, 3, 4, 8, 16, 40])
            dims = [of_dims.choice([16, 32, 64, 80, 256, 512]), of_dims.choice([16, 16, 64, 128])]
            dims = [512, 64] if is_deepseek else dims
        elif roll < 0.5:
            dims.append(of_dims.choice([8, 16, 40, 64, 128, 192]))
            dims = [192, 128] if is_deepseek else dims
        self.dim, self.value_dim = (sum(dims), dims[0]) if self.is_latent else (dims[0], dims[-1])
        self.dtype = rng.choice(["bf16", "f16"])
        self.scale = rng.choice([1 / math.sqrt(self.dim), 0.25, 0.05])
        kinds = ["i32", "i32", "f32", "f32[query_heads]", "f32[kv_heads]", "i32[kv_heads]", f"f32[{TABLE}]", *SIZED]
        self.params = {f"p{i}": rng.choice(kinds) for i in range(rng.choice([0, 0, 1, 2, 3]))}
        self.budget = random.Random(f"{seed}/{index}/lists").choice([1, 5, 16, 40, 64, 200]) if has_lists else 0

        def draw(make, *sizes):  # of lists no position of a token is known
            while True:
                text, formula = make(*(rng.choice(size) for size in sizes))
                if not has_lists or ("kv_pos" not in text and "depth" not in text):
                    return text, formula

        maker = Maker(rng, self.params)
        self.mask_text, self.mask = draw(maker.bool, [0, 1, 2, 3]) if rng.random() < 0.75 else (None, None)
        self.score_text, self.score = draw(maker.score, [1, 2, 3]) if rng.random() < 0.6 else (None, None)
        self.sigmoid = rng.choice([0.0, -1.5]) if rng.random() < 0.15 and not byte_products else None
        self.sink_text, self.sink = maker.sink() if self.sigmoid is None and rng.random() < 0.25 else (None, None)
        self.page = rng.choice([None, 1, 4, 16, 16, 16, 64])
        if (self.is_latent or byte_products) and self.page is None:
            self.page = 32
        order = rng.choice(["nhd", "hnd"])
        may_be_bytes = self.page and all(dim % 16 == 0 for dim in dims)
        of_bytes = rng.choice(["fp8_e4m3", "fp8_e5m2"]) if may_be_bytes and rng.random() < 0.3 else None
        of_bytes = "fp8_e4m3" if byte_products or tensors == "packed" else of_bytes
        has_factor = rng.random() < 0.3 and not byte_products and (not has_lists or any(kind in OF_VALUES for kind in self.params.values()))
        self.value_text, self.factor = maker.factor() if has_factor else (None, None)
        self.hooks = Hooks(rng, self.dim, self.value_dim, may_make_keys=not (of_bytes or self.is_latent or has_lists))
        self.params.update(self.hooks.params)
        lines = [f"query_heads = {self.heads};", f"dtype = {self.dtype};", f"scale = {self.scale!r};"]
        if not self.is_latent:
            lines.append(f"kv_heads = {self.kv_heads};")
            lines += [f"head_dim = {dims[0]};"] if len(dims) == 1 else [f"key_dim = {dims[0]};", f"value_dim = {dims[1]};"]
        of_pages = f"page_size = {self.page}" + (f", dtype = {of_bytes}" if of_bytes else "")
        self.scale_columns = dims[0] // 4 if self.is_latent and of_bytes and dims[0] % 64 == 0 and (of_dims.random() < 0.5 or tensors == "packed") else 0
        if self.scale_columns:
            of_pages += f", scales = {self.scale_columns}"
        if self.is_latent:
            lines.append(f"kv_cache = latent(dim = {dims[0]}, rope = {dims[1]}, {of_pages});")
        else:
            lines.append(f"kv_cache = {'contiguous' if self.page is None else f'paged({of_pages}, order = {order})'};")
        if self.byte_products:
            lines.append("products = fp8_e4m3;")
        lines += [f"param {name} : {kind};" for name, kind in self.params.items()]
        bound = rng.choice(["", "tree", "tree" if has_lists else "path"])
        self.sees_path = bound == "path"
        conditions = [text for text in (bound, self.mask_text) if text]
        if conditions:
            lines.append(f"mask = {' && '.join(conditions)};")
        if self.score_text:
            lines.append(f"score = {self.score_text};")
        if self.value_text:
            lines.append(f"value = x * {self.value_text};")
        lines += [f"{name} = {text};" for name, text in (("query", self.hooks.query_text), ("key", self.hooks.key_text)) if text]
        if self.sink_text:
            lines.append(f"normalize = softmax with sink({self.sink_text});")
        if self.sigmoid is not None:
            lines.append(f"normalize = sigmoid({self.sigmoid});")
        made = f"{self.hooks.output_text} as " if self.hooks.output_text else ""
        if has_lists:
            lines.append(f"select {{ budget = {self.budget}; by = caller; }}")
        if made or self.sigmoid is None:
            lines.append(f"output = {made}{self.dtype}{' with lse' if self.sigmoid is None else ''};")
        self.text = "attention a {\n  " + "\n  ".join(lines) + "\n}\n"


def random_tree(rng):
    nodes, shape = [], rng.random()
    for index in range(rng.choice([1, 2, 5, 12, 30])):
        parent = -1
        if index and rng.random() > 0.06:
            parent = index - 1 if shape < 0.25 else 0 if shape < 0.45 else rng.randrange(index)
        nodes.append({"parent": parent, "tokens": rng.choice([0, 1, 2, 5, 16, 17, 33, rng.randrange(200)])})
    queries = []
    for _ in range(rng.choice([1, 2, 4, 9, 20, 40])):
        query = {"node": rng.randrange(len(nodes))}
        if rng.random() < 0.25:
            query["position"] = rng.randint(0, nodes[query["node"]]["tokens"])
        queries.append(query)
    return {"format": "deftc-tree", "version": 1, "nodes": nodes, "queries": queries}


def npy(path, values):
    np.save(path, values)
    return path


class Dump:
    def __init__(self, folder):
        self.arrays = {}
        for name in ("q", "k", "k_scales", "v", "out", "lse", "selected", "sparse_out"):
            path = Path(folder) / f"{name}.npy"
            if path.exists():
                array = Array(path)
                self.arrays[name] = np.array(array.values, dtype=np.float64).reshape(array.shape)


def path_of(tree, begins, query, is_whole):
    """The tokens that a query sees by its bound alone, `tree` or the whole path: rows of k and v, and depths. And its q_pos."""
    chain, node = [], query["node"]
    while node >= 0:
        chain.append(node)
        node = tree["nodes"][node]["parent"]
    rows, depths = [], []
    for depth, node in enumerate(reversed(chain)):
        count = tree["nodes"][node]["tokens"]
        own = query.get("position", count)
        if node == query["node"]:
            q_pos = len(rows) + own - 1
            count = count if is_whole else own
        rows += range(begins[node], begins[node] + count)
        depths += [depth] * count
    return np.array(rows, dtype=np.int64), np.array(depths, dtype=np.int32), q_pos


def products(attention, q, k, of_row):
    """scale times q.k for each head and token, and how far it may be off: by elements that hooks may round the other way."""
    count = len(k)
    of_token = {**of_row, "kv_head": np.broadcast_to(np.arange(attention.kv_heads), (count, attention.kv_heads)),
                "pos": np.broadcast_to(np.arange(count)[:, None], (count, attention.kv_heads))}  # fmt: skip
    q, q_off = made_rows(attention.hooks.query, q, of_row, attention.dtype)
    if attention.byte_products:
        q, q_off = as_bytes(q, q_off)
    k, k_off = (rows[:, of_row["kv_head"]] for rows in made_rows(attention.hooks.key, k, of_token, attention.dtype))
    dot = functools.partial(np.einsum, "hd,thd->ht")
    return dot(q, k) * attention.scale, (dot(q_off, np.abs(k)) + dot(np.abs(q), k_off)) * attention.scale


def weigh(attention, at, of_row, product, product_off):
    """What each token's V is multiplied by, the lse (of sigmoid None), and how far scores may be off."""

    def score(s):
        return np.broadcast_to(attention.score({**at, "s": s}) if attention.score else s, s.shape)

    with np.errstate(all="ignore"):
        s = score(product)
        seen = np.broadcast_to(attention.mask(at) if attention.mask else True, s.shape) & (s != -np.inf)
        s_off = np.where(seen, np.maximum(np.abs(score(product + product_off) - s), np.abs(score(product - product_off) - s)), 0)
        s = np.where(seen, s, -np.inf)
        if attention.sigmoid is not None:
            weights, lse = np.where(s == -np.inf, 0.0, 1 / (1 + np.exp(-(s + attention.sigmoid)))), None
        else:
            sink = attention.sink(of_row)[:, None] if attention.sink else -np.inf
            most = np.maximum(s.max(axis=1, keepdims=True, initial=-np.inf), sink)
            raised = np.where(s == -np.inf, 0.0, np.exp(s - np.where(most == -np.inf, 0, most)))
            total = raised.sum(axis=1, keepdims=True) + np.where(most == -np.inf, 0, np.exp(sink - most))
            weights = raised / np.where(total == 0, 1, total)
            lse = np.where(total > 0, np.log(total) + most, -np.inf)[:, 0]
        if attention.factor:
            weights = weights * np.broadcast_to(attention.factor(at), weights.shape)
    return weights, lse, s_off


def wrong_rows(attention, tree, dump, params):
    """A sentence for each (query, head) whose output or lse is further off than rounding explains; and the largest error of an
    output, as a part of what is allowed."""
    k, v = (dump.arrays[name] for name in ("k", "v"))
    if attention.is_latent and not np.array_equal(v, k[..., : attention.value_dim]):
        return ["v.npy is not the beginning of k.npy"], 0.0
    if not attention.scale_columns:
        return wrong_queries(attention, tree, dump, params, k, v)
    if not are_scaled(attention, v, dump.arrays["k_scales"]):
        return ["k.npy is not what scales make of 8-bit floats"], 0.0
    near = rounded(k, attention.dtype)  # rule A11: a kernel rounds elements with scales, or it does not
    both = (wrong_queries(attention, tree, dump, params, keys, keys[..., : attention.value_dim]) for keys in (near, k))
    return min(both, key=lambda found: (len(found[0]), found[1]))


def wrong_queries(attention, tree, dump, params, k, v):
    """The same, for keys and values as products take them."""
    q = dump.arrays["q"]
    begins = np.concatenate([[0], np.cumsum([node["tokens"] for node in tree["nodes"]])])
    wrong, worst = [], 0.0
    for index, query in enumerate(tree["queries"]):
        path = path_of(tree, begins, query, attention.sees_path)
        lse = dump.arrays["lse"][index] if attention.sigmoid is None else None
        found = [("", path, dump.arrays["out"][index], lse)]
        if attention.budget:
            listed = dump.arrays["selected"][index, 0].astype(np.int64)
            listed = listed[listed >= 0]
            most = min(attention.budget, len(path[0]))  # of a path that a mask may cut
            if len(set(listed)) != len(listed) or not (attention.mask or len(listed) == most) or len(listed) > most:
                wrong.append(f"query {index}: {len(listed)} tokens in a list of {attention.budget}, {len(path[0])} on the path")
            sparse = (path[0][listed], path[1][listed], path[2])
            found.append((" by a list", sparse, dump.arrays["sparse_out"][index], None))
        for how, tokens, out, lse in found:
            texts, part = wrong_heads(attention, (q[index], k, v), index, tokens, params, out, lse)
            wrong += [f"query {index}, {text}{how}" for text in texts]
            worst = max(worst, part)
    return wrong, worst


def wrong_heads(attention, tensors, index, tokens, params, out, found_lse):
    """Of one query, whose row of q this is, over `tokens` as of path_of."""
    q, k, v = tensors
    rows, depths, q_pos = tokens
    heads = np.arange(attention.heads, dtype=np.int32)
    kv_of = heads // (attention.heads // attention.kv_heads)
    rounding = 2.0**-8 if attention.dtype == "bf16" else 2.0**-11
    count = len(rows)
    at = {
        "q_pos": np.int32(q_pos), "kv_pos": np.arange(count, dtype=np.int32)[None, :], "depth": depths[None, :],
        "head": heads[:, None], "kv_head": kv_of[:, None], "query": np.int32(index), **params,
    }  # fmt: skip
    for name, kind in attention.params.items():
        if kind in SIZED:
            by = SIZED[kind]
            at[name] = (params[name][index] if by == "query" else params[name][rows][None, :] if by == "token"
                        else params[name].reshape(-1, attention.kv_heads)[rows][:, kv_of].T)  # fmt: skip
    of_row = {**at, "head": heads, "kv_head": kv_of, "pos": np.full(attention.heads, q_pos)}
    product, product_off = products(attention, q, k[rows], of_row)
    weights, lse, s_off = weigh(attention, at, of_row, product, product_off)
    values = v[rows][:, kv_of]  # [token][head][dim]
    expected = np.einsum("ht,thd->hd", weights, values)
    reach = np.sqrt(np.einsum("ht,thd->h", weights**2, values**2))
    # The output's rounding, the weights' rounding (independent from token to token), float32 sums and exponentials of
    # scores that cancel. In multiples of these, 3 is beyond what is ever seen. And what elements do that hooks may round the other way.
    lengths = np.linalg.norm(values, axis=2)
    cancelled = np.einsum("ht,th->h", np.abs(weights), lengths)
    moved = 2 * np.einsum("ht,th->h", np.abs(weights) * s_off, lengths)
    of_weights = byte_weights_off(weights, reach, lengths) if attention.byte_products else 0.0
    off = 3 * (rounding * reach + 2e-5 * cancelled + of_weights) + moved
    if attention.hooks.output:
        written = attention.hooks.output(expected, of_row)
        slope = np.abs(attention.hooks.output(expected + 1, of_row) - written).max(axis=1)
        off = slope * (off + 1.5 * rounding * np.linalg.norm(expected, axis=1))
        expected = written
    error = np.linalg.norm(out - expected, axis=1)
    allowed = off + 3 * (rounding * np.linalg.norm(expected, axis=1) / 2 + 1e-6)
    wrong = [f"head {head}: off by {error[head]:.3g}, allowed {allowed[head]:.3g}, {count} tokens" for head in np.flatnonzero(~(error <= allowed))]
    if found_lse is not None:
        with np.errstate(invalid="ignore"):
            lse_off = 2e-3 + 1e-4 * np.abs(lse) + s_off.max(axis=1, initial=0)
            same = (found_lse == lse) | (np.abs(found_lse - lse) <= lse_off)
        wrong += [f"head {head}: lse {found_lse[head]:.6g} and not {lse[head]:.6g}" for head in np.flatnonzero(~same)]
    return wrong, float((error / allowed).max())


def run_one(deftc, folder, drawn, backend, index, run):
    """Rows compared, what was wrong, and the largest error as a part of what is allowed."""
    seed = drawn["seed"]
    attention = Attention(seed, index, drawn["tensors"], drawn["lists"], drawn["multiply_bytes"])
    rng = random.Random(f"{seed}/{index}/{run}")
    tree = random_tree(rng)
    with tempfile.TemporaryDirectory() as scratch:
        scratch = Path(scratch)
        (scratch / "tree.json").write_text(json.dumps(tree))
        command = [deftc, "run", str(Path(folder) / f"{index}.deftpkg"), "--tree", str(scratch / "tree.json"), "--backend", backend,
                   "--dump", str(scratch / "out"), "--repeat", "1", "--seed", str(rng.randrange(1 << 30)),
                   "--partition", rng.choice(PARTITIONS), "--chunk", str(rng.choice([0, 16, 32, 64, 128]))]  # fmt: skip
        if backend == "cpu":
            command += ["--threads", "1"]
        if attention.page and rng.random() < 0.6:
            command += ["--pages", "scattered"]
        params = {}
        for name, kind in attention.params.items():
            is_int = kind.startswith("i32")
            draw = (lambda: rng.choice([0, 1, 3, 16, 40, 128, -2])) if is_int else (lambda: round(rng.uniform(-1, 1), 3))
            dtype = np.int32 if is_int else np.float32
            if kind in SIZED:
                continue  # deftc draws them, and dumps them as it does k
            if "[" in kind:
                count = {"query_heads": attention.heads, "kv_heads": attention.kv_heads}.get(kind[4:-1]) or int(kind[4:-1])
                values = np.array([draw() for _ in range(count)], dtype=dtype)
                command += ["--param", f"{name}={npy(scratch / f'{name}.npy', values)}"]
                params[name] = values if is_int else values.astype(np.float64)
            else:
                value = dtype(draw())
                command += ["--param", f"{name}={value}"]
                params[name] = value if is_int else float(value)
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        again = f"attention {index}, run {run} of seed {seed}: {' '.join(command[1:])}"
        if done.returncode != 0:
            return 0, [f"{again}\n  exit code {done.returncode}: {done.stderr.strip()[-500:]}"], 0.0
        dumped = json.loads((scratch / "out" / "tree.json").read_text())
        found = json.loads((scratch / "out" / "spec.json").read_text())["params"]
        for name, kind in attention.params.items():
            if kind in SIZED:
                params[name] = np.array(found[name], dtype=np.int32 if kind.startswith("i32") else np.float64)
        wrong, worst = wrong_rows(attention, dumped, Dump(scratch / "out"), params)
        rows = len(tree["queries"]) * attention.heads * (2 if attention.budget else 1)
        return rows, [f"{again}\n  {len(wrong)} wrong, first {wrong[0]}"] if wrong else [], worst


def build(args):
    folder = Path(args.folder)
    folder.mkdir(parents=True, exist_ok=True)
    for index in range(args.specs):
        (folder / f"{index}.deft").write_text(Attention(args.seed, index, args.tensors, args.lists, args.multiply_bytes).text)
        done = subprocess.run([args.deftc, "build", str(folder / f"{index}.deft"), "--cpu", "-o", str(folder / f"{index}.deftpkg")],
                              capture_output=True, text=True, check=False)  # fmt: skip
        if done.returncode != 0:
            sys.exit(f"{folder / f'{index}.deft'} does not build:\n{done.stderr}")
    (folder / "seed.json").write_text(json.dumps({name: getattr(args, name) for name in ("seed", "specs", "tensors", "lists", "multiply_bytes")}))


def run(args):
    drawn = json.loads((Path(args.folder) / "seed.json").read_text())
    began, rows, wrong, worst = time.time(), 0, [], 0.0
    jobs = [(i % drawn["specs"], i // drawn["specs"]) for i in range(args.runs)]
    with ProcessPoolExecutor(args.jobs) as pool:
        futures = [pool.submit(run_one, args.deftc, args.folder, drawn, args.backend, *job) for job in jobs]
        for done, future in enumerate(futures, 1):
            compared, found, part = future.result()
            rows += compared
            worst = max(worst, part)
            wrong += found
            for line in found:
                print(line, flush=True)
            if done % 1000 == 0:
                print(f"{done} of {args.runs} runs, {rows} rows, {len(wrong)} runs wrong, {time.time() - began:.0f} s", flush=True)
    summary = {"seed": drawn["seed"], "attentions": drawn["specs"], "runs": args.runs, "backend": args.backend, "rows": rows,
               "wrong_runs": len(wrong), "worst_of_allowed": round(worst, 3), "seconds": round(time.time() - began)}  # fmt: skip
    print(json.dumps(summary))
    if args.json:
        Path(args.json).write_text(json.dumps(summary) + "\n")
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    one = verbs.add_parser("build")
    one.add_argument("--seed", type=int, default=1)
    one.add_argument("--specs", type=int, default=100)
    one.add_argument("--tensors", choices=("any", "alike", "latent", "packed", "apart"), default="any")
    one.add_argument("--lists", action="store_true")
    one.add_argument("--multiply-bytes", action="store_true")
    two = verbs.add_parser("run")
    two.add_argument("--runs", type=int, default=1000)
    two.add_argument("--jobs", type=int, default=1)
    two.add_argument("--backend", choices=("cpu", "cuda"), default="cpu")
    two.add_argument("--json")
    for verb in (one, two):
        verb.add_argument("deftc")
        verb.add_argument("folder")
    args = parser.parse_args()
    return build(args) if args.verb == "build" else run(args)


if __name__ == "__main__":
    sys.exit(main())
