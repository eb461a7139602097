"""Batches for engines that have page tables of their own, with a row of pages for each request."""

from __future__ import annotations

import sys
from ctypes import addressof, byref, c_int64
from typing import TYPE_CHECKING, Any, Mapping, NamedTuple

from . import _abi, _gpu
from ._arguments import expect, expect_whole
from ._attention import Attention
from ._batch_inputs import BlockTable, DraftMask, copy_on_gpu, ids_of, most_of, on_host, place_of, read_block_table, words_of
from ._errors import UsageError, wrong
from ._gpu import GpuKernels
from ._library import Borrowed, Handle, check, filled, lib, make, pointers, read, sized, struct_of
from ._options import PlanOptions, RunOptions, checked, takes
from ._plans import GpuPlan, HostPlan
from ._ranks import Ranks, ranks_of_c
from ._runs import Runs, is_traced, numbered
from ._tensors import View, int32_view, ints, view
from ._tree import TreeView

if TYPE_CHECKING:
    from typing_extensions import Unpack

_CHECKS = {None: _abi.DEFT_CHECK_DEFAULT, True: _abi.DEFT_CHECK_ALWAYS, False: _abi.DEFT_CHECK_NEVER}


class Sharing(NamedTuple):
    """The gain of sharing: a step reads `tokens` in place of `request_tokens`."""

    requests: int
    request_tokens: int
    tokens: int


class PagedBatch(Runs):
    """The requests of a step, followed from step to step. It finds shared pages in the page tables and reads each once. With
    `ranks` it spans several caches, each with its part of the tokens (deft.Ranks). In an `invariant` batch requests share only
    whole chunks of `chunk_tokens` (by default 512), counted from their beginnings. Then a request's bits do not depend on the
    sharing of its pages.

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
    _attention: Attention
    _sent_as = "make another, and update it with the same tables"
    _instead_of = {"Tree": "a batch makes its own plans: call batch.update, then batch.run; batch.tree shows its tree"}

    @takes(PlanOptions)
    def __init__(
        self,
        attention: Attention,
        max_requests: int,
        *,
        params: Mapping[str, Any] | None = None,
        check_entries: bool | None = None,
        cache_pages: int | None = None,
        ranks: Ranks | None = None,
        **options: Unpack[PlanOptions],
    ) -> None:
        expect("attention", attention, _abi.deft_attention)
        if attention.page_size is None:
            raise UsageError(f"{attention._title} has a contiguous cache, a batch needs pages", "kv_cache = paged(...)")
        if check_entries not in _CHECKS:
            raise wrong("check_entries", f"is {check_entries!r}, it must be None, True or False")
        if options.get("invariant") and options.get("chunk_tokens") is None:
            options["chunk_tokens"] = _abi.DEFT_INVARIANT_CHUNK
        super().__init__(attention, params, checked("PagedBatch", PlanOptions, options))
        made = sized(
            _abi.deft_paged_batch_options,
            page_size=attention.page_size,
            check_entries=_CHECKS[check_entries],
            cache_pages=0 if cache_pages is None else expect_whole("cache_pages", cache_pages, c_int64, least=1),
            invariant_chunk=self._options["chunk_tokens"] if self._options["invariant"] else 0,
            sees_path=attention.sees_path,
        )
        self.max_requests = expect_whole("max_requests", max_requests, least=0)
        self._batch = Handle(make(lib.deft_paged_batch_make, byref(made)), lib.deft_paged_batch_destroy)
        if ranks is not None:
            own, kept = ranks_of_c(ranks)
            check(lib.deft_paged_batch_set_ranks(self._batch, byref(own)))
            del kept
        self._mask = DraftMask()
        self._followed: list[Any] = []  # the plans that the struct of a step names
        self._step = sized(_abi.deft_followers)
        self._pointers: list[Any] = []
        self._uploads_on: int | None = None  # the stream on which a step's call puts the plans of GPUs
        self._is_behind = False  # the plans could not follow the batch's last step
        self._table: View | None = None  # all entries in one row, where runs read them
        self._most_drafts: int | None = None  # of a request; None: the batch has no drafts
        self._on_device: dict[int, Any] = {}  # copies of a host's table, of this step
        self.number = numbered(self)  # of this process, by which torch's graphs name it

    @property
    def attention(self) -> Attention:
        return self._attention

    @property
    def tree(self) -> TreeView:
        """The batch's tree, read-only: only the batch changes it."""
        return TreeView(self._planned_tree())

    def _planned_tree(self) -> Any:
        return Borrowed(lib.deft_paged_batch_get_tree(self._batch), self._batch)

    def _make_host(self, options: Any) -> int:
        return make(lib.deft_paged_batch_make_plan, self._batch, self._attention, options)

    def _make_gpu(self, kernels: GpuKernels, options: Any) -> int:
        return make(lib.deft_paged_batch_make_gpu_plan, self._batch, kernels.loaded, options)

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
        holders: Any = None,
    ) -> None:
        """Takes a step's requests, and finds those that are new, gone, longer, shorter or in another row.

        `block_tables` is int32 [rows, pages]: the engine's own table, which runs read in place until the next update. Or it is
        int32 [pages] with `indptr`: row i has the pages from `indptr[i]` to `indptr[i + 1]`. `seq_lens` (int32): tokens of each
        request, including those of its queries. Or, with `indptr`, pass `last_page_lengths`: tokens of each request's last
        page. Request i has the queries from `query_indptr[i]` to `query_indptr[i + 1]`, for its last tokens; by default one
        each. `rows`: the row of each request; by default request i has row i. `ids` (uint64, all different) identify requests:
        a request with the same id has the same pages as before, perhaps followed by more. Without ids every row is compared.

        `drafts` (int32, in place of query_indptr): how many drafts, at most 256, follow each request's `seq_lens` tokens. They
        are its only queries, and `draft` says which of them see which.

        An error leaves the batch unchanged, except an error of a plan that does not fit a captured graph's room: runs repeat
        that error until the next update.

        `holders`, for a batch with `ranks` by page: the rank that holds each entry's page, or -1; int32 on the host, with the
        shape of `block_tables`, packed.

        Tables and lengths may be torch tensors on a GPU; planning then waits for a copy. It does not wait for a table if you
        pass `host_tables`, of the same shape and strides, with the entries that runs will read."""
        if (seq_lens is None) == (last_page_lengths is None):
            raise UsageError(f"update takes seq_lens or last_page_lengths, not {'neither' if seq_lens is None else 'both'}")
        if last_page_lengths is not None and indptr is None:
            raise UsageError("last_page_lengths are given without indptr", "give seq_lens", "last_page_lengths")
        table = read_block_table(block_tables, indptr, host_tables, holders)
        if seq_lens is not None:
            lengths, field = ints("seq_lens", on_host(seq_lens)), "lengths"
        else:
            lengths, field = ints("last_page_lengths", on_host(last_page_lengths)), "last_page_lengths"
        count = lengths.count
        if count > self.max_requests:
            raise UsageError(f"there are {count} requests, the batch was made for {self.max_requests}")
        given = {field: lengths}
        for name, values in (("query_indptr", query_indptr), ("drafts", drafts), ("rows", rows), ("ids", ids)):
            if values is not None:
                given[name] = ids_of(on_host(values)) if name == "ids" else ints(name, on_host(values))
                expected = count + (name == "query_indptr")
                if given[name].count != expected:
                    raise wrong(name, f"has {given[name].count} entries, there must be {expected} for {count} requests")
        most_drafts = most_of(given["drafts"]) if drafts is not None else None
        if most_drafts and self._options["invariant"]:  # which no plan of theirs is: said while nothing has changed
            raise UsageError("an invariant plan is not for requests with drafts", "add each draft as a node with a query to a Tree")
        addresses = {name: one.address for name, one in given.items()}
        requests = struct_of(_abi.deft_paged_requests, table=addressof(table.pages), count=count, **addresses)
        self._take_step(table, most_drafts, lib.deft_paged_batch_update_plans, byref(requests))

    def grow(
        self, block_tables: Any, seq_lens: Any, *, indptr: Any = None, host_tables: Any = None, holders: Any = None
    ) -> None:
        """Takes the fastest kind of step: the same requests in the same order and rows, with as many queries, and none with
        fewer tokens. Arguments are those of update."""
        table = read_block_table(block_tables, indptr, host_tables, holders)
        lengths = ints("seq_lens", on_host(seq_lens))
        step = (addressof(table.pages), lengths.address, lengths.count)
        self._take_step(table, self._most_drafts, lib.deft_paged_batch_grow_plans, *step)

    def _take_step(self, table: BlockTable, most_drafts: int | None, function: Any, *arguments: Any) -> None:
        """Updates the batch and its plans in one call."""
        followers, stream = self._followers(), self._uploads_on
        followers.uploads, followers.stream = stream is not None, stream
        status = function(self._batch, *arguments, byref(followers))
        if followers.is_taken:
            self._table = table.seen
            self._most_drafts = most_drafts
            self._on_device.clear()
            self._is_behind = bool(status)
            for plan in self._gpus.values():
                plan.needs_upload |= followers.advanced != _abi.DEFT_ADVANCED_NOTHING
                plan.needs_upload &= stream is None or bool(status)
        check(status)

    def _followers(self) -> Any:
        """Returns the existing plans. The library updates them to the step, and they live as long as the batch."""
        if len(self._gpus) + (self._host is not None) != len(self._followed):
            plans = self._plans()
            kinds = [pointers([plan.handle for plan in plans if isinstance(plan, kind)]) for kind in (HostPlan, GpuPlan)]
            (host, on_gpus) = kinds
            self._step = sized(
                _abi.deft_followers,
                plans=addressof(host),
                plan_count=len(host),
                gpu_plans=addressof(on_gpus),
                gpu_plan_count=len(on_gpus),
            )
            self._followed, self._pointers = plans, kinds
        return self._step

    def _bring_plans(self) -> None:
        """Updates the plans to the batch's last step."""
        self._is_behind = True
        self._advance(self._planned_tree())
        self._is_behind = False

    def _check_is_ready(self) -> None:
        if self._table is None:
            raise UsageError("the batch has no requests yet", "call update first")
        if self._is_behind:  # says again why, if nothing has changed since
            self._bring_plans()

    def draft(self, bits: Any, depths: Any = None, lengths: Any = None, *, stream: int | None = None) -> None:
        """Says which drafts see which. Call it before the runs of each step, for a batch with drafts. A draft sees itself, its
        ancestors in a tree, and all tokens of its request. Drafts may be in any order.

        `bits` says in bit j % 32 of word [request, i, j // 32] whether draft i sees draft j: int32 or uint32, packed,
        [requests, drafts, (drafts + 31) // 32]. Or it is bool, [requests, drafts, drafts], of NumPy or torch. `depths` (int32
        [requests, drafts]): each draft's position after the request's tokens; by default the number of its ancestors.
        `lengths` (int32 [requests]): tokens before the drafts, if more than the host knew (`follows_lengths`). With `ranks`
        each rank passes the whole mask, and runs read the drafts that it holds.

        Arrays on the host are read at once, and rows that are no tree are an error. A GPU reads them in stream order,
        and a graph can capture the call with the runs; check_replays then reports rows that are no tree. Without drafts the call
        does nothing."""
        self._check_is_ready()
        if self._most_drafts is None:
            raise UsageError("the batch has no requests with drafts", "give drafts= to update")
        if self._most_drafts == 0:
            return
        on_gpu, device, stream = place_of(bits, stream)
        words = words_of(bits, stream)  # those that are made here go in the stream's order
        others = [None if one is None else int32_view(name, one) for name, one in (("depths", depths), ("lengths", lengths))]
        mask = self._mask.fill(words, *others)  # all of which are kept until the call is over
        if on_gpu:
            self._gpu_plan(device).draft(mask, stream)
        else:
            self._host_plan().draft(mask)

    @takes(RunOptions)
    def run(self, q: Any, k_cache: Any, v_cache: Any = None, **options: Unpack[RunOptions]) -> Any:
        """Computes the attention of the step's queries; rows of q are in the order of the requests. See Plan.run, also for
        torch.compile and torch.export. For a latent cache v_cache is None, and k_cache may be a pair, as in Attention.run."""
        if is_traced(options):
            from .torch_ops import traced

            return traced(self, q, k_cache, v_cache, None, options)
        self._check_is_ready()
        table = self._table_for(q, options.get("stream"))
        return self._run(q, k_cache, v_cache, table, options)

    def _table_for(self, q: Any, stream: int | None) -> View:
        """Returns the block table on the device of `q`. A host's table is copied to the GPU once a step."""
        table = self._table
        assert table is not None
        if table.device_type != _abi.DEFT_DEVICE_CPU:
            return table
        place = view("q", q)
        if place.device_type != _abi.DEFT_DEVICE_CUDA:
            return table
        if _gpu._is_capturing():  # replays would read a step's copy that is gone by then
            raise UsageError("block_tables are on the host, and a graph is being captured", "pass the table of the GPU")
        torch = sys.modules.get("torch")
        if torch is None or not isinstance(q, torch.Tensor):
            raise UsageError("block_tables are on the host, the run is on a GPU", "pass the table of the GPU")
        copy = self._on_device.get(place.device)
        if copy is None:
            copy = self._on_device[place.device] = copy_on_gpu(table, q.device)
        # Where the run may still read it when the next step lets go of it.
        if stream is None:
            copy.record_stream(torch.cuda.current_stream(q.device))
        else:
            copy.record_stream(torch.cuda.ExternalStream(stream, device=q.device))
        return view("block_tables", copy)

    def sharing(self) -> Sharing:
        return read(Sharing, filled(_abi.deft_sharing_summary, lib.deft_paged_batch_get_summary, self._batch))

    def __repr__(self) -> str:
        sharing = self.sharing()
        return (
            f"<deft.PagedBatch of {self.attention.name}: {sharing.requests} requests, {sharing.tokens} tokens read in place "
            f"of {sharing.request_tokens}>"
        )
