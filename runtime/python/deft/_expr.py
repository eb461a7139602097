"""Values of a Python function that is traced: what is done to them becomes an expression of the language of specs."""

from __future__ import annotations

import math
import weakref
from typing import Any, Iterator

from ._errors import DiagnosticError

I32, F32, BOOL = "i32", "f32", "bool"
_LARGEST = 2**31 - 1
_MOST_POSITIONS = 2**30  # rule V2 of specs/LANGUAGE.md
_NATURAL = ("exp", "exp2", "sigmoid", "sqrt", "rsqrt")  # functions whose results are 0 or more
_INTERNED: weakref.WeakValueDictionary[Any, Expr] = weakref.WeakValueDictionary()


def refuse(what: str, hint: str = "") -> DiagnosticError:
    return DiagnosticError(f"a spec cannot say {what}", hint)


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
        """Known to be 0 or more."""
        return self.least is not None and self.least >= 0

    def operands(self) -> Iterator[Expr]:
        return (one for one in self.args if isinstance(one, Expr))

    # Arithmetic.
    def __add__(self, other: Any) -> Expr:
        return _arithmetic("+", self, other)

    def __radd__(self, other: Any) -> Expr:
        return _arithmetic("+", other, self)

    def __sub__(self, other: Any) -> Expr:
        return _arithmetic("-", self, other)

    def __rsub__(self, other: Any) -> Expr:
        return _arithmetic("-", other, self)

    def __mul__(self, other: Any) -> Expr:
        return _times(self, other)

    def __rmul__(self, other: Any) -> Expr:
        return _times(other, self)

    def __truediv__(self, other: Any) -> Expr:
        return Expr("/", (number(self), number(other)), F32)

    def __rtruediv__(self, other: Any) -> Expr:
        return Expr("/", (number(other), number(self)), F32)

    def __mod__(self, other: Any) -> Expr:
        return _modulo(self, other)

    def __rmod__(self, other: Any) -> Expr:
        return _modulo(other, self)

    def __floordiv__(self, other: Any) -> Expr:
        return _floor_divide(self, other)

    def __rfloordiv__(self, other: Any) -> Expr:
        return _floor_divide(other, self)

    def __divmod__(self, other: Any) -> tuple[Expr, Expr]:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple[Expr, Expr]:
        return other // self, other % self

    def __pow__(self, other: Any) -> Expr:
        return _power(self, other)

    def __rpow__(self, other: Any) -> Expr:
        return _power(lift(other), self)

    def __neg__(self) -> Expr:
        value = number(self)
        return Expr("neg", (value,), value.kind)

    def __pos__(self) -> Expr:
        return number(self)

    def __abs__(self) -> Expr:
        return call("abs", self)

    # Comparisons.
    def __lt__(self, other: Any) -> Expr:
        return compare("<", self, other)

    def __le__(self, other: Any) -> Expr:
        return compare("<=", self, other)

    def __gt__(self, other: Any) -> Expr:
        return compare(">", self, other)

    def __ge__(self, other: Any) -> Expr:
        return compare(">=", self, other)

    def __eq__(self, other: Any) -> Expr:  # type: ignore[override]
        return compare("==", self, other)

    def __ne__(self, other: Any) -> Expr:  # type: ignore[override]
        return compare("!=", self, other)

    # Logic.
    def __and__(self, other: Any) -> Expr:
        return logic("&&", "&", self, other)

    def __rand__(self, other: Any) -> Expr:
        return logic("&&", "&", other, self)

    def __or__(self, other: Any) -> Expr:
        return logic("||", "|", self, other)

    def __ror__(self, other: Any) -> Expr:
        return logic("||", "|", other, self)

    def __xor__(self, other: Any) -> Expr:
        other = lift(other)
        return (self & ~other) | (~self & other)

    __rxor__ = __xor__

    def __invert__(self) -> Expr:
        if self.kind != BOOL:
            raise refuse("the bitwise `~` of a number")
        return Expr("!", (self,), BOOL)

    # What has no place in an expression.
    def __bool__(self) -> bool:
        raise refuse(
            f"`if`, `and`, `or`, `not`, `min`, `max` or a chain of comparisons of Python (here on `{self}`)",
            "write &, | and ~, and where, minimum and maximum of deft.lang, torch or numpy",
        )

    def __float__(self) -> float:
        raise refuse(f"a function of Python's math, or float(), of `{self}`", "use those of deft.lang, torch or numpy")

    def __int__(self) -> int:
        raise refuse(f"int() of `{self}`")

    def __index__(self) -> int:
        raise refuse(f"indexing by `{self}`", "an array needs a name around the function: w = self.w")

    def __iter__(self) -> Iterator[Any]:
        raise refuse(f"a loop over `{self}`")

    def __getitem__(self, index: Any) -> Expr:
        raise refuse(f"an element of `{self}`")

    def __round__(self, digits: int | None = None) -> Expr:
        raise refuse(f"round() of `{self}`")

    def __floor__(self) -> int:
        raise refuse(f"floor() of `{self}`")

    def __ceil__(self) -> int:
        raise refuse(f"ceil() of `{self}`")

    def __lshift__(self, other: Any) -> Expr:
        raise refuse("the shift `<<`", "multiply")

    def __rshift__(self, other: Any) -> Expr:
        raise refuse("the shift `>>`", "divide by `//`")

    # Methods and functions of torch and numpy.
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name == "device":  # where new_ones shall be
            return None
        from .lang import method

        return method(self, name)

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        from .lang import apply

        return apply(getattr(function, "__name__", str(function)), args, kwargs or {})

    def __array_ufunc__(self, function: Any, kind: str, *args: Any, **kwargs: Any) -> Any:
        from .lang import apply

        return apply(function.__name__ if kind == "__call__" else f"{function.__name__}.{kind}", args, kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        from .lang import apply

        return apply(function.__name__, args, kwargs)

    def __str__(self) -> str:
        from ._print import text_of

        return text_of(self)

    __repr__ = __str__


def name(text: str, kind: str, least: int | None = None) -> Expr:
    return Expr("name", (text,), kind, least)


def lift(value: Any) -> Expr:
    """A constant as an expression."""
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
    """As lift; a truth value is 1 or 0."""
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
    """What none of the values is below."""
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
    """Python's, of the sign of its right operand. The language's has the sign of its left one."""
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
    """`value + divisor`, from 0 on, which has the same remainder; of a position that may be -1. Planners see bounds in its
    remainder as they do not in a choice of two."""
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
    """A quotient `x // n` that can be said by `x - x % n`, of which plans see bounds as they do not of floor_div."""
    return value.op == "//" and value.args[1].op == "number" and value.args[1].args[0] > 0


def rounded_down(quotient: Expr) -> Expr:
    """(x // n) * n."""
    value, divisor = quotient.args
    if (raised := _raised(value, divisor)) is not None:
        return raised - raised % divisor - divisor
    return _arithmetic("-", value, _modulo(value, divisor))


def _power(base: Expr, exponent: Any) -> Expr:
    base, power = number(base), lift(exponent)
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
    """What `x // n` rounded to a multiple of n is compared with, where `x // n` is with a number."""
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


def call(function: str, *values: Any) -> Expr:
    args = tuple(number(value) for value in values)
    if function == "abs":
        return Expr("call", (function, *args), _common(*args), 0)
    if function == "min":
        return Expr("call", (function, *args), _common(*args), _smallest(*args))
    if function == "max":
        least = max((one.least for one in args if one.least is not None), default=None)
        return Expr("call", (function, *args), _common(*args), least)
    return Expr("call", (function, *args), F32, 0 if function in _NATURAL else None)
