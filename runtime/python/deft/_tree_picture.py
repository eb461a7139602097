"""A tree as a picture: a box is a node, as wide as its tokens and as tall as the leaves below it, right of its parent."""

from __future__ import annotations

from itertools import accumulate
from math import sqrt
from typing import TYPE_CHECKING

from . import _abi

if TYPE_CHECKING:
    from ._tree import Node, TreeView

WIDTH, ROW, GAP, MARGIN = 900.0, 20.0, 2.0, 8.0
TALLEST = 700.0
COLOURS = ("#9cc3e6", "#b9dbb4", "#f3cf9b", "#d9bfe3", "#f0b7b3")
LEGEND = "a box is a node (number: tokens), its width by the square root of its tokens; dark edges: queries end there"


def draw_tree(tree: TreeView) -> str:
    facts = {node: tree.node(node) for node in tree.nodes}
    queries: dict[int, int] = {}
    for query in tree.queries:
        queries[query.node] = queries.get(query.node, 0) + 1
    top, leaves = _rows(facts)
    # Square roots, so that a prompt of thousands of tokens leaves room for its branches.
    depths = max((node.depth for node in facts.values()), default=-1) + 1
    widest = [0.0] * depths
    for one in facts.values():
        widest[one.depth] = max(widest[one.depth], sqrt(one.tokens) + 2)
    gap = min(GAP, WIDTH / 4 / max(depths, 1))  # of thousands of levels boxes are still left
    scale = (WIDTH - 2 * MARGIN - gap * depths) / max(sum(widest), 1)
    left = [MARGIN + scale * before + gap * depth for depth, before in enumerate(accumulate(widest, initial=0.0))]
    total = sum(leaves[node] for node, one in facts.items() if one.parent is None)
    row = min(ROW, TALLEST / max(total, 1))
    boxes = []
    for node, one in facts.items():
        x, y = left[one.depth], MARGIN + row * top[node]
        width, height = max(min(1.0, 4 * gap), scale * (sqrt(one.tokens) + 2)), max(row * leaves[node] - GAP * min(1, row / 4), 0.5)
        place = "not placed" if one.location == _abi.DEFT_NOT_PLACED else f"at location {one.location}"
        title = f"node {node}: {one.tokens} tokens {place}, {queries.get(node, 0)} queries"
        boxes.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{COLOURS[node % len(COLOURS)]}" '
            f'stroke="#456" stroke-width="{1.6 if node in queries else 0.4}"><title>{title}</title></rect>'
        )
        label = next((text for text in (f"{node}: {one.tokens}", f"{node}") if 6.5 * len(text) + 6 <= width), "")
        if height >= 11 and label:
            middle = y + min(height, 40) / 2 + 4
            boxes.append(f'<text x="{x + 4:.1f}" y="{middle:.1f}" font-size="11">{label}</text>')
    height = 2 * MARGIN + row * total
    if facts:
        boxes.append(f'<text x="{MARGIN:.1f}" y="{height + 6:.1f}" font-size="11" fill="#667">{LEGEND}</text>')
        height += 16
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {WIDTH:.0f} {height:.0f}" font-family="sans-serif">'
        f'<rect width="100%" height="100%" fill="white"/>{"".join(boxes)}</svg>'
    )


def _rows(facts: dict[int, Node]) -> tuple[dict[int, int], dict[int, int]]:
    """Of each node the row it begins in, and how many it takes: one for each leaf below. `facts` is in preorder."""
    leaves = dict.fromkeys(facts, 0)
    for node in reversed(facts):
        leaves[node] = max(leaves[node], 1)
        parent = facts[node].parent
        if parent is not None:
            leaves[parent] += leaves[node]
    top: dict[int, int] = {}
    free: dict[int | None, int] = {None: 0}
    for node, one in facts.items():
        top[node] = free[node] = free[one.parent]
        free[one.parent] += leaves[node]
    return top, leaves
