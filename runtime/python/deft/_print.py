"""Expressions as text of the language."""

from __future__ import annotations

import math
from typing import Mapping, Sequence

from ._expr import Expr, refuse

_PRECEDENCE = {"||": 1, "&&": 2, "==": 3, "!=": 3, "<": 4, "<=": 4, ">": 4, ">=": 4, "+": 5, "-": 5, "*": 6, "/": 6, "%": 6}
_SELECT, _UNARY, _PRIMARY = 0, 7, 8
_NO_CHAINS = ("==", "!=", "<", "<=", ">", ">=")


def text_of(expr: Expr, names: Mapping[int, str] | None = None) -> str:
    """`names` are those of values that a `let` has, by id."""
    return _Printer(names or {}).print(expr)[0]


class _Printer:
    def __init__(self, names: Mapping[int, str]) -> None:
        self._names = names

    def print(self, expr: Expr) -> tuple[str, int]:
        """With how tightly its outermost operator binds."""
        if id(expr) in self._names:
            return self._names[id(expr)], _PRIMARY
        op, args = expr.op, expr.args
        if op == "name":
            return args[0], _PRIMARY
        if op == "number":
            return _number(args[0])
        if op == "index":
            return f"{args[0]}[{', '.join(self._at(one, _SELECT) for one in args[1:])}]", _PRIMARY
        if op == "call":
            return f"{args[0]}({', '.join(self._at(one, _SELECT) for one in args[1:])})", _PRIMARY
        if op == "?:":
            parts = [self._at(args[0], 1), self._at(args[1], 1), self._at(args[2], _SELECT)]
            return f"{parts[0]} ? {parts[1]} : {parts[2]}", _SELECT
        if op in ("!", "neg"):
            return ("!" if op == "!" else "-") + self._at(args[0], _PRIMARY), _UNARY
        if op == "//":
            return f"floor_div({self._at(args[0], _SELECT)}, {self._at(args[1], _SELECT)})", _PRIMARY
        if op == "batch":
            raise refuse("the batch index `b`", "a query stands in its tree; `depth` and `query` are in deft.lang")
        if op == "token":
            raise refuse("`token`, but as an index of an array", "its position is kv_pos")
        level = _PRECEDENCE[op]
        left = level + 1 if op in _NO_CHAINS else level
        return f"{self._at(args[0], left)} {op} {self._at(args[1], level + 1)}", level

    def _at(self, expr: Expr, least: int) -> str:
        text, level = self.print(expr)
        return text if level >= least else f"({text})"


def _number(value: float | int) -> tuple[str, int]:
    if isinstance(value, float) and math.isinf(value):
        text = "inf"
    else:
        text = repr(abs(value))
    return (text, _PRIMARY) if math.copysign(1, value) > 0 else (f"-{text}", _UNARY)


def shared(roots: Sequence[Expr]) -> list[Expr]:
    """The operations that are used more than once, each after those that it uses."""
    uses: dict[int, int] = {}
    order: list[Expr] = []
    stack = [(root, False) for root in reversed(roots)]
    while stack:
        expr, is_done = stack.pop()
        if is_done:
            order.append(expr)
            continue
        uses[id(expr)] = uses.get(id(expr), 0) + 1
        if uses[id(expr)] == 1:
            stack.append((expr, True))
            stack += [(one, False) for one in reversed(list(expr.operands()))]
    return [expr for expr in order if uses[id(expr)] > 1 and expr.op not in ("name", "number", "index", "batch", "token")]
