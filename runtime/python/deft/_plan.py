"""How the work of a step is cut, and running it."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, Mapping

from . import _abi
from ._arguments import expect
from ._errors import UsageError
from ._gpu import GpuKernels, device_index
from ._library import lib, make
from ._plan_facts import ConfigChoice, PlanOptions, PlanRoom, PlanSummary
from ._runners import is_traced, number_of
from ._runs import How, Runs

if TYPE_CHECKING:
    from ._attention import Attention
    from ._selection import Selection
    from ._tree import TreeView


class Plan(Runs):
    """The work list of one tree, made once a step and used by every layer. Made by Attention.plan. For one thread at a
    time, but many runs may read it at once.

    Where the tensors of a run lie on a GPU, the plan for it is made with the first run there, or by
    ``attention.plan(tree, device=0)``.
    """

    takes_page_table = True
    _sent_as = "send the tree's to_json(locations=True), and plan again"

    def __init__(
        self,
        attention: Attention,
        tree: TreeView,
        params: Mapping[str, Any] | None,
        options: PlanOptions,
        device: Any = "cpu",
        keeps_tree: bool = True,
    ) -> None:
        expect("tree", tree, _abi.deft_tree)
        super().__init__(attention, params, options)
        self._tree = weakref.ref(tree)
        self._kept = tree if keeps_tree else None
        self.number = number_of(self)  # of this process, by which torch's graphs name it
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
        check_finite: bool = False,
    ) -> Any:
        """Computes the attention of all queries; row i of q, out and lse belongs to query i.

        Reads and writes the caller's memory as it is. `out` and `lse` are made where they are not given. On a GPU the run
        is put on the current stream of whoever made `q` (or on `stream`), and is not waited for; there it may be captured
        in a CUDA graph. Gives `out`, or `(out, lse)` where `return_lse` is set.

        With `check_finite` the first query and head with a NaN or an infinity in q, in the keys and values that the run has
        read, in lse or in `out` is an error, which names it; all is written then. A NaN in q or K need not show otherwise: the
        row may look like one that sees nothing. Such a run takes as long as many, waits for a GPU and cannot be captured.

        For torch.compile and torch.export it is an operation (deft.torch_ops), where `params`, `stream` and `check_finite`
        are not given.
        """
        if is_traced() and params is None and stream is None and not check_finite:
            from .torch_ops import traced

            return traced(self, q, k, v, page_table, out, lse, return_lse)
        return self._run(q, k, v, page_table, out, lse, return_lse, params, stream, check_finite)

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
        stream: int | None = None,
        check_finite: bool = False,
    ) -> Any:
        """As `run`, of an attention whose spec says `select`; `selection` then has the lists. On a GPU they stay there, with
        the plan, and the host does not wait for them."""
        how = How(lib.deft_runtime_run_selecting, lib.deft_gpu_plan_run_selecting, (selection,), selects=True)
        return self._run(q, k, v, page_table, out, lse, return_lse, params, stream, check_finite, how)

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
        stream: int | None = None,
        check_finite: bool = False,
    ) -> Any:
        """As `run`, to the tokens of the queries' lists alone, which may be another layer's."""
        how = How(lib.deft_runtime_run_sparse, lib.deft_gpu_plan_run_sparse, (selection,))
        return self._run(q, k, v, page_table, out, lse, return_lse, params, stream, check_finite, how)

    def advance(self, tree: TreeView | None = None) -> str:
        """Makes the plan fit the tree as it is now: "nothing" had to be done, leaves grew "in_place", or the plan was
        "remade"."""
        if tree is not None and tree is not self._tree():
            expect("tree", tree, _abi.deft_tree)
            self._tree = weakref.ref(tree)
            self._kept = tree if self._kept is not None else None
        return self._advance(self._planned_tree())

    def upload(self, stream: int | None = None) -> None:
        """On GPUs: puts the plan on the stream (by default torch's current one) for runs and replayed graphs behind it. A
        run does it by itself, except in a graph."""
        self._upload(stream)

    def reserve(
        self, requests: int, queries: int, tokens: int, *, longest_path: int = 0, device: Any = "cuda"
    ) -> PlanRoom:
        """On a GPU, before a graph is captured that is to serve larger trees: room for the plans of all trees of at most so
        many requests (leaves, and nodes that queries end with), with so many queries in all, and of so many tokens, a shared
        one counted once, whoever shares what. Without it a graph has the room of the tree that it was captured with, and
        `advance` to one that needs more is an error. `longest_path`: tokens of a path at most, for plans with `budget` and
        invariant ones. Waits for the GPU; the next run, or `upload` before a graph is replayed, brings the plan anew. Gives
        the memory that the room takes. Runs are given the rows of the tree as it is, so a graph that is captured of few and serves
        more has the first rows of tensors that hold all: `run(q[:1], ..., out=out[:1])`."""
        return self._reserve(requests, queries, tokens, longest_path, device)

    def check_replays(self) -> None:
        """An error where a replayed graph has run while the tree had changed since the upload, where `follow` has met a length
        that the plan does not serve, or, with `check_pages`, a run a page that the cache does not have. Told once; what is
        still under way is noticed later."""
        self._check_replays()

    def follow(self, lengths: Any, stream: int | None = None) -> None:
        """For runs behind it, the path of each query has as many tokens as `lengths` says by then: int32 in memory of the
        GPU. For plans made with `follows_lengths`."""
        self._follow(lengths, stream)

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
        return self._any().picture(self._planned_tree())
