"""Generates one answer or several to a prompt."""

from __future__ import annotations

import operator
from contextlib import contextmanager
from typing import Collection, Iterator, NamedTuple

import torch

from .._errors import UsageError
from ._branch import Branch
from ._decoder import Tokens, TreeDecoder
from ._sampling import Greedy, Sampler, stack_logits


class Answer(NamedTuple):
    tokens: list[int]  # behind the prompt, the end's token among them
    score: float  # the sum of the log-probabilities that the model gave them
    is_finished: bool  # an end's token came


def ends_of(eos: Collection[int]) -> frozenset[int]:
    """Returns the tokens that end an answer."""
    try:
        return frozenset(operator.index(token) for token in eos)
    except TypeError:
        raise UsageError(f"eos is {eos!r}, it must be a collection of tokens", "eos={2}") from None


@contextmanager
def prompt_of(decoder: TreeDecoder, prompt: Tokens | Branch) -> Iterator[Branch]:
    """Gives the prompt's branch to a `with` block. At the end, the decoded tokens are removed, and the prompt too unless it was
    prefilled before."""
    if isinstance(prompt, Branch):
        prompt.check(decoder.sequences)
        if prompt.children:
            raise UsageError(f"{len(prompt.children)} branches go on from the prompt already", "prune them, or fork it")
        try:
            yield prompt
        finally:
            for child in list(prompt.children):
                decoder.prune(child)
        return
    root = decoder.prefill(prompt)
    try:
        yield root
    finally:
        decoder.prune(root)


def greedy(decoder: TreeDecoder, prompt: Tokens | Branch, max_new_tokens: int, *, eos: Collection[int] = ()) -> Answer:
    """Generates the answer of the most probable tokens."""
    return best_of_n(decoder, prompt, 1, max_new_tokens, eos=eos, sampler=Greedy())[0]


def best_of_n(
    decoder: TreeDecoder,
    prompt: Tokens | Branch,
    n: int,
    max_new_tokens: int,
    *,
    eos: Collection[int] = (),
    sampler: Sampler | None = None,
) -> list[Answer]:
    """Draws `n` answers independently, and returns them in the order of drawing: `max(answers, key=...)` is the best one. They
    share the prompt. Answers that have reached one of `eos` wait for the others, as in transformers' generate."""
    if n < 1:
        raise UsageError(f"n = {n} answers cannot be drawn, it is at least 1")
    ends = ends_of(eos)
    sampler = sampler or Sampler()
    answers: list[list[int]] = [[] for _ in range(n)]
    with prompt_of(decoder, prompt) as root:
        branches = decoder.fork(root, n)
        active = list(range(n))
        logits = stack_logits(branches)
        scores = torch.zeros(n, device=logits.device)
        paths = torch.tensor(root.tokens, device=logits.device).repeat(n, 1)
        for step in range(max_new_tokens):
            # Rows of finished ones are drawn for, too, so that others draw the same whoever has finished.
            chosen = sampler.choose(logits, paths)
            log_probabilities = logits.float().log_softmax(dim=-1).gather(1, chosen[:, None])[:, 0]
            paths = torch.cat([paths, chosen[:, None]], dim=1)
            scores[active] += log_probabilities[active]
            tokens = chosen.tolist()
            for row in active:
                answers[row].append(tokens[row])
            active = [row for row in active if tokens[row] not in ends]
            if not active or step + 1 == max_new_tokens:
                break
            logits = logits.clone()
            logits[active] = decoder.step([branches[row] for row in active], [tokens[row] for row in active])
    return [Answer(one, float(score), bool(one) and one[-1] in ends) for one, score in zip(answers, scores)]
