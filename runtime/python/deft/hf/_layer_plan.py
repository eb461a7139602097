"""Plans of layers: which layers read the whole cache, which choose tokens, and which read only chosen tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Sequence

from .._errors import UsageError
from ._kinds import Kind

Role = Literal["full", "select", "sparse"]


@dataclass(frozen=True)
class LayerPlan:
    """Says how each layer of a model reads the cache in decode steps. The first `full` layers read all tokens. Each of the
    `select` layers reads all tokens and chooses `budget` of them for every list. The others read the tokens that the last
    selecting layer before them chose. Layers count from 0. Without `select`, the first layer after the full ones chooses, and
    the one in the middle of the model chooses again.

    `by`, `keep_first` and `keep_last` are those of the language's `select`. Prompts are always read in full. Every
    `correct_every` steps the tokens that sparse layers decoded are computed again, with full attention; None: only when you
    call TreeDecoder.correct.

    If some layers see only a window, the plan leaves these unchanged: they cost little, and their tokens are of no use to other
    layers. The plan then covers only the layers that see all tokens."""

    budget: int = 4096
    full: int = 2
    select: tuple[int, ...] | None = None
    keep_first: int = 4
    keep_last: int = 64
    by: Literal["kv_head", "query_head", "query"] = "kv_head"
    correct_every: int | None = None

    def __post_init__(self) -> None:
        if self.select is not None:
            object.__setattr__(self, "select", tuple(self.select))
        for name, least in (("budget", 1), ("full", 0), ("keep_first", 0), ("keep_last", 0)):
            if getattr(self, name) < least:
                raise UsageError(f"{name} = {getattr(self, name)}, it is at least {least}")
        kept = self.keep_first + self.keep_last
        if kept > self.budget:
            raise UsageError(f"keep_first and keep_last are {kept} tokens, the budget is {self.budget}")
        if self.by not in ("kv_head", "query_head", "query"):
            raise UsageError(f"by = {self.by!r}", 'it is "kv_head", "query_head" or "query"')
        if self.correct_every is not None and self.correct_every < 1:
            hint = "without it nothing is corrected until TreeDecoder.correct is called"
            raise UsageError(f"correct_every = {self.correct_every} steps, it is at least 1", hint)

    def clause(self) -> str:
        """Returns the `select` clause of a spec."""
        return (
            f"select {{ budget = {self.budget}; by = {self.by}; "
            f"keep_first = {self.keep_first}; keep_last = {self.keep_last}; }}"
        )

    def roles(self, kinds: Sequence[Kind]) -> list[Role]:
        """Returns the role of each layer of a model."""
        seers = _seers(kinds)
        chosen = self._selecting(kinds, seers)
        first = chosen[0]
        blind = [layer for layer in seers if self.full <= layer < first]
        if blind:
            raise UsageError(
                f"layer {blind[0]} is to be sparse, and the first that selects is {first}",
                f"full = {first}, or select = ({blind[0]}, ...)",
            )
        roles: list[Role] = ["full"] * len(kinds)
        for layer in seers:
            if layer >= first:
                roles[layer] = "select" if layer in chosen else "sparse"
        return roles

    def _selecting(self, kinds: Sequence[Kind], seers: list[int]) -> list[int]:
        if self.select is None:
            behind = [layer for layer in seers if layer >= self.full]
            if not behind:
                raise UsageError(f"no layer is left to select: {self.full} of {len(kinds)} are full")
            middle = [layer for layer in behind if layer >= len(kinds) // 2]
            return sorted({behind[0], *middle[:1]})
        chosen = list(self.select)
        if not chosen or chosen != sorted(set(chosen)):
            raise UsageError(f"select = {self.select}, it is at least one layer, and layers rise")
        for layer in chosen:
            if not self.full <= layer < len(kinds):
                others = f"layers {self.full} to {len(kinds) - 1} are not full by the plan"
                raise UsageError(f"layer {layer} cannot select: {others}")
            if layer not in seers:
                window = kinds[layer].window
                near = min(seers, key=lambda other: abs(other - layer))
                raise UsageError(f"layer {layer} sees a window of {window} tokens, others see all", f"layer {near} does")
        return chosen


def selecting_kind(kinds: Sequence[Kind]) -> Kind:
    """Returns the kind of the layers that a plan covers. Their lists have the same shape, so they must be of one kind."""
    found = {kinds[layer] for layer in _seers(kinds)}
    if len(found) != 1:
        raise UsageError(f"layers that could share lists are of {len(found)} kinds, they must be of one")
    return found.pop()


def _seers(kinds: Sequence[Kind]) -> list[int]:
    """Returns the layers that see most: those without a window, or all layers if every layer has one."""
    without = [layer for layer, kind in enumerate(kinds) if kind.window is None]
    return without or list(range(len(kinds)))
