"""Plans of steps with layers that follow a LayerPlan."""

from __future__ import annotations

from typing import Any, Mapping, Sequence

import torch

from .._attention import Attention
from .._plans import Selection
from ._cache import PagedCache
from ._kinds import Kind
from ._layer_plan import Role
from ._plans import Plans


class SelectingPlans(Plans):
    """Plans with the lists of one step: each selecting layer replaces the lists, and the layers after it read them."""

    def __init__(
        self,
        cache: PagedCache,
        attentions: Mapping[Kind, Attention],
        partition: str | None,
        runs_ahead: Mapping[Kind, int],
        roles: Sequence[Role],
        kind: Kind,
    ) -> None:
        """`kind`: the kind of the selecting and the sparse layers."""
        super().__init__(cache, attentions, partition, runs_ahead)
        self.roles = list(roles)
        self._kind = kind
        self.selection = Selection(attentions[kind])

    def _budget(self, kind: Kind) -> int | None:
        return self.selection.budget if kind == self._kind else None

    def run(self, kind: Kind, layer: int, q: torch.Tensor, page_table: Any) -> torch.Tensor:
        if self.roles[layer] == "full":
            return super().run(kind, layer, q, page_table)
        plan = self._plans[kind]
        run = plan.run_selecting if self.roles[layer] == "select" else plan.run_sparse
        return run(self.selection, *self._tensors(layer, q), page_table)
