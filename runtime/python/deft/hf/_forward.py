"""A pass through the model over tokens of a tree."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import torch

from ._attention import attending_by_deft
from ._cache import PagedCache
from ._kinds import Kind
from ._plans import Plans


class Rows(NamedTuple):
    """The tokens of a step, in the order of the tree's queries; on the host."""

    tokens: torch.Tensor  # int64
    positions: torch.Tensor  # on the path
    slots: torch.Tensor  # where their K and V go


class Result(NamedTuple):
    logits: torch.Tensor  # [rows, vocabulary]
    hidden: torch.Tensor | None  # [rows, hidden size], what the logits were made of


class PlannedStep:
    """The layers' part of a pass (a Step)."""

    def __init__(self, cache: PagedCache, plans: Plans, kinds: list[Kind], slots: torch.Tensor, table: Any) -> None:
        self._cache = cache
        self._plans = plans
        self._slots = slots
        self._table = table
        self.kinds = kinds

    def attend(self, layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        self._cache.write(layer, self._slots, k, v)
        return self._plans.run(self.kinds[layer], layer, q, self._table)


class Table(Protocol):
    """A page table on the model's device."""

    def upload(self) -> Any:
        """Uploads the table and returns it for the runs that follow."""
        ...


class Parts(NamedTuple):
    """The objects that all passes share."""

    model: Any
    cache: PagedCache
    kinds: list[Kind]
    table: Table
    wants_hidden: bool
    step_type: type[PlannedStep]

    def make_step(self, plans: Plans, slots: torch.Tensor, table: Any) -> PlannedStep:
        return self.step_type(self.cache, plans, self.kinds, slots, table)


def run_model(parts: Parts, step: PlannedStep, tokens: torch.Tensor, positions: torch.Tensor, last: int) -> Result:
    """Returns the logits of the last `last` tokens; 0 means all tokens."""
    with attending_by_deft(parts.model):
        output = parts.model(
            input_ids=tokens[None],
            position_ids=positions[None],
            use_cache=False,
            logits_to_keep=last,
            output_hidden_states=parts.wants_hidden,
            deft_step=step,
        )
    hidden = output.hidden_states[-1][0, -last:] if parts.wants_hidden else None
    return Result(output.logits[0], hidden)


class Forward:
    """Runs the model kernel by kernel, on any device."""

    def __init__(self, parts: Parts, plans: Plans) -> None:
        self._parts = parts
        self.plans = plans

    def run(self, rows: Rows, last: int = 0) -> Result:
        self.plans.advance()
        parts, device = self._parts, self._parts.cache.device
        step = parts.make_step(self.plans, rows.slots.to(device), parts.table.upload())
        return run_model(parts, step, rows.tokens.to(device), rows.positions.to(device), last)
