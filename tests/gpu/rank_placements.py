"""Random trees whose tokens lie on ranks at random: what ranks merge beside attention in double precision. A part of rank_trees.py.

All ranks draw the same. Nodes of one token, one more or less than a page, several roots, queries at inner nodes or in the middle of a
node; tokens lie on ranks in turn, by page, by node, or as the tree proposes. A place of a rank's cache that holds no token of its own is
NaN. A row may have twice the error of attention in float32 over bf16, with weights and results in bf16, and half of bf16's step. The
weights of latent caches are relative to a power of two, as the kernels make them, so a single token's weight is rounded as well."""

import math
import random
from typing import NamedTuple

PAGE = 16
LAYOUTS = ("interleaved", "by_page", "by_node", "proposed")
LARGEST_LSE_ERROR = 0.01


def spec_of(query_heads, kv_heads, page_size):
    """`kv_heads` of 0: over a latent cache."""
    if kv_heads:
        heads, cache = f"kv_heads = {kv_heads}; head_dim = 128;", f"paged(page_size = {page_size}, order = nhd)"
    else:
        heads, cache = "scale = 1 / sqrt(192);", f"latent(dim = 512, rope = 64, page_size = {page_size})"
    return f"attention a {{ query_heads = {query_heads}; {heads} dtype = bf16; output = bf16 with lse; kv_cache = {cache}; }}"


class Kind(NamedTuple):
    heads: int
    kv_heads: int  # 0: a latent cache

    @property
    def spec(self):
        return spec_of(self.heads, self.kv_heads, PAGE)

    @property
    def scale(self):
        return 128**-0.5 if self.kv_heads else 192**-0.5


KINDS = (Kind(8, 2), Kind(16, 0))


class Drawn:
    """A tree: of each node its parent (-1: none), tokens and location; of each query its node and position (None: all tokens)."""

    def __init__(self, seed):
        self.seed, draw = seed, random.Random(seed)
        self.nodes, self.end = [], PAGE * draw.randrange(2)
        for node in range(draw.randint(1, 12)):
            tokens = draw.choice((1, PAGE - 1, PAGE, PAGE + 1, draw.randint(1, 400)))
            self.nodes.append((-1 if node == 0 or draw.random() < 0.15 else draw.randrange(node), tokens, self.end))
            self.end += PAGE * (-(-tokens // PAGE) + draw.randrange(2))
        self.queries = []
        for _ in range(draw.randint(1, 9)):
            node = draw.randrange(len(self.nodes))
            self.queries.append((node, draw.randint(1, self.nodes[node][1]) if draw.random() < 0.2 else None))

    def tree(self, deft):
        tree = deft.Tree()
        for parent, tokens, location in self.nodes:
            tree.add_root(tokens, location=location) if parent < 0 else tree.add_child(parent, tokens, location=location)
        for node, position in self.queries:
            tree.add_query(node, position)
        return tree

    def seen(self, query):
        """Locations that a query sees, from its end on."""
        node, position = self.queries[query]
        found = []
        while node >= 0:
            parent, tokens, location = self.nodes[node]
            found += range(location, location + (tokens if position is None else position))
            node, position = parent, None
        return found

    def ranks(self, deft, layout, count, rank):
        """The deft.Ranks of one rank; all have the same placement."""
        draw = random.Random(f"{self.seed} {layout}")
        if layout == "interleaved":
            return deft.Ranks(count, rank, unit=draw.choice((1, 5, PAGE, 3 * PAGE)))
        if layout == "by_node":
            return deft.Ranks(count, rank, unit=PAGE, layout=layout, holders=[draw.randrange(count) for _ in self.nodes])
        holders = self.tree(deft).propose_holders(count, PAGE) if layout == "proposed" else [draw.randrange(count) for _ in range(self.end // PAGE)]
        return deft.Ranks(count, rank, unit=PAGE, layout="by_page", holders=holders)

    def own(self, ranks):
        """(location, place in the rank's cache) of each token that the rank holds."""
        found = []
        for number, (_, tokens, location) in enumerate(self.nodes):
            for x in range(location, location + tokens):
                if ranks.layout == "interleaved":
                    holder, place = ranks.holder(x), ranks.place(x)
                else:
                    holder, place = ranks.holders[x // ranks.unit if ranks.layout == "by_page" else number], x
                if holder == ranks.rank:
                    found.append((x, place))
        return found


def attention_in(torch, kind, q, k, v, dtype):
    """Of one head; (row, lse). In bf16, sums are float32 and weights and the row are rounded."""
    kept = torch.float64 if dtype == torch.float64 else torch.float32
    scores = k.to(kept) @ q.to(kept) * kind.scale
    reference = scores.max() if kind.kv_heads else math.log(2) * torch.ceil(scores.max() / math.log(2))
    weights = torch.exp(scores - reference)
    row = weights.to(dtype).to(kept) @ v.to(kept) / weights.sum()
    return row.to(dtype).double(), torch.logsumexp(scores, 0).double()


def check_one(torch, deft, attention, kind, seed, layout, peers, device):
    """The largest error of this rank's heads over what is allowed; infinity where lse is wrong."""
    drawn = Drawn(seed)
    tree, ranks = drawn.tree(deft), drawn.ranks(deft, layout, peers.count, peers.rank)
    tree.set_ranks(ranks)
    peers.agree(attention, tree)
    generator = torch.Generator(device).manual_seed(seed)
    make = {"dtype": torch.bfloat16, "device": device, "generator": generator}
    rows = (drawn.end, kind.kv_heads, 128) if kind.kv_heads else (drawn.end, 576)
    whole = [torch.randn(rows, **make) for _ in range(2 if kind.kv_heads else 1)]
    q = torch.randn(len(drawn.queries), kind.heads, rows[-1], **make)
    own = [torch.full_like(part, float("nan")) for part in whole]
    pairs = drawn.own(ranks)
    if pairs:
        here, there = (torch.tensor(places, device=device) for places in zip(*pairs))
        for part, given in zip(own, whole):
            part[there] = given[here]
    paged = [part.view(-1, PAGE, *part.shape[1:]) for part in own]
    table = torch.arange(len(paged[0]), dtype=torch.int32, device=device)
    out, lse = attention.run(tree, q, *paged, *([None] * (2 - len(paged))), table, return_lse=True)
    each = -(-kind.heads // peers.count)
    heads = min(kind.heads, peers.rank * each), min(kind.heads, (peers.rank + 1) * each)
    merged, merged_lse = peers.merge(out, lse, heads=heads)
    worst = 0.0
    for query in range(len(drawn.queries)):
        seen = torch.tensor(drawn.seen(query), device=device)
        for head in range(*heads):
            of = (seen, head * kind.kv_heads // kind.heads) if kind.kv_heads else (seen,)
            k = whole[0][of]
            v = whole[1][of] if kind.kv_heads else k[:, :512]
            right, right_lse = attention_in(torch, kind, q[query, head], k, v, torch.float64)
            plain, _ = attention_in(torch, kind, q[query, head], k, v, torch.bfloat16)
            error, rounded = (float((row.double() - right).norm() / right.norm()) for row in (merged[query, head - heads[0]], plain))
            is_right = abs(float(merged_lse[query, head - heads[0]] - right_lse)) < LARGEST_LSE_ERROR  # NaN is not
            worst = max(worst, error / (2 * rounded + 2**-9) if is_right and error == error else float("inf"))
    peers.check()
    return worst


def check(torch, deft, peers, device, seed, trees):
    """So many trees of each kind and layout: the largest error over what is allowed, and seeds that are wrong on this rank."""
    worst, wrong = 0.0, []
    for kind in KINDS:
        attention = deft.compile(kind.spec)
        for number in range(trees):
            for layout in LAYOUTS:
                found = check_one(torch, deft, attention, kind, seed + number, layout, peers, device)
                worst = max(worst, found)
                if not found <= 1:
                    wrong.append(f"seed {seed + number}, {layout}, {'latent' if not kind.kv_heads else kind.heads}")
    return worst, wrong
