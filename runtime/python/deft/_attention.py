"""What is computed: an attention, out of a spec or a package."""

from __future__ import annotations

import os
from ctypes import byref, c_int32
from typing import TYPE_CHECKING, Any, Mapping, NamedTuple

from . import _abi
from ._arguments import expect, path_of, text_of
from ._errors import DiagnosticError, UsageError
from ._library import Handle, OfThisProcess, check, lib, make, sized, take_text, to_bytes
from ._params import freeze, merged
from ._plan import Plan
from ._plan_facts import PlanOptions
from ._tensors import DTYPE_NAMES, view

if TYPE_CHECKING:
    from ._tree import TreeView

_SIZED_BY = {_abi.DEFT_SIZED_BY_TOKENS: "tokens", _abi.DEFT_SIZED_BY_QUERIES: "queries"}
_SELECT_BY = {_abi.DEFT_SELECT_BY_KV_HEAD: "kv_head", _abi.DEFT_SELECT_BY_QUERY_HEAD: "query_head", _abi.DEFT_SELECT_BY_QUERY: "query"}
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
    """What a spec's `select` says."""

    budgets: tuple[int, ...]  # tokens of a list: those that a host may choose from
    by: str = "kv_head"  # or "query_head" or "query"
    keep_first: int = 0  # tokens of the path that are in every list, from its beginning
    keep_last: int = 0  # and from its end


class Attention(OfThisProcess):
    """A compiled attention. Made by deft.compile, deft.load and deft.attention; compiling takes some tenths of a second,
    so do it once. All threads may use one.

    It has `name`, `query_heads`, `kv_heads`, `head_dim`, `page_size` (None: the cache is contiguous), `dtype` of q,
    `cache_dtype` of k and v, `output_dtype`, `has_lse`, `sees_path` (its mask is bound by `path`), `params` (each a Param), and
    `captured`: the values of arrays that a Python function had.

    >>> import deft, numpy
    >>> att = deft.compile(
    ...     "attention a { query_heads = 4; kv_heads = 2; head_dim = 64; dtype = f16; kv_cache = contiguous; }")
    >>> att
    <deft.Attention a: 4 query heads, 2 KV heads, head_dim 64, float16, a contiguous cache>
    >>> tree = deft.Tree()
    >>> prompt = tree.add_root(100, location=0)
    >>> for branch in range(2):
    ...     _ = tree.add_query(tree.add_child(prompt, 5, location=100 + 5 * branch))
    >>> q = numpy.ones((2, 4, 64), "float16")
    >>> k = v = numpy.ones((110, 2, 64), "float16")
    >>> float(att.run(tree, q, k, v).mean())
    1.0
    """

    _sent_as = "compile or load it in the other one (`spec` is its text)"

    def __init__(self, handle: Handle, origin: Mapping[str, Any], captured: Mapping[str, Any] | None = None) -> None:
        self._as_parameter_ = handle._as_parameter_
        self._handle = handle
        self._origin = dict(origin)  # how another process makes the same one
        facts = sized(_abi.deft_attention_facts)
        check(lib.deft_attention_get_facts(handle, byref(facts)))
        self.name: str = facts.name.decode()
        self.query_heads: int = facts.query_heads
        self.kv_heads: int = facts.kv_heads
        self.head_dim: int = facts.head_dim
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
        self._needed = frozenset(param.name for param in self.params if not param.has_default)

    def __copy__(self) -> Attention:
        return self

    def __deepcopy__(self, memo: Any) -> Attention:
        """Itself, as nothing changes it: models that have one are copied."""
        return self

    def _param(self, index: int) -> Param:
        info = sized(_abi.deft_param_info)
        check(lib.deft_attention_get_param(self._handle, index, byref(info)))
        name, dtype = info.name.decode(), DTYPE_NAMES[info.dtype]
        has = bool(info.is_array), bool(info.has_default)
        return Param(name, dtype, info.length, *has, _SIZED_BY.get(info.sized_by), info.elements)

    @property
    def selects(self) -> Selects | None:
        """None: every layer attends to all that it sees."""
        info = sized(_abi.deft_selection_info)
        check(lib.deft_attention_get_selection(self._handle, byref(info)))
        if info.budget_count == 0:
            return None
        budgets = (c_int32 * info.budget_count).from_address(info.budgets)
        return Selects(tuple(budgets), _SELECT_BY[info.by], info.keep_first, info.keep_last)

    def run(
        self,
        tree: TreeView,
        q: Any,
        k: Any,
        v: Any,
        page_table: Any = None,
        params: Mapping[str, Any] | None = None,
        return_lse: bool = False,
        *,
        out: Any = None,
        lse: Any = None,
        stream: int | None = None,
        check_finite: bool = False,
    ) -> Any:
        """The attention of the tree's queries; row i of q, out and lse belongs to query i. Gives `out`, or `(out, lse)`.

        q is [queries, query_heads, head_dim]. k and v are the cache of one layer as the spec's `kv_cache` orders it:
        [tokens, kv_heads, head_dim] where it is contiguous, else [pages, page_size, kv_heads, head_dim] (or heads before
        slots), with the page of each page of the tree's locations in `page_table` (int32). Arrays are read and written as
        they are; `out` and `lse` are made where they are not given, and must not overlap with what is read. Plans for the
        tree are kept with it, and follow it. `check_finite`: as in Plan.run.
        """
        expect("tree", tree, _abi.deft_tree)
        frozen = freeze(merged({}, params)) if params else ()
        kept = tree._plans.get(self)
        if kept is None or kept[0] != frozen:
            plan = Plan(self, tree, params, PlanOptions(), device=_device_of(q), keeps_tree=False)
            tree._plans[self] = (frozen, plan)
        else:
            plan = kept[1]
            plan._advance(tree)
        return plan._run(q, k, v, page_table, out, lse, return_lse, None, stream, check_finite)

    def plan(
        self,
        tree: TreeView,
        *,
        params: Mapping[str, Any] | None = None,
        device: Any = "cpu",
        partition: str | None = None,
        chunk_tokens: int | None = None,
        workers: int = 0,
        invariant: bool = False,
        check_places: bool = False,
        runs_ahead: int = 0,
        follows_lengths: bool = False,
        slack: int = 0,
        budget: int | None = None,
        check_pages: bool = False,
    ) -> Plan:
        """The work list of the tree as it is now. Without `partition` and `chunk_tokens` it is made with what tuning has
        found, else with what the cost model takes for the cheapest. `chunk_tokens=0` keeps all workers busy. `invariant`:
        the bits of a query's result do not depend on other requests, but on the nodes of its path: a branch that splits one
        changes them. `runs_ahead`, `follows_lengths` and `slack` are for
        captured graphs (deft_gpu_plan_options). `budget`: on GPUs, tokens of a list of runs that select; without it, what
        the first run's selection has, where that selects. `check_pages`: on GPUs, a kernel more before each run looks at the
        pages that it will read, and Plan.check_replays says which entry of the page table names none of the cache's; runs on
        processors always look."""
        options = PlanOptions(
            partition, chunk_tokens, workers, invariant, check_places, runs_ahead, follows_lengths, slack, budget, check_pages
        )
        return Plan(self, tree, params, options, device)

    def source(self, kind: str, *, architecture: str = "sm_90a", phase: str | None = None) -> str:
        """What the compiler makes of the attention, as text to read: "ir", the dialect of MLIR after the passes; "cuda", a
        kernel's translation unit, of a `phase` of the untuned config or of "merge"; "spec"."""
        if kind not in _SOURCES:
            raise UsageError(f"there is no source of kind `{kind}`", 'it is "cuda", "ir" or "spec"')
        options = sized(_abi.deft_source_options, architecture=to_bytes("architecture", architecture), phase=to_bytes("phase", phase))
        return take_text(lib.deft_attention_get_source, self._handle, _SOURCES[kind], byref(options))

    @property
    def spec(self) -> str:
        """The spec that was compiled, as it was written, or as it was made of Python functions."""
        return self.source("spec")

    def __repr__(self) -> str:
        cache = "a contiguous cache" if self.page_size is None else f"pages of {self.page_size} tokens"
        if self.cache_dtype != self.dtype:
            cache += f" of {self.cache_dtype}"
        return (
            f"<deft.Attention {self.name}: {self.query_heads} query heads, {self.kv_heads} KV heads, "
            f"head_dim {self.head_dim}, {self.dtype}, {cache}>"
        )


def _device_of(array: Any) -> int | None:
    seen = view("q", array)
    return seen.device if seen.device_type == _abi.DEFT_DEVICE_CUDA else None


def compile(
    text: str | None = None,
    *,
    path: str | os.PathLike[str] | None = None,
    attention: str | None = None,
    name: str = "spec",
    import_folder: str | os.PathLike[str] | None = None,
) -> Attention:
    """Compiles a spec, given as text or as the `path` of a file (or the name of a shipped one, "llama3_8b").

    `attention` chooses one where the spec defines several. A text is called `name` in its errors, and its imports are
    looked for in `import_folder`, then among the shipped specs.

    >>> import deft
    >>> deft.compile(path="llama3_8b").head_dim
    128
    """
    if (text is None) == (path is None):
        raise UsageError("compile takes a spec's text, or path=")
    origin: dict[str, Any] = {"attention": attention}
    if path is not None:
        options = sized(_abi.deft_compile_options, attention=to_bytes("attention", attention))
        made = make(lib.deft_attention_compile_file, path_of("path", path), byref(options))
        origin["path"] = os.path.abspath(path) if os.path.exists(path) else os.fspath(path)
    else:
        assert text is not None
        folder = None if import_folder is None else os.path.abspath(import_folder)
        options = sized(
            _abi.deft_compile_options,
            attention=to_bytes("attention", attention),
            name=to_bytes("name", name),
            import_folder=to_bytes("import_folder", folder),
        )
        spec = text_of("text", text)
        try:
            made = make(lib.deft_attention_compile, spec, byref(options))
        except DiagnosticError as error:
            if "{" in text or "\n" in text.strip():
                raise
            raise DiagnosticError(error.message, f"a file, or a shipped spec, is given by path=: compile(path={text!r})") from None
        origin.update(text=text, name=name, import_folder=folder)
    return Attention(Handle(made, lib.deft_attention_destroy), origin)


def load(path: str | os.PathLike[str], *, attention: str | None = None) -> Attention:
    """Loads what `deftc build` made. A package holds native code: trust it like a program."""
    made = make(lib.deft_attention_load_package, path_of("path", path), to_bytes("attention", attention))
    return Attention(
        Handle(made, lib.deft_attention_destroy), {"package": os.path.abspath(path), "attention": attention}
    )


def remake(origin: Mapping[str, Any]) -> Attention:
    """The attention again, in another process."""
    if "package" in origin:
        return load(origin["package"], attention=origin["attention"])
    if "path" in origin:
        return compile(path=origin["path"], attention=origin["attention"])
    return compile(
        origin["text"], attention=origin["attention"], name=origin["name"], import_folder=origin["import_folder"]
    )
