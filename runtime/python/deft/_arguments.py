"""Checks arguments before they go to the C ABI. ctypes would read memory through an object of the wrong class, and would keep
only the low bits of a number that is too large. The checks here raise an error that names the argument."""

from __future__ import annotations

import os
from array import array
from ctypes import POINTER, c_char_p, c_int32, c_int64, c_size_t, c_uint64, sizeof
from itertools import chain
from operator import index
from types import SimpleNamespace
from typing import Any, Iterable, Mapping, Sequence

from ._errors import UsageError, wrong

_ARRAYS = {c_int32: "i", c_uint64: "Q"}  # as array.array names them
_LIMITS: dict[Any, tuple[int, int]] = {
    **{kind: (-(1 << 8 * sizeof(kind) - 1), (1 << 8 * sizeof(kind) - 1) - 1) for kind in (c_int32, c_int64)},
    **{kind: (0, (1 << 8 * sizeof(kind)) - 1) for kind in (c_size_t, c_uint64)},
}


def _with_article(name: str) -> str:
    return f"{'an' if name[0] in 'AEIOUaeiou' else 'a'} {name}"


def kind_of(value: Any) -> str:
    return "None" if value is None else _with_article(type(value).__name__)


def expect(name: str, value: Any, kind: Any) -> None:
    """Raises an error unless the argument is a handle of the kind (such as _abi.deft_tree), or an object that has one."""
    try:
        POINTER(kind).from_param(value)
        if value is not None:
            return
    except TypeError:
        pass
    wanted = "".join(part.capitalize() for part in kind.__name__.split("_")[1:])
    hint = getattr(value, "_instead_of", {}).get(wanted, "")
    raise wrong(name, f"is {kind_of(value)}, it must be {_with_article(wanted)}", hint)


def expect_whole(name: str, value: Any, kind: Any = c_int32, least: int | None = None) -> int:
    """Returns the number. Raises an error if the value is not a whole number, or if `kind` cannot hold it."""
    try:
        number = index(value)
    except TypeError:
        raise wrong(name, f"is {kind_of(value)}, it must be a whole number") from None
    lowest, most = _LIMITS[kind]
    least = lowest if least is None else least
    if not least <= number <= most:
        raise wrong(name, f"= {number}, it must be from {least} to {most}")
    return number


def text_of(name: str, value: Any) -> bytes:
    """Encodes a text for C."""
    if not isinstance(value, str):
        raise wrong(name, f"is {kind_of(value)}, it must be a str")
    try:
        return value.encode()
    except UnicodeEncodeError as error:
        raise _not_encoded(name, error) from None


def to_bytes(name: str, value: str | None) -> bytes | None:
    return None if value is None else text_of(name, value)


def _not_encoded(name: str, error: UnicodeEncodeError) -> UsageError:
    return wrong(name, f"has {error.object[error.start]!r} at character {error.start}, which is half of a character")


def path_of(name: str, value: Any) -> bytes:
    """Encodes a file's path for C."""
    try:
        return os.fsencode(value)
    except TypeError:
        raise wrong(name, f"is {kind_of(value)}, it must be a str or a path") from None
    except UnicodeEncodeError as error:
        raise _not_encoded(name, error) from None


def _expect_text(name: str, value: Any) -> None:
    if value is not None and not isinstance(value, bytes):
        raise wrong(name, f"is {kind_of(value)}, it must be a str")
    if value is not None and b"\0" in value:
        raise wrong(name, f"has the character 0 at byte {value.index(0)}, where it would end")


def check_kinds(kinds: Mapping[str, Any], values: Iterable[tuple[str, Any]]) -> None:
    """Raises an error if a named argument, or a struct's field, has the wrong kind."""
    for name, value in values:
        kind = kinds[name]
        if kind in _LIMITS:
            expect_whole(name, value, kind)
        elif kind is c_char_p:
            _expect_text(name, value)
        elif hasattr(kind, "contents") and value is not None:
            expect(name, value, kind._type_)


def _whole(kind: Any) -> Any:
    """Makes an argument type that accepts the same numbers as `kind`, but raises an error for numbers that `kind` cannot hold."""
    least, most = _LIMITS[kind]
    pass_on = kind.from_param

    def from_param(value: Any) -> Any:
        number = index(value)
        if least <= number <= most:
            return pass_on(number)
        raise OverflowError

    return SimpleNamespace(from_param=from_param)


def _text(value: Any) -> Any:
    """Refuses a text with a 0 in it, because C would end the text there."""
    if value is not None and b"\0" in value:
        raise ValueError
    return c_char_p.from_param(value)


_CHECKED = {c_char_p: SimpleNamespace(from_param=_text), **{kind: _whole(kind) for kind in _LIMITS}}


def checked_types(kinds: Mapping[str, Any]) -> list[Any]:
    """Returns a function's `argtypes`. An argument of the wrong kind raises ctypes.ArgumentError."""
    return [_CHECKED.get(kind, kind) for kind in kinds.values()]


def _as_c(kind: Any, count: int, numbers: array[int]) -> Any:
    return (kind * count).from_buffer(numbers) if count else (kind * 0)()  # an empty one of Python's is anywhere


def row_of(name: str, values: Sequence[Any], kind: Any = c_int32) -> Any:
    """Makes a C array of these numbers."""
    try:
        return _as_c(kind, len(values), array(_ARRAYS[kind], values))
    except (TypeError, OverflowError):
        for place, value in enumerate(values):
            expect_whole(f"{name}[{place}]", value, kind)
        raise


def structs_of(name: str, rows: Sequence[tuple[Any, ...]], kind: Any) -> Any:
    """Makes a C array of structs with int32 fields, one struct for each tuple."""
    try:
        return _as_c(kind, len(rows), array("i", chain.from_iterable(rows)))
    except (TypeError, OverflowError):
        for place, row in enumerate(rows):
            for (field, _), value in zip(kind._fields_, row):
                expect_whole(f"{name}[{place}].{field}", value, c_int32)
        raise
