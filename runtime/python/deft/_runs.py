"""Running a step on whatever device its tensors are."""

from __future__ import annotations

import sys
from ctypes import addressof, byref, c_int64
from typing import Any, Mapping

from . import _abi
from ._arguments import expect, expect_whole, kind_of
from ._compiled import Compiled
from ._errors import UsageError, wrong
from ._gpu import GpuKernels, device_index
from ._library import OfThisProcess, check, lib
from ._options import SETTINGS, RunOptions, as_c, expect_known, options_of, struct_of
from ._page import PlanPage
from ._params import freeze, make_params, merged
from ._plans import FULL, SPARSE, Call, ConfigChoice, GpuPlan, HostPlan, PlanRoom, PlanSummary, RunKind, Selection
from ._process import number_of
from ._tensors import EIGHT_BIT, UINT8, UINT16, Slot, View, converted, expect_writable, int32_view, ints
from ._tensors import make_like, stream_of, stream_or_current, view

_READ_HERE = options_of(RunOptions).keys() - SETTINGS
_ADVANCED = {
    _abi.DEFT_ADVANCED_NOTHING: "nothing",
    _abi.DEFT_ADVANCED_IN_PLACE: "in_place",
    _abi.DEFT_ADVANCED_REMADE: "remade",
}


def numbered(runner: Any) -> int:
    """The number of a plan or a batch in this process, by which graphs of torch name it."""
    if "torch" in sys.modules:  # before torch.compile sees the runner: while it looks, nothing can be registered
        from . import torch_ops  # noqa: F401
    return number_of(runner)


def is_traced(options: RunOptions) -> bool:
    """Whether torch.compile or torch.export looks at a run instead of running it, and there is an operation of torch for it."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.compiler.is_compiling():
        return False
    given = [name for name, value in options.items() if value is not None and value is not False]
    return all(name in ("out", "lse", "return_lse") for name in given)


class Runs(OfThisProcess):
    """Runs of an attention over what changes from step to step, with a plan for each device that is made when it is first
    needed. `options` are checked ones."""

    def __init__(self, attention: Compiled, params: Mapping[str, Any] | None, options: Mapping[str, Any]) -> None:
        self._attention = attention
        self._options = dict(options)
        self._values = merged(attention.captured, params)
        self._frozen = freeze(self._values)
        self._params = make_params(attention, self._frozen)
        self._host: HostPlan | None = None
        self._gpus: dict[int, GpuPlan] = {}
        self._calls: list[Call] = []

    # What the plan is of.
    def _planned_tree(self) -> Any:
        raise NotImplementedError

    def _typical_tree(self) -> Any:
        """For which kernels are chosen."""
        return self._planned_tree()

    def _make_host(self, options: Any) -> int:
        raise NotImplementedError

    def _make_gpu(self, kernels: GpuKernels, options: Any) -> int:
        raise NotImplementedError

    def _host_plan(self) -> HostPlan:
        if self._host is None:
            params = self._params._as_parameter_ if self._params else None
            made = self._make_host(byref(struct_of(_abi.deft_plan_options, self._options, params=params)))
            self._host = HostPlan(made, self._attention)
        return self._host

    def _gpu_plan(self, device: int, budget: int | None = None) -> GpuPlan:
        plan = self._gpus.get(device)
        if plan is None:
            if self._options.get("budget") is None and budget is not None:
                self._options["budget"] = budget
            kernels = GpuKernels(self._attention, device, self._typical_tree(), self._frozen, self._options["invariant"])
            of_host = struct_of(_abi.deft_plan_options, self._options)
            options = struct_of(_abi.deft_gpu_plan_options, self._options, plan=addressof(of_host))
            plan = self._gpus[device] = GpuPlan(self._make_gpu(kernels, byref(options)), kernels, dict(self._options))
        return plan

    def _plans(self) -> list[HostPlan | GpuPlan]:
        return [plan for plan in (self._host, *self._gpus.values()) if plan is not None]

    def _any(self) -> HostPlan | GpuPlan:
        plans = self._plans()
        return plans[-1] if plans else self._host_plan()

    def _advance(self, tree: Any) -> str:
        return _ADVANCED[max((plan.advance(tree) for plan in self._plans()), default=_abi.DEFT_ADVANCED_NOTHING)]

    def _check_is_ready(self) -> None:
        """Before what needs something to be planned."""

    def upload(self, stream: int | None = None) -> None:
        """On GPUs: enqueues the plan on the stream (by default torch's current one) for later runs and replayed graphs. A
        run does it itself, except in a graph."""
        for device, plan in self._gpus.items():
            plan.upload(stream_or_current(stream, device))

    def reserve(self, requests: int, queries: int, tokens: int, *, longest_path: int = 0, device: Any = "cuda") -> PlanRoom:
        """On a GPU, before you capture a graph that is to serve larger trees: makes room for the plans of all trees of at most so
        many requests (leaves, and nodes that queries end with), queries in all, and tokens, a shared one counted once. Without it
        a graph has the room of its capture's tree, and a larger tree is an error. `longest_path`: most tokens of
        a path, for plans with `budget` and invariant ones. Waits for the GPU; the next run, or `upload` before a replay, uploads the
        plan again. Returns the memory that the room takes. To serve more rows than at the capture, capture with the first rows of
        larger tensors (`run(q[:1], ..., out=out[:1])`). For a batch: call it after the first update; tables of drafts are not counted."""
        self._check_is_ready()
        room = (
            expect_whole("requests", requests, least=0),
            expect_whole("queries", queries, least=0),
            expect_whole("tokens", tokens, c_int64, least=0),
            expect_whole("longest_path", longest_path, least=0),
        )
        index = device_index(device)
        if index is None:
            raise UsageError("a plan of the processor needs no room", 'device="cuda" is where graphs are', "device")
        return self._gpu_plan(index).reserve(*room)

    def check_replays(self) -> None:
        """An error if a replayed graph ran with a plan of an older tree, if `follow` met a length
        that the plan does not serve, if `draft` met rows that are no tree, or, with `check_pages`, if a run met a page outside the
        cache. Each error is reported once; the call does not wait for work under way."""
        for plan in self._gpus.values():
            check(lib.deft_gpu_plan_check_replays(plan.handle))

    def capture_replay(self, stream: int | None = None) -> None:
        """Between replays of a captured graph, while steps are captured (deft.capture): waits for the stream (by default torch's
        current one) and writes the step with the GPU's lengths, drafts and page table. Without it, steps of a replayed graph are
        written when the plan is uploaded, with the host's values."""
        for device, plan in self._gpus.items():
            plan.capture_replay(stream_or_current(stream, device))

    def follow(self, lengths: Any, stream: int | None = None) -> None:
        """In later runs, the path of each query has as many tokens as `lengths` says at that time: int32 in memory of the
        GPU. For plans made with `follows_lengths`; for requests with drafts pass `lengths` to draft."""
        self._check_is_ready()
        seen = view("lengths", lengths)
        if seen.device_type != _abi.DEFT_DEVICE_CUDA:
            raise UsageError("lengths are on the host, they are read on the GPU", field="lengths")
        if self._gpus and seen.device not in self._gpus:  # else a plan would follow that nobody runs
            planned = " and ".join(map(str, self._gpus))
            has = f"lengths are on GPU {seen.device}, the plan is on GPU {planned}"
            raise UsageError(has, "on another one, run there first", "lengths")
        plan = self._gpu_plan(seen.device)
        stream = stream_of(lengths, seen.device) if stream is None else stream
        slot = Slot()  # which lives as long as the call
        plan.follow(slot.fill(seen), stream)

    def summary(self) -> PlanSummary:
        return self._any().summary()

    def choice(self) -> ConfigChoice:
        return self._any().choice()

    def _repr_svg_(self) -> str:
        return self._any().picture(self._planned_tree())

    def html(self, against: Runs | None = None) -> str:
        """The plan as a self-contained page for a browser: the tree and its readers, items, workers over
        time by the price model (not measured), and the bytes of each node. `against`, a plan for a device of the same kind,
        appears next to it."""
        plan = self._any()
        if against is None:
            return plan.page(self._planned_tree())
        if not isinstance(against, Runs):
            raise wrong("against", f"is {kind_of(against)}, it must be a Plan or a PagedBatch")
        other = against._any()
        if type(other) is not type(plan):
            raise wrong("against", "is planned for another kind of device", "plan both for the processor, or both for a GPU")
        return plan.page(self._planned_tree(), other, against._planned_tree())

    def show(self, against: Runs | None = None, *, height: int = 760) -> PlanPage:
        """`html` for a notebook, in a frame of so many pixels; `show().save("plan.html")` writes a file."""
        return PlanPage(self.html(against), expect_whole("height", height, least=100))

    def _spare_call(self) -> Call:
        """Runs in other threads take them, too."""
        try:
            return self._calls.pop()
        except IndexError:
            return Call()

    def _run(
        self, q: Any, k: Any, v: Any, table: Any, options: RunOptions, kind: RunKind = FULL, lists: Selection | Any = None
    ) -> Any:
        attention = self._attention
        others = options.keys() - _READ_HERE  # seldom any
        if others:
            expect_known("run", RunOptions, options)
        out, lse, stream, params = options.get("out"), options.get("lse"), options.get("stream"), options.get("params")
        return_lse = bool(options.get("return_lse"))
        are_given = kind is SPARSE and attention._lists_are_given
        if kind is not FULL and not are_given:
            expect("selection", lists, _abi.deft_selection)
        q_view = view("q", q)
        is_gpu = q_view.device_type == _abi.DEFT_DEVICE_CUDA
        if stream is None:
            stream = stream_of(q, q_view.device) if is_gpu else 0
        elif is_gpu:
            q_view = view("q", q, stream)
        if attention.byte_products and q_view.dtype == _abi.DEFT_F8_E4M3:  # each number is exact in q's type
            q = converted("q", q, attention._code, stream)
            q_view = view("q", q, stream)
        selection, given, budget = None, None, None
        if are_given:
            given = int32_view("lists", lists, stream)
            budget = given.shape[-1] if given.shape else None
        elif kind is not FULL:
            selection, budget = lists, lists.budget
        plan = self._gpu_plan(q_view.device, budget) if is_gpu else self._host_plan()
        expect_writable("out", out)
        expect_writable("lse", lse)
        rows = (plan.query_count(), attention.query_heads)
        if out is None:
            out = make_like(q, (*rows, attention.value_dim), attention._output_code)
        if lse is None and return_lse:
            lse = make_like(q, rows, _abi.DEFT_F32)
        cache = attention._cache_code
        k, k_rope = _parts_of(k, attention)
        call = self._spare_call()
        views = (
            _bits_of(q_view, attention._code),
            _bits_of(view("k", k, stream), cache),
            None if k_rope is None else _bits_of(view("k_rope", k_rope, stream), cache),
            None if attention.value_in_key else _bits_of(view("v", v, stream), cache),
            None if table is None else _table_of(table, stream),
            given,
            _bits_of(view("out", out, stream), attention._output_code),
            None if lse is None else view("lse", lse, stream),
        )
        call.fill(*views)
        for option in others:
            setattr(call.inputs.settings, option, as_c(option, options[option]))  # type: ignore[literal-required]
        frozen = freeze(merged(self._values, params)) if params else self._frozen
        try:
            if isinstance(plan, GpuPlan):
                plan.run(call, frozen, stream, kind, selection)
            else:
                plan.run(call, make_params(attention, frozen) if params else self._params, kind, selection)
        except UsageError as error:
            raise UsageError(error.message, _hint_of(error.field, table) or error.hint, error.field) from None
        for option in others:  # the next run may not have them
            setattr(call.inputs.settings, option, 0)
        self._calls.append(call)
        return (out, lse) if return_lse else out


def _hint_of(field: str, table: Any) -> str:
    """How Python gives what a run lacks."""
    if field == "page_table" and table is None:
        return "give page_table: the page of each page of the tree's locations"
    lacks_value, _, name = field.partition("params[")
    return f"params={{{name.removesuffix(']')}: ...}}" if name and not lacks_value else ""


def _parts_of(k: Any, attention: Compiled) -> tuple[Any, Any]:
    """K, and its rotary columns where they are apart."""
    if not isinstance(k, tuple):
        return k, None
    if not attention.value_in_key:
        raise wrong("k", f"is a tuple, and the cache of {attention._title} is not latent", "pass one array")
    if len(k) != 2:
        raise wrong("k", f"is a tuple of {len(k)}, it must be one array or (k, k_rope)")
    return k


def _table_of(table: Any, stream: int) -> View:
    if isinstance(table, View):
        moved = getattr(table.owner, "page_table", None)  # that of sequences, which may have changed since
        return table if moved is None else moved
    if isinstance(table, (list, tuple)):
        row = ints("page_table", table)
        return View(row.address, _abi.DEFT_I32, (row.count,), None, _abi.DEFT_DEVICE_CPU, 0, row.owner)
    return int32_view("page_table", table, stream)


_AS_INTEGERS = {(UINT16, _abi.DEFT_BF16), *((UINT8, code) for code in EIGHT_BIT)}


def _bits_of(seen: View, code: int) -> View:
    """bfloat16 may come in uint16 and 8-bit floats in uint8, because NumPy has no such types."""
    return seen._replace(dtype=code) if (seen.dtype, code) in _AS_INTEGERS else seen
