"""Random Python functions as hooks, their arguments in random order: they mean to deft what they mean to NumPy."""

import os
import random
import re

import deft
import numpy as np
import pytest
from deft import lang

HEADS, DIM = 4, 32
INTS = ("q_pos", "kv_pos", "head")
FLEX = {"s": "score", "head": "h", "q_pos": "q_idx", "kv_pos": "kv_idx"}


class Program:
    """The text of one function."""

    def __init__(self, random_):
        self.random = random_

    def whole(self, depth):
        draw = self.random.random()
        if depth == 0 or draw < 0.1:
            return self.random.choice(INTS)
        left = self.whole(depth - 1)
        if draw < 0.25:
            return f"({left} {self.random.choice('+-*')} {self.random.randint(-9, 40)})"
        if draw < 0.45:
            return f"({left} {self.random.choice('+-')} {self.whole(depth - 1)})"
        if draw < 0.6:
            return f"({left} % {self.random.randint(1, 17)})"
        if draw < 0.75:
            return f"({left} // {self.random.choice([*range(1, 18), -3, 65536])})"
        if draw < 0.85:
            return f"where({self.truth(depth - 1)}, {left}, {self.whole(depth - 1)})"
        return f"{self.random.choice(['minimum', 'maximum'])}({left}, {self.whole(depth - 1)})"

    def truth(self, depth):
        draw = self.random.random()
        if depth == 0 or draw < 0.5:
            by = self.random.choice(["", "", f" // {self.random.randint(1, 17)}"])  # as blocks are said
            right = f"{self.whole(depth)}{by}" if self.random.random() < 0.7 else self.random.choice(["40000", "-3", "0", "2"])
            return f"({self.whole(depth)}{by} {self.random.choice(['<', '<=', '>', '>=', '==', '!='])} {right})"
        if draw < 0.6:
            return f"(~{self.truth(depth - 1)})"
        return f"({self.truth(depth - 1)} {self.random.choice('&|^')} {self.truth(depth - 1)})"

    def arguments(self, body):
        read = set(re.findall(r"\w+", body))
        names = [name for name in ("s", *INTS) if name in read or (name in INTS and self.random.random() < 0.3)]
        self.random.shuffle(names)
        return names


def traced(names, body, random_):
    """With some of FlexAttention's names."""
    shown = {name: FLEX[name] if random_.random() < 0.3 else name for name in names}
    inner = f"(lambda {', '.join(names)}: {body})({', '.join(f'{name}={own}' for name, own in shown.items())})"
    scope = {"where": np.where, "minimum": np.minimum, "maximum": np.maximum}
    return eval(f"lambda {', '.join(shown.values())}: {inner}", scope)


def of_numpy(body, **values):
    values = {name: value if name in ("s", "kv_pos") else np.int64(value) for name, value in values.items()}
    return eval(body, {"where": np.where, "minimum": np.minimum, "maximum": np.maximum, **values})


@pytest.fixture(scope="module")
def tree():
    """Of 29 tokens: a query at each position of the root and one behind it, and one at each end of the branches."""
    tree = deft.Tree()
    root = tree.add_root(19, location=0)
    left, right = tree.add_child(root, 4, location=19), tree.add_child(root, 6, location=23)
    tree.set_queries([*((root, seen) for seen in range(20)), (left, 4), (right, 0), (right, 3), (right, 6)])
    return tree


def paths(tree):
    """Where the tokens of each query's path lie, to the end of its node, and the query's own position."""
    for node, position in tree.queries:
        facts = tree.node(node)
        before = 0 if facts.parent is None else tree.node(facts.parent).tokens
        places = np.array([*range(before), *range(facts.location, facts.location + facts.tokens)])
        yield places, before + position - 1


SEED = int(os.environ.get("DEFT_TEST_SEED", random.randrange(10**6)))


@pytest.mark.parametrize("number", range(40))
def test_masks_show_what_they_show_to_numpy(tree, number):
    """All scores are 0, and each token's value is 1 in an element of its own."""
    random_ = random.Random(f"{SEED} {number}")
    program, bound = Program(random_), random_.choice(["tree", "path"])
    body = program.truth(3)
    names = program.arguments(body)
    said = f"seed {SEED}, number {number}, {bound}: lambda {', '.join(names)}: {body}"
    att = deft.attention(
        query_heads=HEADS, head_dim=DIM, page_size=None, dtype="f16", lse=True, bound=bound, mask=traced(names, body, random_)
    )
    q = np.zeros((tree.query_count, HEADS, DIM), "float16")
    v = np.repeat(np.eye(29, DIM, dtype="float16")[:, None], HEADS, axis=1)
    out, lse = att.run(tree, q, np.zeros_like(v), v, return_lse=True)
    seen = np.exp(lse)[..., None] * out
    for query, (places, q_pos) in enumerate(paths(tree)):
        kv_pos = np.arange(len(places))
        for head in range(HEADS):
            shown = np.broadcast_to(of_numpy(body, q_pos=q_pos, kv_pos=kv_pos, head=head), kv_pos.shape)
            if bound == "tree":
                shown = shown & (kv_pos <= q_pos)
            expected = np.zeros(DIM)
            expected[places[shown]] = 1
            assert np.array_equal(seen[query, head].round(1), expected), f"{said}\nquery {query}, head {head}:\n{att.spec}"


@pytest.mark.parametrize("number", range(20))
def test_scores_are_those_of_numpy(tree, number):
    """Each query's scores, by what they make of a single token: its lse."""
    random_ = random.Random(f"score {SEED} {number}")
    program, bound = Program(random_), random_.choice(["tree", "path"])
    body = f"(s * 0.5 + {program.whole(3)} % 37 * 0.25)"
    names = program.arguments(body)
    said = f"seed {SEED}, number {number}, {bound}: lambda {', '.join(names)}: {body}"
    target = random_.randrange(19)
    att = deft.attention(
        query_heads=HEADS,
        head_dim=DIM,
        page_size=None,
        dtype="f16",
        lse=True,
        bound=bound,
        mask=lambda kv_pos: kv_pos == target,
        score=traced(names, body, random_),
    )
    q, k = np.zeros((tree.query_count, HEADS, DIM), "float16"), np.zeros((29, HEADS, DIM), "float16")
    _, lse = att.run(tree, q, k, k, return_lse=True)
    for query, (_, q_pos) in enumerate(paths(tree)):
        if bound == "tree" and target > q_pos:
            assert (lse[query] == -np.inf).all()
            continue
        expected = [float(of_numpy(body, s=0.0, q_pos=q_pos, kv_pos=np.int64(target), head=head)) for head in range(HEADS)]
        assert np.allclose(lse[query], expected, atol=1e-3), f"{said}\nquery {query}:\n{att.spec}"


def test_outputs_of_rows_that_see_nothing_have_a_position_before_the_first(tree):
    att = deft.attention(
        query_heads=HEADS, head_dim=DIM, page_size=None, dtype="f16", output=lambda q_pos, x: lang.minimum(x, 0) + q_pos % 7
    )
    q, k = np.zeros((tree.query_count, HEADS, DIM), "float16"), np.zeros((29, HEADS, DIM), "float16")
    out = att.run(tree, q, k, k)
    assert (out[:, 0, 0] == [q_pos % 7 for _, q_pos in paths(tree)]).all()
