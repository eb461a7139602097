"""The run of a plan or a batch as operations of torch, which torch.compile and torch.export take as they are:

    deft::attend(Tensor q, Tensor k, Tensor v, Tensor? page_table, int runner, ScalarType dtype) -> Tensor
    deft::attend_lse(...the same...) -> (Tensor out, Tensor lse)
    deft::attend_out(Tensor q, Tensor k, Tensor v, Tensor? page_table, int runner, Tensor(a!) out, Tensor(b!)? lse) -> ()

`plan.run` and `batch.run` become these where torch looks at them; they may be called by hand, too. `runner` is the `number`
of a Plan or a PagedBatch, which must be alive when the operation runs, and is then run as it is by then: a graph that was
compiled once serves every step of a plan that advances, and every other plan. A batch has its own page table, and so has a
plan of a SequenceTree: `page_table` may be None there. Operations have no gradient.

Registered by importing this, which the first plan or batch does where torch is imported already. Import it by hand before
torch.export.load, and where torch comes later than the plan.
"""

from __future__ import annotations

from typing import Any, Optional, Tuple

import torch

from ._errors import UsageError
from ._runners import runner_of
from ._tensors import View


def _run(runner: Any, q: Any, k: Any, v: Any, page_table: Any, **given: Any) -> Any:
    if page_table is None and runner.takes_page_table:
        page_table = getattr(runner._planned_tree(), "page_table", None)
    if page_table is None:
        return runner.run(q, k, v, **given)
    if not runner.takes_page_table:
        raise UsageError("a batch has its own page table, the operation was given another")
    return runner.run(q, k, v, page_table, **given)


def _checked(runner: Any, dtype: torch.dtype) -> Any:
    written = getattr(torch, runner.attention.output_dtype)
    if dtype != written:
        raise UsageError(f"the operation was traced for an output of {dtype}, `{runner.attention.name}` writes {written}")
    return runner


@torch.library.custom_op("deft::attend", mutates_args=())
def attend(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    page_table: Optional[torch.Tensor],
    runner: int,
    dtype: torch.dtype,
) -> torch.Tensor:
    return _run(_checked(runner_of(runner), dtype), q, k, v, page_table)


@attend.register_fake
def _(q: Any, k: Any, v: Any, page_table: Any, runner: int, dtype: torch.dtype) -> Any:
    return torch.empty(q.shape, dtype=dtype, device=q.device)


@torch.library.custom_op("deft::attend_lse", mutates_args=())
def attend_lse(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    page_table: Optional[torch.Tensor],
    runner: int,
    dtype: torch.dtype,
) -> Tuple[torch.Tensor, torch.Tensor]:
    return _run(_checked(runner_of(runner), dtype), q, k, v, page_table, return_lse=True)


@attend_lse.register_fake
def _(q: Any, k: Any, v: Any, page_table: Any, runner: int, dtype: torch.dtype) -> Any:
    lse = torch.empty(q.shape[:2], dtype=torch.float32, device=q.device)
    return torch.empty(q.shape, dtype=dtype, device=q.device), lse


@torch.library.custom_op("deft::attend_out", mutates_args=("out", "lse"))
def attend_out(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    page_table: Optional[torch.Tensor],
    runner: int,
    out: torch.Tensor,
    lse: Optional[torch.Tensor],
) -> None:
    _run(runner_of(runner), q, k, v, page_table, out=out, lse=lse)


@attend_out.register_fake
def _(q: Any, k: Any, v: Any, page_table: Any, runner: int, out: Any, lse: Any) -> None:
    return None


def traced(runner: Any, q: Any, k: Any, v: Any, page_table: Any, out: Any, lse: Any, return_lse: bool) -> Any:
    """What a run is where torch looks at it."""
    number = runner.number
    if isinstance(page_table, View):  # that of the plan's SequenceTree, which the operation asks for it
        page_table = None
    dtype = getattr(torch, runner.attention.output_dtype)
    if out is None and lse is None:
        operation = attend_lse if return_lse else attend
        return operation(q, k, v, page_table, number, dtype)
    if out is None:
        out = torch.empty(q.shape, dtype=dtype, device=q.device)
    if lse is None and return_lse:
        lse = torch.empty(q.shape[:2], dtype=torch.float32, device=q.device)
    attend_out(q, k, v, page_table, number, out, lse)
    return (out, lse) if return_lse else out
