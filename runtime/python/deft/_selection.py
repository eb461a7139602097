"""Which tokens a sparse layer reads."""

from __future__ import annotations

from ctypes import byref, c_int32
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _abi
from ._library import Handle, OfThisProcess, check, lib, make, sized

if TYPE_CHECKING:
    from ._attention import Attention
    from ._runs import GpuPlan


class NodeTokens(NamedTuple):
    """Consecutive tokens of a node."""

    node: int
    first: int
    tokens: int


class Selection(OfThisProcess):
    """The lists that a selecting run (Plan.run_selecting) makes, of an attention whose spec says `select`: for each list
    of each query, the positions of the tokens that sparse runs (Plan.run_sparse) of other layers read. They are of the
    tree as it was then. Lists of arrays on a GPU stay there; to look at them copies them, and waits for the GPU.

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

    def __init__(self, attention: Attention, budget: int | None = None) -> None:
        made = make(lib.deft_selection_make, attention, 0 if budget is None else budget)
        self._handle = Handle(made, lib.deft_selection_destroy)
        self._as_parameter_ = self._handle._as_parameter_
        self._plan: GpuPlan | None = None  # that has the lists on a GPU
        self._stream = 0

    def _lies_in(self, plan: GpuPlan | None, stream: int) -> None:
        self._plan, self._stream = plan, stream

    def _view(self) -> Any:
        if self._plan is not None:
            self._plan.read_lists(self, self._stream)
        return self._known_view()

    def _known_view(self) -> Any:
        view = sized(_abi.deft_selection_view)
        check(lib.deft_selection_get(self._handle, byref(view)))
        return view

    @property
    def budget(self) -> int:
        return self._known_view().budget

    @property
    def lists(self) -> int:
        """Of a query: one, or one a KV head or query head."""
        return self._known_view().lists

    @property
    def query_count(self) -> int:
        """Of the last selecting run; 0 before the first."""
        return self._view().queries

    def positions(self, query: int, list: int = 0) -> list[int]:
        """Positions on the query's path, counted from 0 at the root, rising."""
        view = self._view()
        if not (0 <= query < view.queries and 0 <= list < view.lists):
            raise IndexError(f"there is no list {list} of query {query}: {view.queries} queries have {view.lists} each")
        at = query * view.lists + list
        count = c_int32.from_address(view.counts + 4 * at).value
        return [*(c_int32 * count).from_address(view.positions + 4 * at * view.budget)]
