"""Speculative decoding with a tree of guesses: several tokens a step, with the same result."""

from __future__ import annotations

from typing import Collection, NamedTuple, Protocol

import torch

from .._errors import UsageError
from ._answers import ends_of, prompt_of
from ._branch import Branch
from ._decoder import Tokens, TreeDecoder
from ._sampling import Greedy, Sampler


class Guesses(NamedTuple):
    """tokens[0] is certain, with parent -1. A parent is an earlier token of the list."""

    tokens: list[int]
    parents: list[int]


class Drafter(Protocol):
    """Makes guesses. See DraftModel and DraftHeads."""

    def begin(self, prompt: list[int]) -> None: ...

    def guess(self, token: int, hidden: torch.Tensor | None) -> Guesses:
        """Guesses tokens after `token`, which is certain. `hidden` is the hidden state that it was drawn from, if the decoder
        keeps it."""
        ...

    def accepted(self, path: list[int]) -> None:
        """Receives the right guesses: indices from token 0 on, each a child of the one before it."""
        ...

    def end(self) -> None: ...


class Speculation(NamedTuple):
    tokens: list[int]  # behind the prompt
    steps: int  # of the decoder, the prompt's left out
    accepted: list[int]  # tokens that each step gave


def speculate(
    decoder: TreeDecoder,
    prompt: Tokens | Branch,
    drafter: Drafter,
    max_new_tokens: int,
    *,
    eos: Collection[int] = (),
    sampler: Sampler | None = None,
) -> Speculation:
    """Returns the answer of greedy decoding, or of `sampler`, in fewer steps. A step reads the sequence once for all guesses.
    After each accepted token the model's own choice is drawn. A guess that equals it is accepted, so the text has the model's
    distribution for any guesses."""
    ends = ends_of(eos)
    sampler = sampler or Greedy()
    answer: list[int] = []
    accepted: list[int] = []
    with prompt_of(decoder, prompt) as root:
        sequence = decoder.fork(root, 1)[0]
        drafter.begin(root.tokens)
        try:
            token = _draw(sampler, sequence)
            while len(answer) < max_new_tokens:
                guesses = drafter.guess(token, sequence.hidden)
                _check_first(guesses, token)
                branches = decoder.verify(sequence, guesses.tokens, guesses.parents)
                path = [0]
                while True:
                    answer.append(guesses.tokens[path[-1]])
                    if answer[-1] in ends or len(answer) == max_new_tokens:
                        break
                    token = _draw(sampler, branches[path[-1]])
                    children = [i for i, parent in enumerate(guesses.parents) if parent == path[-1]]
                    right = [i for i in children if guesses.tokens[i] == token]
                    if not right:
                        break
                    path.append(right[0])
                accepted.append(len(path))
                if answer[-1] in ends or len(answer) == max_new_tokens:
                    break
                decoder.accept(sequence, branches[path[-1]])
                drafter.accepted(path)
        finally:
            drafter.end()
    return Speculation(answer, len(accepted), accepted)


def _check_first(guesses: Guesses, token: int) -> None:
    """Checks that the drafter's first token is the certain one, because it is taken for the model's choice."""
    first = (*guesses.tokens[:1], *guesses.parents[:1])
    if first != (token, -1):
        raise UsageError(f"the drafter's first token and parent are {first}, they must be {(token, -1)}")


def _draw(sampler: Sampler, branch: Branch) -> int:
    assert branch.logits is not None
    logits = branch.logits[None]
    return int(sampler.choose(logits, torch.tensor([branch.tokens], device=logits.device)))
