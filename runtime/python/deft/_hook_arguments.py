"""Binds the arguments of hook functions by name."""

from __future__ import annotations

import difflib
import inspect
from typing import Any, Mapping, NamedTuple

from ._errors import UsageError
from ._expr import F32, I32, Expr, name
from .lang import depth, kv_head, query

S = name("s", F32)
HEAD = name("head", I32, 0)
X = name("x", F32)
#: -1 where the path has no tokens before the query's own: then a mask bound by `path` may show some, and an output has a row.
_Q_POS, _Q_POS_OF_A_TOKEN = name("q_pos", I32, -1), name("q_pos", I32, 0)
_KV_POS = name("kv_pos", I32, 0)
_BATCH = Expr("batch", (), I32, 0)
_DIM = name("dim", I32, 0)

#: FlexAttention's names of what has another one here. Its `b`, which masks and scores may name but not use, has none.
_FLEX = {"score": "s", "h": "head", "q_idx": "q_pos", "kv_idx": "kv_pos"}
#: The orders in which FlexAttention, and this package up to 0.2, called the two hooks, by the number of arguments.
_ORDERS = {
    "mask": {2: ("q_pos", "kv_pos"), 4: ("b", "head", "q_pos", "kv_pos")},
    "score": {4: ("s", "head", "q_pos", "kv_pos"), 5: ("s", "b", "head", "q_pos", "kv_pos")},
}
#: What is meant by names that are like none.
_MEANT = {"q": "q_pos", "qi": "q_pos", "query_pos": "q_pos", "k": "kv_pos", "kv": "kv_pos", "ki": "kv_pos", "key_pos": "kv_pos"}


class Arguments(NamedTuple):
    """The arguments of one call."""

    by_place: list[Expr]
    by_name: dict[str, Expr]


def _readable(hook: str, bound: str) -> dict[str, Expr]:
    """Returns the values that the hook may read, by name: rules E1, H and N of specs/LANGUAGE.md."""
    # Under `tree` a mask and a score are asked for tokens up to the query's own, so there is one.
    q_pos = _Q_POS_OF_A_TOKEN if bound == "tree" and hook != "output" else _Q_POS
    of_pair = {"q_pos": q_pos, "kv_pos": _KV_POS, "head": HEAD, "kv_head": kv_head, "depth": depth, "query": query}
    of_element = {"x": X, "x_half": name("x_half", F32), "x_pair": name("x_pair", F32), "x_rms": name("x_rms", F32, 0), "dim": _DIM}
    of_query = {"q_pos": q_pos, "query": query, "head": HEAD, "kv_head": kv_head}
    return {
        "mask": of_pair,
        "score": {"s": S, **of_pair},
        "query": {**of_element, "pos": name("pos", I32, q_pos.least), **of_query},
        "key": {**of_element, "pos": name("pos", I32, 0), "kv_pos": _KV_POS, "kv_head": kv_head},
        "value": {"x": X, "kv_pos": _KV_POS, "depth": depth, "kv_head": kv_head},
        "output": {"x": X, "dim": _DIM, **of_query},
        "sink": {"head": HEAD, "kv_head": kv_head},
    }[hook]


def _of_flex(hook: str, readable: Mapping[str, Expr]) -> dict[str, Expr]:
    """Returns the same values by FlexAttention's names."""
    batch = {"b": _BATCH} if hook in _ORDERS else {}
    return batch | {theirs: readable[own] for theirs, own in _FLEX.items() if own in readable}


def arguments_of(hook: str, function: Any, bound: str) -> Arguments:
    """Returns the arguments for a call of the function. Each argument without a default is bound by its name, in any order."""
    readable = _readable(hook, bound)
    of_flex = _of_flex(hook, readable)
    known, naming = readable | of_flex, _naming(readable, of_flex)
    needed = _needed(hook, function, naming)
    unknown = [one.name for one in needed if one.name not in known]
    if unknown:
        what = f"unknown arguments {_listed(unknown)}" if len(unknown) > 1 else f"an unknown argument `{unknown[0]}`"
        raise UsageError(f"the {hook} has {what}", _renaming(hook, [one.name for one in needed], known) + naming)
    is_by_name = [one.kind is one.KEYWORD_ONLY for one in needed]
    return Arguments(
        [known[one.name] for one, is_named in zip(needed, is_by_name) if not is_named],
        {one.name: known[one.name] for one, is_named in zip(needed, is_by_name) if is_named},
    )


def _needed(hook: str, function: Any, naming: str) -> list[inspect.Parameter]:
    """Lists the arguments without a default."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # a function of C
        raise UsageError(f"the arguments of the {hook}, {function!r}, have no names", naming) from None
    rest = next((one for one in parameters if one.kind is one.VAR_POSITIONAL), None)
    if rest is not None:
        hint = f"name its arguments, or put functools.wraps around it: {naming}"
        raise UsageError(f"the {hook} has the arguments `*{rest.name}`, which have no names", hint)
    return [one for one in parameters if one.default is one.empty and one.kind is not one.VAR_KEYWORD]


def _listed(names: list[str]) -> str:
    quoted = [f"`{one}`" for one in names]
    return " and ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)


def _naming(readable: Mapping[str, Expr], of_flex: Mapping[str, Expr]) -> str:
    also = f", or as FlexAttention calls them: {', '.join(of_flex)}" if of_flex else ""
    return f"arguments are bound by name: {', '.join(readable)}{also}"


def _renaming(hook: str, names: list[str], known: Mapping[str, Expr]) -> str:
    """Suggests names for unknown arguments: the closest known name, or the meaning of the position in older releases."""
    order = _ORDERS.get(hook, {}).get(len(names))
    taken = {id(known[one]) for one in names if one in known and one != "b"}
    renamed: dict[str, str] = {}
    for place, one in enumerate(names):
        if one in known and not (one == "b" and order is not None and order[place] != "b"):
            continue
        if one != "b" and (one in _FLEX or one in _FLEX.values()):  # of another hook
            continue
        like = difflib.get_close_matches(one, known, 1)
        meant = _MEANT.get(one) or (like[0] if like and one != "b" else None) or (order[place] if order else None)
        if meant in known and id(known[meant]) not in taken:
            renamed[one] = meant
            taken.add(id(known[meant]))
    return f"rename {' and '.join(f'`{one}` to `{new}`' for one, new in renamed.items())}; " if renamed else ""
