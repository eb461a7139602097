"""The most probable answers, a beam of them at a time."""

from __future__ import annotations

from collections import Counter
from typing import Collection

import torch

from .._errors import UsageError
from ._answers import Answer, ends_of, prompt_of
from ._branch import Branch
from ._decoder import Tokens, TreeDecoder
from ._sampling import stack_logits


def beam_search(
    decoder: TreeDecoder,
    prompt: Tokens | Branch,
    beams: int,
    max_new_tokens: int,
    *,
    eos: Collection[int] = (),
    length_penalty: float = 1.0,
    early_stopping: bool | str = False,
    answers: int = 1,
) -> list[Answer]:
    """What transformers' generate(num_beams=beams) gives, best first: an answer's score is its log-probability, divided by
    its length to the power of `length_penalty`. `early_stopping`: True ends with the first `beams` answers, "never" when
    no beam can become better than they, False by a guess of that.

    A beam that several go on from forks, one that nobody goes on from is pruned, and all others grow in place.
    """
    if beams < 1:
        raise UsageError(f"beams = {beams} find no answer, it is at least 1")
    ends = ends_of(eos)
    keep = max(2, 1 + len(ends)) * beams
    finished: list[Answer] = []
    with prompt_of(decoder, prompt) as root:
        running = [(root, [])]  # branch, what it has decoded; the last token of which is in no cache yet
        logits = stack_logits([root])
        scores = torch.zeros(1, device=logits.device)
        for length in range(1, max_new_tokens + 1):
            log_probabilities = logits.float().log_softmax(dim=-1) + scores[:, None]
            vocabulary = logits.shape[-1]
            best, places = log_probabilities.flatten().topk(min(keep, log_probabilities.numel()))
            found = [(place // vocabulary, place % vocabulary) for place in places.tolist()]
            is_last = length == max_new_tokens
            for rank, (score, (beam, token)) in enumerate(zip(best.tolist(), found)):
                # Only what is among the best beams may end; the others are there to go on from.
                if rank < beams and (is_last or token in ends):
                    tokens = [*running[beam][1], token]
                    finished.append(Answer(tokens, score / length**length_penalty, token in ends))
            finished = sorted(finished, key=lambda one: -one.score)[:beams]  # of equal ones the earlier
            going_on = [rank for rank, (_, token) in enumerate(found) if token not in ends][:beams]
            scores = best[going_on]
            if is_last or not _may_improve(finished, beams, scores, length, max_new_tokens, length_penalty, early_stopping):
                break
            chosen = [found[rank] for rank in going_on]
            branches = _go_on(decoder, [branch for branch, _ in running], [beam for beam, _ in chosen])
            running = [
                (branch, [*running[beam][1], token]) for branch, (beam, token) in zip(branches, chosen)
            ]
            logits = decoder.step(branches, [token for _, token in chosen])
    return finished[:answers]


def _may_improve(
    finished: list[Answer],
    beams: int,
    scores: torch.Tensor,
    length: int,
    most: int,
    length_penalty: float,
    early_stopping: bool | str,
) -> bool:
    if len(finished) < beams:
        return True
    if early_stopping is True:
        return False
    likely = most if early_stopping == "never" and length_penalty > 0 else length
    return float(scores.max()) / likely**length_penalty > finished[-1].score


def _go_on(decoder: TreeDecoder, branches: list[Branch], parents: list[int]) -> list[Branch]:
    """A leaf for each of `parents`, which are indices of branches, several times the same perhaps."""
    leaves: dict[int, list[Branch]] = {}
    counts = Counter(parents)
    decoder.sequences.clear_queries()  # of the last step: each branch that is pruned would look through all of them
    for index, branch in enumerate(branches):
        heirs = counts[index]
        # The prompt is not a beam's own: its first beam is a branch of it.
        if heirs == 1 and branch.parent is not None:
            leaves[index] = [branch]
        else:
            leaves[index] = decoder.fork(branch, heirs)
    for index, branch in enumerate(branches):
        if not leaves[index] and branch.parent is not None:
            decoder.prune(branch, upwards=True)
    return [leaves[parent].pop(0) for parent in parents]
