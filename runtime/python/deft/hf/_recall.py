"""Measures how well a plan's lists serve each layer that reads them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from .._adapters.dtypes import SPEC_DTYPES
from .._errors import UsageError
from .._plans import Selection
from .._tune import html_table
from ._answers import prompt_of
from ._branch import Branch
from ._decoder import Tokens, TreeDecoder
from ._forward import Forward
from ._kinds import Kind
from ._layer_plan import LayerPlan, Role, selecting_kind
from ._plans import compile_kinds
from ._selecting_plans import SelectingPlans

_HEADS = ("layer", "", "recall", "weight", "own list's weight")


class LayerRecall(NamedTuple):
    """The means of a layer over steps and over lists or heads."""

    layer: int
    role: Role
    #: Of the tokens that the layer's own scores would have put on the list, the part that is on the one it reads. Those that
    #: every list keeps are left out.
    recall: float
    #: The part of the softmax weights that lies on the list: 1 is full attention.
    weight: float
    #: The same of the layer's own list. What this lacks to 1 is the budget's doing, and `weight` to this the other layer's.
    own_weight: float


@dataclass(frozen=True)
class Recall:
    layers: list[LayerRecall]  # without those that read everything
    plan: LayerPlan
    steps: int

    def __str__(self) -> str:
        lines = [f"{a:>5}  {b:<6}  {c:>6}  {d:>6}  {e:>17}" for a, b, c, d, e in (_HEADS, *self._rows())]
        return "\n".join([self._caption(), *lines])

    def _repr_html_(self) -> str:
        return html_table(self._caption(), _HEADS, self._rows())

    def _caption(self) -> str:
        return f"lists of {self.plan.budget} tokens, {self.steps} steps"

    def _rows(self) -> list[tuple[str, str, str, str, str]]:
        return [
            (str(one.layer), one.role, f"{one.recall:.3f}", f"{one.weight:.3f}", f"{one.own_weight:.3f}")
            for one in self.layers
        ]


def recall(decoder: TreeDecoder, prompt: Tokens | Branch, tokens: int | Tokens) -> Recall:
    """Decodes after a prompt by the decoder's plan of layers, and compares each layer's lists with its own choice. `tokens` are
    the tokens to decode, or how many of the most probable tokens. A step also makes each layer's own lists, so it takes longer
    than a full one."""
    if decoder.layers is None:
        raise UsageError("the decoder has no plan of layers, all read all", "TreeDecoder(model, layers=LayerPlan(...))")
    known = None if isinstance(tokens, int) else [int(token) for token in tokens]
    steps = tokens if isinstance(tokens, int) else len(tokens)
    if steps < 1:
        raise UsageError(f"{steps} steps have no lists, it is at least 1")
    plans = _LookingPlans(decoder.layers, decoder)
    before, decoder._steps = decoder._steps, Forward(decoder._parts, plans)
    try:
        with prompt_of(decoder, prompt) as root:
            branch = decoder.fork(root, 1)[0]
            for step in range(steps):
                assert branch.logits is not None
                decoder.step([branch], [int(branch.logits.argmax()) if known is None else known[step]])
    finally:
        decoder._steps = before
    return Recall(plans.found(), decoder.layers, steps)


class _LookingPlans(SelectingPlans):
    """Plans in which each layer that reads lists also makes its own. Own lists have separate plans, because a plan on a GPU
    holds one layer's lists."""

    def __init__(self, layers: LayerPlan, decoder: TreeDecoder) -> None:
        kind, cache = selecting_kind(decoder.kinds), decoder.cache
        # The weights on a list follow from lse, which steps have no need of.
        more = {kind: f"output = {SPEC_DTYPES[cache.dtype]} with lse; {layers.clause()}"}
        attentions = compile_kinds(decoder.kinds, cache.dtype, cache.page_size, more)
        super().__init__(cache, attentions, None, {}, decoder.roles, kind)
        self._layers = layers
        self._own = SelectingPlans(cache, attentions, None, {}, ["select"] * len(decoder.roles), kind)
        self._seen: dict[int, list[tuple[float, float, float]]] = {}

    def advance(self) -> None:
        super().advance()
        self._own.advance()

    def run(self, kind: Kind, layer: int, q: torch.Tensor, page_table: Any) -> torch.Tensor:
        out = super().run(kind, layer, q, page_table)
        if self.roles[layer] != "full":
            tensors = *self._tensors(layer, q), page_table
            plan, own = self._own._plans[kind], self._own.selection
            _, whole = plan.run_selecting(own, *tensors, return_lse=True)
            _, best = plan.run_sparse(own, *tensors, return_lse=True)
            _, read = self._plans[kind].run_sparse(self.selection, *tensors, return_lse=True)
            weights = ((part - whole).exp().mean().item() for part in (read, best))
            self._seen.setdefault(layer, []).append((self._part_read(own), *weights))
        return out

    def found(self) -> list[LayerRecall]:
        return [
            LayerRecall(layer, self.roles[layer], *torch.tensor(seen, dtype=torch.float64).mean(dim=0).tolist())
            for layer, seen in self._seen.items()
        ]

    def _part_read(self, own: Selection) -> float:
        parts = []
        for query in range(own.query_count):
            for index in range(own.lists):
                wanted = self._chosen(own.positions(query, index))
                there = wanted & set(self.selection.positions(query, index))
                parts.append(len(there) / len(wanted) if wanted else 1.0)
        return sum(parts) / len(parts)

    def _chosen(self, positions: list[int]) -> set[int]:
        """Returns the positions without those that are always kept. A query's own token is the last of its path; it is kept if
        any token at the end is."""
        end = positions[-1] + 1 - self._layers.keep_last
        return {one for one in positions if self._layers.keep_first <= one < end}
