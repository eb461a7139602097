"""Results of one tree over several ranks become one, by torch.distributed: on any hosts, processors (gloo) and GPUs (NCCL).

    peers = TorchPeers()                                   # all processes that torchrun has started
    tree.set_ranks(deft.Ranks(peers.count, peers.rank, unit=16))
    peers.agree(attention, tree)
    out, lse = peers.merge(*attention.run(tree, q, k, v, table, return_lse=True))

A rank that ends or lags is an error of the process group's own, within its timeout (`init_process_group(timeout=...)`)."""

from __future__ import annotations

from typing import Any

import torch

from ._errors import UsageError, wrong
from ._operations import merge_states
from ._peers import agreement_hashes, difference


class TorchPeers:
    """The ranks of a process group (None: of all processes). All make the same calls, in the same order."""

    def __init__(self, group: Any = None) -> None:
        if not torch.distributed.is_initialized():
            raise UsageError("torch.distributed has no process group", "init_process_group comes first")
        self.group = group
        self.count: int = torch.distributed.get_world_size(group)
        self.rank: int = torch.distributed.get_rank(group)
        if self.rank < 0:
            raise UsageError("this process is not in the group")

    def agree(self, attention: Any = None, tree: Any = None) -> None:
        """Call it before the first run: an error if ranks have different versions of the library, attentions or trees."""
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
        """(out, lse) over all ranks' tokens, for `heads` (begin, end), or all of them. The bits are the same on all ranks, since parts
        are added in the order of ranks."""
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

    def sum(self, values: torch.Tensor) -> torch.Tensor:
        """Sums over all ranks, in place: for values that one rank has and the others have as 0."""
        torch.distributed.all_reduce(values, group=self.group)
        return values

    def __repr__(self) -> str:
        return f"<deft.torch_peers.TorchPeers: rank {self.rank} of {self.count}>"
