"""Plans of one device, their facts, and the token lists that selecting runs make."""

from __future__ import annotations

from ctypes import POINTER, addressof, byref, c_int32, cast
from typing import Any, Callable, Mapping, NamedTuple

from . import _abi
from ._compiled import Compiled
from ._errors import UsageError
from ._gpu import GpuHandle, GpuKernels
from ._library import Handle, OfThisProcess, check, filled, lib, make, read, sized, take_text
from ._options import struct_of
from ._process import runtime
from ._tensors import Slot, View


class PlanSummary(NamedTuple):
    """The cost of a plan."""

    items: int  # pieces of work, for each KV head
    direct_items: int  # of them: write the output, no partial result
    dealt_items: int  # of them: tokens that few rows see are dealt to these rows' warps
    tokens_read: int  # by all items, for each KV head: a shared token as often as it is read
    partials: int  # partial results written, for each query head
    merged_queries: int  # queries whose result is merged of several partials


class PlanRoom(NamedTuple):
    """The memory of a plan with room for larger trees."""

    device_bytes: int
    host_bytes: int  # page-locked


class ConfigChoice(NamedTuple):
    """A plan's config and the reason for it."""

    rule: str  # "override", "exact", "sibling", "nearby" or "heuristic"
    tree_class: str
    file: str  # that it is from; empty: the heuristic's
    why: str


class Call:
    """Holds the structs of one run and reuses them for the next."""

    __slots__ = ("_q", "_k", "_k_rope", "_v", "_table", "_lists", "_out", "_lse", "inputs", "outputs")

    def __init__(self) -> None:
        for name in ("_q", "_k", "_k_rope", "_v", "_table", "_lists", "_out", "_lse"):
            setattr(self, name, Slot())
        self.inputs = sized(_abi.deft_inputs, q=self._q.address, k=self._k.address, v=self._v.address)
        self.outputs = sized(_abi.deft_outputs, out=self._out.address)

    def fill(
        self,
        q: View,
        k: View,
        k_rope: View | None,
        v: View | None,
        table: View | None,
        lists: View | None,
        out: View,
        lse: View | None,
    ) -> None:
        self._q.fill(q)
        self._k.fill(k)
        self.inputs.k_rope = None if k_rope is None else self._k_rope.fill(k_rope)
        self.inputs.v = None if v is None else self._v.fill(v)
        self._out.fill(out)
        self.inputs.page_table = None if table is None else self._table.fill(table)
        self.inputs.lists = None if lists is None else self._lists.fill(lists)
        self.outputs.lse = None if lse is None else self._lse.fill(lse)


class RunKind(NamedTuple):
    """The attention of a spec that a run computes."""

    on_host: Callable[..., int]
    on_gpu: Callable[..., int]
    selects: bool = False  # it makes lists of tokens; a sparse one reads them


FULL = RunKind(lib.deft_runtime_run, lib.deft_gpu_plan_run)
SELECTING = RunKind(lib.deft_runtime_run_selecting, lib.deft_gpu_plan_run_selecting, selects=True)
SPARSE = RunKind(lib.deft_runtime_run_sparse, lib.deft_gpu_plan_run_sparse)


class Selection(OfThisProcess):
    """The lists of a selecting run (Plan.run_selecting), for a spec with `select`. Each list of each query has the positions of
    tokens that sparse runs (Plan.run_sparse) of other layers read. The lists belong to the tree of that run. Lists on a GPU
    stay there; reading them here copies them and waits for the GPU.

    >>> import deft, numpy
    >>> att = deft.compile("attention a { query_heads = 4; kv_heads = 2; head_dim = 64; dtype = f16; "
    ...                    "kv_cache = contiguous; select { budget = 3; keep_last = 1; } }")
    >>> tree = deft.Tree()
    >>> _ = tree.add_query(tree.add_root(100, location=0))
    >>> q, k, v = (numpy.ones(shape, "float16") for shape in ((1, 4, 64), (100, 2, 64), (100, 2, 64)))
    >>> k[40:42] = 2
    >>> plan, selection = att.plan(tree), deft.Selection(att)
    >>> _ = plan.run_selecting(selection, q, k, v)
    >>> selection.positions(0, list=1)
    [40, 41, 99]
    >>> float(plan.run_sparse(selection, q, k, v).mean())
    1.0
    """

    _sent_as = "let a run that selects fill another, or send its positions()"

    def __init__(self, attention: Compiled, budget: int | None = None) -> None:
        made = make(lib.deft_selection_make, attention, 0 if budget is None else budget)
        self._handle = Handle(made, lib.deft_selection_destroy)
        self._as_parameter_ = self._handle._as_parameter_
        self._gpu_plan: Handle | None = None  # that has the lists on a GPU
        self._stream = 0

    def _lies_in(self, gpu_plan: Handle | None, stream: int) -> None:
        self._gpu_plan, self._stream = gpu_plan, stream

    def _view(self) -> Any:
        if self._gpu_plan is not None:
            check(lib.deft_gpu_plan_read_lists(self._gpu_plan, self._handle, self._stream))
        return self._known_view()

    def _known_view(self) -> Any:
        return filled(_abi.deft_selection_view, lib.deft_selection_get, self._handle)

    @property
    def budget(self) -> int:
        return self._known_view().budget

    @property
    def lists(self) -> int:
        """The number of lists for each query: one, or one for each KV head or query head."""
        return self._known_view().lists

    @property
    def query_count(self) -> int:
        """The number of queries in the last selecting run; 0 before the first."""
        return self._view().queries

    def positions(self, query: int, list: int = 0) -> list[int]:
        """Returns positions on the query's path, from 0 at the root, in rising order."""
        view = self._view()
        if not (0 <= query < view.queries and 0 <= list < view.lists):
            raise IndexError(f"there is no list {list} of query {query}: {view.queries} queries have {view.lists} each")
        at = query * view.lists + list
        count = c_int32.from_address(view.counts + 4 * at).value
        return [*(c_int32 * count).from_address(view.positions + 4 * at * view.budget)]


class _PlanOfDevice:
    handle: Handle
    _functions: dict[str, Callable[..., int]]

    def __init_subclass__(cls, prefix: str) -> None:
        known = ("advance", "query_count", "is_current", "get_summary", "get_choice", "get_picture", "get_page")
        cls._functions = {what: getattr(lib, f"{prefix}_{what}") for what in known}

    def advance(self, tree: Any) -> int:
        """Updates the plan; returns one of DEFT_ADVANCED_..."""
        advanced = c_int32()
        check(self._functions["advance"](self.handle, tree, byref(advanced)))
        return advanced.value

    def query_count(self) -> int:
        return self._functions["query_count"](self.handle)

    def is_current(self) -> bool:
        return bool(self._functions["is_current"](self.handle))

    def summary(self) -> PlanSummary:
        return read(PlanSummary, filled(_abi.deft_plan_summary, self._functions["get_summary"], self.handle))

    def choice(self) -> ConfigChoice:
        made = make(self._functions["get_choice"], self.handle)
        try:
            return read(ConfigChoice, cast(made, POINTER(_abi.deft_config_choice))[0])
        finally:
            lib.deft_free(made)

    def picture(self, tree: Any) -> str:
        return take_text(self._functions["get_picture"], self.handle, tree)

    def page(self, tree: Any, other: Any = None, other_tree: Any = None) -> str:
        """Returns the plan as HTML. `other` is a plan of the same kind of device, or None."""
        return take_text(self._functions["get_page"], self.handle, tree, other and other.handle, other_tree)


class HostPlan(_PlanOfDevice, prefix="deft_plan"):
    """A plan for this machine's processors."""

    def __init__(self, made: int, attention: Compiled) -> None:
        self.handle = Handle(made, lib.deft_plan_destroy)
        self.attention = attention

    def draft(self, mask: int) -> None:
        check(lib.deft_plan_draft(self.handle, mask))

    def run(self, call: Call, params: Handle | None, kind: RunKind, selection: Selection | None) -> None:
        lists = () if kind is FULL else (selection,)
        call.inputs.params = params._as_parameter_ if params else None
        status = kind.on_host(runtime(), self.attention, self.handle, *lists, addressof(call.inputs), addressof(call.outputs))
        call.inputs.params = None
        check(status)
        if selection is not None and kind.selects:
            selection._lies_in(None, 0)


class GpuPlan(_PlanOfDevice, prefix="deft_gpu_plan"):
    """A plan on a GPU, with the kernels that run it."""

    def __init__(self, made: int, kernels: GpuKernels, options: Mapping[str, Any]) -> None:
        self.handle = GpuHandle(made, lib.deft_gpu_plan_destroy)
        self.kernels = kernels
        self.options = options
        self.budget = options.get("budget") or 0  # of its lists; 0: it has none
        self.needs_upload = True

    def advance(self, tree: Any) -> int:
        advanced = super().advance(tree)
        self.needs_upload |= advanced != _abi.DEFT_ADVANCED_NOTHING
        return advanced

    def upload(self, stream: int) -> None:
        check(lib.deft_gpu_plan_upload(self.handle, stream))
        self.needs_upload = False

    def _upload_if_needed(self, stream: int) -> None:
        if self.needs_upload:
            self.upload(stream)

    def reserve(self, requests: int, queries: int, tokens: int, longest_path: int = 0) -> PlanRoom:
        """Reserves room, as Plan.reserve does."""
        room, size = sized(_abi.deft_gpu_room), sized(_abi.deft_gpu_room_size)
        of_host = struct_of(_abi.deft_plan_options, self.options)
        # A plan that may not cut as it likes needs room of its own.
        options = struct_of(_abi.deft_gpu_plan_options, self.options, plan=addressof(of_host), longest_path=longest_path)
        check(lib.deft_gpu_room_for(self.kernels.loaded, requests, queries, tokens, byref(options), byref(room), byref(size)))
        check(lib.deft_gpu_plan_reserve(self.handle, byref(room)))
        self.needs_upload = True
        return read(PlanRoom, size)

    def capture_replay(self, stream: int) -> None:
        check(lib.deft_gpu_plan_capture_replay(self.handle, stream))

    def follow(self, lengths: int, stream: int) -> None:
        self._upload_if_needed(stream)
        check(lib.deft_gpu_plan_follow(self.handle, lengths, stream))

    def draft(self, mask: int, stream: int) -> None:
        self._upload_if_needed(stream)
        check(lib.deft_gpu_plan_draft(self.handle, mask, stream))

    def run(self, call: Call, frozen: tuple[Any, ...], stream: int, kind: RunKind, selection: Selection | None) -> None:
        if selection is not None:
            self._check_lists(selection, kind.selects)
        self._upload_if_needed(stream)
        loaded = self.kernels.with_params(frozen)
        check(kind.on_gpu(self.handle, loaded, addressof(call.inputs), addressof(call.outputs), stream))
        if selection is not None and kind.selects:
            selection._lies_in(self.handle, stream)

    def _check_lists(self, selection: Selection, are_made: bool) -> None:
        """Checks the lists of a run: lists on a GPU belong to one plan."""
        if self.budget != selection.budget:
            had = f"lists of {self.budget} tokens" if self.budget else "no lists"
            raise UsageError(
                f"the plan on the GPU has {had}, the selection is for {selection.budget}",
                f"give attention.plan(tree, budget={selection.budget}), or let a run that selects be its first",
            )
        if not are_made and selection._gpu_plan is not self.handle:
            raise UsageError("the selection is not of this plan on this GPU", "call run_selecting first")
