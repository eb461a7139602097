"""A step as one CUDA graph. Not seen on a GPU yet: written against the contract of <deft/c/gpu.h>, run by no test."""

from __future__ import annotations

from typing import Any

import torch

from .._errors import Error
from ._cache import PagedCache
from ._forward import PlannedStep, Result, Rows, run_model
from ._kinds import LayerKind
from ._plans import PageTable, Plans


class _Captured:
    """The graph of one number of rows: its inputs and outputs at fixed places, and plans that nothing else runs."""

    def __init__(self, forward: CapturedForward, rows: Rows) -> None:
        count, device = len(rows.tokens), forward.cache.device
        self.tokens, self.positions, self.slots = (torch.empty(count, dtype=torch.int64, device=device) for _ in range(3))
        self.plans = forward.make_plans()
        self.plans.advance()
        self._fill(rows)
        table = forward.table.upload()
        step = PlannedStep(forward.cache, self.plans, forward.kinds, self.slots, table)

        def run() -> Result:
            return run_model(forward.model, step, self.tokens, self.positions, 0, forward.wants_hidden)

        # Once before the capture, which must not load kernels or make handles. A pass may be repeated: it writes the same
        # K and V to the same slots.
        side = torch.cuda.Stream(device)
        side.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(side):
            self.plans.upload()
            run()
        torch.cuda.current_stream(device).wait_stream(side)
        self.plans.upload()
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph, pool=forward.memory):
            self.result = run()

    def _fill(self, rows: Rows) -> None:
        for fixed, values in ((self.tokens, rows.tokens), (self.positions, rows.positions), (self.slots, rows.slots)):
            fixed.copy_(values, non_blocking=True)

    def replay(self, forward: CapturedForward, rows: Rows) -> Result:
        self._fill(rows)
        forward.table.upload()
        self.plans.upload()
        self._graph.replay()
        # The next replay writes to the same places, and branches keep their rows.
        return Result(*(None if one is None else one.clone() for one in self.result))


class CapturedForward:
    """Runs steps of the same number of rows by replaying one graph: the host makes the plan and copies it, the tokens, their
    positions and slots."""

    def __init__(
        self,
        model: Any,
        cache: PagedCache,
        kinds: list[LayerKind],
        make_plans: Any,
        table: PageTable,
        wants_hidden: bool,
        most_graphs: int = 32,
    ) -> None:
        self.model = model
        self.cache = cache
        self.kinds = kinds
        self.make_plans = make_plans
        self.table = table
        self.wants_hidden = wants_hidden
        self.memory = torch.cuda.graph_pool_handle()
        self._most_graphs = most_graphs
        self._graphs: dict[int, _Captured] = {}

    def run(self, rows: Rows, last: int = 0) -> Result:
        assert last == 0
        count = len(rows.tokens)
        captured = self._graphs.get(count)
        if captured is not None:
            try:
                captured.plans.advance()
            except Error:  # the tree has outgrown the room that the graph was captured with
                del self._graphs[count]
                captured = None
        if captured is not None:
            return captured.replay(self, rows)
        while len(self._graphs) >= self._most_graphs:
            del self._graphs[next(iter(self._graphs))]
        captured = self._graphs[count] = _Captured(self, rows)
        captured.plans.check_replays()
        # The capture itself computed nothing.
        return captured.replay(self, rows)
