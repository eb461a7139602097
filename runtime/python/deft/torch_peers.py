"""Merges the results of one tree over several ranks with torch.distributed: on any hosts, processors (gloo) and GPUs (NCCL).
MappedPeers is faster on GPUs: one launch on one host, NCCL without a host step elsewhere.

    peers = TorchPeers()                                   # all processes that torchrun has started
    tree.set_ranks(deft.Ranks(peers.count, peers.rank, unit=16))
    peers.agree(attention, tree)
    out, lse = peers.merge(*attention.run(tree, q, k, v, table, return_lse=True))

If a rank ends or lags, the process group raises its own error within its timeout (`init_process_group(timeout=...)`)."""

from __future__ import annotations

import os
import secrets
import socket
from typing import Any

import torch

from ._errors import MachineError, UsageError, wrong
from ._operations import merge_states
from ._peers import GpuPeers, Transport, agreement_hashes, difference


class TorchPeers:
    """The ranks of a process group (None: of all processes). All make the same calls, in the same order."""

    #: Whether a CUDA graph can hold `merge`.
    can_be_captured = False

    def __init__(self, group: Any = None) -> None:
        if not torch.distributed.is_initialized():
            raise UsageError("torch.distributed has no process group", "init_process_group comes first")
        self.group = group
        self.count: int = torch.distributed.get_world_size(group)
        self.rank: int = torch.distributed.get_rank(group)
        if self.rank < 0:
            raise UsageError("this process is not in the group")

    def agree(self, attention: Any = None, tree: Any = None) -> None:
        """Raises an error if ranks have different versions of the library, attentions or trees. Call it before the first run."""
        mine = agreement_hashes(attention, tree)
        everyone: list[Any] = [None] * self.count
        torch.distributed.all_gather_object(everyone, mine, group=self.group)
        for rank, theirs in enumerate(everyone):
            subject = difference(mine, theirs)
            if subject is not None:
                raise UsageError(f"rank {rank} has another {subject} than rank {self.rank}", "all ranks plan the same tree, in the same way")

    def merge(
        self, out: torch.Tensor, lse: torch.Tensor, *, heads: tuple[int, int] | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns (out, lse) over all ranks' tokens, for `heads` (begin, end), or for all heads. All ranks get the same bits,
        because parts are added in the order of ranks."""
        if self.count == 1:
            return (out, lse) if heads is None else (out[:, slice(*heads)].contiguous(), lse[:, slice(*heads)].contiguous())
        if self.count > 16:
            raise wrong("count", f"is {self.count}, merge takes at most 16 ranks")
        outs = [torch.empty_like(out) for _ in range(self.count)]
        lses = [torch.empty_like(lse) for _ in range(self.count)]
        torch.distributed.all_gather(outs, out.contiguous(), group=self.group)
        torch.distributed.all_gather(lses, lse.contiguous(), group=self.group)
        if heads is not None:
            outs = [one[:, slice(*heads)].contiguous() for one in outs]
            lses = [one[:, slice(*heads)].contiguous() for one in lses]
        return merge_states(outs, lses)

    def reserve(self, heads: int, head_dim: int, dtype: torch.dtype = torch.bfloat16, device: Any = "cuda") -> Any:
        """Makes the buffers that `merge` needs for results of this shape. All ranks call it together."""

    def check(self) -> None:
        """Raises an error if a merge has found a rank late and `merge` itself did not raise it."""

    def sum(self, values: torch.Tensor) -> torch.Tensor:
        """Sums over all ranks in place, for values that one rank has and the others have as 0."""
        torch.distributed.all_reduce(values, group=self.group)
        return values

    def __repr__(self) -> str:
        return f"<deft.torch_peers.TorchPeers: rank {self.rank} of {self.count}>"


def _this_host() -> tuple[str, str]:
    """Returns a text that only ranks of one host share; they can meet by a name."""
    return socket.gethostname(), os.readlink("/proc/self/ns/net")


class MappedPeers(TorchPeers):
    """GPUs that merge with deft.GpuPeers. With `transport` "auto", those of one host map each other's memory if every pair can.
    Otherwise, or with "nccl", ranks on any hosts use NCCL. Graphs can capture a merge of at most `queries` queries. At the
    first merge of a shape the ranks meet: all must make it together, and no graph can capture it. Larger merges use TorchPeers.
    torch.distributed only introduces the ranks. `check` raises the error of a late rank, without waiting."""

    can_be_captured = True

    def __init__(self, group: Any = None, *, queries: int = 512, timeout: float = 10.0, transport: Transport = "auto") -> None:
        super().__init__(group)
        self.queries, self.timeout, self._transport = queries, timeout, transport
        self._ends: dict[tuple[int, int, torch.dtype], GpuPeers] = {}
        self._name = self._told(f"torch.{secrets.token_hex(8)}")
        if transport == "auto":
            hosts: list[Any] = [None] * self.count
            torch.distributed.all_gather_object(hosts, _this_host(), group=group)
            if len(set(hosts)) > 1:
                self._transport = "nccl"

    def _told(self, value: Any) -> Any:
        """Returns rank 0's value on all ranks."""
        told = [value]
        first = 0 if self.group is None else torch.distributed.get_global_rank(self.group, 0)
        torch.distributed.broadcast_object_list(told, src=first, group=self.group)
        return told[0]

    def _new_id(self) -> bytes:
        """Returns rank 0's new id. If rank 0 cannot make it, all ranks raise the error."""
        told: Any = None
        if self.rank == 0:
            try:
                told = GpuPeers.make_id()
            except MachineError as error:
                told = error.message, error.hint
        told = self._told(told)
        if isinstance(told, tuple):
            raise MachineError(*told)
        return bytes(told)

    def merge(
        self,
        out: torch.Tensor,
        lse: torch.Tensor,
        *,
        heads: tuple[int, int] | None = None,
        to: tuple[torch.Tensor, torch.Tensor] | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if out.dim() == 3 and out.shape[0] > self.queries and to is None:
            if torch.cuda.is_current_stream_capturing():
                raise UsageError(f"a graph merges at most {self.queries} queries, these are {out.shape[0]}", "MappedPeers(queries=...)")
            return super().merge(out, lse, heads=heads)
        return self.reserve(*out.shape[1:], dtype=out.dtype, device=out.device).merge(out, lse, heads=heads, to=to)

    def reserve(
        self, heads: int, head_dim: int, dtype: torch.dtype = torch.bfloat16, device: Any = "cuda", merged: tuple[int, int] | None = None
    ) -> GpuPeers:
        """Makes the ranks' ends for results of this shape. All ranks call it, before a capture. `merged`: the heads that this
        rank merges at most; NCCL sends it no others."""
        key = heads, head_dim, dtype
        if key not in self._ends:
            if torch.cuda.is_current_stream_capturing():
                raise UsageError("ranks meet, which no graph captures", "call reserve() before the capture")
            sizes: dict[str, Any] = {"queries": self.queries, "heads": heads, "head_dim": head_dim, "dtype": dtype, "merged": merged}
            meeting: dict[str, Any] = {"device": device, "timeout": self.timeout, "transport": self._transport}
            name: str | None = f"{self._name}.{len(self._ends)}"
            if self._transport == "nccl":
                name, meeting["id"] = None, self._new_id()
            self._ends[key] = GpuPeers(name, self.count, self.rank, **sizes, **meeting)
        return self._ends[key]

    def check(self) -> None:
        """Raises an error after a finished merge found a rank late; the error names the rank. Later merges write nothing."""
        for end in self._ends.values():
            end.check()
