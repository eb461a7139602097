"""vLLM's decode context parallelism. Each rank of a group holds a part of every request's tokens, dealt in turn. It computes
attention over these tokens for the query heads of the whole group. The ranks then merge their results by lse; each keeps its
own heads."""

from __future__ import annotations

import importlib
from typing import Any, Callable, NamedTuple

import torch

from .._adapters.outside import outside
from .._ranks import Ranks


class Context(NamedTuple):
    """The context-parallel group, as layers need it."""

    size: int  # how many ranks
    group: Any  # vLLM's, of all of them
    combine: Callable[..., Any]  # vLLM's; takes outputs, lse to the base e, and the group

    def gather(self, q: torch.Tensor) -> torch.Tensor:
        """Gathers the query heads of all ranks."""
        gathered: torch.Tensor = self.group.all_gather(q.contiguous(), dim=1)
        return gathered

    def merge(self, out: torch.Tensor, lse: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Merges the ranks' results for all heads and returns this rank's heads."""
        merged: tuple[torch.Tensor, torch.Tensor] = self.combine(out, lse, self.group, return_lse=True)
        return merged


def _size_of(vllm_config: Any) -> int:
    parallel = getattr(vllm_config, "parallel_config", None)
    return getattr(parallel, "decode_context_parallel_size", 1)


# vLLM's ways to merge what ranks have found, by its names of them.
_MERGES = {
    "ag_rs": ("vllm.v1.attention.ops.common", "cp_lse_ag_out_rs"),
    "a2a": ("vllm.v1.attention.ops.dcp_alltoall", "dcp_a2a_lse_reduce"),
}


def context_of(vllm_config: Any) -> Context | None:
    """Returns the context. None: each rank has all tokens of its requests."""
    size = _size_of(vllm_config)
    if size == 1:
        return None
    from vllm.distributed import get_dcp_group

    exchange = getattr(vllm_config.parallel_config, "dcp_comm_backend", "ag_rs")
    if exchange not in _MERGES:
        raise outside("dcp_comm_backend", exchange, f"it is one of {', '.join(_MERGES)}")
    module, name = _MERGES[exchange]
    try:
        return Context(size, get_dcp_group(), getattr(importlib.import_module(module), name))
    except (ImportError, AttributeError):
        raise outside("decode_context_parallel_size", size, f"this release of vLLM has no {module}.{name}, which merges ranks") from None


def ranks_of(vllm_config: Any, page_size: int) -> Ranks | None:
    """Says which tokens this rank has, for blocks of `page_size` tokens on each rank."""
    size = _size_of(vllm_config)
    if size == 1:
        return None
    from vllm.distributed import get_dcp_group

    unit = vllm_config.parallel_config.cp_kv_cache_interleave_size
    if page_size % unit:
        raise outside("cp_kv_cache_interleave_size", unit, f"it divides the {page_size} tokens of a block")
    return Ranks(size, get_dcp_group().rank_in_group, unit)
