"""Adds tokens to branches and takes them back if a pass fails."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Iterator, Sequence

from .._sequence_tree import SequenceTree
from ._branch import Branch
from ._cache import PagedCache


@contextmanager
def growing(cache: PagedCache, branches: Sequence[Branch], count: int) -> Iterator[None]:
    """Makes room for `count` tokens after each of the leaves, for a `with` block that computes them. If one leaf lacks room, or
    the pass fails, no leaf has grown."""
    grown: list[Branch] = []
    try:
        for branch in branches:
            copies = cache.sequences.append(branch.node, count)
            grown.append(branch)
            cache.copy(copies)
        yield
    except BaseException:  # an interrupted pass has computed nothing either
        for branch in grown:
            branch.node = _cut(cache.sequences, branch.node, len(branch.own))
        raise


def _cut(sequences: SequenceTree, leaf: int, tokens: int) -> int:
    """Removes the leaf's tokens after its first `tokens`, and returns the node of the remaining ones. Only whole nodes can be
    removed, so a fork splits the leaf first. Neither the fork nor the removal needs a page."""
    fork = sequences.fork(leaf, tokens)
    kept = sequences.node(fork).parent if tokens else fork  # a fork before the first token hangs beside the leaf
    assert kept is not None
    sequences.prune(leaf)
    if fork != kept:
        sequences.prune(fork)
    return kept
