"""Tokens that come behind branches, or do not."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Iterator, Sequence

from .._sequence_tree import SequenceTree
from ._branch import Branch
from ._cache import PagedCache


@contextmanager
def growing(cache: PagedCache, branches: Sequence[Branch], count: int) -> Iterator[None]:
    """Room for `count` tokens behind each of the leaves, for as long as a pass computes them. Where there is none for one of
    them, or the pass fails, none has grown."""
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
    """Takes back the leaf's tokens behind its first `tokens`, and gives the node of those that stay. Only whole nodes can go,
    so a fork makes two of the leaf; neither that nor pruning needs a page."""
    fork = sequences.fork(leaf, tokens)
    kept = sequences.node(fork).parent if tokens else fork  # a fork before the first token hangs beside the leaf
    assert kept is not None
    sequences.prune(leaf)
    if fork != kept:
        sequences.prune(fork)
    return kept
