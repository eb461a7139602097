"""The shared library, loaded by ctypes, which lets go of the interpreter's lock during each call."""

from __future__ import annotations

import ctypes
import functools
import re
from ctypes import ArgumentError, byref, c_void_p, cast, sizeof, string_at
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable, Mapping

from . import _abi
from ._arguments import check as check_arguments
from ._arguments import checked_types, text_of
from ._errors import KINDS, InternalError

FOLDER = Path(__file__).absolute().parent  # not resolved: in a build tree the package is links to its sources


def _checked(function: Any, parameters: Mapping[str, Any]) -> Callable[..., Any]:
    """The function, which says of arguments of another kind which they are."""

    def call(*arguments: Any) -> Any:
        try:
            return function(*arguments)
        except ArgumentError as error:
            unsaid = error
        check_arguments(parameters, zip(parameters, arguments))
        raise unsaid

    call.parameters = parameters  # type: ignore[attr-defined]
    return call


#: libdeft.so in a build tree, in a wheel by the name that programs ask for which are linked to it: libdeft.so.0.2.
LIBRARY = max((FOLDER / "lib").glob("libdeft.so*"), default=FOLDER / "lib" / "libdeft.so")


def _load() -> Any:
    loaded = ctypes.CDLL(str(LIBRARY))
    functions = {}
    for name, (result, parameters) in _abi.FUNCTIONS.items():
        function = getattr(loaded, name)
        function.restype = result
        function.argtypes = checked_types(parameters)
        functions[name] = _checked(function, parameters)
    return SimpleNamespace(**functions)


lib = _load()


_NAME_OF_CPP = re.compile(r"\b[A-Z]\w*::(\w+)")


def _as_python(text: str) -> str:
    """Errors of usage name what C++ has: Runtime::runSelecting is run_selecting here."""
    return _NAME_OF_CPP.sub(lambda name: re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name[1]), text)


def check(status: int) -> None:
    """Raises what a call's status says."""
    if status:
        message = lib.deft_error_message().decode(errors="replace")
        hint = lib.deft_error_hint().decode(errors="replace")
        if status == _abi.DEFT_USAGE:
            message, hint = _as_python(message), _as_python(hint)
        raise KINDS.get(status, InternalError)(message, hint)


@functools.cache
def _fields_of(kind: Any) -> dict[str, Any]:
    return dict(kind._fields_)


def sized(kind: Any, **fields: Any) -> Any:
    """A struct of the C ABI that says how large it is; all else is 0, its default."""
    if fields:
        check_arguments(_fields_of(kind), fields.items())
    return kind(size=sizeof(kind), **fields)


def to_bytes(name: str, value: str | None) -> bytes | None:
    return None if value is None else text_of(name, value)


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


class OfThisProcess:
    """What is made of the library's memory. Whoever would pickle it is told what to send instead; copy.copy asks the same way."""

    __slots__ = ()
    _sent_as = ""

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(f"a deft.{type(self).__name__} cannot be pickled, it is of this process: {self._sent_as}")


class Handle:
    """Owns what the library made. Passed to a function of the library, it is the pointer, which says of what kind."""

    __slots__ = ("_as_parameter_", "_destroy", "__weakref__")

    def __init__(self, value: int, destroy: Any) -> None:
        (kind,) = destroy.parameters.values()
        self._as_parameter_ = cast(value, kind)
        self._destroy = destroy

    def __del__(self) -> None:
        value = getattr(self, "_as_parameter_", None)
        if value:
            self._destroy(value)
