"""Attentions, made from a spec or a package, and the plans that run them."""

from __future__ import annotations

import os
import weakref
from ctypes import byref
from typing import TYPE_CHECKING, Any, Mapping

from . import _abi
from ._arguments import expect, path_of, text_of, to_bytes
from ._compiled import Compiled
from ._errors import DiagnosticError, UsageError
from ._gpu import GpuKernels, device_index
from ._library import Handle, lib, make, sized
from ._options import RunOptions, TreePlanOptions, TreeRunOptions, checked, takes
from ._params import freeze, merged
from ._plans import SELECTING, SPARSE, Selection
from ._runs import Runs, is_traced, numbered
from ._tensors import view
from ._tree import TreeView

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Attention(Compiled):
    """A compiled attention, from deft.compile, deft.load or deft.attention. Make it once: this takes some tenths of a second.
    All threads may use it.

    It has `name`, `query_heads`, `kv_heads`, `head_dim` (or `key_dim`, of q and k, and `value_dim`, of v and the output),
    `value_in_key` (its cache is latent), `page_size` (None: the cache is contiguous), `dtype` of q, `cache_dtype` of k and v,
    `output_dtype`, `has_lse`, `sees_path` (its mask is bound by `path`), `params` (each a Param), and `captured`: the values of
    the arrays that a Python function captured.

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

    def __copy__(self) -> Attention:
        return self

    def __deepcopy__(self, memo: Any) -> Attention:
        """Returns the attention itself: nothing changes it, and copies of a model can share it."""
        return self

    @takes(TreeRunOptions)
    def run(
        self,
        tree: TreeView,
        q: Any,
        k: Any,
        v: Any = None,
        page_table: Any = None,
        params: Mapping[str, Any] | None = None,
        return_lse: bool = False,
        **options: Unpack[TreeRunOptions],
    ) -> Any:
        """Computes the attention of the tree's queries. Row i of q, out and lse belongs to query i. Returns `out`, or
        `(out, lse)`.

        q is [queries, query_heads, head_dim]. k and v are one layer's cache in the order that the spec's `kv_cache` gives:
        [tokens, kv_heads, head_dim] if it is contiguous, else [pages, page_size, kv_heads, head_dim] (or heads before slots).
        `page_table` (int32) maps each page of the tree's locations to a page of the cache. For a latent cache, k is
        [pages, page_size, key_dim] and v is None. Or `k` is a pair (k, k_rope): [pages, page_size, value_dim] and the other
        columns. On processors, both must be parts of one array. Arrays are not copied. Outputs must not overlap inputs. The
        attention keeps the tree's plans and updates them when the tree changes."""
        expect("tree", tree, _abi.deft_tree)
        frozen = freeze(merged({}, params)) if params else ()
        kept = tree._plans.get(self)
        if kept is None or kept[0] != frozen:
            plan = Plan(self, tree, params, checked("plan", TreePlanOptions, {}), device=_device_of(q), keeps_tree=False)
            tree._plans[self] = (frozen, plan)
        else:
            plan = kept[1]
            plan._advance(tree)
        given: Any = options
        given["return_lse"] = return_lse
        return plan._run(q, k, v, page_table, given)

    @takes(TreePlanOptions)
    def plan(
        self,
        tree: TreeView,
        *,
        params: Mapping[str, Any] | None = None,
        device: Any = "cpu",
        **options: Unpack[TreePlanOptions],
    ) -> Plan:
        """Plans the tree in its current state."""
        return Plan(self, tree, params, checked("plan", TreePlanOptions, options), device)


class Plan(Runs):
    """The work list of one tree, from Attention.plan. Make it once a step and use it for every layer. One thread at a time may
    change it, but many runs may read it at once. The first run on a GPU makes the plan for that GPU;
    `attention.plan(tree, device=0)` makes it earlier."""

    takes_page_table = True
    _attention: Attention
    _sent_as = "send the tree's to_json(locations=True), and plan again"

    def __init__(
        self,
        attention: Attention,
        tree: TreeView,
        params: Mapping[str, Any] | None,
        options: Mapping[str, Any],
        device: Any = "cpu",
        keeps_tree: bool = True,
    ) -> None:
        expect("tree", tree, _abi.deft_tree)
        super().__init__(attention, params, options)
        self._tree = weakref.ref(tree)
        self._kept = tree if keeps_tree else None
        self.number = numbered(self)  # of this process, by which torch's graphs name it
        index = device_index(device)
        if index is None:
            self._host_plan()
        else:
            self._gpu_plan(index)

    def _planned_tree(self) -> TreeView:
        tree = self._tree()
        if tree is None:
            raise UsageError("the plan's tree is gone")
        return tree

    def _make_host(self, options: Any) -> int:
        return make(lib.deft_plan_make, self._attention, self._planned_tree(), options)

    def _make_gpu(self, kernels: GpuKernels, options: Any) -> int:
        return make(lib.deft_gpu_plan_make, kernels.loaded, self._planned_tree(), options)

    @property
    def attention(self) -> Attention:
        return self._attention

    @takes(RunOptions)
    def run(self, q: Any, k: Any, v: Any = None, page_table: Any = None, **options: Unpack[RunOptions]) -> Any:
        """Computes the attention of all queries. Row i of q, out and lse belongs to query i. Arrays are not copied. On a GPU
        the run is enqueued on the current stream of q's library and does not wait; a CUDA graph can capture it. For
        torch.compile and torch.export the run is an operation (deft.torch_ops), if you pass no options except `out`, `lse` and
        `return_lse`."""
        if is_traced(options):
            from .torch_ops import traced

            return traced(self, q, k, v, page_table, options)
        return self._run(q, k, v, page_table, options)

    @takes(RunOptions)
    def run_selecting(
        self, selection: Selection, q: Any, k: Any, v: Any = None, page_table: Any = None, **options: Unpack[RunOptions]
    ) -> Any:
        """Runs like `run`, for a spec with `select`, and fills the lists of `selection`. On a GPU the lists stay there."""
        return self._run(q, k, v, page_table, options, SELECTING, selection)

    @takes(RunOptions)
    def run_sparse(
        self, selection: Selection | Any, q: Any, k: Any, v: Any = None, page_table: Any = None, **options: Unpack[RunOptions]
    ) -> Any:
        """Runs like `run`, but reads only the tokens of the queries' lists. The lists may come from another layer. If the spec
        says `by = caller`, pass the lists in place of a selection: int32, [queries, budget], with slots of the cache (page *
        page_size + the place in the page) in any order, and -1 for an empty entry. Then no page table is needed."""
        return self._run(q, k, v, page_table, options, SPARSE, selection)

    def advance(self, tree: TreeView | None = None) -> str:
        """Updates the plan to the tree's current state. Returns "nothing", "in_place" (leaves grew) or "remade"."""
        if tree is not None and tree is not self._tree():
            expect("tree", tree, _abi.deft_tree)
            self._tree = weakref.ref(tree)
            self._kept = tree if self._kept is not None else None
        return self._advance(self._planned_tree())

    @property
    def is_current(self) -> bool:
        """Whether the tree is unchanged since the plan was made or advanced. A run with a stale plan raises an error."""
        return self._any().is_current()

    @property
    def query_count(self) -> int:
        return self._any().query_count()

    def __repr__(self) -> str:
        summary = self.summary()
        return f"<deft.Plan of {self._attention.name}: {summary.items} items, {summary.tokens_read} tokens read>"


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
    title: str | None = None,
) -> Attention:
    """Compiles a spec: its text, or the `path` of a file, or the name of a shipped spec ("llama3_8b").

    `attention` chooses one attention if the spec defines several. Errors refer to a text by `name`, and to the attention by its name
    or `title`. Imports of a text are looked up in `import_folder`, then among the shipped specs.

    >>> import deft
    >>> deft.compile(path="llama3_8b").head_dim
    128
    """
    if (text is None) == (path is None):
        raise UsageError("compile takes a spec's text, or path=")
    origin: dict[str, Any] = {"attention": attention, "title": title}
    chosen = {"attention": to_bytes("attention", attention), "title": to_bytes("title", title)}
    if path is not None:
        options = sized(_abi.deft_compile_options, **chosen)
        made = make(lib.deft_attention_compile_file, path_of("path", path), byref(options))
        origin["path"] = os.path.abspath(path) if os.path.exists(path) else os.fspath(path)
    else:
        assert text is not None
        folder = None if import_folder is None else os.path.abspath(import_folder)
        options = sized(
            _abi.deft_compile_options,
            **chosen,
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
    """Loads a package that `deftc build` made. A package holds native code: trust it like a program."""
    made = make(lib.deft_attention_load_package, path_of("path", path), to_bytes("attention", attention))
    return Attention(
        Handle(made, lib.deft_attention_destroy), {"package": os.path.abspath(path), "attention": attention}
    )


def remake(origin: Mapping[str, Any]) -> Attention:
    """Makes the attention again in another process."""
    if "package" in origin:
        return load(origin["package"], attention=origin["attention"])
    return compile(**origin)
