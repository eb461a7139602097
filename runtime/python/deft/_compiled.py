"""Facts of a compiled attention, its parameters and its text."""

from __future__ import annotations

from ctypes import byref, c_int32
from typing import Any, Mapping, NamedTuple

from . import _abi
from ._arguments import to_bytes
from ._errors import UsageError
from ._library import Handle, OfThisProcess, filled, lib, read, sized, take_text
from ._tensors import DTYPE_NAMES

_SIZED_BY = {_abi.DEFT_SIZED_BY_TOKENS: "tokens", _abi.DEFT_SIZED_BY_QUERIES: "queries"}
_SELECT_BY = {
    _abi.DEFT_SELECT_BY_KV_HEAD: "kv_head",
    _abi.DEFT_SELECT_BY_QUERY_HEAD: "query_head",
    _abi.DEFT_SELECT_BY_QUERY: "query",
    _abi.DEFT_SELECT_BY_CALLER: "caller",
}
_SOURCES = {"ir": _abi.DEFT_SOURCE_IR, "cuda": _abi.DEFT_SOURCE_CUDA, "spec": _abi.DEFT_SOURCE_SPEC}


class Param(NamedTuple):
    """A parameter that the spec declares."""

    name: str
    dtype: str  # "float32" or "int32"
    length: int  # 1, one value a query head or KV head, or a table's; 0: see sized_by
    is_array: bool
    has_default: bool  # else a run fails that does not give it
    sized_by: str | None = None  # "tokens": `elements` values a slot of the cache; "queries": one a query
    elements: int = 1  # of [tokens, kv_heads]: the number of KV heads


class Selects(NamedTuple):
    """The `select` of a spec."""

    budgets: tuple[int, ...]  # tokens of a list: those that a host may choose from
    by: str = "kv_head"  # or "query_head" or "query", or "caller": sparse runs are given the lists
    keep_first: int = 0  # tokens of the path that are in every list, from its beginning
    keep_last: int = 0  # and from its end


class Compiled(OfThisProcess):
    """The properties of an attention."""

    _sent_as = "compile or load it in the other one (`spec` is its text)"

    def __init__(self, handle: Handle, origin: Mapping[str, Any], captured: Mapping[str, Any] | None = None) -> None:
        self._as_parameter_ = handle._as_parameter_
        self._handle = handle
        self._origin = dict(origin)  # how another process makes the same one
        facts = filled(_abi.deft_attention_facts, lib.deft_attention_get_facts, handle)
        self.name: str = facts.name.decode()
        self._title: str = origin.get("title") or f"`{self.name}`"  # what errors call it
        self.query_heads: int = facts.query_heads
        self.kv_heads: int = facts.kv_heads
        self.key_dim: int = facts.key_dim  # of q, too
        self.value_dim: int = facts.value_dim  # of the output, too
        self.value_in_key = bool(facts.value_in_key)  # a latent cache, which runs are given as k alone
        self.scale_columns: int = facts.scale_columns  # of a latent cache with scales in its rows: columns of V that share one
        self.byte_products = bool(facts.byte_products)  # q and the weights are rounded to e4m3, in which both products are made
        self.head_dim: int = facts.head_dim  # key_dim, where they differ
        self.page_size: int | None = facts.page_size or None  # None: the cache is contiguous
        self.has_lse = bool(facts.has_lse)
        self.sees_path = bool(facts.sees_path)
        self._code: int = facts.query_dtype
        self._cache_code: int = facts.key_dtype
        self._output_code: int = facts.output_dtype
        self.dtype = DTYPE_NAMES[facts.query_dtype]  # of q
        self.cache_dtype = DTYPE_NAMES[facts.key_dtype]  # of k and v
        self.output_dtype = DTYPE_NAMES[facts.output_dtype]
        self.params = [self._param(index) for index in range(facts.param_count)]
        # Arrays that a Python function had captured; values given to a run go before them.
        self.captured: dict[str, Any] = dict(captured or {})
        selects = self.selects
        self._lists_are_given = selects is not None and selects.by == "caller"

    def _param(self, index: int) -> Param:
        info = filled(_abi.deft_param_info, lib.deft_attention_get_param, self._handle, index)
        return read(Param, info, dtype=DTYPE_NAMES[info.dtype], sized_by=_SIZED_BY.get(info.sized_by))

    @property
    def selects(self) -> Selects | None:
        """Returns the spec's `select`. None: every layer attends to all visible tokens."""
        info = filled(_abi.deft_selection_info, lib.deft_attention_get_selection, self._handle)
        if info.budget_count == 0:
            return None
        budgets = tuple((c_int32 * info.budget_count).from_address(info.budgets))
        return read(Selects, info, budgets=budgets, by=_SELECT_BY[info.by])

    def source(self, kind: str, *, architecture: str = "sm_90a", phase: str | None = None) -> str:
        """Returns the compiler's output as text: "ir", the MLIR dialect after the passes; "cuda", a kernel's translation unit,
        for a `phase` of the untuned config or for "merge"; "spec"."""
        if kind not in _SOURCES:
            raise UsageError(f"there is no source of kind `{kind}`", 'it is "cuda", "ir" or "spec"', "kind")
        options = sized(_abi.deft_source_options, architecture=to_bytes("architecture", architecture), phase=to_bytes("phase", phase))
        return take_text(lib.deft_attention_get_source, self._handle, _SOURCES[kind], byref(options))

    @property
    def spec(self) -> str:
        """Returns the compiled spec, as written or as made from Python functions."""
        return self.source("spec")

    def __repr__(self) -> str:
        cache = "a contiguous cache" if self.page_size is None else f"pages of {self.page_size} tokens"
        if self.cache_dtype != self.dtype:
            cache += f" of {self.cache_dtype}" + (" with scales" if self.scale_columns else "")
        dims = f"head_dim {self.key_dim}"
        if self.key_dim != self.value_dim:
            dims = f"key_dim {self.key_dim}, value_dim {self.value_dim}" + (" of K" if self.value_in_key else "")
        return (
            f"<deft.Attention {self.name}: {self.query_heads} query heads, {self.kv_heads} KV heads, "
            f"{dims}, {self.dtype}, {cache}>"
        )
