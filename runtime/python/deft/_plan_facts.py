"""What a plan is asked for, and what is known of it."""

from __future__ import annotations

from ctypes import POINTER, addressof, byref, cast
from typing import Any, Callable, NamedTuple

from . import _abi
from ._arguments import expect_whole
from ._errors import UsageError
from ._library import Handle, check, lib, make, sized

PARTITIONS = {
    name.removeprefix("DEFT_PARTITION_").lower(): value
    for name, value in vars(_abi).items()
    if name.startswith("DEFT_PARTITION_") and name != "DEFT_PARTITION_DEFAULT"
}


class PlanSummary(NamedTuple):
    """What a plan costs."""

    items: int  # pieces of work, for each KV head
    direct_items: int  # of them: write the output, no partial result
    dealt_items: int  # of them: tokens that few rows see are dealt to these rows' warps
    tokens_read: int  # by all items, for each KV head: a shared token as often as it is read
    partials: int  # partial results written, for each query head
    merged_queries: int  # queries whose result is merged of several partials


class PlanRoom(NamedTuple):
    """Memory of a plan that has room for larger trees."""

    device_bytes: int
    host_bytes: int  # page-locked


class ConfigChoice(NamedTuple):
    """Which config a plan was made with, and why."""

    rule: str  # "override", "exact", "sibling", "nearby" or "heuristic"
    tree_class: str
    file: str  # that it is from; empty: the heuristic's
    why: str


class PlanOptions(NamedTuple):
    partition: str | None = None
    chunk_tokens: int | None = None
    workers: int = 0
    invariant: bool = False
    check_places: bool = False
    runs_ahead: int = 0
    follows_lengths: bool = False
    slack: int = 0
    budget: int | None = None
    check_pages: bool = False

    def checked(self) -> PlanOptions:
        """With numbers that can be meant, on whatever device the plan will be; else an error."""
        given = {name: getattr(self, name) for name in ("workers", "runs_ahead", "slack", "budget")}
        numbers = {name: expect_whole(name, value, least=0) for name, value in given.items() if value is not None}
        return self._replace(**numbers)

    def struct(self, params: Handle | None) -> Any:
        if self.partition is not None and self.partition not in PARTITIONS:
            raise UsageError(f"there is no partition `{self.partition}`", f"it is one of {', '.join(PARTITIONS)}")
        chunk = _abi.DEFT_CHUNK_DEFAULT
        if self.chunk_tokens is not None:
            chunk = expect_whole("chunk_tokens", self.chunk_tokens, least=0) or _abi.DEFT_CHUNK_FILL
        return sized(
            _abi.deft_plan_options,
            params=params._as_parameter_ if params else None,
            partition=PARTITIONS[self.partition] if self.partition else _abi.DEFT_PARTITION_DEFAULT,
            chunk_tokens=chunk,
            workers=self.workers,
            is_invariant=self.invariant,
            checks_places=self.check_places,
        )

    def gpu_struct(self, plan: Any) -> Any:
        return sized(
            _abi.deft_gpu_plan_options,
            plan=addressof(plan),
            runs_ahead=self.runs_ahead,
            follows_lengths=self.follows_lengths,
            slack=self.slack,
            checks_pages=self.check_pages,
            budget=self.budget or 0,
        )


def read_summary(function: Callable[..., int], plan: Handle) -> PlanSummary:
    summary = sized(_abi.deft_plan_summary)
    check(function(plan, byref(summary)))
    return PlanSummary(*(getattr(summary, name) for name in PlanSummary._fields))


def read_choice(function: Callable[..., int], plan: Handle) -> ConfigChoice:
    made = make(function, plan)
    try:
        choice = cast(made, POINTER(_abi.deft_config_choice))[0]
        return ConfigChoice(*(getattr(choice, name).decode() for name in ConfigChoice._fields))
    finally:
        lib.deft_free(made)
