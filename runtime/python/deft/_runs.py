"""Running a step on whatever device its tensors are."""

from __future__ import annotations

import sys
from ctypes import addressof, byref, c_int32, c_int64
from typing import TYPE_CHECKING, Any, Callable, Mapping, NamedTuple

from . import _abi
from ._arguments import expect, expect_whole
from ._errors import UsageError
from ._gpu import GpuHandle, GpuKernels, device_index
from ._library import Handle, OfThisProcess, check, lib, sized, take_text
from ._params import check_given, freeze, make_params, merged
from ._plan_facts import ConfigChoice, PlanOptions, PlanRoom, PlanSummary, read_choice, read_summary
from ._tensors import DTYPE_NAMES, UINT8, UINT16, Ints, Slot, View, dtype_text, ints, is_read_only, make_like, stream_of, view
from ._threads import runtime

if TYPE_CHECKING:
    from ._attention import Attention
    from ._selection import Selection

_ADVANCED = {
    _abi.DEFT_ADVANCED_NOTHING: "nothing",
    _abi.DEFT_ADVANCED_IN_PLACE: "in_place",
    _abi.DEFT_ADVANCED_REMADE: "remade",
}


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


class How(NamedTuple):
    """Which attention of a spec a run computes."""

    function: Callable[..., int]
    on_gpu: Callable[..., int]
    selection: tuple[Selection, ...] = ()
    selects: bool = False


_FULL = How(lib.deft_runtime_run, lib.deft_gpu_plan_run)


class HostPlan:
    """A plan for this machine's processors."""

    def __init__(self, made: int, attention: Attention) -> None:
        self.handle = Handle(made, lib.deft_plan_destroy)
        self.attention = attention

    def advance(self, tree: Any) -> int:
        advanced = c_int32()
        check(lib.deft_plan_advance(self.handle, tree, byref(advanced)))
        return advanced.value

    def draft(self, mask: int) -> None:
        check(lib.deft_plan_draft(self.handle, mask))

    def run(self, call: Call, params: Handle | None, how: How) -> None:
        call.inputs.params = params._as_parameter_ if params else None
        status = how.function(
            runtime(), self.attention, self.handle, *how.selection, addressof(call.inputs), addressof(call.outputs)
        )
        call.inputs.params = None
        check(status)
        if how.selects:
            how.selection[0]._lies_in(None, 0)

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

    def __init__(self, made: int, kernels: GpuKernels, options: PlanOptions) -> None:
        self.handle = GpuHandle(made, lib.deft_gpu_plan_destroy)
        self.kernels = kernels
        self.options = options
        self.budget = options.budget or 0  # of its lists; 0: it has none
        self.needs_upload = True

    def advance(self, tree: Any) -> int:
        advanced = c_int32()
        check(lib.deft_gpu_plan_advance(self.handle, tree, byref(advanced)))
        self.needs_upload |= advanced.value != _abi.DEFT_ADVANCED_NOTHING
        return advanced.value

    def upload(self, stream: int) -> None:
        check(lib.deft_gpu_plan_upload(self.handle, stream))
        self.needs_upload = False

    def reserve(self, requests: int, queries: int, tokens: int, longest_path: int = 0) -> PlanRoom:
        """As Plan.reserve."""
        room, size = sized(_abi.deft_gpu_room), sized(_abi.deft_gpu_room_size)
        of_host = self.options.struct(None)
        options = self.options.gpu_struct(of_host)  # a plan that may not cut as it likes needs room of its own
        options.longest_path = longest_path
        check(lib.deft_gpu_room_for(self.kernels.loaded, requests, queries, tokens, byref(options), byref(room), byref(size)))
        check(lib.deft_gpu_plan_reserve(self.handle, byref(room)))
        self.needs_upload = True
        return PlanRoom(size.device_bytes, size.host_bytes)

    def _upload_if_needed(self, stream: int) -> None:
        if self.needs_upload:
            self.upload(stream)

    def follow(self, lengths: int, stream: int) -> None:
        self._upload_if_needed(stream)
        check(lib.deft_gpu_plan_follow(self.handle, lengths, stream))

    def draft(self, mask: int, stream: int) -> None:
        self._upload_if_needed(stream)
        check(lib.deft_gpu_plan_draft(self.handle, mask, stream))

    def run(self, call: Call, frozen: tuple[Any, ...], stream: int, how: How = _FULL) -> None:
        for selection in how.selection:
            self._check_lists(selection, how.selects)
        self._upload_if_needed(stream)
        loaded = self.kernels.with_params(frozen)
        check(how.on_gpu(self.handle, loaded, addressof(call.inputs), addressof(call.outputs), stream))
        if how.selects:
            how.selection[0]._lies_in(self, stream)

    def _check_lists(self, selection: Selection, are_made: bool) -> None:
        """Lists on a GPU are the plan's."""
        if self.budget != selection.budget:
            had = f"lists of {self.budget} tokens" if self.budget else "no lists"
            raise UsageError(
                f"the plan on the GPU has {had}, the selection is for {selection.budget}",
                f"give attention.plan(tree, budget={selection.budget}), or let a run that selects be its first",
            )
        if not are_made and selection._plan is not self:
            raise UsageError("the selection is not of this plan on this GPU", "call run_selecting first")

    def read_lists(self, selection: Selection, stream: int) -> None:
        check(lib.deft_gpu_plan_read_lists(self.handle, selection, stream))

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


class Runs(OfThisProcess):
    """Running on whatever device the tensors are, with a plan for it that is made when it is first needed."""

    def __init__(self, attention: Attention, params: Mapping[str, Any] | None, options: PlanOptions) -> None:
        self._attention = attention
        self._options = options.checked()
        self._values = merged(attention.captured, params)
        self._frozen = freeze(self._values)
        self._params = make_params(attention, self._frozen)
        self._host: HostPlan | None = None
        self._gpus: dict[int, GpuPlan] = {}
        self._calls: list[Call] = []

    # What the plan is of.
    def _planned_tree(self) -> Any:
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

    def _gpu_plan(self, device: int, how: How = _FULL) -> GpuPlan:
        plan = self._gpus.get(device)
        if plan is None:
            if self._options.budget is None and how.selection:
                self._options = self._options._replace(budget=how.selection[0].budget)
            kernels = GpuKernels(self._attention, device, self._planned_tree(), self._frozen, self._options.invariant)
            options = self._options.struct(None)
            made = self._make_gpu(kernels, byref(self._options.gpu_struct(options)))
            plan = self._gpus[device] = GpuPlan(made, kernels, self._options)
        return plan

    def _plans(self) -> list[HostPlan | GpuPlan]:
        return [plan for plan in (self._host, *self._gpus.values()) if plan is not None]

    def _any(self) -> HostPlan | GpuPlan:
        plans = self._plans()
        return plans[-1] if plans else self._host_plan()

    def _advance(self, tree: Any) -> str:
        return _ADVANCED[max((plan.advance(tree) for plan in self._plans()), default=_abi.DEFT_ADVANCED_NOTHING)]

    def _upload(self, stream: int | None) -> None:
        for device, plan in self._gpus.items():
            plan.upload(stream_or_current(stream, device))

    def _reserve(self, requests: int, queries: int, tokens: int, longest_path: int, device: Any) -> PlanRoom:
        room = (
            expect_whole("requests", requests, least=0),
            expect_whole("queries", queries, least=0),
            expect_whole("tokens", tokens, c_int64, least=0),
            expect_whole("longest_path", longest_path, least=0),
        )
        index = device_index(device)
        if index is None:
            raise UsageError("a plan of the processor needs no room", 'device="cuda" is where graphs are')
        return self._gpu_plan(index).reserve(*room)

    def _check_replays(self) -> None:
        for plan in self._gpus.values():
            check(lib.deft_gpu_plan_check_replays(plan.handle))

    def _follow(self, lengths: Any, stream: int | None) -> None:
        seen = view("lengths", lengths)
        if seen.device_type != _abi.DEFT_DEVICE_CUDA:
            raise UsageError("lengths are on the host, they are read on the GPU")
        if self._gpus and seen.device not in self._gpus:  # else a plan would follow that nobody runs
            planned = " and ".join(map(str, self._gpus))
            raise UsageError(f"lengths are on GPU {seen.device}, the plan is on GPU {planned}", "on another one, run there first")
        plan = self._gpu_plan(seen.device)
        stream = stream_of(lengths, seen.device) if stream is None else stream
        slot = Slot()  # which lives as long as the call
        plan.follow(slot.fill(*seen[:6]), stream)

    def _spare_call(self) -> Call:
        """Runs in other threads take them, too."""
        try:
            return self._calls.pop()
        except IndexError:
            return Call()

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
        check_finite: bool = False,
        how: How = _FULL,
    ) -> Any:
        attention = self._attention
        for selection in how.selection:
            expect("selection", selection, _abi.deft_selection)
        q_view = view("q", q)
        is_gpu = q_view.device_type == _abi.DEFT_DEVICE_CUDA
        plan = self._gpu_plan(q_view.device, how) if is_gpu else self._host_plan()
        if stream is None:
            stream = stream_of(q, q_view.device) if is_gpu else 0
        elif is_gpu:
            q_view = view("q", q, stream)
        for name, array in (("out", out), ("lse", lse)):
            if array is not None and is_read_only(array):
                raise UsageError(f"{name} may not be written to")
        if (return_lse or lse is not None) and not attention.has_lse:
            raise UsageError(f"`{attention.name}` gives no lse", "write `output = ... with lse` in the spec")
        rows = (plan.query_count(), attention.query_heads)
        if out is None:
            out = make_like(q, (*rows, attention.head_dim), attention._output_code)
        if lse is None and return_lse:
            lse = make_like(q, rows, _abi.DEFT_F32)
        cache, name = attention._cache_code, attention.name
        table_view = None
        if table is not None:
            table_view = table_of(table, stream)
        call = self._spare_call()
        views = (
            _bits_of("q", q_view, attention._code, name),
            _bits_of("k", view("k", k, stream), cache, name),
            _bits_of("v", view("v", v, stream), cache, name),
            table_view,
            _bits_of("out", view("out", out, stream), attention._output_code, name),
            None if lse is None else _bits_of("lse", view("lse", lse, stream), _abi.DEFT_F32, name),
        )
        call.fill(*views)
        call.inputs.checks_finite = bool(check_finite)
        if params:
            values = merged(self._values, params)
            frozen = freeze(values)
        else:
            values, frozen = self._values, self._frozen
        if attention._needed and not attention._needed <= values.keys():
            check_given(attention, values)
        try:
            if is_gpu:
                plan.run(call, frozen, stream, how)
            else:
                plan.run(call, make_params(attention, frozen) if params else self._params, how)
        except UsageError as error:
            if table is None and error.message.startswith("the page table has 0 pages"):
                raise UsageError(error.message, "give page_table: the page of each page of the tree's locations") from None
            raise
        self._calls.append(call)
        return (out, lse) if return_lse else out


def table_of(table: Any, stream: int = 0) -> View:
    if isinstance(table, View):
        moved = getattr(table.owner, "page_table", None)  # that of sequences, which may have changed since
        return table if moved is None else moved
    if isinstance(table, (list, tuple)):
        row: Ints = ints("page_table", table)
        return View(row.address, _abi.DEFT_I32, (row.count,), None, _abi.DEFT_DEVICE_CPU, 0, row.owner)
    seen = view("page_table", table, stream)
    if seen.dtype != _abi.DEFT_I32:
        raise UsageError(f"page_table is {dtype_text(seen.dtype)}, it must be int32")
    return seen


_AS_INTEGERS = {(UINT16, _abi.DEFT_BF16), (UINT8, _abi.DEFT_F8_E4M3), (UINT8, _abi.DEFT_F8_E5M2)}


def _bits_of(name: str, seen: View, code: int, attention: str) -> View:
    """bfloat16 may come in uint16 and 8-bit floats in uint8, because NumPy has no such types."""
    if seen.dtype == code:
        return seen
    if (seen.dtype, code) in _AS_INTEGERS:
        return seen._replace(dtype=code)
    raise UsageError(f"{name} is {dtype_text(seen.dtype)}, `{attention}` takes {DTYPE_NAMES[code]}")


def stream_or_current(stream: int | None, device: int) -> int:
    torch = sys.modules.get("torch")
    if stream is None and torch is not None and torch.cuda.is_initialized():
        return int(torch.cuda.current_stream(device).cuda_stream)
    return stream or 0
