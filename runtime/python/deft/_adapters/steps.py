"""Plans a step's work for the attentions that run it."""

from __future__ import annotations

from typing import Any, Mapping, NamedTuple, Protocol

import torch

from .._attention import Attention, Plan
from .._batch_inputs import BlockTable
from .._errors import UsageError
from .._paged_batch import PagedBatch
from .._plans import GpuPlan
from .._ranks import Ranks
from .._tensors import current_stream
from .._tree import Tree
from .variant import Scales, Variant, attention_of, values_of

_MOST_REQUESTS = 1 << 23  # of a batch


class Room(NamedTuple):
    """The most that steps need that replay a captured graph. Other steps may need more, but growing takes long."""

    requests: int
    queries: int
    tokens: int


class Planned(Protocol):
    """A step planned for one attention."""

    def follow(self, work: Any, stream: int | None) -> None: ...
    def gpu_plan(self, device: int) -> GpuPlan: ...
    def draft(self) -> None: ...
    def check_drafts(self) -> None: ...
    def run(self, q: Any, k: Any, v: Any, out: Any, lse: Any, params: Mapping[str, Any] | None) -> Any: ...


class PagedWork(NamedTuple):
    """Requests with page tables, as PagedBatch.update takes them. The batch finds the shared pages."""

    pages: torch.Tensor | BlockTable  # where runs read them; a table that was read has the host's
    indptr: torch.Tensor | None  # the rest is the host's
    lengths: Any
    query_indptr: Any = None
    host_pages: Any = None  # what `pages` hold, where the host knows it
    drafts: Any = None  # of each request, in place of query_indptr; behind its `lengths` tokens
    bits: Any = None  # which of them see which, where the runs are (PagedBatch.draft)
    depths: Any = None
    ids: Any = None
    ranks: Ranks | None = None  # whose caches the pages are of; the same in all steps
    grows: bool = False  # as PagedBatch.grow takes them: the requests of the step before, none shorter, and no drafts

    def anew(self) -> PagedWork:
        """The same work for batches that have not had the step before."""
        return self._replace(grows=False)

    def make_batch(self, attention: Attention, options: Mapping[str, Any] = {}) -> PagedBatch:
        batch = PagedBatch(attention, _MOST_REQUESTS, ranks=self.ranks, **options)
        self.anew().bring(batch)
        return batch

    def bring(self, batch: PagedBatch, stream: int | None = None) -> None:
        """Updates the batch to this work. With a stream, the same call uploads its GPU plans on that stream."""
        batch._uploads_on = stream
        if self.grows:
            batch.grow(self.pages, self.lengths, indptr=self.indptr, host_tables=self.host_pages)
            return
        given = {"indptr": self.indptr, "host_tables": self.host_pages, "drafts": self.drafts, "ids": self.ids}
        batch.update(self.pages, self.lengths, self.query_indptr, **given)
        if self.bits is not None and not self.bits.is_cuda:
            batch.draft(self.bits, self.depths)

    def plan(self, attention: Attention, options: Mapping[str, Any]) -> Planned:
        return _PlannedPages(attention, options, self)


class TreeWork(NamedTuple):
    """A tree with locations that are places in `pages`, or in a contiguous cache."""

    pages: torch.Tensor | None
    tree: Tree

    def anew(self) -> TreeWork:
        return self

    def plan(self, attention: Attention, options: Mapping[str, Any]) -> Planned:
        return _PlannedTree(attention, options, self)


class _PlannedPages:
    def __init__(self, attention: Attention, options: Mapping[str, Any], work: PagedWork) -> None:
        self._batch, self._work = work.make_batch(attention, options), work

    def follow(self, work: PagedWork, stream: int | None) -> None:
        work.bring(self._batch, stream)
        self._work = work

    def gpu_plan(self, device: int) -> GpuPlan:
        return self._batch._gpu_plan(device)

    def draft(self) -> None:
        """Passes the drafts to the batch. On a GPU call it after the upload."""
        if self._work.bits is not None:
            self._batch.draft(self._work.bits, self._work.depths)

    def check_drafts(self) -> None:
        if self._work.bits is not None:
            self._batch.check_replays()

    def run(self, q: Any, k: Any, v: Any, out: Any, lse: Any, params: Mapping[str, Any] | None) -> Any:
        return self._batch.run(q, k, v, out=out, lse=lse, return_lse=lse is not None, params=params)


class _PlannedTree:
    def __init__(self, attention: Attention, options: Mapping[str, Any], work: TreeWork) -> None:
        self._attention, self._options, self._work = attention, options, work
        self._plan: Plan | None = None

    def _planned(self, device: Any) -> Plan:
        if self._plan is None:
            self._plan = self._attention.plan(self._work.tree, device=device, **self._options)
        return self._plan

    def follow(self, work: TreeWork, stream: int | None) -> None:
        self._work = work
        if self._plan is not None:
            self._plan.advance(work.tree)

    def gpu_plan(self, device: int) -> GpuPlan:
        return self._planned(device)._gpu_plan(device)

    def draft(self) -> None:
        """Does nothing: a tree has no drafts that only a GPU knows."""

    def check_drafts(self) -> None: ...

    def run(self, q: Any, k: Any, v: Any, out: Any, lse: Any, params: Mapping[str, Any] | None) -> Any:
        plan = self._planned(q.device)
        return plan.run(q, k, v, self._work.pages, out=out, lse=lse, return_lse=lse is not None, params=params)


class Steps:
    """The last planned step, for all variants that run it. A model's layers may differ in their variant, and a run may have its
    own scale."""

    def __init__(self, device: torch.device, room: Room | None = None, runs_ahead: int = 0) -> None:
        """`runs_ahead`: the most runs that a replayed graph makes of a step while the host already prepares the next one."""
        self._device = device
        self._room = room
        self._runs_ahead = runs_ahead
        self._invariant = False
        self._work: PagedWork | TreeWork | None = None
        self._planned: dict[Variant, Planned] = {}
        self._asked: tuple[Variant, ...] = ()  # for which these are all; empty: others may be needed

    def plan(self, work: PagedWork | TreeWork, *variants: Variant, invariant: bool = False) -> None:
        """Plans the step for the variants that will run. A variant that you do not name is planned at its first run, which then
        cannot be captured. Variants that ran before are planned again if they have the shapes of these. If planning raises an
        error, runs still use the step before, and nothing has been put on the GPU."""
        is_of_another_kind = invariant != self._invariant or type(work) is not type(self._work)
        planned = self._planned
        missing: tuple[Variant, ...] = ()
        if is_of_another_kind or (variants and variants != self._asked):
            shapes = {variant.shape for variant in variants}
            planned = {
                known: one
                for known, one in self._planned.items()
                if not is_of_another_kind and (not shapes or known.shape in shapes)
            }
            missing = tuple(variant for variant in dict.fromkeys(variants) if variant not in planned)
        # One attention's plan is uploaded by the call that makes it; of several none is before all are made.
        is_one = len(planned) == 1 and not missing and isinstance(work, PagedWork)
        stream = self._stream() if is_one and self._device.type == "cuda" else None
        followed: list[Planned] = []
        try:
            for variant, one in planned.items():
                followed.append(one)
                one.follow(work, stream)
            for variant in missing:
                planned[variant] = self._make(variant, work, invariant)
        except BaseException:
            for one in followed:
                one.follow(self._work.anew(), None)
            raise
        self._work, self._invariant, self._planned, self._asked = work, invariant, planned, variants
        if stream is not None and isinstance(work, PagedWork) and work.bits is None:
            return
        for variant, one in planned.items():
            self._upload(one)

    def expect(self, room: Room) -> None:
        """Reserves memory for steps of this size now, because a step that reserves memory waits for the GPU."""
        self._room = room
        for planned in self._planned.values() if self._device.type == "cuda" else ():
            planned.gpu_plan(self._index()).reserve(*room)

    def _make(self, variant: Variant, work: PagedWork | TreeWork, invariant: bool) -> Planned:
        # `params`: where runs bring their own, those that kernels are loaded with.
        options = {"params": variant.first_values, "invariant": invariant, "runs_ahead": self._runs_ahead}
        planned = work.plan(attention_of(variant), options)
        if self._device.type == "cuda":
            on_gpu = planned.gpu_plan(self._index())
            if self._room:
                on_gpu.reserve(*self._room)
        return planned

    def _of(self, variant: Variant) -> Planned:
        planned = self._planned.get(variant)
        if planned is None:
            if self._work is None:
                raise RuntimeError("nothing is planned yet: call plan before run")
            planned = self._planned[variant] = self._make(variant, self._work, self._invariant)
            self._asked = ()
            self._upload(planned)
        return planned

    def _index(self) -> int:
        return torch.cuda.current_device() if self._device.index is None else self._device.index

    def _stream(self) -> int:
        return current_stream(self._index())

    def _upload(self, planned: Planned) -> None:
        """Uploads the plan now, not with the first run, because a graph may capture that run."""
        if self._device.type == "cuda":
            plan = planned.gpu_plan(self._index())
            if plan.needs_upload:
                plan.upload(self._stream())
            planned.draft()

    @property
    def work(self) -> PagedWork | TreeWork | None:
        return self._work

    def check_drafts(self) -> None:
        """Raises an error if a GPU has found drafts that are not a tree since the last call. Does not wait."""
        errors = []
        for planned in self._planned.values():  # each is told of its own
            try:
                planned.check_drafts()
            except UsageError as error:
                errors.append(error)
        if errors:
            raise errors[0]

    def run(
        self,
        variant: Variant,
        q: Any,
        k: Any,
        v: Any,
        out: Any = None,
        lse: Any = None,
        scales: Scales | None = None,
        sinks: Any = None,
    ) -> Any:
        """Returns out, or (out, lse) if you pass `lse`. Pass `scales` and `sinks` if the variant has them."""
        for what, has, given in (("scales", variant.has_scales, scales), ("sinks", variant.has_sinks, sinks)):
            if has and given is None:  # those that it was planned with are nobody's
                raise RuntimeError(f"a run of an attention with {what} is given them")
        planned = self._of(variant)
        return planned.run(q, k, v, out, lse, values_of(scales, sinks))
