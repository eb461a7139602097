"""Marks tokens whose K and V were computed with sparse attention, and says when to compute them again."""

from __future__ import annotations

from typing import Sequence

import torch

from .._sequence_tree import NodeTokens, SequenceTree
from ._branch import Branch
from ._layer_plan import LayerPlan

#: A token by its node and its index there.
Place = tuple[int, int]


class Pollution:
    """Keeps its marks in the sequences, so that forks, prunes and accepts need no extra work."""

    def __init__(self, sequences: SequenceTree, plan: LayerPlan) -> None:
        self._sequences = sequences
        self._plan = plan
        self._steps = 0  # since the last correction

    @property
    def is_due(self) -> bool:
        return self._plan.correct_every is not None and self._steps >= self._plan.correct_every

    def after_step(self, places: Sequence[Place], positions: torch.Tensor) -> None:
        """Marks the step's tokens, except those whose whole path fits into the budget: no token of that path was left out."""
        self._steps += 1
        budget = self._plan.budget
        self._pollute([place for place, position in zip(places, positions.tolist()) if position + 1 > budget])

    def after_prefill(self, branch: Branch, places: Sequence[Place]) -> None:
        """Marks prefilled tokens if their path has marked tokens: full attention to wrong K and V gives wrong K and V."""
        nodes = {one.node for one in self._sequences.polluted()}
        if any(one.node in nodes for one in branch.path()):
            self._pollute(places)

    def after_correction(self, tokens: Sequence[NodeTokens]) -> None:
        self._sequences.correct(tokens)
        self._steps = 0

    def _pollute(self, places: Sequence[Place]) -> None:
        self._sequences.pollute(NodeTokens(node, index, 1) for node, index in places)


def tokens_at(roots: Sequence[Branch], stretches: Sequence[NodeTokens]) -> tuple[list[int], list[Place]]:
    """Returns the tokens that were decoded at stretches of nodes, one by one, and their places."""
    owners = {branch.node: branch for root in roots for branch in root.family()}
    places = [(one.node, one.first + index) for one in stretches for index in range(one.tokens)]
    return [owners[node].own[index] for node, index in places], places
