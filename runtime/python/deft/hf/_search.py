"""Tree of thoughts: before each step your function decides which branches fork, end, or are done."""

from __future__ import annotations

from typing import Callable, Collection, Iterable, Literal, NamedTuple

import torch

from .._errors import UsageError
from ._answers import ends_of, prompt_of
from ._branch import Branch
from ._decoder import Tokens, TreeDecoder
from ._sampling import Sampler, stack_logits

State = Literal["active", "forked", "finished", "pruned"]


class Thought:
    """A branch's decoded tokens and state."""

    def __init__(self, number: int, parent: Thought | None, branch: Branch, first_step: int) -> None:
        self.number = number
        self.parent = parent
        self.branch = branch
        self.own: list[int] = []  # decoded by it, those before it was forked left out
        self.score = parent.score if parent else 0.0  # the log-probability of all its path has decoded
        self.state: State = "active"
        self.first_step = first_step

    @property
    def tokens(self) -> list[int]:
        """The tokens after the prompt, including those of the thoughts that it was forked from."""
        return [*(self.parent.tokens if self.parent else []), *self.own]

    def __repr__(self) -> str:
        return f"<deft.hf.Thought {self.number}: {len(self.tokens)} tokens, {self.state}>"


class Fork(NamedTuple):
    """Continues in `count` new thoughts; this one ends."""

    thought: Thought
    count: int


class Prune(NamedTuple):
    """Removes the thought and all thoughts that were forked from it."""

    thought: Thought


class Finish(NamedTuple):
    """Ends the thought, but keeps it readable."""

    thought: Thought


Action = Fork | Prune | Finish


class Search:
    """The state that a policy reads."""

    def __init__(self) -> None:
        self.step = 0  # the one to come, from 1
        self.thoughts: list[Thought] = []  # all that ever were, in order of birth
        self.events: list[tuple[int, Action]] = []  # what was done, before the tokens of which step

    @property
    def active(self) -> list[Thought]:
        return [one for one in self.thoughts if one.state == "active"]

    @property
    def finished(self) -> list[Thought]:
        return [one for one in self.thoughts if one.state == "finished"]


Policy = Callable[[Search], Iterable[Action]]


def tree_search(
    decoder: TreeDecoder,
    prompt: Tokens | Branch,
    policy: Policy,
    *,
    thoughts: int = 1,
    max_steps: int = 1024,
    eos: Collection[int] = (),
    sampler: Sampler | None = None,
) -> Search:
    """Decodes `thoughts` branches of the prompt. Before each step `policy(search)` returns actions. Then each active thought
    decodes a token, and is finished if that is one of `eos`. The search ends when no thought is active, or after `max_steps`."""
    ends = ends_of(eos)
    sampler = sampler or Sampler()
    search = Search()
    with prompt_of(decoder, prompt) as root:
        search.thoughts = [Thought(i, None, one, 1) for i, one in enumerate(decoder.fork(root, thoughts))]
        for step in range(1, max_steps + 1):
            search.step = step
            for action in _actions_of(policy, search):
                _act(decoder, search, action)
                search.events.append((step, action))
            active = search.active
            if not active:
                break
            _decode(decoder, active, ends, sampler)
    return search


def _actions_of(policy: Policy, search: Search) -> list[Action]:
    given = policy(search)
    kinds = (Fork, Prune, Finish)
    actions = list(given) if hasattr(given, "__iter__") and not isinstance(given, kinds) else None
    if actions is None or not all(isinstance(one, kinds) for one in actions):
        hint = "where nothing is to be done it returns []" if given is None else ""
        raise UsageError(f"the policy gave {given!r}, it must be a list of Fork, Prune and Finish", hint)
    return actions


def _act(decoder: TreeDecoder, search: Search, action: Action) -> None:
    thought = action.thought
    if isinstance(action, Prune):
        if thought.state == "pruned":
            raise UsageError(f"thought {thought.number} is pruned already")
        decoder.prune(thought.branch)
        for one in search.thoughts:
            if not one.branch.is_alive:
                one.state = "pruned"
        return
    if thought.state != "active":
        raise UsageError(f"thought {thought.number} is {thought.state}, only active ones fork and finish")
    if isinstance(action, Finish):
        thought.state = "finished"
        return
    thought.state = "forked"
    for branch in decoder.fork(thought.branch, action.count):
        search.thoughts.append(Thought(len(search.thoughts), thought, branch, search.step))


def _decode(decoder: TreeDecoder, active: list[Thought], ends: Collection[int], sampler: Sampler) -> None:
    logits = stack_logits([one.branch for one in active])
    paths = [one.branch.tokens for one in active]
    if len({len(path) for path in paths}) == 1:
        chosen = sampler.choose(logits, torch.tensor(paths, device=logits.device))
    else:  # forked at other steps, so that no tensor holds them all
        rows = [
            sampler.choose(logits[row : row + 1], torch.tensor([path], device=logits.device))
            for row, path in enumerate(paths)
        ]
        chosen = torch.cat(rows)
    given = logits.float().log_softmax(dim=-1).gather(1, chosen[:, None])[:, 0].tolist()
    tokens = chosen.tolist()
    for thought, token, log_probability in zip(active, tokens, given):
        thought.own.append(token)
        thought.score += log_probability
        if token in ends:
            thought.state = "finished"
    going_on = [(one, token) for one, token in zip(active, tokens) if one.state == "active"]
    if going_on:
        decoder.step([one.branch for one, _ in going_on], [token for _, token in going_on])


def keep_best(evaluate: Callable[[list[Thought]], list[float]], *, every: int, width: int, keep: int) -> Policy:
    """Makes a policy for tree_search. Every `every` steps a thought is complete. The `keep` best thoughts by `evaluate`
    continue in `width` branches each, and the others are removed."""

    def policy(search: Search) -> list[Action]:
        if search.step == 1 or (search.step - 1) % every:
            return []
        active = search.active
        if not active:
            return []
        scores = evaluate(active)
        order = sorted(range(len(active)), key=lambda index: -scores[index])
        return [
            *(Prune(active[index]) for index in order[keep:]),
            *(Fork(active[index], width) for index in order[:keep]),
        ]

    return policy
