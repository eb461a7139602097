"""Loads the shared library with ctypes. Each call releases the interpreter's lock."""

from __future__ import annotations

import ctypes
import functools
import re
from ctypes import POINTER, ArgumentError, byref, c_int32, c_size_t, c_void_p, cast, sizeof, string_at
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable, Mapping, TypeVar

from . import _abi
from ._arguments import check_kinds, checked_types
from ._errors import KINDS, InternalError

Facts = TypeVar("Facts")
FOLDER = Path(__file__).absolute().parent  # not resolved: in a build tree the package is links to its sources


def _checked(function: Any, parameters: Mapping[str, Any]) -> Callable[..., Any]:
    """Wraps the function: if an argument has the wrong kind, the error names the argument."""

    def call(*arguments: Any) -> Any:
        try:
            return function(*arguments)
        except ArgumentError as error:
            unsaid = error
        check_kinds(parameters, zip(parameters, arguments))
        raise unsaid

    call.parameters = parameters  # type: ignore[attr-defined]
    return call


#: libdeft.so in a build tree, in a wheel by the name that programs ask for which are linked to it: libdeft.so.0.3.
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

#: What the C ABI calls otherwise than this package, where it is not an option (_options says how these are called).
PYTHON_NAMES = {
    "deft_beam_histories::entries": "table",
    "deft_beam_histories::entry_count": "table",
    "deft_beam_histories::indptr": "histories",
    "deft_beam_histories::page_count": "pages",
    "deft_beam_histories::stretches": "histories",
    "deft_beam_tree_options::most_beams": "max_beams",
    "deft_gpu_load_options::is_invariant": "invariant",
    "deft_page_table::entries": "block_tables",
    "deft_page_table::entry_count": "block_tables",
    "deft_paged_batch_options::invariant_chunk": "chunk_tokens",
    "deft_paged_requests::lengths": "seq_lens",
    "deft_paged_requests::table": "block_tables",
    "deft_quantize_shape::from": "values",
    "deft_quantize_shape::to": "dtype",
    "deft_tune_options::budget_seconds": "budget",
    "deft_tune_options::is_fresh": "fresh",
    "deft_gpu_peers_options::head_begin": "merged",
    "deft_gpu_peers_options::head_count": "merged",
    "head_begin": "heads",
    "head_count": "heads",
}


_INDEX = re.compile(r"\[\d+\]")


def python_name(field: str, names: Mapping[str, str] = PYTHON_NAMES) -> str:
    """Returns this package's name for an argument, a struct's field or an element ("states[1].out")."""
    name = names.get(_INDEX.sub("[]", field)) or field.rpartition("::")[2]
    return name.replace("[]", "".join(_INDEX.findall(field)[:1]))


def check(status: int, names: Mapping[str, str] = PYTHON_NAMES) -> None:
    """Raises the error of a failed call. `names` are the Python names of the call's arguments."""
    if status:
        field, detail, message, hint = (
            said().decode(errors="replace")
            for said in (lib.deft_error_field, lib.deft_error_detail, lib.deft_error_message, lib.deft_error_hint)
        )
        name = python_name(field, names)
        raise KINDS.get(status, InternalError)(f"{name} {detail}" if name else message, hint, name)


@functools.cache
def _fields_of(kind: Any) -> dict[str, Any]:
    return dict(kind._fields_)


def sized(kind: Any, **fields: Any) -> Any:
    """Makes a struct of the C ABI with its size set. All other fields are 0, their default."""
    if fields:
        check_kinds(_fields_of(kind), fields.items())
    return kind(size=sizeof(kind), **fields)


def struct_of(kind: Any, **fields: Any) -> Any:
    """Makes the same struct from values that this package has computed, without checks."""
    return kind(size=sizeof(kind), **fields)


def filled(kind: Any, function: Callable[..., int], *arguments: Any) -> Any:
    """Returns a struct that the function fills through its last argument."""
    struct = sized(kind)
    check(function(*arguments, byref(struct)))
    return struct


def read(kind: Callable[..., Facts], struct: Any, **given: Any) -> Facts:
    """Makes a NamedTuple or a dataclass from a struct's fields of the same names; `given` replaces some of them."""
    values = {}
    for name, said in kind.__annotations__.items():
        if name not in given:
            value, of = getattr(struct, name), getattr(said, "__forward_arg__", said)  # as a NamedTuple has it, or a dataclass
            values[name] = text(value) if of == "str" else bool(value) if of == "bool" else value
    return kind(**values, **given)


def text(value: bytes | None) -> str:
    return (value or b"").decode(errors="replace")


def make(function: Callable[..., int], *arguments: Any, names: Mapping[str, str] = PYTHON_NAMES) -> int:
    """Returns the object that the function makes through its last argument."""
    made = c_void_p()
    check(function(*arguments, byref(made)), names)
    return made.value or 0


def take_text(function: Callable[..., int], *arguments: Any) -> str:
    """Returns the text that a function makes for its caller."""
    made = make(function, *arguments)
    try:
        return string_at(made).decode()
    finally:
        lib.deft_free(made)


def take_row(kind: Any, element: Callable[[Any], Any] | None, function: Callable[..., int], *arguments: Any) -> list[Any]:
    """Returns the row that a function makes through its last two arguments: numbers, or structs, each passed to `element`."""
    found, count = c_void_p(), c_size_t()
    check(function(*arguments, byref(found), byref(count)))
    try:
        row = cast(found, POINTER(kind))[: count.value]
        return row if element is None else [element(one) for one in row]
    finally:
        lib.deft_free(found)


def take_number(function: Callable[..., int], *arguments: Any) -> int:
    """Returns the number that the function writes to its last argument."""
    found = c_int32()
    check(function(*arguments, byref(found)))
    return found.value


class OfThisProcess:
    """An object in the library's memory. Pickling it raises an error that suggests an alternative, and so does copy.copy
    without a __copy__."""

    __slots__ = ()
    _sent_as = ""

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(f"a deft.{type(self).__name__} cannot be pickled, it is of this process: {self._sent_as}")


class Handle:
    """Owns an object of the library. As an argument it is a pointer of the right kind."""

    __slots__ = ("_as_parameter_", "_destroy", "__weakref__")

    def __init__(self, value: int, destroy: Any) -> None:
        (kind,) = destroy.parameters.values()
        self._as_parameter_ = cast(value, kind)
        self._destroy = destroy

    def __del__(self) -> None:
        value = getattr(self, "_as_parameter_", None)
        if value:
            self._destroy(value)


class Borrowed:
    """A handle that another object owns; it keeps that object alive."""

    def __init__(self, value: Any, owner: Any) -> None:
        self._as_parameter_ = value
        self._owner = owner


def pointers(handles: list[Handle]) -> Any:
    """Makes a C array of handles, for a call that takes several."""
    return (c_void_p * len(handles))(*(cast(handle._as_parameter_, c_void_p).value for handle in handles))
