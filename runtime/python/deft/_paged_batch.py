"""For engines that have page tables of their own, a row of pages for each request."""

from __future__ import annotations

import sys
from ctypes import addressof, byref, c_int32, c_uint64
from typing import TYPE_CHECKING, Any, Mapping, NamedTuple

from . import _abi
from ._arguments import expect, expect_whole, row_of
from ._errors import UsageError
from ._gpu import GpuKernels
from ._library import Handle, OfThisProcess, check, lib, make, sized
from ._plan_facts import ConfigChoice, PlanOptions, PlanSummary
from ._runs import Runs, stream_or_current
from ._runners import is_traced, number_of
from ._tensors import Ints, View, dtype_text, ints, is_packed, strides_text, view
from ._tree import TreeView

if TYPE_CHECKING:
    from ._attention import Attention


_CHECKS = {None: _abi.DEFT_CHECK_DEFAULT, True: _abi.DEFT_CHECK_ALWAYS, False: _abi.DEFT_CHECK_NEVER}


class Sharing(NamedTuple):
    """What sharing saves: a step reads `tokens` in place of `request_tokens`."""

    requests: int
    request_tokens: int
    tokens: int


class _Table(NamedTuple):
    """A page table as planning reads it, on the host, and as runs read it."""

    host: Any  # deft_page_table
    seen: View  # all entries in one row, where runs read them
    array: Any


class PagedBatch(OfThisProcess):
    """The requests of a step, and how they become those of the next one. Who shares what is found in the page tables, and
    every shared page is read once. Takes time for what changed.

    >>> import deft, numpy
    >>> att = deft.compile("attention a { query_heads = 4; kv_heads = 2; head_dim = 64; dtype = f16; }")
    >>> batch = deft.PagedBatch(att, max_requests=8)
    >>> tables = numpy.array([[0, 1, 2], [0, 1, 3]], "int32")  # pages of 16 tokens; the first two are shared
    >>> batch.update(tables, [40, 37])
    >>> batch.sharing()
    Sharing(requests=2, request_tokens=77, tokens=45)
    >>> q = numpy.ones((2, 4, 64), "float16")
    >>> cache = numpy.ones((4, 16, 2, 64), "float16")
    >>> float(batch.run(q, cache, cache).mean())
    1.0
    """

    takes_page_table = False  # it has its own
    _sent_as = "make another, and update it with the same tables"
    _instead_of = {"Tree": "a batch plans by itself: call batch.update, then batch.run; batch.tree is its tree, for looking"}

    def __init__(
        self,
        attention: Attention,
        max_requests: int,
        *,
        params: Mapping[str, Any] | None = None,
        check_entries: bool | None = None,
        partition: str | None = None,
        chunk_tokens: int | None = None,
        invariant: bool = False,
        runs_ahead: int = 0,
        follows_lengths: bool = False,
        slack: int = 0,
    ) -> None:
        expect("attention", attention, _abi.deft_attention)
        if attention.page_size is None:
            raise UsageError(f"`{attention.name}` has a contiguous cache, a batch needs pages", "kv_cache = paged(...)")
        if check_entries not in _CHECKS:
            raise UsageError(f"check_entries is {check_entries!r}, it must be None, True or False")
        options = sized(
            _abi.deft_paged_batch_options, page_size=attention.page_size, check_entries=_CHECKS[check_entries]
        )
        self.max_requests = expect_whole("max_requests", max_requests, least=0)
        self._handle = Handle(make(lib.deft_paged_batch_make, byref(options)), lib.deft_paged_batch_destroy)
        plan_options = PlanOptions(
            partition,
            chunk_tokens,
            invariant=invariant,
            runs_ahead=runs_ahead,
            follows_lengths=follows_lengths,
            slack=slack,
        )
        self._runs = _BatchRuns(attention, params, plan_options, self._handle)
        self._table: _Table | None = None
        self._on_device: dict[int, Any] = {}  # copies of a host's table, of this step
        self.number = number_of(self)  # of this process, by which torch's graphs name it

    @property
    def attention(self) -> Attention:
        return self._runs._attention

    @property
    def tree(self) -> TreeView:
        """Who shares what, for looking; the batch changes it."""
        return TreeView(self._runs._planned_tree())

    def update(
        self,
        block_tables: Any,
        seq_lens: Any,
        query_indptr: Any = None,
        *,
        indptr: Any = None,
        rows: Any = None,
        ids: Any = None,
        host_tables: Any = None,
    ) -> None:
        """Brings it to these requests: those that come, go, grow, become shorter or move to other rows are found.

        `block_tables` is int32 [rows, pages]: the engine's own table, which runs read where it is, and which must stay so
        until the next update. Or it is int32 [pages] with `indptr`: row i has those from `indptr[i]` to `indptr[i + 1]`.
        `seq_lens` (int32): tokens of each request, those whose queries are asked included. Request
        i has the queries from `query_indptr[i]` to `query_indptr[i + 1]`, of its last tokens; without it one each. `rows`:
        the row of each request, else request i has row i. `ids` (uint64, all different) say who each request is: one with
        the same id has the same pages as before, perhaps with more behind them; without them every row is compared with
        what it held.

        Tables and lengths may lie on a GPU as torch's tensors; planning then takes a copy, and waits for it. It does not for
        a table of which the caller knows on the host what it will hold by the time runs read it: `host_tables`, of the
        same shape and strides.
        """
        seen = view("block_tables", block_tables)
        if indptr is not None and not is_packed(seen):
            raise UsageError(f"block_tables has strides {strides_text(seen)}, it must be one packed row")
        host_tables = _table_on_host(block_tables) if host_tables is None else _as_laid_out(host_tables, seen)
        lengths = ints("seq_lens", _on_host(seq_lens))
        if lengths.count > self.max_requests:
            raise UsageError(f"there are {lengths.count} requests, the batch was made for {self.max_requests}")
        row_starts = None if indptr is None else ints("indptr", _on_host(indptr))
        table, kept = _table_of(host_tables) if row_starts is None else _packed_table_of(host_tables, row_starts)
        given = [table, kept, lengths]
        fields: dict[str, Any] = {}
        for name, values in (("query_indptr", query_indptr), ("rows", rows)):
            if values is not None:
                one = ints(name, _on_host(values))
                expected = lengths.count + (name == "query_indptr")
                if one.count != expected:
                    raise UsageError(f"{name} has {one.count} entries, there must be {expected} for {lengths.count} requests")
                given.append(one)
                fields[name] = one.address
        if ids is not None:
            identities = _ids(ids)
            if identities.count != lengths.count:
                raise UsageError(f"ids has {identities.count} entries, there are {lengths.count} requests")
            given.append(identities)
            fields["ids"] = identities.address
        requests = sized(
            _abi.deft_paged_requests, table=addressof(table), count=lengths.count, lengths=lengths.address, **fields
        )
        check(lib.deft_paged_batch_update(self._handle, byref(requests)))
        in_one_row = seen._replace(shape=(table.entry_count,), strides=None, owner=(block_tables, seen.owner))
        self._table = _Table(table, in_one_row, block_tables)
        self._on_device.clear()
        self._runs._advance(self._runs._planned_tree())

    def run(
        self,
        q: Any,
        k_cache: Any,
        v_cache: Any,
        *,
        out: Any = None,
        lse: Any = None,
        return_lse: bool = False,
        params: Mapping[str, Any] | None = None,
        stream: int | None = None,
    ) -> Any:
        """The attention of the step's queries, which stand in q in the order of the requests. As Attention.run; for
        torch.compile and torch.export as Plan.run."""
        if is_traced() and params is None and stream is None:
            from .torch_ops import traced

            return traced(self, q, k_cache, v_cache, None, out, lse, return_lse)
        if self._table is None:
            raise UsageError("the batch has no requests yet", "call update first")
        return self._runs._run(q, k_cache, v_cache, self._table_for(q), out, lse, return_lse, params, stream)

    def _table_for(self, q: Any) -> View:
        """The block table where a run with `q` reads it. A host's is copied to the GPU once a step."""
        assert self._table is not None
        table = self._table.seen
        if table.device_type != _abi.DEFT_DEVICE_CPU:
            return table
        place = view("q", q)
        if place.device_type != _abi.DEFT_DEVICE_CUDA:
            return table
        copy = self._on_device.get(place.device)
        if copy is None:
            torch = sys.modules.get("torch")
            if torch is None or not isinstance(q, torch.Tensor):
                raise UsageError("block_tables are on the host, the run is on a GPU", "hand over the table of the GPU")
            host = torch.frombuffer((c_int32 * table.shape[0]).from_address(table.data), dtype=torch.int32)
            copy = self._on_device[place.device] = host.to(q.device)
        return view("block_tables", copy)

    def upload(self, stream: int | None = None) -> None:
        """On GPUs: puts the plan on the stream for runs and replayed graphs behind it."""
        for device, plan in self._runs._gpus.items():
            plan.upload(stream_or_current(stream, device))

    def sharing(self) -> Sharing:
        summary = sized(_abi.deft_sharing_summary)
        check(lib.deft_paged_batch_get_summary(self._handle, byref(summary)))
        return Sharing(summary.requests, summary.request_tokens, summary.tokens)

    def summary(self) -> PlanSummary:
        return self._runs._any().summary()

    def choice(self) -> ConfigChoice:
        return self._runs._any().choice()

    def __repr__(self) -> str:
        sharing = self.sharing()
        return (
            f"<deft.PagedBatch of {self.attention.name}: {sharing.requests} requests, {sharing.tokens} tokens read in place "
            f"of {sharing.request_tokens}>"
        )

    def _repr_svg_(self) -> str:
        return self._runs._any().picture(self._runs._planned_tree())


class _BatchRuns(Runs):
    def __init__(
        self, attention: Attention, params: Mapping[str, Any] | None, options: PlanOptions, batch: Handle
    ) -> None:
        super().__init__(attention, params, options)
        self._batch = batch

    def _planned_tree(self) -> Any:
        return _Borrowed(lib.deft_paged_batch_get_tree(self._batch), self._batch)

    def _make_host(self, options: Any) -> int:
        return make(lib.deft_paged_batch_make_plan, self._batch, self._attention, options)

    def _make_gpu(self, kernels: GpuKernels, options: Any) -> int:
        return make(lib.deft_paged_batch_make_gpu_plan, self._batch, kernels.loaded, options)


class _Borrowed:
    """A handle that belongs to another, which is kept."""

    def __init__(self, value: Any, owner: Any) -> None:
        self._as_parameter_ = value
        self._owner = owner


def _on_host(array: Any) -> Any:
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(array, torch.Tensor) and array.is_cuda:
        return array.cpu()
    return array


def _table_on_host(tables: Any) -> Any:
    """With the strides that it has on a GPU: places are those of the table that runs read."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(tables, torch.Tensor) or not tables.is_cuda or tables.ndim != 2:
        return _on_host(tables)
    rows, pages = tables.shape
    if pages > 1 and tables.stride(1) != 1:
        raise UsageError(f"block_tables has strides {list(tables.stride())}, entries of a row must lie side by side")
    stride = tables.stride(0) if rows > 1 else pages
    copy = torch.empty((max(rows - 1, 0) * stride + pages,), dtype=tables.dtype).as_strided((rows, pages), (stride, 1))
    return copy.copy_(tables)


def _as_laid_out(host_tables: Any, seen: View) -> Any:
    """Places are those of the table that runs read."""
    given = view("host_tables", host_tables)
    if given.device_type != _abi.DEFT_DEVICE_CPU:
        raise UsageError("host_tables are on a GPU, planning reads them on the host")
    for what, mine, theirs in (("shape", given.shape, seen.shape), ("strides", strides_text(given), strides_text(seen))):
        if mine != theirs:
            shown = list(mine) if what == "shape" else mine, list(theirs) if what == "shape" else theirs
            raise UsageError(f"host_tables has {what} {shown[0]}, block_tables has {shown[1]}")
    return host_tables


def _table_of(tables: Any) -> tuple[Any, Any]:
    seen = view("block_tables", tables)
    if seen.dtype != _abi.DEFT_I32:
        raise UsageError(f"block_tables is {dtype_text(seen.dtype)}, it must be int32")
    if len(seen.shape) != 2:
        raise UsageError(f"block_tables has {len(seen.shape)} dimensions, it must be [rows, pages]")
    rows, pages = seen.shape
    stride, step = seen.strides or (pages, 1)
    if (step != 1 and pages > 1) or (stride < pages and rows > 1):
        raise UsageError(f"block_tables has strides [{stride}, {step}], entries of a row must lie side by side")
    if pages == 0:  # rows of no pages are told by an indptr alone
        starts = ints("block_tables", [0] * (rows + 1))
        return sized(_abi.deft_page_table, indptr=starts.address, indptr_count=starts.count), (tables, starts)
    entries = (rows - 1) * stride + pages if rows else 0
    table = sized(
        _abi.deft_page_table, entries=seen.data, entry_count=entries, row_stride=max(stride, 1), row_pages=pages
    )
    return table, (tables, seen.owner)


def _packed_table_of(pages: Any, indptr: Ints) -> tuple[Any, Any]:
    """Rows back to back."""
    entries = ints("block_tables", pages)
    table = sized(
        _abi.deft_page_table,
        entries=entries.address,
        entry_count=entries.count,
        indptr=indptr.address,
        indptr_count=indptr.count,
    )
    return table, (entries, indptr)


def _ids(ids: Any) -> Ints:
    if isinstance(ids, (list, tuple, range)):
        array = row_of("ids", ids, c_uint64)
        return Ints(addressof(array), len(ids), array)
    seen = view("ids", ids)
    if seen.dtype not in (0x0140, 0x0040) or len(seen.shape) != 1 or seen.strides is not None:
        raise UsageError(f"ids is {dtype_text(seen.dtype)}, it must be one packed row of uint64")
    return Ints(seen.data, seen.shape[0], (ids, seen.owner))
