"""Runs a step as one CUDA graph, captured for each number of rows."""

from __future__ import annotations

from typing import Callable

import torch

from .._errors import Error, UsageError
from ._forward import Parts, Result, Rows, run_model
from ._plans import Plans


class _Captured:
    """The graph for one number of rows: its inputs and outputs at fixed addresses, and plans that no other code runs."""

    def __init__(self, parts: Parts, plans: Plans, memory: object, rows: Rows) -> None:
        count, device = len(rows.tokens), parts.cache.device
        self._parts = parts
        self.plans = plans
        self.tokens, self.positions, self.slots = (torch.empty(count, dtype=torch.int64, device=device) for _ in range(3))
        self.plans.advance()
        self._fill(rows)
        step = parts.make_step(self.plans, self.slots, parts.table.upload())

        def run() -> Result:
            return run_model(parts, step, self.tokens, self.positions, 0)

        # Once before the capture, which must not load kernels or make handles. The first replay writes the same slots again. Each
        # rank captures when its own plan needs more room, so this pass merges with no other rank.
        merges, self.plans.merges = self.plans.merges, False
        side = torch.cuda.Stream(device)
        side.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(side):
            self.plans.upload()
            run()
        self.plans.merges = merges
        torch.cuda.current_stream(device).wait_stream(side)
        self.plans.upload()
        self._graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(self._graph, pool=memory):
                self.result = run()
        except RuntimeError as error:
            if isinstance(error, (Error, torch.OutOfMemoryError)):
                raise
            name, said = type(parts.model).__name__, str(error).splitlines()[0]
            hint = 'pass graphs=False, or load a model of experts with experts_implementation="batched_mm"'
            raise UsageError(f"a CUDA graph cannot capture a step of a {name}: {said}", hint) from error

    def _fill(self, rows: Rows) -> None:
        for fixed, values in ((self.tokens, rows.tokens), (self.positions, rows.positions), (self.slots, rows.slots)):
            fixed.copy_(values, non_blocking=True)

    def replay(self, rows: Rows) -> Result:
        self._fill(rows)
        self._parts.table.upload()
        self.plans.upload()
        self._graph.replay()
        # The next replay writes to the same places, and branches keep their rows.
        return Result(*(None if one is None else one.clone() for one in self.result))


class CapturedForward:
    """Runs steps with the same number of rows by replaying one graph. The host makes the plan, and copies it with the tokens,
    their positions and slots."""

    def __init__(self, parts: Parts, make_plans: Callable[[], Plans], most_graphs: int = 32) -> None:
        self._parts = parts
        self._make_plans = make_plans
        self._memory = torch.cuda.graph_pool_handle()
        self._most_graphs = most_graphs
        self._graphs: dict[int, _Captured] = {}
        self.plans = make_plans()  # of the last step

    def run(self, rows: Rows, last: int = 0) -> Result:
        assert last == 0
        count = len(rows.tokens)
        captured = self._graphs.get(count)
        if captured is not None:
            captured.plans.check_replays()
            try:
                captured.plans.advance()
            except Error:  # the tree has outgrown the room that the graph was captured with
                del self._graphs[count]
                captured = None
        if captured is None:
            while len(self._graphs) >= self._most_graphs:
                del self._graphs[next(iter(self._graphs))]
            captured = self._graphs[count] = _Captured(self._parts, self._make_plans(), self._memory, rows)
        self.plans = captured.plans
        # A capture itself computes nothing, so a new graph is replayed as an old one is.
        return captured.replay(rows)
