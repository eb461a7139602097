"""Tokens whose K and V follow from sparse attention, and when it is time to compute them again."""

from __future__ import annotations

from typing import Sequence

import torch

from .._sequence_tree import NodeTokens, SequenceTree
from ._branch import Branch
from ._layer_plan import LayerPlan

#: A token by its node and its index there.
Place = tuple[int, int]


class Pollution:
    """The marks are the sequences' own, so that forks, prunes and accepts need nothing of it."""

    def __init__(self, sequences: SequenceTree, plan: LayerPlan) -> None:
        self._sequences = sequences
        self._plan = plan
        self._steps = 0  # since the last correction

    @property
    def is_due(self) -> bool:
        return self._plan.correct_every is not None and self._steps >= self._plan.correct_every

    def after_step(self, places: Sequence[Place], positions: torch.Tensor) -> None:
        """Of tokens whose path the budget holds nothing was left out, and all before them were decoded so."""
        self._steps += 1
        budget = self._plan.budget
        self._pollute([place for place, position in zip(places, positions.tolist()) if position + 1 > budget])

    def after_prefill(self, branch: Branch, places: Sequence[Place]) -> None:
        """Full attention to K and V that are wrong makes wrong ones."""
        nodes = {one.node for one in self._sequences.polluted()}
        if any(one.node in nodes for one in branch.path()):
            self._pollute(places)

    def after_correction(self, tokens: Sequence[NodeTokens]) -> None:
        self._sequences.correct(tokens)
        self._steps = 0

    def _pollute(self, places: Sequence[Place]) -> None:
        self._sequences.pollute(NodeTokens(node, index, 1) for node, index in places)


def tokens_at(roots: Sequence[Branch], stretches: Sequence[NodeTokens]) -> tuple[list[int], list[Place]]:
    """What was decoded at stretches of nodes, token by token."""
    owners = {branch.node: branch for root in roots for branch in root.family()}
    places = [(one.node, one.first + index) for one in stretches for index in range(one.tokens)]
    return [owners[node].own[index] for node, index in places], places
