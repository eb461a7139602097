"""The runs of plans and batches as torch operations, for torch.compile and torch.export:

    deft::attend(Tensor q, Tensor k, Tensor? v, Tensor? page_table, int runner, ScalarType dtype) -> Tensor
    deft::attend_lse(...the same...) -> (Tensor out, Tensor lse)
    deft::attend_out(Tensor q, Tensor k, Tensor? v, Tensor? page_table, int runner, Tensor(a!) out, Tensor(b!)? lse) -> ()

`plan.run` and `batch.run` become these when torch traces them; you can also call them directly. `runner` is the `number` of a
Plan or a PagedBatch. That object must be alive when the operation runs, and runs in its state at that time. So one compiled
graph serves every step of a plan that advances, and every other plan. A batch has its own page table, and so has a plan of a
SequenceTree: `page_table` may be None there. For a latent cache, `v` is None, or the rotary columns if they are a separate
tensor. The operations have no gradient.

Importing this module registers the operations. The first plan or batch imports it if torch is already imported. Import it
yourself before torch.export.load, and if you import torch after making the plan."""

from __future__ import annotations

from typing import Any

import torch

from ._errors import UsageError
from ._options import RunOptions
from ._process import runner_of
from ._tensors import View


def _run(runner: Any, q: Any, k: Any, v: Any, page_table: Any, **given: Any) -> Any:
    if runner.attention.value_in_key:
        k, v = k if v is None else (k, v), None
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
        raise UsageError(f"the operation was traced for an output of {dtype}, {runner.attention._title} writes {written}")
    if runner.attention.key_dim != runner.attention.value_dim:
        raise UsageError(f"the output of {runner.attention._title} is not as wide as q", "give it an `out`: deft::attend_out")
    return runner


# SymInt: a graph serves every number, and is not compiled again for it.
_READ = "Tensor q, Tensor k, Tensor? v, Tensor? page_table, SymInt runner"


@torch.library.custom_op("deft::attend", mutates_args=(), schema=f"({_READ}, ScalarType dtype) -> Tensor")
def attend(q: Any, k: Any, v: Any, page_table: Any, runner: int, dtype: torch.dtype) -> Any:
    return _run(_checked(runner_of(runner), dtype), q, k, v, page_table)


@attend.register_fake
def _(q: Any, k: Any, v: Any, page_table: Any, runner: int, dtype: torch.dtype) -> Any:
    return torch.empty(q.shape, dtype=dtype, device=q.device)


@torch.library.custom_op("deft::attend_lse", mutates_args=(), schema=f"({_READ}, ScalarType dtype) -> (Tensor, Tensor)")
def attend_lse(q: Any, k: Any, v: Any, page_table: Any, runner: int, dtype: torch.dtype) -> Any:
    return _run(_checked(runner_of(runner), dtype), q, k, v, page_table, return_lse=True)


@attend_lse.register_fake
def _(q: Any, k: Any, v: Any, page_table: Any, runner: int, dtype: torch.dtype) -> Any:
    lse = torch.empty(q.shape[:2], dtype=torch.float32, device=q.device)
    return torch.empty(q.shape, dtype=dtype, device=q.device), lse


@torch.library.custom_op("deft::attend_out", mutates_args=("out", "lse"), schema=f"({_READ}, Tensor(a!) out, Tensor(b!)? lse) -> ()")
def attend_out(q: Any, k: Any, v: Any, page_table: Any, runner: int, out: Any, lse: Any) -> None:
    _run(runner_of(runner), q, k, v, page_table, out=out, lse=lse)


@attend_out.register_fake
def _(q: Any, k: Any, v: Any, page_table: Any, runner: int, out: Any, lse: Any) -> None:
    return None


def traced(runner: Any, q: Any, k: Any, v: Any, page_table: Any, options: RunOptions) -> Any:
    """Runs the runner as an operation that torch can trace."""
    number, out, lse, return_lse = runner.number, options.get("out"), options.get("lse"), options.get("return_lse")
    if isinstance(page_table, View):  # that of the plan's SequenceTree, which the operation asks for it
        page_table = None
    attention = runner.attention
    if attention.value_in_key:
        k, v = k if isinstance(k, tuple) else (k, None)
    dtype = getattr(torch, attention.output_dtype)
    if out is None and lse is None and attention.key_dim == attention.value_dim:
        operation = attend_lse if return_lse else attend
        return operation(q, k, v, page_table, number, dtype)
    if out is None:
        out = torch.empty((*q.shape[:2], attention.value_dim), dtype=dtype, device=q.device)
    if lse is None and return_lse:
        lse = torch.empty(q.shape[:2], dtype=torch.float32, device=q.device)
    attend_out(q, k, v, page_table, number, out, lse)
    return (out, lse) if return_lse else out
