"""For engines that have page tables of their own, a row of pages for each request."""

from __future__ import annotations

import sys
from ctypes import addressof, byref, c_int32, c_int64, c_uint64
from typing import TYPE_CHECKING, Any, Mapping, NamedTuple

from . import _abi, _gpu
from ._arguments import expect, expect_whole, row_of
from ._block_tables import BlockTable, copy_on_gpu, on_host, read_block_table
from ._drafts import DraftMask, int32_view, place_of, words_of
from ._errors import UsageError
from ._gpu import GpuKernels
from ._library import Handle, OfThisProcess, check, lib, make, sized
from ._plan_facts import ConfigChoice, PlanOptions, PlanRoom, PlanSummary
from ._runs import Runs
from ._runners import is_traced, number_of
from ._tensors import Ints, View, dtype_text, ints, view
from ._tree import TreeView

if TYPE_CHECKING:
    from ._attention import Attention


_CHECKS = {None: _abi.DEFT_CHECK_DEFAULT, True: _abi.DEFT_CHECK_ALWAYS, False: _abi.DEFT_CHECK_NEVER}


class Sharing(NamedTuple):
    """What sharing saves: a step reads `tokens` in place of `request_tokens`."""

    requests: int
    request_tokens: int
    tokens: int


class PagedBatch(OfThisProcess):
    """The requests of a step, and how they become those of the next one. Who shares what is found in the page tables, and
    every shared page is read once. Takes time for what changed. Options are those of Attention.plan. In an `invariant` one
    requests share whole chunks of `chunk_tokens` alone (without it of 512), counted from their beginnings, and each reads what
    it has behind them by itself: a request's bits do not depend on who shares its pages.

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
        cache_pages: int | None = None,
        check_pages: bool = False,
    ) -> None:
        expect("attention", attention, _abi.deft_attention)
        if attention.page_size is None:
            raise UsageError(f"`{attention.name}` has a contiguous cache, a batch needs pages", "kv_cache = paged(...)")
        if check_entries not in _CHECKS:
            raise UsageError(f"check_entries is {check_entries!r}, it must be None, True or False")
        shared_chunk = 0
        if invariant:
            chunk_tokens = _abi.DEFT_INVARIANT_CHUNK if chunk_tokens is None else chunk_tokens
            shared_chunk = expect_whole("chunk_tokens", chunk_tokens, least=0)
        options = sized(
            _abi.deft_paged_batch_options,
            page_size=attention.page_size,
            check_entries=_CHECKS[check_entries],
            cache_pages=0 if cache_pages is None else expect_whole("cache_pages", cache_pages, c_int64, least=1),
            invariant_chunk=shared_chunk,
            sees_path=attention.sees_path,
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
            check_pages=check_pages,
        )
        self._runs = _BatchRuns(attention, params, plan_options, self._handle)
        self._table: View | None = None  # all entries in one row, where runs read them
        self._most_drafts: int | None = None  # of a request; None: the batch has no drafts
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
        seq_lens: Any = None,
        query_indptr: Any = None,
        *,
        indptr: Any = None,
        last_page_lengths: Any = None,
        drafts: Any = None,
        rows: Any = None,
        ids: Any = None,
        host_tables: Any = None,
    ) -> None:
        """Brings it to these requests: those that come, go, grow, become shorter or move to other rows are found.

        `block_tables` is int32 [rows, pages]: the engine's own table, which runs read where it is, and which must stay so
        until the next update. Or it is int32 [pages] with `indptr`: row i has those from `indptr[i]` to `indptr[i + 1]`.
        `seq_lens` (int32): tokens of each request, those whose queries are asked included; with `indptr` it may be
        `last_page_lengths` instead, tokens of each request's last page. Request
        i has the queries from `query_indptr[i]` to `query_indptr[i + 1]`, of its last tokens; without it one each. `rows`:
        the row of each request, else request i has row i. `ids` (uint64, all different) say who each request is: one with
        the same id has the same pages as before, perhaps with more behind them; without them every row is compared with
        what it held.

        `drafts` (int32, in place of query_indptr): how many drafts of each request, at most 256, lie behind its `seq_lens`
        tokens. They are its queries, all of them, and `draft` says which of them see which.

        An error leaves the batch as it was, unless it is a plan's, of which a captured graph has no room for these requests:
        then they are the batch's, and runs say so again until the next update.

        Tables and lengths may lie on a GPU as torch's tensors; planning then takes a copy, and waits for it. It does not for
        a table of which the caller knows on the host what it will hold by the time runs read it: `host_tables`, of the
        same shape and strides.
        """
        if (seq_lens is None) == (last_page_lengths is None):
            raise UsageError(f"update takes seq_lens or last_page_lengths, not {'neither' if seq_lens is None else 'both'}")
        if last_page_lengths is not None and indptr is None:
            raise UsageError("last_page_lengths are given without indptr", "give seq_lens")
        table = read_block_table(block_tables, indptr, host_tables)
        if seq_lens is not None:
            lengths, field = ints("seq_lens", on_host(seq_lens)), "lengths"
        else:
            lengths, field = ints("last_page_lengths", on_host(last_page_lengths)), "last_page_lengths"
        if lengths.count > self.max_requests:
            raise UsageError(f"there are {lengths.count} requests, the batch was made for {self.max_requests}")
        given_rows: dict[str, Ints] = {}
        for name, values in (("query_indptr", query_indptr), ("drafts", drafts), ("rows", rows)):
            if values is not None:
                one = given_rows[name] = ints(name, on_host(values))
                expected = lengths.count + (name == "query_indptr")
                if one.count != expected:
                    raise UsageError(f"{name} has {one.count} entries, there must be {expected} for {lengths.count} requests")
        if ids is not None:
            one = given_rows["ids"] = _ids(on_host(ids))
            if one.count != lengths.count:
                raise UsageError(f"ids has {one.count} entries, there are {lengths.count} requests")
        most_drafts = _most(given_rows["drafts"]) if drafts is not None else None
        if most_drafts and self._runs._options.invariant:  # which no plan of theirs is: said while nothing has changed
            raise UsageError("an invariant plan is not for requests with drafts", "give each draft's query by a Tree")
        requests = sized(
            _abi.deft_paged_requests,
            table=addressof(table.pages),
            count=lengths.count,
            **{field: lengths.address},
            **{name: one.address for name, one in given_rows.items()},
        )
        check(lib.deft_paged_batch_update(self._handle, byref(requests)))
        self._most_drafts = most_drafts
        self._follow_step(table)

    def grow(self, block_tables: Any, seq_lens: Any, *, indptr: Any = None, host_tables: Any = None) -> None:
        """The quickest step: the requests of the last one in the same order, in the same rows, with as many queries, and none
        with fewer tokens than it had. Arguments are those of update."""
        table = read_block_table(block_tables, indptr, host_tables)
        lengths = ints("seq_lens", on_host(seq_lens))
        check(lib.deft_paged_batch_grow(self._handle, addressof(table.pages), lengths.address, lengths.count))
        self._follow_step(table)

    def _follow_step(self, table: BlockTable) -> None:
        self._table = table.seen
        self._on_device.clear()
        self._runs._follow_batch()

    def draft(self, bits: Any, depths: Any = None, lengths: Any = None, *, stream: int | None = None) -> None:
        """For a batch with drafts, before the runs of each step: which of them see which. Each sees itself, what is above it in
        a tree, and all tokens of its request; drafts stand in any order.

        `bits` says in bit j % 32 of word [request, i, j // 32] whether draft i sees draft j: int32 or uint32, packed,
        [requests, drafts, (drafts + 31) // 32], for at least as many drafts as any request has. Or it is bool, [requests,
        drafts, drafts], of NumPy or torch, and is packed here. `depths` (int32 [requests, drafts]): how far behind the
        request's tokens each draft's position is, without it as many as are above it. `lengths` (int32 [requests]): tokens
        before the drafts, where they are more than the host knew (`follows_lengths`).

        Where the arrays lie decides for which runs it is. On the host they are read at once, and rows that are no tree's
        are an error. On a GPU they are read when the stream comes there, and the call can be captured with the runs: a
        replay reads what they hold by then; rows that are no tree's are what check_replays tells of. In a step in which no
        request has a draft there is nothing to say, and nothing is done.
        """
        self._check_has_requests()
        if self._most_drafts is None:
            raise UsageError("the batch is not one of requests with drafts", "give drafts= to update")
        if self._most_drafts > 0:
            self._runs._draft(bits, depths, lengths, stream)

    def _check_has_requests(self) -> None:
        if self._table is None:
            raise UsageError("the batch has no requests yet", "call update first")
        if self._runs._is_behind:  # says again why, if nothing has changed since
            self._runs._follow_batch()

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
        check_finite: bool = False,
    ) -> Any:
        """The attention of the step's queries, which stand in q in the order of the requests. As Plan.run, for
        torch.compile and torch.export too."""
        if is_traced() and params is None and stream is None and not check_finite:
            from .torch_ops import traced

            return traced(self, q, k_cache, v_cache, None, out, lse, return_lse)
        self._check_has_requests()
        table = self._table_for(q, stream)
        return self._runs._run(q, k_cache, v_cache, table, out, lse, return_lse, params, stream, check_finite)

    def _table_for(self, q: Any, stream: int | None) -> View:
        """The block table where a run with `q` reads it. A host's is copied to the GPU once a step."""
        table = self._table
        assert table is not None
        if table.device_type != _abi.DEFT_DEVICE_CPU:
            return table
        place = view("q", q)
        if place.device_type != _abi.DEFT_DEVICE_CUDA:
            return table
        if _gpu._is_capturing():  # replays would read a step's copy that is gone by then
            raise UsageError("block_tables are on the host, and a graph is being captured", "hand over the table of the GPU")
        torch = sys.modules.get("torch")
        if torch is None or not isinstance(q, torch.Tensor):
            raise UsageError("block_tables are on the host, the run is on a GPU", "hand over the table of the GPU")
        copy = self._on_device.get(place.device)
        if copy is None:
            copy = self._on_device[place.device] = copy_on_gpu(table, q.device)
        # Where the run may still read it when the next step lets go of it.
        if stream is None:
            copy.record_stream(torch.cuda.current_stream(q.device))
        else:
            copy.record_stream(torch.cuda.ExternalStream(stream, device=q.device))
        return view("block_tables", copy)

    def upload(self, stream: int | None = None) -> None:
        """On GPUs: puts the plan on the stream for runs and replayed graphs behind it."""
        self._runs._upload(stream)

    def reserve(
        self, requests: int, queries: int, tokens: int, *, longest_path: int = 0, device: Any = "cuda"
    ) -> PlanRoom:
        """As Plan.reserve, of the batches to come; behind the first update. Tables of drafts come with the first that has
        some, and are not counted."""
        self._check_has_requests()
        return self._runs._reserve(requests, queries, tokens, longest_path, device)

    def follow(self, lengths: Any, stream: int | None = None) -> None:
        """As Plan.follow, of the batch's queries; requests with drafts have `lengths` in draft."""
        self._check_has_requests()
        self._runs._follow(lengths, stream)

    def check_replays(self) -> None:
        """As Plan.check_replays; of draft, too, rows that are no tree's."""
        self._runs._check_replays()

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
        self._mask = DraftMask()
        self._is_behind = False  # the plans could not follow the batch's last step

    def _planned_tree(self) -> Any:
        return _Borrowed(lib.deft_paged_batch_get_tree(self._batch), self._batch)

    def _follow_batch(self) -> None:
        self._is_behind = True
        self._advance(self._planned_tree())
        self._is_behind = False

    def _make_host(self, options: Any) -> int:
        return make(lib.deft_paged_batch_make_plan, self._batch, self._attention, options)

    def _make_gpu(self, kernels: GpuKernels, options: Any) -> int:
        return make(lib.deft_paged_batch_make_gpu_plan, self._batch, kernels.loaded, options)

    def _draft(self, bits: Any, depths: Any, lengths: Any, stream: int | None) -> None:
        """Tells the plan of the place where the mask lies."""
        on_gpu, device, stream = place_of(bits, stream)
        words = words_of(bits, stream)  # those that are made here go in the stream's order
        rest = int32_view("depths", depths), int32_view("lengths", lengths)  # kept, as the words are, until the call is over
        mask = self._mask.fill(words, *rest)
        if on_gpu:
            self._gpu_plan(device).draft(mask, stream)
        else:
            self._host_plan().draft(mask)


class _Borrowed:
    """A handle that belongs to another, which is kept."""

    def __init__(self, value: Any, owner: Any) -> None:
        self._as_parameter_ = value
        self._owner = owner


def _most(numbers: Ints) -> int:
    return max((c_int32 * numbers.count).from_address(numbers.address), default=0)


def _ids(ids: Any) -> Ints:
    if isinstance(ids, (list, tuple, range)):
        array = row_of("ids", ids, c_uint64)
        return Ints(addressof(array), len(ids), array)
    seen = view("ids", ids)
    if seen.dtype not in (0x0140, 0x0040) or len(seen.shape) != 1 or seen.strides is not None:
        raise UsageError(f"ids is {dtype_text(seen.dtype)}, it must be one packed row of uint64")
    if seen.device_type == _abi.DEFT_DEVICE_CUDA:
        raise UsageError("ids is on a GPU, it is read on the host", "hand over a copy")
    return Ints(seen.data, seen.shape[0], (ids, seen.owner))
