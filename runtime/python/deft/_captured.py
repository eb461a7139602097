"""Arrays that a traced function captures: they become parameters of the spec."""

from __future__ import annotations

import functools
import inspect
import math
import sys
import types
from contextvars import ContextVar
from typing import Any

from . import _ops
from ._expr import F32, I32, Expr, call, lift, name, number, refuse

_MOST_IN_TABLE = 1 << 16  # rule P3 of specs/LANGUAGE.md
_LONGEST_NAME = 64 - 4  # rule L3, with room for a suffix

#: Whose function is being traced.
tracing: ContextVar[Captures] = ContextVar("tracing")

# Names that a spec may not declare (rule F6 of specs/LANGUAGE.md), or which would be hidden.
_TAKEN = set(
    "attention import param let mask score schedule tree path true false inf tune f32 i32 bool query_heads kv_heads head_dim key_dim value_dim scale "
    "dtype kv_cache normalize output key value s q_pos kv_pos head kv_head depth query select x x_half x_pair x_rms dim pos "
    "token".split()
) | set(_ops.FUNCTIONS)


class CapturedArray:
    """An array in a traced function. It supports only indexing."""

    def __init__(self, name: str, array: Any, owner: Captures) -> None:
        self._name, self._array, self._owner = name, array, owner

    def __getitem__(self, index: Any) -> Expr:
        return self._owner.element(self._name, self._array, index)

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        raise refuse(f"`.{attribute}` of the captured array `{self._name}`", "only its elements")


class Captures:
    """Collects the parameters of one spec."""

    def __init__(self, query_heads: int, kv_heads: int, head: Expr, kv_head: Expr, query: Expr, token: Expr) -> None:
        self._indices = {
            id(head): ("query_heads", query_heads, "head"),
            id(kv_head): ("kv_heads", kv_heads, "kv_head"),
        }
        self._kv_head, self._query, self._token = kv_head, query, token
        self._names: dict[str, Any] = {}  # of parameters -> the array that it is
        self.declarations: list[str] = []
        self.values: dict[str, Any] = {}

    def has(self, name: str) -> bool:
        return name in self._names

    def _name_for(self, wanted: str, array: Any) -> tuple[str, bool]:
        """Returns the parameter's name, and whether it is new."""
        wanted = "".join(letter if letter.isascii() else f"u{ord(letter):x}" for letter in wanted)[:_LONGEST_NAME]
        candidate, suffix = wanted + "_" * (wanted in _TAKEN), 1
        while candidate in self._names:
            if self._names[candidate] is array:
                return candidate, False
            suffix += 1
            candidate = f"{wanted}_{suffix}"
        self._names[candidate] = array
        return candidate, True

    def element(self, wanted: str, array: Any, index: Any) -> Expr:
        shape = tuple(array.shape)
        indices = index if isinstance(index, tuple) else (index,)
        if indices and indices[0] is self._token:
            return self._token_element(wanted, array, indices[1:])
        if index is self._query:
            if len(shape) != 1:
                raise refuse(f"`{wanted}[query]` of shape {list(shape)}", "it has one number for each query")
            return self._read(wanted, array, "queries", index)
        known = self._indices.get(id(index))
        if known is None:
            return self._table_element(wanted, array, indices)
        heads, count, written = known
        if shape != (count,):
            raise refuse(f"`{wanted}[{written}]` of shape {list(shape)}", f"there are {count} {heads}")
        return self._read(wanted, array, heads, index)

    def _table_element(self, wanted: str, array: Any, indices: tuple[Any, ...]) -> Expr:
        """Returns an element of a small array, in row-major order. An index out of range is clamped."""
        shape = tuple(array.shape)
        if len(indices) != len(shape) or not all(isinstance(one, (Expr, int, float)) for one in indices):
            raise refuse(f"`{wanted}{list(indices)}` of shape {list(shape)}", "an index for each dimension, each a number")
        size = math.prod(shape)
        if not 1 <= size <= _MOST_IN_TABLE:
            raise refuse(f"the table `{wanted}` of {size} numbers", f"it has 1 to {_MOST_IN_TABLE}")
        place = number(indices[0])
        for count, one in zip(shape[1:], indices[1:]):
            place = _within(place) * count + call("min", call("max", _within(number(one)), lift(0)), lift(count - 1))
        return self._read(wanted, array, str(size), place)

    def _token_element(self, wanted: str, array: Any, more: tuple[Any, ...]) -> Expr:
        """Returns an element of an array with the layout of the cache's pages, with or without a KV head."""
        shape, token = tuple(array.shape), name("token", I32)
        if not more:
            return self._read(wanted, array, "tokens", token)
        if len(more) != 1 or more[0] is not self._kv_head:
            raise refuse(f"`{wanted}[token, ...]` at another place than kv_head", "array[lang.token, lang.kv_head]")
        heads, count, _ = self._indices[id(self._kv_head)]
        if shape[-1:] != (count,):
            raise refuse(f"`{wanted}[token, kv_head]` of shape {list(shape)}", f"there are {count} {heads}")
        return self._read(wanted, array, "tokens, kv_heads", token, self._kv_head)

    def _read(self, wanted: str, array: Any, size: str, *index: Expr) -> Expr:
        """Returns an element of the parameter; `size` is its size as the declaration writes it."""
        kind = _kind_of(wanted, array)
        parameter, is_new = self._name_for(wanted, array)
        declaration = f"param {parameter} : {kind}[{size}];"
        if is_new:
            self.declarations.append(declaration)
            are_many = size.startswith(("tokens", "queries"))
            self.values[parameter] = _copy_of(wanted, array, kind) if are_many else _values_of(array, kind)
        elif declaration not in self.declarations:
            raise refuse(f"`{wanted}` by two kinds of index", "give it a second name: other = array.copy()")
        return Expr("index", (parameter, *index), kind)

    def replace(self, wanted: str, value: Any, seen: dict[int, Any]) -> Any:
        """Returns the object that replaces a captured value while the function is traced."""
        if isinstance(value, (types.FunctionType, types.MethodType, functools.partial)):
            return self.open(value, seen)
        if type(value) in (tuple, list):  # as and_masks keeps its masks
            return type(value)(self.replace(wanted, one, seen) for one in value)
        if isinstance(value, Expr) or not isinstance(getattr(value, "shape", None), tuple):
            return value
        if len(value.shape) == 0 and hasattr(value, "item"):
            kind = _kind_of(wanted, value)
            parameter, is_new = self._name_for(wanted, value)
            if is_new:
                self.declarations.append(f"param {parameter} : {kind} = {value.item()!r};")
            return name(parameter, kind)
        return CapturedArray(wanted, value, self)

    def open(self, function: Any, seen: dict[int, Any] | None = None) -> Any:
        """Returns the function with its captured arrays replaced, and those of the functions that it calls."""
        seen = {} if seen is None else seen
        if isinstance(function, types.MethodType):
            return types.MethodType(self.open(function.__func__, seen), function.__self__)
        if isinstance(function, functools.partial):
            return self._open_partial(function, seen)
        if not isinstance(function, types.FunctionType):
            return function
        if id(function) in seen:
            return seen[id(function)]
        seen[id(function)] = function  # where it calls itself
        code = function.__code__
        names = _names_of(code)
        globals_ = {
            key: self.replace(key, value, seen) for key, value in function.__globals__.items() if key in names
        }
        cells = []
        for key, cell in zip(code.co_freevars, function.__closure__ or ()):
            try:
                cells.append(types.CellType(self.replace(key, cell.cell_contents, seen)))
            except ValueError:  # an empty one
                cells.append(cell)
        defaults = function.__defaults__
        if defaults:
            keys = code.co_varnames[code.co_argcount - len(defaults) : code.co_argcount]
            defaults = tuple(self.replace(key, value, seen) for key, value in zip(keys, defaults))
        opened = types.FunctionType(
            code, {**function.__globals__, **globals_}, function.__name__, defaults, tuple(cells) or None
        )
        given = function.__kwdefaults__ or {}
        opened.__kwdefaults__ = {key: self.replace(key, value, seen) for key, value in given.items()} or None
        seen[id(function)] = opened
        return opened

    def _open_partial(self, function: Any, seen: dict[int, Any]) -> Any:
        try:
            names = list(inspect.signature(function.func).parameters)
        except ValueError:  # a function of C
            names = []
        names += ["array"] * (len(function.args) - len(names))  # those of *args, too
        given = [self.replace(name, value, seen) for name, value in zip(names, function.args)]
        by_name = {name: self.replace(name, value, seen) for name, value in function.keywords.items()}
        return functools.partial(self.open(function.func, seen), *given, **by_name)


def element_of(array: Any, index: Any) -> Expr:
    """Returns an element of a tensor that is not a variable of the traced function, but an attribute or an element of another
    object."""
    captures = tracing.get(None)
    if captures is None:
        raise refuse(f"an element at `{index}` outside of a function that deft.attention traces")
    return captures.element("array", array, index)


def _within(place: Expr) -> Expr:
    """Returns an index as a whole number, so that other indices can be added to it."""
    return call("floor", place) if place.kind == F32 else place


def _names_of(code: types.CodeType) -> set[str]:
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found |= _names_of(constant)
    return found


def _kind_of(wanted: str, array: Any) -> str:
    kind = str(array.dtype).rpartition(".")[2]
    if kind in ("float16", "bfloat16", "float32", "float64"):
        return F32
    if kind in ("int8", "int16", "int32", "int64", "uint8"):
        return I32
    raise refuse(f"the captured array `{wanted}` of {kind}", "its numbers are floating point, or integers of 32 bits")


def _copy_of(wanted: str, array: Any, kind: str) -> Any:
    """Copies the array's current values, on its device, in the type that runs take."""
    word = {F32: "float32", I32: "int32"}[kind]
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(array, torch.Tensor):
        own = array.detach().to(getattr(torch, word), copy=True).contiguous()
    else:
        own = array.astype(word).copy()
    if kind == I32 and not bool((own == array).all()):
        raise refuse(f"the captured array `{wanted}`: a number in it does not fit into 32 bits")
    return own


def _values_of(array: Any, kind: str) -> list[Any]:
    """Lists the array's current values. A run may pass other values."""
    cast = float if kind == F32 else int
    return [cast(value) for value in array.reshape(-1).tolist()]
