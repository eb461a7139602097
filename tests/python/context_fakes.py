"""Ranks of decode context parallelism as threads of one process, with what vLLM gives each of them."""

import threading
from concurrent.futures import ThreadPoolExecutor

import torch


class Group:
    """As vLLM's group of ranks: the rank that asks is the thread's."""

    def __init__(self, count):
        self.world_size, self._own = count, threading.local()
        self._given, self._all_are_here = [None] * count, threading.Barrier(count, timeout=60)

    @property
    def rank_in_group(self):
        return self._own.rank

    def of_all(self, value):
        self._given[self.rank_in_group] = value
        self._all_are_here.wait()
        values = [*self._given]
        self._all_are_here.wait()
        return values

    def all_gather(self, tensor, dim):
        assert tensor.is_contiguous()
        return torch.cat([one.view(torch.uint8) if one.element_size() == 1 else one for one in self.of_all(tensor)], dim).view(tensor.dtype)

    def reduce_scatter(self, tensor, dim):
        return sum(self.of_all(tensor)).chunk(self.world_size, dim)[self.rank_in_group]

    def in_turn(self, work):
        """What `work`, which asks no other rank, gives on each of them in this thread."""
        found = []
        for self._own.rank in range(self.world_size):
            found.append(work(self.rank_in_group))
        return found

    def run(self, work):
        """What `work` gives on each rank."""

        def on(rank):
            self._own.rank = rank
            try:
                return work(rank)
            except BaseException:
                self._all_are_here.abort()  # the others wait for nobody
                raise

        with ThreadPoolExecutor(self.world_size) as threads:
            return [*threads.map(on, range(self.world_size))]


def merged(out, lse, group, ctx=None, return_lse=False, is_lse_base_on_e=True):
    """As vllm.v1.attention.ops.common.cp_lse_ag_out_rs: all gather lse, and each scatters its part of the sum."""
    assert is_lse_base_on_e and lse.dtype == torch.float32 and lse.shape == out.shape[:2]
    whole = torch.logsumexp(torch.stack(group.of_all(lse)), 0)
    weight = torch.exp(lse - whole).nan_to_num(0.0)
    out = group.reduce_scatter((out * weight[..., None]).to(out.dtype), 1)
    own = whole.chunk(group.world_size, 1)[group.rank_in_group]
    return (out, own) if return_lse else out


def merged_by_exchange(*arguments, **more):
    """As vllm.v1.attention.ops.dcp_alltoall.dcp_a2a_lse_reduce."""
    return merged(*arguments, **more)


def slot_of(pages, token, page_size, count, unit):
    """The rank that has the token, and its slot there, by vLLM's rule: an entry of the table is a block of each rank."""
    page, offset = int(pages[token // (page_size * count)]), token % (page_size * count)
    return offset // unit % count, page * page_size + offset // (unit * count) * unit + offset % unit
