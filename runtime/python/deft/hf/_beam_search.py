"""Beam search: finds the most probable answers."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from typing import Collection, Iterator, Protocol

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
    """Returns the answers of transformers' generate(num_beams=beams), best first. An answer's score is its log-probability,
    divided by its length to the power of `length_penalty`. `early_stopping`: True ends with the first `beams` answers; "never"
    ends when no beam can become better than these; False guesses when that is so.

    Beams are ranked on the model's device. Each step waits for it once, to read two results: the parents of the next beams,
    because the host plans the step, and whether the search continues. Tokens and scores stay on the device until you read the
    answers."""
    if beams < 1:
        raise UsageError(f"beams = {beams} find no answer, it is at least 1")
    ends, most_tokens = ends_of(eos), beams * max(max_new_tokens - 1, 0)
    with prompt_of(decoder, prompt) as root, _stepping(decoder, root, most_tokens) as step:
        logits = stack_logits([root])
        ranking = _Ranking(beams, ends, max_new_tokens, length_penalty, early_stopping, logits.device)
        for length in range(1, max_new_tokens + 1):
            parents, tokens, goes_on = ranking.rank(logits, length)
            if length == max_new_tokens or not len(tokens):
                break
            known = torch.cat([parents, goes_on[None]]).to(torch.int32).cpu()  # here the host waits
            if not known[-1]:
                break
            logits = step(known[:-1], tokens)
        return ranking.best(answers)


class _Step(Protocol):
    def __call__(self, parents: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        """Adds a token to each beam. Beam i continues beam parents[i] (int32, on the host) of the step before; at first there
        is one beam, the prompt. `tokens` is on the device. Returns logits, [beams, vocabulary]."""
        ...


@contextmanager
def _stepping(decoder: TreeDecoder, prompt: Branch, most_tokens: int) -> Iterator[_Step]:
    """Gives the function that steps a search's beams. The beams are branches if there are several ranks or sparse layers."""
    steps = decoder._beams
    if steps is None:
        yield _BranchBeams(decoder, prompt).step
        return
    with steps.search(prompt, most_tokens):
        yield lambda parents, tokens: decoder._run(steps.forward, steps.rows(parents, tokens)).logits


class _BranchBeams:
    """Implements beams as branches of the decoder. A branch with several successors forks, one without is pruned, and all
    others grow in place."""

    def __init__(self, decoder: TreeDecoder, prompt: Branch) -> None:
        self._decoder = decoder
        self._branches = [prompt]

    def step(self, parents: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        self._branches = self._go_on(parents.tolist())
        return self._decoder.step(self._branches, tokens)

    def _go_on(self, parents: list[int]) -> list[Branch]:
        decoder = self._decoder
        leaves: dict[int, list[Branch]] = {}
        counts = Counter(parents)
        decoder.sequences.clear_queries()  # of the last step: each branch that is pruned would look through all of them
        for index, branch in enumerate(self._branches):
            heirs = counts[index]
            # The prompt is not a beam's own: its first beam is a branch of it.
            if heirs == 1 and branch.parent is not None:
                leaves[index] = [branch]
            else:
                leaves[index] = decoder.fork(branch, heirs)
        for index, branch in enumerate(self._branches):
            if not leaves[index] and branch.parent is not None:
                decoder.prune(branch, upwards=True)
        return [leaves[parent].pop(0) for parent in parents]


class _Ranking:
    """Ranks beams and keeps the best answers, in tensors on the logits' device. A candidate is a beam with a token added.
    Candidates are numbered consecutively over all steps."""

    def __init__(
        self,
        beams: int,
        ends: frozenset[int],
        most_tokens: int,
        length_penalty: float,
        early_stopping: bool | str,
        device: torch.device,
    ) -> None:
        self._beams = beams
        self._ends = ends
        self._end_tokens = torch.tensor(sorted(ends), dtype=torch.int64, device=device)
        self._most_tokens = most_tokens
        self._length_penalty = length_penalty
        self._early_stopping = early_stopping
        self._scores = torch.zeros(1, device=device)  # of the beams that go on
        # Of the best answers so far, best first; there is none where no candidate is.
        self._answer_scores = torch.full((beams,), -torch.inf, dtype=torch.float64, device=device)
        self._answers = torch.full((beams,), -1, dtype=torch.int64, device=device)
        # Of each candidate: the candidate that its beam was, or -1, and its token.
        self._before: list[torch.Tensor] = []
        self._tokens: list[torch.Tensor] = []
        self._going_on = torch.full((1,), -1, dtype=torch.int64, device=device)  # candidates
        self._count = 0

    def rank(self, logits: torch.Tensor, length: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Takes the logits of each beam for token number `length`. Returns the parents and tokens of the beams that continue,
        and whether these may find a better answer."""
        rows, vocabulary = logits.shape
        log_probabilities = logits.float().log_softmax(dim=-1) + self._scores[:, None]
        count = min(max(2, 1 + len(self._ends)) * self._beams, rows * vocabulary)
        best, places = log_probabilities.flatten().topk(count)
        parents, tokens = places // vocabulary, places % vocabulary
        numbers = self._count + torch.arange(count, device=best.device)
        is_end = (tokens[:, None] == self._end_tokens).any(dim=1)
        self._find_answers(best, numbers, is_end, length)
        self._before.append(self._going_on[parents])
        self._tokens.append(tokens)
        self._count += count
        # As many as there are that do not end: an end's token comes behind each beam at most once.
        possible = rows * (vocabulary - sum(0 <= token < vocabulary for token in self._ends))
        chosen = is_end.to(torch.uint8).argsort(stable=True)[: min(self._beams, possible)]
        self._scores, self._going_on = best[chosen], numbers[chosen]
        return parents[chosen], tokens[chosen], self._may_improve(length)

    def _find_answers(self, best: torch.Tensor, numbers: torch.Tensor, is_end: torch.Tensor, length: int) -> None:
        # Only what is among the best beams may end; the others are there to go on from.
        is_answer = is_end[: self._beams] | (length == self._most_tokens)
        scores = best[: self._beams].double() / length**self._length_penalty
        scores = torch.cat([self._answer_scores, scores.masked_fill(~is_answer, -torch.inf)])
        found = torch.cat([self._answers, numbers[: self._beams].masked_fill(~is_answer, -1)])
        order = scores.argsort(descending=True, stable=True)[: self._beams]  # of equal ones the earlier
        self._answer_scores, self._answers = scores[order], found[order]

    def _may_improve(self, length: int) -> torch.Tensor:
        has_room = self._answers[-1] < 0
        if self._early_stopping is True or not len(self._scores):
            return has_room
        is_patient = self._early_stopping == "never" and self._length_penalty > 0
        likely = self._most_tokens if is_patient else length
        return has_room | (self._scores.max().double() / likely**self._length_penalty > self._answer_scores[-1])

    def best(self, count: int) -> list[Answer]:
        if not self._tokens:
            return []
        before, tokens = (torch.cat(one).tolist() for one in (self._before, self._tokens))
        found = []
        for number, score in zip(self._answers[:count].tolist(), self._answer_scores[:count].tolist()):
            if number < 0:
                break
            path = []
            at = number
            while at >= 0:
                path.append(tokens[at])
                at = before[at]
            found.append(Answer(path[::-1], score, tokens[number] in self._ends))
        return found
