"""Options of plans and of runs. Each is said here and nowhere else: its name and type, its default, which field of the C ABI it
fills, and what it means. Functions that take them say so by `Unpack`, and by `takes` to help()."""

from __future__ import annotations

import functools
import inspect
from typing import Annotated, Any, Callable, Mapping, NamedTuple, TypedDict, TypeVar, get_type_hints

from . import _abi
from ._arguments import expect_whole
from ._errors import UsageError, wrong
from ._library import PYTHON_NAMES, sized

PARTITIONS = {
    name.removeprefix("DEFT_PARTITION_").lower(): value
    for name, value in vars(_abi).items()
    if name.startswith("DEFT_PARTITION_") and name != "DEFT_PARTITION_DEFAULT"
}
Function = TypeVar("Function", bound=Callable[..., Any])


class Option(NamedTuple):
    default: Any
    field: str = ""  # of a struct of the C ABI; empty: the run itself reads it
    as_c: Callable[[str, Any], Any] = lambda name, value: bool(value)  # an error where it cannot be meant


def _partition(name: str, value: str | None) -> int:
    if value is not None and value not in PARTITIONS:
        raise UsageError(f"there is no partition `{value}`", f"it is one of {', '.join(PARTITIONS)}", name)
    return PARTITIONS[value] if value else _abi.DEFT_PARTITION_DEFAULT


def _chunk(name: str, value: int | None) -> int:
    return _abi.DEFT_CHUNK_DEFAULT if value is None else _natural(name, value) or _abi.DEFT_CHUNK_FILL


def _natural(name: str, value: int | None) -> int:
    return 0 if value is None else expect_whole(name, value, least=0)


def _percent(name: str, value: float) -> int:
    """The C library counts in percent, so a message about its range would name another number than the caller gave."""
    try:
        percent = round(100 * value)
    except (TypeError, ValueError, OverflowError):
        raise wrong(name, f"is {value!r}, it must be a number") from None
    if not 0 <= value <= 1:
        raise wrong(name, f"is {value}, it must be from 0 to 1")
    return percent


class PlanOptions(TypedDict, total=False):
    """Options of a plan. Without `partition` and `chunk_tokens` it uses tuned configs, else the cheapest by the cost
    model; `chunk_tokens=0` keeps all workers busy. `invariant`: the bits of a query's result do not depend
    on other requests, only on the nodes of its path: a branch that splits one changes them. `runs_ahead`, `follows_lengths` and
    `slack` are for captured graphs (deft_gpu_plan_options). `check_pages`: on GPUs, a kernel before each run checks the
    pages that the run will read, and check_replays reports an entry of the page table outside the cache; runs on processors
    always check."""

    partition: Annotated[str | None, Option(None, "deft_plan_options::partition", _partition)]
    chunk_tokens: Annotated[int | None, Option(None, "deft_plan_options::chunk_tokens", _chunk)]
    invariant: Annotated[bool, Option(False, "deft_plan_options::is_invariant")]
    runs_ahead: Annotated[int, Option(0, "deft_gpu_plan_options::runs_ahead", _natural)]
    follows_lengths: Annotated[bool, Option(False, "deft_gpu_plan_options::follows_lengths")]
    slack: Annotated[int, Option(0, "deft_gpu_plan_options::slack", _natural)]
    check_pages: Annotated[bool, Option(False, "deft_gpu_plan_options::checks_pages")]


class TreePlanOptions(PlanOptions, total=False):
    """Options of a tree's plan. `workers`: threads that will run the plan; 0: all. `check_places`: nodes that share slots of the
    cache are an error. `budget`: on GPUs, tokens of a list of runs that select; by default that of the first selecting run's
    selection. `list_overlap`: of lists by `caller`, which part of a list is also in that of another query with the same path, as
    a guess: on GPUs queries that share nodes then read unions where that is estimated to be faster."""

    workers: Annotated[int, Option(0, "deft_plan_options::workers", _natural)]
    check_places: Annotated[bool, Option(False, "deft_plan_options::checks_places")]
    budget: Annotated[int | None, Option(None, "deft_gpu_plan_options::budget", _natural)]
    list_overlap: Annotated[float, Option(0, "deft_gpu_plan_options::list_overlap", _percent)]


class TreeRunOptions(_abi.RunSettings, total=False):
    """`out` and `lse` are written to; without them the run makes new arrays, `lse` only on request. `stream`: a GPU's stream in
    place of the current one of q's library."""

    out: Annotated[Any, Option(None)]
    lse: Annotated[Any, Option(None)]
    stream: Annotated[int | None, Option(None)]


class RunOptions(TreeRunOptions, total=False):
    """`params`: values of parameters in place of the plan's. `return_lse`: the run returns (out, lse). (Attention.run has both among
    its own arguments.)"""

    params: Annotated[Mapping[str, Any] | None, Option(None)]
    return_lse: Annotated[bool, Option(False)]


def _setting(name: str, kind: type) -> Option:
    """Of runs, as the C header has it: a truth value or a number, 0 by default."""
    return Option(kind(), f"deft_run_settings::{name}", *([] if kind is bool else [_natural]))


@functools.cache
def options_of(kind: Any) -> dict[str, Option]:
    hints = get_type_hints(kind, include_extras=True).items()
    return {name: hint.__metadata__[0] if hasattr(hint, "__metadata__") else _setting(name, hint) for name, hint in hints}


_OPTIONS = {**options_of(TreePlanOptions), **options_of(RunOptions)}
PYTHON_NAMES.update({option.field: name for name, option in _OPTIONS.items() if option.field})


#: Options of runs that are fields of deft_run_settings, made of the C header.
SETTINGS = get_type_hints(_abi.RunSettings).keys()


def as_c(name: str, value: Any) -> Any:
    """What C has for an option; an error where the value cannot be meant."""
    return _OPTIONS[name].as_c(name, value)


def _explained(kind: Any) -> list[str]:
    """What this kind of options says, and that which it adds to."""
    before = {TreePlanOptions: [PlanOptions], TreeRunOptions: [_abi.RunSettings], RunOptions: [TreeRunOptions, _abi.RunSettings]}
    return [one.__doc__ or "" for one in (*before.get(kind, []), kind)]


def takes(kind: Any) -> Callable[[Function], Function]:
    """Of a function that has these options as `**options`: help() lists and explains them."""

    def say(function: Function) -> Function:
        signature, types = inspect.signature(function), get_type_hints(kind)
        parameters = [one for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD]
        for name, option in options_of(kind).items():
            parameters.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=option.default, annotation=types[name]))
        function.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        function.__doc__ = "\n\n".join(map(inspect.cleandoc, filter(None, [function.__doc__, *_explained(kind)])))
        return function

    return say


def expect_known(function: str, kind: Any, given: Mapping[str, Any]) -> None:
    """As Python says it of arguments."""
    for name in given:
        if name not in options_of(kind):
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")


def checked(function: str, kind: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """All options of the kind, each as it is given or by default; an error where one cannot be meant, on whatever device."""
    expect_known(function, kind, given)
    known = {name: given.get(name, option.default) for name, option in options_of(kind).items()}
    for name, value in known.items():
        as_c(name, value)
    return known


def struct_of(kind: Any, options: Mapping[str, Any], **others: Any) -> Any:
    """A struct of the C ABI with what checked options say of its fields."""
    fields = {}
    for name, value in options.items():
        struct, _, field = _OPTIONS[name].field.rpartition("::")
        if struct == kind.__name__:
            fields[field] = as_c(name, value)
    return sized(kind, **fields, **others)
