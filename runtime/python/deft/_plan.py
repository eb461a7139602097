"""How the work of a step is cut, and running it."""

from __future__ import annotations

import sys
import weakref
from ctypes import addressof, byref, c_int32, cast, POINTER
from typing import TYPE_CHECKING, Any, Callable, Mapping, NamedTuple

from . import _abi
from ._errors import UsageError
from ._gpu import GpuHandle, GpuKernels
from ._library import Handle, check, lib, make, sized, take_text
from ._params import freeze, make_params
from ._runners import is_traced, number_of
from ._tensors import UINT8, UINT16, Ints, Slot, View, ints, is_read_only, make_like, stream_of, view
from ._threads import runtime

if TYPE_CHECKING:
    from ._attention import Attention
    from ._selection import Selection
    from ._tree import TreeView

PARTITIONS = {
    name.removeprefix("DEFT_PARTITION_").lower(): value
    for name, value in vars(_abi).items()
    if name.startswith("DEFT_PARTITION_") and name != "DEFT_PARTITION_DEFAULT"
}
_ADVANCED = {
    _abi.DEFT_ADVANCED_NOTHING: "nothing",
    _abi.DEFT_ADVANCED_IN_PLACE: "in_place",
    _abi.DEFT_ADVANCED_REMADE: "remade",
}


class PlanSummary(NamedTuple):
    """What a plan costs."""

    items: int  # pieces of work, for each KV head
    direct_items: int  # of them: write the output, no partial result
    dealt_items: int  # of them: tokens that few rows see are dealt to these rows' warps
    tokens_read: int  # by all items, for each KV head: a shared token as often as it is read
    partials: int  # partial results written, for each query head
    merged_queries: int  # queries whose result is merged of several partials


class ConfigChoice(NamedTuple):
    """Which config a plan was made with, and why."""

    rule: str  # "override", "exact", "sibling", "nearby" or "heuristic"
    tree_class: str
    file: str  # that it is from; empty: the heuristic's
    why: str


class PlanOptions(NamedTuple):
    partition: str | None = None
    chunk_tokens: int | None = None
    workers: int = 0
    invariant: bool = False
    check_places: bool = False
    runs_ahead: int = 0
    follows_lengths: bool = False
    slack: int = 0

    def struct(self, params: Handle | None) -> Any:
        if self.partition is not None and self.partition not in PARTITIONS:
            raise UsageError(f"there is no partition `{self.partition}`", f"it is one of {', '.join(PARTITIONS)}")
        chunk = _abi.DEFT_CHUNK_DEFAULT
        if self.chunk_tokens is not None:
            chunk = self.chunk_tokens or _abi.DEFT_CHUNK_FILL
        return sized(
            _abi.deft_plan_options,
            params=params._as_parameter_ if params else None,
            partition=PARTITIONS[self.partition] if self.partition else _abi.DEFT_PARTITION_DEFAULT,
            chunk_tokens=chunk,
            workers=self.workers,
            is_invariant=self.invariant,
            checks_places=self.check_places,
        )

    def gpu_struct(self, plan: Any) -> Any:
        return sized(
            _abi.deft_gpu_plan_options,
            plan=addressof(plan),
            runs_ahead=self.runs_ahead,
            follows_lengths=self.follows_lengths,
            slack=self.slack,
        )


class Call:
    """The structs of one run, kept for the next."""

    __slots__ = ("_q", "_k", "_v", "_table", "_out", "_lse", "inputs", "outputs")

    def __init__(self) -> None:
        for name in ("_q", "_k", "_v", "_table", "_out", "_lse"):
            setattr(self, name, Slot())
        self.inputs = sized(_abi.deft_inputs, q=self._q.address, k=self._k.address, v=self._v.address)
        self.outputs = sized(_abi.deft_outputs, out=self._out.address)

    def fill(self, q: View, k: View, v: View, table: View | None, out: View, lse: View | None) -> None:
        self._q.fill(*q[:6])
        self._k.fill(*k[:6])
        self._v.fill(*v[:6])
        self._out.fill(*out[:6])
        self.inputs.page_table = None if table is None else self._table.fill(*table[:6])
        self.outputs.lse = None if lse is None else self._lse.fill(*lse[:6])


def read_summary(function: Callable[..., int], plan: Handle) -> PlanSummary:
    summary = sized(_abi.deft_plan_summary)
    check(function(plan, byref(summary)))
    return PlanSummary(*(getattr(summary, name) for name in PlanSummary._fields))


def read_choice(function: Callable[..., int], plan: Handle) -> ConfigChoice:
    made = make(function, plan)
    try:
        choice = cast(made, POINTER(_abi.deft_config_choice))[0]
        return ConfigChoice(*(getattr(choice, name).decode() for name in ConfigChoice._fields))
    finally:
        lib.deft_free(made)


class How(NamedTuple):
    """Which attention of a spec a run computes."""

    function: Callable[..., int]
    selection: tuple[Selection, ...] = ()


_FULL = How(lib.deft_runtime_run)


class HostPlan:
    """A plan for this machine's processors."""

    def __init__(self, made: int, attention: Attention) -> None:
        self.handle = Handle(made, lib.deft_plan_destroy)
        self.attention = attention

    def advance(self, tree: Any) -> int:
        advanced = c_int32()
        check(lib.deft_plan_advance(self.handle, tree, byref(advanced)))
        return advanced.value

    def run(self, call: Call, params: Handle | None, how: How) -> None:
        call.inputs.params = params._as_parameter_ if params else None
        status = how.function(
            runtime(), self.attention, self.handle, *how.selection, addressof(call.inputs), addressof(call.outputs)
        )
        call.inputs.params = None
        check(status)

    def query_count(self) -> int:
        return lib.deft_plan_query_count(self.handle)

    def is_current(self) -> bool:
        return bool(lib.deft_plan_is_current(self.handle))

    def summary(self) -> PlanSummary:
        return read_summary(lib.deft_plan_get_summary, self.handle)

    def choice(self) -> ConfigChoice:
        return read_choice(lib.deft_plan_get_choice, self.handle)

    def picture(self, tree: Any) -> str:
        return take_text(lib.deft_plan_get_picture, self.handle, tree)


class GpuPlan:
    """A plan on a GPU, with the kernels that run it."""

    def __init__(self, made: int, kernels: GpuKernels) -> None:
        self.handle = GpuHandle(made, lib.deft_gpu_plan_destroy)
        self.kernels = kernels
        self.needs_upload = True

    def advance(self, tree: Any) -> int:
        advanced = c_int32()
        check(lib.deft_gpu_plan_advance(self.handle, tree, byref(advanced)))
        self.needs_upload |= advanced.value != _abi.DEFT_ADVANCED_NOTHING
        return advanced.value

    def upload(self, stream: int) -> None:
        check(lib.deft_gpu_plan_upload(self.handle, stream))
        self.needs_upload = False

    def reserve(self, requests: int, queries: int, tokens: int) -> None:
        """Room for the plans of all batches of at most so many, before a graph is captured. An upload follows."""
        room = sized(_abi.deft_gpu_room)
        check(lib.deft_gpu_room_for(self.kernels.loaded, requests, queries, tokens, None, byref(room), None))
        check(lib.deft_gpu_plan_reserve(self.handle, byref(room)))
        self.needs_upload = True

    def run(self, call: Call, frozen: tuple[Any, ...], stream: int) -> None:
        if self.needs_upload:
            self.upload(stream)
        loaded = self.kernels.with_params(frozen)
        check(lib.deft_gpu_plan_run(self.handle, loaded, addressof(call.inputs), addressof(call.outputs), stream))

    def query_count(self) -> int:
        return lib.deft_gpu_plan_query_count(self.handle)

    def is_current(self) -> bool:
        return bool(lib.deft_gpu_plan_is_current(self.handle))

    def summary(self) -> PlanSummary:
        return read_summary(lib.deft_gpu_plan_get_summary, self.handle)

    def choice(self) -> ConfigChoice:
        return read_choice(lib.deft_gpu_plan_get_choice, self.handle)

    def picture(self, tree: Any) -> str:
        return take_text(lib.deft_gpu_plan_get_picture, self.handle, tree)


class Runs:
    """Running on whatever device the tensors are, with a plan for it that is made when it is first needed."""

    def __init__(self, attention: Attention, params: Mapping[str, Any] | None, options: PlanOptions) -> None:
        self._attention = attention
        self._options = options
        self._values = {**attention.captured, **(params or {})}
        self._frozen = freeze(self._values)
        self._params = make_params(attention, self._frozen)
        self._host: HostPlan | None = None
        self._gpus: dict[int, GpuPlan] = {}
        self._calls: list[Call] = []

    # What the plan is of.
    def _tree_handle(self) -> Any:
        raise NotImplementedError

    def _make_host(self, options: Any) -> int:
        raise NotImplementedError

    def _make_gpu(self, kernels: GpuKernels, options: Any) -> int:
        raise NotImplementedError

    def _host_plan(self) -> HostPlan:
        if self._host is None:
            made = self._make_host(byref(self._options.struct(self._params)))
            self._host = HostPlan(made, self._attention)
        return self._host

    def _gpu_plan(self, device: int) -> GpuPlan:
        plan = self._gpus.get(device)
        if plan is None:
            kernels = GpuKernels(self._attention, device, self._tree_handle(), self._frozen, self._options.invariant)
            options = self._options.struct(None)
            made = self._make_gpu(kernels, byref(self._options.gpu_struct(options)))
            plan = self._gpus[device] = GpuPlan(made, kernels)
        return plan

    def _plans(self) -> list[HostPlan | GpuPlan]:
        return [plan for plan in (self._host, *self._gpus.values()) if plan is not None]

    def _any(self) -> HostPlan | GpuPlan:
        plans = self._plans()
        return plans[-1] if plans else self._host_plan()

    def _advance(self, tree: Any) -> str:
        return _ADVANCED[max((plan.advance(tree) for plan in self._plans()), default=_abi.DEFT_ADVANCED_NOTHING)]

    def _run(
        self,
        q: Any,
        k: Any,
        v: Any,
        table: Any,
        out: Any,
        lse: Any,
        return_lse: bool,
        params: Mapping[str, Any] | None,
        stream: int | None,
        how: How = _FULL,
    ) -> Any:
        attention = self._attention
        q_view = view("q", q)
        is_gpu = q_view.device_type == _abi.DEFT_DEVICE_CUDA
        if is_gpu and how.selection:
            raise UsageError("runs that select, and sparse ones, are for arrays in the host's memory so far")
        plan = self._gpu_plan(q_view.device) if is_gpu else self._host_plan()
        for name, array in (("out", out), ("lse", lse)):
            if array is not None and is_read_only(array):
                raise UsageError(f"{name} may not be written to")
        rows = (plan.query_count(), attention.query_heads)
        if out is None:
            out = make_like(q, (*rows, attention.head_dim), attention._output_code)
        if lse is None and return_lse:
            lse = make_like(q, rows, _abi.DEFT_F32)
        cache, output = attention._cache_code, attention._output_code
        table_view = None
        if table is not None:
            table_view = table if isinstance(table, View) else table_of(table)
        call = self._calls.pop() if self._calls else Call()
        views = (
            _bits_of(q_view, attention._code),
            _bits_of(view("k", k), cache),
            _bits_of(view("v", v), cache),
            table_view,
            _bits_of(view("out", out), output),
            None if lse is None else view("lse", lse),
        )
        call.fill(*views)
        if params:
            values = {**self._values, **params}
            frozen = freeze(values)
        else:
            frozen = self._frozen
        if is_gpu:
            plan.run(call, frozen, stream_of(q, q_view.device) if stream is None else stream)
        else:
            plan.run(call, make_params(attention, frozen) if params else self._params, how)
        self._calls.append(call)
        return (out, lse) if return_lse else out


def table_of(table: Any) -> View:
    if isinstance(table, (list, tuple)):
        row: Ints = ints("page_table", table)
        return View(row.address, _abi.DEFT_I32, (row.count,), None, _abi.DEFT_DEVICE_CPU, 0, row.owner)
    return view("page_table", table)


_AS_INTEGERS = {(UINT16, _abi.DEFT_BF16), (UINT8, _abi.DEFT_F8_E4M3), (UINT8, _abi.DEFT_F8_E5M2)}


def _bits_of(seen: View, code: int) -> View:
    """bfloat16 may come in uint16 and 8-bit floats in uint8, because NumPy has no such types."""
    if (seen.dtype, code) in _AS_INTEGERS:
        return seen._replace(dtype=code)
    return seen


class Plan(Runs):
    """The work list of one tree, made once a step and used by every layer. Made by Attention.plan. For one thread at a
    time, but many runs may read it at once.

    Where the tensors of a run lie on a GPU, the plan for it is made with the first run there, or by
    ``attention.plan(tree, device=0)``.
    """

    takes_page_table = True

    def __init__(
        self,
        attention: Attention,
        tree: TreeView,
        params: Mapping[str, Any] | None,
        options: PlanOptions,
        device: Any = "cpu",
        keeps_tree: bool = True,
    ) -> None:
        super().__init__(attention, params, options)
        self._tree = weakref.ref(tree)
        self._kept = tree if keeps_tree else None
        self.number = number_of(self)  # of this process, by which torch's graphs name it
        index = device_index(device)
        if index is None:
            self._host_plan()
        else:
            self._gpu_plan(index)

    def _tree_handle(self) -> Any:
        tree = self._tree()
        if tree is None:
            raise UsageError("the plan's tree is gone")
        return tree._handle

    def _make_host(self, options: Any) -> int:
        return make(lib.deft_plan_make, self._attention, self._tree_handle(), options)

    def _make_gpu(self, kernels: GpuKernels, options: Any) -> int:
        return make(lib.deft_gpu_plan_make, kernels.loaded, self._tree_handle(), options)

    @property
    def attention(self) -> Attention:
        return self._attention

    def run(
        self,
        q: Any,
        k: Any,
        v: Any,
        page_table: Any = None,
        *,
        out: Any = None,
        lse: Any = None,
        return_lse: bool = False,
        params: Mapping[str, Any] | None = None,
        stream: int | None = None,
    ) -> Any:
        """Computes the attention of all queries; row i of q, out and lse belongs to query i.

        Reads and writes the caller's memory as it is. `out` and `lse` are made where they are not given. On a GPU the run
        is put on the current stream of whoever made `q` (or on `stream`), and is not waited for; there it may be captured
        in a CUDA graph. Gives `out`, or `(out, lse)` where `return_lse` is set.

        For torch.compile and torch.export it is an operation (deft.torch_ops), where `params` and `stream` are not given.
        """
        if is_traced() and params is None and stream is None:
            from .torch_ops import traced

            return traced(self, q, k, v, page_table, out, lse, return_lse)
        return self._run(q, k, v, page_table, out, lse, return_lse, params, stream)

    def run_selecting(
        self,
        selection: Selection,
        q: Any,
        k: Any,
        v: Any,
        page_table: Any = None,
        *,
        out: Any = None,
        lse: Any = None,
        return_lse: bool = False,
        params: Mapping[str, Any] | None = None,
    ) -> Any:
        """As `run`, of an attention whose spec says `select`; `selection` then has the lists."""
        how = How(lib.deft_runtime_run_selecting, (selection,))
        return self._run(q, k, v, page_table, out, lse, return_lse, params, None, how)

    def run_sparse(
        self,
        selection: Selection,
        q: Any,
        k: Any,
        v: Any,
        page_table: Any = None,
        *,
        out: Any = None,
        lse: Any = None,
        return_lse: bool = False,
        params: Mapping[str, Any] | None = None,
    ) -> Any:
        """As `run`, to the tokens of the queries' lists alone, which may be another layer's."""
        how = How(lib.deft_runtime_run_sparse, (selection,))
        return self._run(q, k, v, page_table, out, lse, return_lse, params, None, how)

    def advance(self, tree: TreeView | None = None) -> str:
        """Makes the plan fit the tree as it is now: "nothing" had to be done, leaves grew "in_place", or the plan was
        "remade"."""
        if tree is not None and tree is not self._tree():
            self._tree = weakref.ref(tree)
            self._kept = tree if self._kept is not None else None
        return self._advance(self._tree_handle())

    def upload(self, stream: int | None = None) -> None:
        """On GPUs: puts the plan on the stream (by default torch's current one) for runs and replayed graphs behind it. A
        run does it by itself, except in a graph."""
        for device, plan in self._gpus.items():
            plan.upload(_stream(stream, device))

    def check_replays(self) -> None:
        """An error where a replayed graph has run while the tree had changed since the upload."""
        for plan in self._gpus.values():
            check(lib.deft_gpu_plan_check_replays(plan.handle))

    def follow(self, lengths: Any, stream: int | None = None) -> None:
        """For runs behind it, the path of each query has as many tokens as `lengths` says by then: int32 in memory of the
        GPU. For plans made with `follows_lengths`."""
        seen = view("lengths", lengths)
        if seen.device_type != _abi.DEFT_DEVICE_CUDA:
            raise UsageError("lengths are on the host, they are read on the GPU")
        plan = self._gpu_plan(seen.device)
        stream = stream_of(lengths, seen.device) if stream is None else stream
        if plan.needs_upload:
            plan.upload(stream)
        check(lib.deft_gpu_plan_follow(plan.handle, Slot().fill(*seen[:6]), stream))

    @property
    def is_current(self) -> bool:
        """Whether the tree has not changed since. A run with a stale plan is an error."""
        return self._any().is_current()

    @property
    def query_count(self) -> int:
        return self._any().query_count()

    def summary(self) -> PlanSummary:
        return self._any().summary()

    def choice(self) -> ConfigChoice:
        return self._any().choice()

    def __repr__(self) -> str:
        summary = self.summary()
        return f"<deft.Plan of {self._attention.name}: {summary.items} items, {summary.tokens_read} tokens read>"

    def _repr_svg_(self) -> str:
        return self._any().picture(self._tree_handle())


def device_index(device: Any) -> int | None:
    """None: the host. Takes 0, "cuda", "cuda:1", and torch's devices."""
    if device is None or isinstance(device, int):
        return device
    name = str(device)
    if name == "cpu":
        return None
    kind, _, index = name.partition(":")
    if kind != "cuda" or not (index.isdigit() or index == ""):
        raise UsageError(f"there is no device `{name}`", 'it is "cpu", "cuda", "cuda:1" or a number')
    return int(index or 0)


def _stream(stream: int | None, device: int) -> int:
    torch = sys.modules.get("torch")
    if stream is None and torch is not None and torch.cuda.is_initialized():
        return int(torch.cuda.current_stream(device).cuda_stream)
    return stream or 0
