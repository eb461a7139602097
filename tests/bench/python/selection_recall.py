"""How the query heads of a KV head should agree on one list of tokens: by the largest of their scores, by the sum, or by the
largest of their weights (which asks for each head's lse first). No deft in it: scores are made here, of 8,192 tokens, four heads,
dim 128. Needles are tokens whose keys point where a query looks.

For each budget: the part of the heads' softmax weights that lies on the list (what a sparse layer keeps), the part of each
head's own best tokens that is on it, and the relative error of the sparse output; means over trials, and over heads.
Expect the weights to decide where there are needles: a list with more of them has the smaller error, whatever its recall.

usage: selection_recall.py [TRIALS]      8 by default, some minutes
"""

import sys

import numpy as np

HEADS, TOKENS, DIM, NEEDLES = 4, 8192, 128, 64
KINDS = {  # how much of a query's direction is the heads' common one, and how sharp each head is
    "random": (None, (1, 1, 1, 1)),
    "mostly common": (2.0, (1, 1, 1, 1)),
    "half common": (1.0, (1, 1, 1, 1)),
    "each its own": (0.0, (1, 1, 1, 1)),
    "its own, of unlike sharpness": (0.0, (0.5, 1, 2, 4)),
}


def softmax(scores):
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def make(random, kind):
    common, sharpness = KINDS[kind]
    keys, values = (random.standard_normal((TOKENS, DIM)) for _ in range(2))
    queries = random.standard_normal((HEADS, DIM))
    if common is not None:
        own, shared = queries, random.standard_normal(DIM)
        queries = common * shared + own
        queries *= np.sqrt(DIM) / np.linalg.norm(queries, axis=1, keepdims=True)
        for direction in (*own, shared):
            at = random.choice(TOKENS, NEEDLES, replace=False)
            keys[at] += 0.7 * (0.5 + random.random((NEEDLES, 1))) * direction
    return np.array(sharpness)[:, None] * (queries @ keys.T) / np.sqrt(DIM), values


def best(worth, budget):
    return np.argpartition(-worth, budget)[:budget]


def judge(scores, values, budget):
    weights = softmax(scores)
    full = weights @ values
    for rule, worth in (("max", scores.max(0)), ("sum", scores.sum(0)), ("max weight", weights.max(0))):
        chosen = best(worth, budget)
        recall = [np.isin(best(own, budget), chosen).mean() for own in scores]
        sparse = softmax(scores[:, chosen]) @ values[chosen]
        error = np.linalg.norm(sparse - full, axis=1) / np.linalg.norm(full, axis=1)
        yield rule, (weights[:, chosen].sum(1).mean(), np.mean(recall), error.mean())


def main():
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 8
    random = np.random.default_rng(1)
    for kind in KINDS:
        cases = [make(random, kind) for _ in range(trials)]
        for budget in (64, 256, 1024):
            found = {}
            for scores, values in cases:
                for rule, numbers in judge(scores, values, budget):
                    found.setdefault(rule, []).append(numbers)
            line = "; ".join(
                "{}: weights {:.3f}, recall {:.3f}, error {:.3f}".format(rule, *np.mean(numbers, 0))
                for rule, numbers in found.items()
            )
            print(f"{kind}, {budget} tokens: {line}", flush=True)


if __name__ == "__main__":
    main()
