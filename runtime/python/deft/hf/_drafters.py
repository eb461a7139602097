"""Drafters: a small model, or heads on the large one, that guess the next tokens."""

from __future__ import annotations

from typing import Callable, Sequence

import torch

from .._errors import UsageError
from ._branch import Branch
from ._decoder import TreeDecoder
from ._sampling import stack_logits
from ._speculative import Guesses


class DraftModel:
    """A small model with the same vocabulary, over a tree of its own. It guesses the `widths[d]` most probable tokens after
    each guess of depth d."""

    def __init__(self, decoder: TreeDecoder, widths: Sequence[int] = (3, 2, 1)) -> None:
        if not widths or min(widths) < 1:
            raise UsageError(f"widths are {list(widths)}, each depth has at least one guess")
        self._decoder = decoder
        self._widths = list(widths)
        self._root: Branch | None = None
        self._sequence: Branch | None = None
        self._branches: list[Branch | None] = []  # of the guesses; None: guessed last, and in no cache
        self._tokens: list[int] = []
        self._unseen: list[int] = []  # accepted, and not in the draft's cache yet

    def begin(self, prompt: list[int]) -> None:
        self._root = self._decoder.prefill(prompt)
        self._sequence = self._decoder.fork(self._root, 1)[0]
        self._unseen = []

    def guess(self, token: int, hidden: torch.Tensor | None) -> Guesses:
        sequence = self._sequence
        assert sequence is not None
        if self._unseen:
            self._decoder.prefill(self._unseen, sequence)
        tokens, parents = [token], [-1]
        [first] = self._decoder.verify(sequence, [token], [-1])
        self._branches = [first]
        level = [0]
        for depth, width in enumerate(self._widths):
            logits = stack_logits([branch for branch in (self._branches[i] for i in level) if branch is not None])
            best = logits.topk(width, dim=-1).indices.tolist()
            begin = len(tokens)
            for parent, row in zip(level, best):
                tokens += row
                parents += [parent] * width
            if depth + 1 == len(self._widths):
                self._branches += [None] * (len(tokens) - begin)
                break
            below = [(self._branches[parent], row, [-1] * width) for parent, row in zip(level, best)]
            for branches in self._decoder.verify_all(below):  # type: ignore[arg-type]
                self._branches += branches
            level = list(range(begin, len(tokens)))
        self._tokens = tokens
        return Guesses(tokens, parents)

    def accepted(self, path: list[int]) -> None:
        assert self._sequence is not None
        known = [index for index in path if self._branches[index] is not None]
        last = self._branches[known[-1]]
        assert last is not None
        self._decoder.accept(self._sequence, last)
        self._unseen = [self._tokens[index] for index in path[len(known) :]]

    def end(self) -> None:
        if self._root is not None:
            self._decoder.prune(self._root)
        self._root = self._sequence = None


class DraftHeads:
    """Heads like Medusa's. Head i maps a hidden state to the logits of a later token: i + 1 places after the token that was
    drawn from this state. `choices` is the tree, given as paths of ranks: (0, 2) is the third most probable token of head 1
    after the most probable token of head 0. Make the decoder with keeps_hidden=True."""

    def __init__(
        self, heads: Sequence[Callable[[torch.Tensor], torch.Tensor]], choices: Sequence[tuple[int, ...]]
    ) -> None:
        self._heads = list(heads)
        paths = sorted(set(map(tuple, choices)), key=lambda path: (len(path), path))
        places = {(): 0}
        self._parents = [-1]
        for path in paths:
            if path[:-1] not in places:
                raise UsageError(f"the choice {path} has no parent {path[:-1]} among the choices")
            if len(path) > len(self._heads):
                raise UsageError(f"the choice {path} is {len(path)} deep, there are {len(self._heads)} heads")
            places[path] = len(self._parents)
            self._parents.append(places[path[:-1]])
        self._paths = paths

    def begin(self, prompt: list[int]) -> None: ...

    def guess(self, token: int, hidden: torch.Tensor | None) -> Guesses:
        if hidden is None:
            raise UsageError("the decoder keeps no hidden states", "TreeDecoder(model, keeps_hidden=True)")
        best = []
        for depth, head in enumerate(self._heads):
            ranks = [path[depth] for path in self._paths if len(path) > depth]
            best.append(head(hidden).topk(max(ranks) + 1).indices.tolist() if ranks else [])
        tokens = [token, *(best[len(path) - 1][path[-1]] for path in self._paths)]
        return Guesses(tokens, list(self._parents))

    def accepted(self, path: list[int]) -> None: ...

    def end(self) -> None: ...
