"""The tokens that a query of a prompt wrapper sees, and the step's plans for each kind of visibility."""

from __future__ import annotations

import dataclasses
import enum
from typing import Any, Mapping, NamedTuple, Protocol

import torch

from .._adapters.draft_masks import Drafts, room_for_drafts, speaking_of_masks
from .._adapters.queries import work_of
from .._adapters.steps import PagedWork, Room, Steps, TreeWork
from .._adapters.variant import Variant, attention_of
from .._attention import Attention
from .._tree import Tree


class Kind(enum.Enum):
    CAUSAL = "causal"  # up to its own token
    ALL = "all"
    WINDOW = "window"  # all from the beginning of its window on
    MASK = "mask"  # the context, and drafts that a custom mask shows


class Requests(Protocol):
    """The requests of a step."""

    @property
    def lengths(self) -> torch.Tensor: ...  # tokens of each, on the host
    @property
    def query_indptr(self) -> torch.Tensor: ...
    @property
    def drafts(self) -> Drafts | None: ...  # with a custom mask
    def work(self, attention: Attention, kind: Kind, options: Mapping[str, Any]) -> PagedWork | TreeWork: ...


class RaggedRequests(NamedTuple):
    """Requests with their tokens one request after the other; all tensors are on the host."""

    starts: torch.Tensor
    lengths: torch.Tensor
    query_indptr: torch.Tensor

    @property
    def drafts(self) -> Drafts | None:
        return None

    def work(self, attention: Attention, kind: Kind, options: Mapping[str, Any]) -> TreeWork:
        tree = Tree()
        queries: list[tuple[int, int | None]] = []
        for first, tokens, count in zip(self.starts.tolist(), self.lengths.tolist(), self.query_indptr.diff().tolist()):
            node = tree.add_root(tokens, first)
            if kind is Kind.ALL:
                queries += [(node, None)] * count
                continue
            # Those before the first token see nothing, or what the first one's window shows.
            least = min(tokens, 1) if kind is Kind.WINDOW else 0
            before = tokens - count
            queries += [(node, max(before + query, least)) for query in range(1, count)]
            queries += [(node, None)] * (count > 0)
        tree.set_queries(queries)
        return TreeWork(None, tree)


class PagedRequests(NamedTuple):
    """Requests as rows of pages. All tensors are on the host, except `pages` and the mask."""

    pages: torch.Tensor  # where runs read them
    host_pages: torch.Tensor
    indptr: torch.Tensor
    lengths: torch.Tensor
    query_indptr: torch.Tensor
    drafts: Drafts | None = None

    def work(self, attention: Attention, kind: Kind, options: Mapping[str, Any]) -> PagedWork | TreeWork:
        if self.drafts is not None:
            counts, lengths, bits, depths = self.drafts
            return PagedWork(self.pages, self.indptr, lengths, None, self.host_pages, counts, bits, depths)
        if kind is Kind.WINDOW:  # queries see tokens behind their own, which are in one node where nothing is shared
            starts = self.indptr[:-1].long() * (attention.page_size or 1)
            return RaggedRequests(starts, self.lengths, self.query_indptr).work(attention, kind, options)._replace(pages=self.pages)
        causal = kind is Kind.CAUSAL
        work = work_of(attention, self.host_pages, self.indptr, self.lengths, self.query_indptr, causal, options=options)
        if isinstance(work, PagedWork):
            return work._replace(pages=self.pages, host_pages=self.host_pages)
        return work._replace(pages=self.pages)


def seen_by(variant: Variant, causal: bool, requests: Requests, is_for_graphs: bool) -> tuple[Kind, Variant]:
    """Returns the kind of visibility and a variant with the mask for it. A window that hides no token is dropped, except for
    graphs, because their later steps are longer."""
    if requests.drafts is not None:
        return Kind.MASK, variant
    if causal:
        return Kind.CAUSAL, variant
    if variant.window_left < 0:
        return Kind.ALL, variant
    longest = int(requests.lengths.max()) if len(requests.lengths) else 0
    if longest <= variant.window_left + 1 and not is_for_graphs:
        return Kind.ALL, dataclasses.replace(variant, window_left=-1)
    return Kind.WINDOW, dataclasses.replace(variant, sees_path=True)


def room_for(kind: Kind, requests: int, queries: int, tokens: int, drafts: Drafts | None) -> Room:
    """Returns the room for a graph's steps."""
    if drafts is None or kind is not Kind.MASK:
        return Room(requests, queries, tokens)
    return room_for_drafts(requests, queries, tokens, drafts.bits.shape[1])


class Plans:
    """The plans of the step: a `Steps` for each kind of visibility that runs need. plan chooses one kind; each older call
    chooses its own with `causal`."""

    def __init__(self, device: torch.device, is_for_graphs: bool) -> None:
        self._device, self._is_for_graphs = device, is_for_graphs
        self._steps: dict[Kind, Steps] = {}  # planned for the step
        self._idle: dict[Kind, Steps] = {}  # planned for another one
        self._ran: set[Kind] = set()  # since the last plan; of graphs ever, whose replays nobody sees
        self._said: tuple[Kind, tuple[object, ...]] | None = None
        self._requests: Requests | None = None
        self._room = Room(0, 0, 0)
        self._invariant = False

    def plan(self, requests: Requests, variant: Variant, causal: bool, scale: float, invariant: bool, room: Room) -> None:
        """Plans the step. `scale`: the scale of the coming runs. If it raises an error, runs still use the step before."""
        kind, variant = seen_by(variant, causal, requests, self._is_for_graphs)
        said = kind, variant.shape
        if self._is_for_graphs and self._said is not None and (kind is Kind.MASK) != (self._said[0] is Kind.MASK):
            had = "with" if self._said[0] is Kind.MASK else "without"
            raise ValueError(f"the first plan of a wrapper for CUDA graphs was {had} custom_mask, and so are those after it")
        kinds = {kind}
        if kind is not Kind.MASK and self._ran and (self._said == said or self._is_for_graphs):
            kinds = self._ran | (set() if self._said == said else kinds)
        known = {**self._idle, **self._steps}
        if self._said is not None and self._said[1] != variant.shape and not self._is_for_graphs:
            known = {}
        planned: dict[Kind, Steps] = {}
        before = [(steps, steps.work) for steps in known.values()]
        try:
            for one in kinds:
                steps = known.get(one)
                if steps is None:
                    steps = self._new(one, requests, room)
                variants = (variant.running_at(scale),) if one is kind else ()
                self._plan(one, steps, requests, variant, invariant, variants)
                planned[one] = steps
        except BaseException:
            for steps, work in before:
                if steps in planned.values() and work is not None:
                    steps.plan(work, invariant=self._invariant)
            raise
        self._idle = {one: steps for one, steps in known.items() if one not in planned}
        self._steps, self._said, self._requests = planned, said, requests
        self._room, self._invariant = room, invariant
        if not self._is_for_graphs:
            self._ran = set()

    def _new(self, kind: Kind, requests: Requests, room: Room) -> Steps:
        most = room_for(kind, *room, requests.drafts) if self._is_for_graphs else None
        return Steps(self._device, most)

    def _plan(
        self, kind: Kind, steps: Steps, requests: Requests, variant: Variant, invariant: bool, variants: tuple[Variant, ...]
    ) -> None:
        options = {"invariant": True} if invariant else {}
        asked = dataclasses.replace(variant, sees_path=kind is Kind.WINDOW)
        work = requests.work(attention_of(asked), kind, options)
        if self._is_for_graphs and steps.work is not None and type(work) is not type(steps.work):
            raise ValueError(
                "these numbers of queries and tokens take a plan of another kind than the first one of a wrapper for CUDA graphs"
            )
        with speaking_of_masks():
            steps.plan(work, *variants, invariant=invariant)

    def of(self, variant: Variant, causal: bool) -> tuple[Steps, Variant]:
        """Returns the steps and the variant for a run."""
        if self._requests is None:
            raise RuntimeError("nothing is planned yet: call plan before run")
        kind, variant = seen_by(variant, causal, self._requests, self._is_for_graphs)
        steps = self._steps.get(kind)
        if steps is None:
            steps = self._idle.pop(kind, None) or self._new(kind, self._requests, self._room)
            self._plan(kind, steps, self._requests, variant, self._invariant, ())
            self._steps[kind] = steps
        self._ran.add(kind)
        return steps, variant

    def check_mask(self) -> None:
        """Raises an error if a GPU has found that the mask of a step is not a tree."""
        steps = self._steps.get(Kind.MASK)
        if steps is not None:
            with speaking_of_masks():
                steps.check_drafts()
