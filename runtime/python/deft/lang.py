"""The functions and names that Python hooks may use in addition to operators: the language's functions by their names in NumPy
and torch, and the names of a token's and a query's values.

>>> import deft
>>> from deft import lang
>>> att = deft.attention(query_heads=8, kv_heads=2, head_dim=64,
...                      score=lambda s: 30.0 * lang.tanh(s / 30.0))
>>> print(att.spec)
attention traced {
  query_heads = 8;
  kv_heads = 2;
  head_dim = 64;
  score = 30.0 * tanh(s / 30.0);
}
<BLANKLINE>
"""

from __future__ import annotations

from typing import Any, Callable

from ._captured import element_of
from ._expr import F32, FUNCTIONS, I32, Expr, call, compare, lift, logic, name, number, refuse, select
from ._functions import *  # noqa: F403  those of one f32: exp, tanh, floor and the others
from ._functions import REALS, floor

inf = float("inf")
depth = name("depth", I32, 0)  # of the token's node, a root's being 0
query = name("query", I32, 0)  # the query's index in the caller's order; of an array, own[query], one number for each
kv_head = name("kv_head", I32, 0)
token = Expr("token", (), I32)  # an index alone, of one number for each slot of the cache: doc[token], or k_scale[token, kv_head]


def where(condition: Any, yes: Any, no: Any) -> Expr:
    return select(condition, yes, no)


def minimum(left: Any, right: Any) -> Expr:
    return call("min", left, right)


def maximum(left: Any, right: Any) -> Expr:
    return call("max", left, right)


def absolute(value: Any) -> Expr:
    return call("abs", value)


def floor_divide(left: Any, right: Any) -> Expr:
    return lift(left) // right


def _divide(left: Any, right: Any, *, rounding_mode: str | None = None) -> Expr:
    """Works like torch.div."""
    left, right = number(left), number(right)
    if rounding_mode is None:
        return left / right
    if rounding_mode != "floor" and not (left.is_natural and right.is_natural):
        raise refuse(f"a division that rounds by {rounding_mode!r}", 'rounding_mode="floor"')
    return floor(left / right) if F32 in (left.kind, right.kind) else left // right


def _clamp(value: Any, least: Any = None, most: Any = None, *, min: Any = None, max: Any = None) -> Expr:
    least, most = least if min is None else min, most if max is None else max
    value = number(value)
    if least is not None:
        value = maximum(value, least)
    return value if most is None else minimum(value, most)


def _float(value: Any) -> Expr:
    value = number(value)
    return value if value.kind == F32 else value * 1.0


def _to(value: Any, dtype: Any = None, *_: Any, **__: Any) -> Expr:
    wanted, value = str(dtype), lift(value)
    if "float" in wanted:
        return _float(value)
    if "int" in wanted and value.kind != F32:
        return number(value)
    raise refuse(f"`{value}` as {dtype}")


def _constant(number_: int) -> Callable[..., Any]:
    """Implements a tensor's new_ones and new_zeros: torch's and_masks, or_masks and noop_mask begin with these."""

    def make(_: Any, size: Any = (), *, dtype: Any = None, **__: Any) -> Expr:
        if tuple(size) != ():
            raise refuse(f"an array of shape {tuple(size)}")
        return lift(bool(number_)) if str(dtype).rpartition(".")[2] == "bool" else lift(number_)

    return make


def _operator(method: str) -> Callable[..., Any]:
    return lambda left, right: getattr(lift(left), method)(right)


# By the names that torch's and NumPy's functions and methods have.
FUNCTIONS.update({
    "where": where,
    "minimum": minimum,
    "maximum": maximum,
    "fmin": minimum,
    "fmax": maximum,
    **REALS,
    "abs": absolute,
    "absolute": absolute,
    "fabs": absolute,
    "neg": lambda value: -lift(value),
    "negative": lambda value: -lift(value),
    "square": lambda value: lift(value) ** 2,
    "clamp": _clamp,
    "clip": _clamp,
    "float": _float,
    "to": _to,
    "type": _to,
    "astype": _to,
    "logical_and": lambda left, right: logic("&&", "&", left, right),
    "logical_or": lambda left, right: logic("||", "|", left, right),
    "logical_xor": _operator("__xor__"),
    "logical_not": lambda value: ~lift(value),
    **{name: _operator("__and__") for name in ("bitwise_and", "and_", "__and__")},
    **{name: _operator("__or__") for name in ("bitwise_or", "or_", "__or__")},
    **{name: _operator("__add__") for name in ("add", "__add__", "__radd__")},
    **{name: _operator("__mul__") for name in ("mul", "multiply", "__mul__", "__rmul__")},
    **{name: _operator("__sub__") for name in ("sub", "subtract", "__sub__")},
    **{name: _operator("__rsub__") for name in ("rsub", "__rsub__")},
    **{name: _divide for name in ("div", "divide", "true_divide", "__truediv__", "__div__")},
    **{name: _operator("__rtruediv__") for name in ("__rtruediv__", "__rdiv__")},
    **{name: floor_divide for name in ("floor_divide", "__floordiv__")},
    "__rfloordiv__": lambda left, right: lift(right) // left,
    "__getitem__": element_of,
    "new_ones": _constant(1),
    "new_zeros": _constant(0),
    "divmod": lambda left, right: divmod(lift(left), right),
    **{name: _operator("__mod__") for name in ("remainder", "mod", "__mod__")},
    **{name: _operator("__pow__") for name in ("pow", "power", "__pow__")},
})
for _names, _op in (
    ("lt less __lt__", "<"),
    ("le less_equal __le__", "<="),
    ("gt greater __gt__", ">"),
    ("ge greater_equal __ge__", ">="),
    ("eq equal __eq__", "=="),
    ("ne not_equal __ne__", "!="),
):
    for _name in _names.split():
        FUNCTIONS[_name] = lambda left, right, _op=_op: compare(_op, left, right)
