"""Values of a traced Python function: each operation on them becomes an expression of the spec language."""

from __future__ import annotations

import math
import weakref
from typing import Any, Callable, Iterator, Mapping, Sequence

from . import _ops
from ._errors import DiagnosticError

I32, F32, BOOL = "i32", "f32", "bool"
_LARGEST = 2**31 - 1
_MOST_POSITIONS = 2**30  # rule V2 of specs/LANGUAGE.md
_INTERNED: weakref.WeakValueDictionary[Any, Expr] = weakref.WeakValueDictionary()


def refuse(what: str, hint: str = "") -> DiagnosticError:
    return DiagnosticError(f"a spec cannot say {what}", hint)


Operator = Callable[[Any, Any], "Expr"]


def _both(operation: Operator) -> tuple[Operator, Operator]:
    """Makes two methods: one for the left operand and one for the right."""
    return operation, lambda right, left: operation(left, right)


def _comparison(op: str) -> Operator:
    return lambda left, right: compare(op, left, right)


def _refusal(what: str, hint: str = "") -> Callable[..., Any]:
    """Makes a method that raises an error, for an operation that specs cannot express."""

    def method(self: Any, *_: Any) -> Any:
        raise refuse(what.format(self), hint)

    return method


class Expr:
    """One operation. Equal operations on equal operands are one object, so identity is equality."""

    __slots__ = ("op", "args", "kind", "least", "__weakref__")
    op: str  # "name", "number", "index", "call", "?:", "!", "neg", "//", or an operator as it is written
    args: tuple[Any, ...]
    kind: str
    least: int | None  # a number that it is never below; None: none is known
    __array_priority__ = 1000

    def __new__(cls, op: str, args: tuple[Any, ...], kind: str, least: int | None = None) -> Expr:
        operands = tuple((id(one), "") if isinstance(one, Expr) else (one, type(one).__name__) for one in args)
        key = (op, kind, least, operands)
        known = _INTERNED.get(key)
        if known is None:
            known = super().__new__(cls)
            known.op, known.args, known.kind, known.least = op, args, kind, least
            _INTERNED[key] = known
        return known

    __hash__ = object.__hash__

    @property
    def is_natural(self) -> bool:
        """Whether the value is known to be 0 or more."""
        return self.least is not None and self.least >= 0

    def operands(self) -> Iterator[Expr]:
        return (one for one in self.args if isinstance(one, Expr))

    __add__, __radd__ = _both(lambda left, right: _arithmetic("+", left, right))
    __sub__, __rsub__ = _both(lambda left, right: _arithmetic("-", left, right))
    __mul__, __rmul__ = _both(lambda left, right: _times(left, right))
    __truediv__, __rtruediv__ = _both(lambda left, right: Expr("/", (number(left), number(right)), F32))
    __mod__, __rmod__ = _both(lambda left, right: _modulo(left, right))
    __floordiv__, __rfloordiv__ = _both(lambda left, right: _floor_divide(left, right))
    __pow__, __rpow__ = _both(lambda left, right: _power(left, right))
    __and__, __rand__ = _both(lambda left, right: logic("&&", "&", left, right))
    __or__, __ror__ = _both(lambda left, right: logic("||", "|", left, right))
    __xor__ = __rxor__ = lambda self, other: _exclusive(self, other)
    __lt__, __le__, __gt__, __ge__ = (_comparison(op) for op in ("<", "<=", ">", ">="))
    __eq__, __ne__ = (_comparison(op) for op in ("==", "!="))  # type: ignore[assignment]

    def __divmod__(self, other: Any) -> tuple[Expr, Expr]:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple[Expr, Expr]:
        return other // self, other % self

    def __neg__(self) -> Expr:
        value = number(self)
        return Expr("neg", (value,), value.kind)

    def __pos__(self) -> Expr:
        return number(self)

    def __abs__(self) -> Expr:
        return call("abs", self)

    def __invert__(self) -> Expr:
        if self.kind != BOOL:
            raise refuse("the bitwise `~` of a number")
        return Expr("!", (self,), BOOL)

    # What has no place in an expression.
    __bool__ = _refusal(
        "`if`, `and`, `or`, `not`, `min`, `max` or a chain of comparisons of Python (here on `{}`)",
        "write &, | and ~, and where, minimum and maximum of deft.lang, torch or numpy",
    )
    __float__ = _refusal("a function of Python's math, or float(), of `{}`", "use those of deft.lang, torch or numpy")
    __int__ = _refusal("int() of `{}`")
    __index__ = _refusal("indexing by `{}`", "an array needs a name around the function: w = self.w")
    __iter__ = _refusal("a loop over `{}`")
    __getitem__ = _refusal("an element of `{}`")
    __round__ = _refusal("round() of `{}`")
    __floor__ = _refusal("floor() of `{}`")
    __ceil__ = _refusal("ceil() of `{}`")
    __lshift__ = _refusal("the shift `<<`", "multiply")
    __rshift__ = _refusal("the shift `>>`", "divide by `//`")

    # Methods and functions of torch and numpy.
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name == "device":  # where new_ones shall be
            return None
        return _method(self, name)

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _apply(getattr(function, "__name__", str(function)), args, kwargs or {})

    def __array_ufunc__(self, function: Any, kind: str, *args: Any, **kwargs: Any) -> Any:
        return _apply(function.__name__ if kind == "__call__" else f"{function.__name__}.{kind}", args, kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return _apply(function.__name__, args, kwargs)

    def __str__(self) -> str:
        return text_of(self)

    __repr__ = __str__


def name(text: str, kind: str, least: int | None = None) -> Expr:
    return Expr("name", (text,), kind, least)


def lift(value: Any) -> Expr:
    """Turns a constant into an expression."""
    if isinstance(value, Expr):
        return value
    if hasattr(value, "item") and getattr(value, "ndim", 0) == 0:
        value = value.item()
    if isinstance(value, bool):
        return Expr("name", ("true" if value else "false",), BOOL)
    if isinstance(value, int):
        if abs(value) > _LARGEST:
            raise refuse(f"the number {value}", f"the largest is {_LARGEST}")
        return Expr("number", (value,), I32, value)
    if isinstance(value, float):
        if math.isnan(value):
            raise refuse("the number nan")
        return Expr("number", (value,), F32, 0 if value >= 0 else None)
    if hasattr(value, "shape"):
        raise refuse(
            f"an array of shape {tuple(value.shape)}",
            "it is captured from outside of the function, and indexed by the head",
        )
    raise refuse(f"a {type(value).__name__}")


def number(value: Any) -> Expr:
    """Works like lift, but turns a boolean into 1 or 0."""
    value = lift(value)
    return select(value, 1, 0) if value.kind == BOOL else value


def _common(*values: Expr) -> str:
    return F32 if any(value.kind == F32 for value in values) else I32


def select(condition: Any, yes: Any, no: Any) -> Expr:
    condition, yes, no = lift(condition), lift(yes), lift(no)
    if condition.kind != BOOL:
        raise refuse(f"the condition `{condition}`, which is a number", "compare it")
    if yes.kind == BOOL and no.kind == BOOL:
        return (condition & yes) | (~condition & no)
    yes, no = number(yes), number(no)
    return Expr("?:", (condition, yes, no), _common(yes, no), _smallest(yes, no))


def _smallest(*values: Expr) -> int | None:
    """Returns a lower bound of all values, or None."""
    known = [value.least for value in values if value.least is not None]
    return min(known) if len(known) == len(values) else None


def _arithmetic(op: str, left: Any, right: Any) -> Expr:
    left, right = number(left), number(right)
    least = None
    if op == "+" and left.least is not None and right.least is not None:
        least = left.least + right.least
    elif op == "-" and left.least is not None and _is_whole_number(right):
        least = left.least - right.args[0]
    return Expr(op, (left, right), _common(left, right), least)


def _times(left: Any, right: Any) -> Expr:
    left, right = number(left), number(right)
    for one, other in ((left, right), (right, left)):
        if _is_by_constant(one) and one.args[1] is other:
            return rounded_down(one)
    return Expr("*", (left, right), _common(left, right), 0 if left.is_natural and right.is_natural else None)


def _modulo(left: Any, right: Any) -> Expr:
    """Computes Python's `%`, with the sign of the right operand. The language's `%` has the sign of the left one."""
    left, right = number(left), number(right)
    if left.kind != I32 or right.kind != I32:
        raise refuse("the remainder `%` of a number that is not whole")
    if not right.is_natural:
        raise refuse(f"the remainder `%` by `{right}`, which may be negative")
    if (raised := _raised(left, right)) is not None:
        left = raised
    remainder = Expr("%", (left, right), I32, 0 if left.is_natural else None)
    return remainder if left.is_natural else select(remainder < 0, Expr("+", (remainder, right), I32, 0), remainder)


def _raised(value: Expr, divisor: Expr) -> Expr | None:
    """Returns `value + divisor` for a position that may be -1, or None. The sum is at least 0 and has the same remainder.
    Planners find bounds in that remainder, but not in a choice between two values."""
    if value.op != "name" or value.least is None or value.least >= 0 or not _is_whole_number(divisor):
        return None
    return value + divisor if -value.least <= divisor.args[0] <= _MOST_POSITIONS else None


def _is_whole_number(value: Expr) -> bool:
    return value.op == "number" and value.kind == I32


def _floor_divide(left: Any, right: Any) -> Expr:
    left, right = number(left), number(right)
    if left.kind != I32 or right.kind != I32:
        raise refuse("the floor division `//` of a number that is not whole", "use floor of deft.lang, torch or numpy")
    if right.op == "number" and right.args[0] == 0:
        raise refuse(f"the floor division `{left} // 0`")
    return Expr("//", (left, right), I32, 0 if left.is_natural and right.is_natural else None)


def _is_by_constant(value: Expr) -> bool:
    """Whether `value` is a quotient `x // n` that can be written with `x - x % n`. Plans find bounds in that form, but not in
    floor_div."""
    return value.op == "//" and value.args[1].op == "number" and value.args[1].args[0] > 0


def rounded_down(quotient: Expr) -> Expr:
    """Returns (x // n) * n."""
    value, divisor = quotient.args
    if (raised := _raised(value, divisor)) is not None:
        return raised - raised % divisor - divisor
    return _arithmetic("-", value, _modulo(value, divisor))


def _power(left: Any, right: Any) -> Expr:
    base, power = number(left), lift(right)
    known = power.args[0] if power.op == "number" else None
    if known in (2, 3, 4):
        result = base
        for _ in range(int(known) - 1):
            result = result * base
        return result
    if known == 1:
        return base
    if known == 0.5:
        return call("sqrt", base)
    if known == -0.5:
        return call("rsqrt", base)
    if known == -1:
        return 1.0 / base
    if base.op == "number" and base.args[0] > 0:
        return call("exp2", power * math.log2(base.args[0]))
    raise refuse(f"the power `** {power}`", "2, 3, 4, 0.5, -0.5 and -1 can be said, and any of a constant above 0")


def compare(op: str, left: Any, right: Any) -> Expr:
    left, right = lift(left), lift(right)
    if left.kind == BOOL and right.kind == BOOL and op in ("==", "!="):
        return ~(left ^ right) if op == "==" else left ^ right
    left, right = number(left), number(right)
    if _is_by_constant(left) and _is_by_constant(right) and left.args[1] is right.args[1]:
        left, right = rounded_down(left), rounded_down(right)
    elif (multiple := _multiple_for(left, right)) is not None:
        left, right = rounded_down(left), multiple
    elif (multiple := _multiple_for(right, left)) is not None:
        left, right = multiple, rounded_down(right)
    return Expr(op, (left, right), BOOL)


def _multiple_for(quotient: Expr, value: Expr) -> Expr | None:
    """Returns the multiple of n to compare with `x // n * n`, if `x // n` is compared with a number."""
    if not _is_by_constant(quotient) or not _is_whole_number(value):
        return None
    multiple = value.args[0] * quotient.args[1].args[0]
    return lift(multiple) if abs(multiple) <= _LARGEST else None


def logic(op: str, written: str, left: Any, right: Any) -> Expr:
    left, right = lift(left), lift(right)
    if left.kind != BOOL or right.kind != BOOL:
        raise refuse(f"the bitwise `{written}` of numbers")
    neutral = "true" if op == "&&" else "false"
    for one, other in ((left, right), (right, left)):
        if one.op == "name" and one.args[0] == neutral:
            return other
    return Expr(op, (left, right), BOOL)


def _exclusive(left: Any, right: Any) -> Expr:
    left, right = lift(left), lift(right)
    return (left & ~right) | (~left & right)


def call(function: str, *values: Any) -> Expr:
    args = tuple(number(value) for value in values)
    if function == "min":
        return Expr("call", (function, *args), _common(*args), _smallest(*args))
    if function == "max":
        least = max((one.least for one in args if one.least is not None), default=None)
        return Expr("call", (function, *args), _common(*args), least)
    kind = F32 if function in _ops.REALS else _common(*args)
    return Expr("call", (function, *args), kind, 0 if function in _ops.NATURAL else None)


#: Functions and methods of torch and NumPy by their names there. deft.lang has them, and puts them here.
FUNCTIONS: dict[str, Callable[..., Any]] = {}


def _apply(function: str, args: Any, kwargs: Any) -> Any:
    """Applies a function of torch or NumPy to traced values."""
    known = FUNCTIONS.get(function)
    if known is None:
        raise refuse(f"the function `{function}`", "the functions that it can say are in deft.lang")
    try:
        return known(*args, **kwargs)
    except TypeError:
        raise refuse(f"the function `{function}` with these arguments") from None


def _method(value: Expr, function: str) -> Callable[..., Any]:
    """Returns a method of torch or NumPy for a traced value."""
    if function not in FUNCTIONS:
        raise refuse(f"`.{function}` of `{value}`", "the functions that it can say are in deft.lang")
    return lambda *args, **kwargs: _apply(function, (value, *args), kwargs)


_SELECT, _UNARY, _PRIMARY = 0, 7, 8  # beside _ops.PRECEDENCE
_NO_CHAINS = ("==", "!=", "<", "<=", ">", ">=")


def text_of(expr: Expr, names: Mapping[int, str] | None = None) -> str:
    """Writes the expression as text. `names` maps the ids of values to the names of their `let`s."""
    return _printed(expr, names or {})[0]


def _printed(expr: Expr, names: Mapping[int, str]) -> tuple[str, int]:
    """Returns the text and the precedence of its outermost operator."""

    def at(one: Expr, least: int) -> str:
        text, level = _printed(one, names)
        return text if level >= least else f"({text})"

    op, args = expr.op, expr.args
    if id(expr) in names:
        return names[id(expr)], _PRIMARY
    if op == "name":
        return args[0], _PRIMARY
    if op == "number":
        return _text_of_number(args[0])
    if op in ("index", "call"):
        inner = ", ".join(at(one, _SELECT) for one in args[1:])
        return f"{args[0]}[{inner}]" if op == "index" else f"{args[0]}({inner})", _PRIMARY
    if op == "?:":
        return f"{at(args[0], 1)} ? {at(args[1], 1)} : {at(args[2], _SELECT)}", _SELECT
    if op in ("!", "neg"):
        return ("!" if op == "!" else "-") + at(args[0], _PRIMARY), _UNARY
    if op == "//":
        return f"floor_div({at(args[0], _SELECT)}, {at(args[1], _SELECT)})", _PRIMARY
    if op == "batch":
        raise refuse("the batch index `b`", "a query stands in its tree; `depth` and `query` are in deft.lang")
    if op == "token":
        raise refuse("`token`, but as an index of an array", "its position is kv_pos")
    level = _ops.PRECEDENCE[op]
    left = level + 1 if op in _NO_CHAINS else level
    return f"{at(args[0], left)} {op} {at(args[1], level + 1)}", level


def _text_of_number(value: float | int) -> tuple[str, int]:
    if isinstance(value, float) and math.isinf(value):
        text = "inf"
    else:
        text = repr(abs(value))
    return (text, _PRIMARY) if math.copysign(1, value) > 0 else (f"-{text}", _UNARY)


def shared(roots: Sequence[Expr]) -> list[Expr]:
    """Lists the operations that are used more than once, each after its operands."""
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
