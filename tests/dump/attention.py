"""Attention over a tree, from a dump alone, in float64: knows nothing of deftc but what the files mean.

A case says with Python functions what its spec says in its own language: `sees(at)` and `score(s, at)`, where `at`
has q_pos, kv_pos, depth, head, kv_head, query and token (its row of k and v), and params, as lists; and `sink(head)` and `factor(at)`, of a
token's v. `made(q, at)` and `written(row, at)` are its
hooks `query` and `output`, of whole rows, where `at` has q_pos, head, kv_head and query; `keyed(k, at)` is `key`, where
`at` has kv_pos and kv_head.
"""

import json
import math
import operator
from pathlib import Path
from types import SimpleNamespace

from npy import Array


class Dump:
    def __init__(self, folder):
        folder = Path(folder)
        self.q, self.k, self.v, self.out = (Array(folder / f"{name}.npy") for name in ("q", "k", "v", "out"))
        self.lse = Array(folder / "lse.npy") if (folder / "lse.npy").exists() else None
        both = ("selected", "sparse_out")
        self.selected, self.sparse_out = (
            Array(folder / f"{name}.npy") if (folder / f"{name}.npy").exists() else None for name in both
        )
        self.params = json.loads((folder / "spec.json").read_text())["params"]
        tree = json.loads((folder / "tree.json").read_text())
        self.nodes, self.queries = tree["nodes"], tree["queries"]
        self.begins, total = [], 0
        for node in self.nodes:
            self.begins.append(total)
            total += node["tokens"]
        assert self.k.shape[0] == self.v.shape[0] == total, "k and v have a row for each token of the tree"
        assert self.q.shape[0] == self.out.shape[0] == len(self.queries), "q and out have a row for each query"

    def path(self, query, is_whole=False):
        """(row of k and v, depth) of each token that a query sees, from the root on; all of its path where it is whole."""
        nodes, node = [], query["node"]
        while node >= 0:
            nodes.insert(0, node)
            node = self.nodes[node]["parent"]
        tokens = []
        for depth, node in enumerate(nodes):
            count = self.nodes[node]["tokens"]
            if node == query["node"] and not is_whole:
                count = query.get("position", count)
            tokens += [(self.begins[node] + i, depth) for i in range(count)]
        return tokens


def rows(
    dump, scale, sees=lambda at: True, score=lambda s, at: s, sigmoid_bias=None, sink=None,
    made=lambda q, at: q, written=lambda row, at: row, keyed=lambda k, at: k, factor=lambda at: 1.0, sees_path=False,
):  # fmt: skip
    """For each query and head: the output, and the log-sum-exp (None for sigmoid attention)."""
    heads, kv_heads = dump.q.shape[1], dump.k.shape[1]
    for index, query in enumerate(dump.queries):
        path, q_pos = dump.path(query, sees_path), len(dump.path(query)) - 1
        for head in range(heads):
            kv_head = head // (heads // kv_heads)
            row = SimpleNamespace(q_pos=q_pos, head=head, kv_head=kv_head, query=index)
            q = made(dump.q.row(index, head), row)
            scores, values = [], []
            for kv_pos, (token, depth) in enumerate(path):
                at = SimpleNamespace(
                    q_pos=q_pos, kv_pos=kv_pos, depth=depth, head=head, kv_head=kv_head, query=index,
                    token=token, params=dump.params,
                )  # fmt: skip
                if sees(at):
                    s = scale * sum(map(operator.mul, q, keyed(dump.k.row(token, kv_head), at)))
                    scores.append(score(s, at))
                    times = factor(at)
                    values.append([times * x for x in dump.v.row(token, kv_head)])
            if sigmoid_bias is not None:
                weights, lse = [1 / (1 + math.exp(-(s + sigmoid_bias))) for s in scores], None
            elif scores or sink:
                logits = scores + ([sink(head)] if sink else [])
                most = max(logits)
                total = sum(math.exp(s - most) for s in logits)
                lse = most + math.log(total)
                weights = [math.exp(s - lse) for s in scores]
            else:
                weights, lse = [], -math.inf
            out = [0.0] * dump.v.shape[2]
            for weight, value in zip(weights, values):
                out = [o + weight * x for o, x in zip(out, value)]
            yield index, head, written(out, row), lse


def lists(dump, scale, heads_of_list, budget, keep_first=0, keep_last=0, sees=lambda at: True, score=lambda s, at: s):
    """For each query and list of selected tokens: the positions by an exact sort, and what each token is worth."""
    heads, kv_heads = dump.q.shape[1], dump.k.shape[1]
    for index, query in enumerate(dump.queries):
        path = dump.path(query)
        for number in range(heads // heads_of_list):
            worth = {}
            for head in range(number * heads_of_list, (number + 1) * heads_of_list):
                q, kv_head = dump.q.row(index, head), head // (heads // kv_heads)
                for kv_pos, (token, depth) in enumerate(path):
                    at = SimpleNamespace(
                        q_pos=len(path) - 1, kv_pos=kv_pos, depth=depth, head=head, kv_head=kv_head, query=index
                    )
                    if sees(at):
                        s = score(scale * sum(map(operator.mul, q, dump.k.row(token, kv_head))), at)
                        worth[kv_pos] = max(worth.get(kv_pos, -math.inf), s)
            kept = {p for p in worth if p < keep_first or p >= len(path) - keep_last}
            order = sorted(worth, key=lambda p: (p not in kept, 0 if p in kept else -worth[p], p))
            yield index, number, sorted(order[:budget]), worth


def worst(dump, out_of=None, **formula):
    """The largest relative L2 error of a row, and the largest distance of an lse; `out_of`: of another array than out."""
    error = distance = 0.0
    for query, head, out, lse in rows(dump, **formula):
        found = (out_of or dump.out).row(query, head)
        norm = math.sqrt(sum(x * x for x in out))
        off = math.sqrt(sum((x - y) ** 2 for x, y in zip(out, found)))
        relative = off / norm if norm else (0.0 if off == 0 else math.inf)
        error = relative if not relative <= error else error  # a NaN stays
        if dump.lse and lse is not None and out_of is None:
            actual = dump.lse.row(query, head)[0]
            apart = 0.0 if actual == lse else abs(actual - lse)
            distance = apart if not apart <= distance else distance
    return error, distance
