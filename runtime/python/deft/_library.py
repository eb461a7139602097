"""The shared library, loaded by ctypes, which lets go of the interpreter's lock during each call."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_void_p, sizeof, string_at
from pathlib import Path
from typing import Any, Callable

from . import _abi
from ._errors import KINDS, InternalError

FOLDER = Path(__file__).absolute().parent  # not resolved: in a build tree the package is links to its sources


def _load() -> ctypes.CDLL:
    loaded = ctypes.CDLL(str(FOLDER / "lib" / "libdeft.so"))
    for name, (result, arguments) in _abi.FUNCTIONS.items():
        function = getattr(loaded, name)
        function.restype = result
        function.argtypes = arguments
    return loaded


lib = _load()


def check(status: int) -> None:
    """Raises what a call's status says."""
    if status:
        message = lib.deft_error_message().decode(errors="replace")
        hint = lib.deft_error_hint().decode(errors="replace")
        raise KINDS.get(status, InternalError)(message, hint)


def sized(kind: Any, **fields: Any) -> Any:
    """A struct of the C ABI that says how large it is; all else is 0, its default."""
    return kind(size=sizeof(kind), **fields)


def to_bytes(value: str | None) -> bytes | None:
    return None if value is None else value.encode()


def make(function: Callable[..., int], *arguments: Any) -> int:
    """What a function makes into its last argument."""
    made = c_void_p()
    check(function(*arguments, byref(made)))
    return made.value or 0


def take_text(function: Callable[..., int], *arguments: Any) -> str:
    """A text that a function makes for its caller."""
    made = make(function, *arguments)
    try:
        return string_at(made).decode()
    finally:
        lib.deft_free(made)


class Handle:
    """Owns what the library made. Passed to a function of the library, it is the pointer."""

    __slots__ = ("_as_parameter_", "_destroy", "__weakref__")

    def __init__(self, value: int, destroy: Callable[[int], None]) -> None:
        self._as_parameter_ = value
        self._destroy = destroy

    def __del__(self) -> None:
        value = getattr(self, "_as_parameter_", None)
        if value:
            self._destroy(value)
