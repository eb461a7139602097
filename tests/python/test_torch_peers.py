"""MappedPeers on the tests' driver: torch.distributed (gloo) tells the processes of each other, and what stands for a GPU's memory is
mapped by all of them. Speed, graphs and real GPUs: tests/gpu/rank_trees.py."""

import multiprocessing
import os
import traceback

import deft
import numpy as np
import pytest

if "DEFT_EXPECT_FAKE_CUDA" not in os.environ:
    pytest.skip("the tests' driver is not there: tests/with_torch/run has it", allow_module_level=True)
torch = pytest.importorskip("torch", reason="torch is not installed")
from deft.torch_peers import MappedPeers, TorchPeers  # noqa: E402

HEADS, DIM, FLOAT = 4, 64, np.dtype("float32")


class OnGpu:
    """As much of a torch tensor in a GPU's memory as a merge looks at."""

    device = "cuda:0"

    def __init__(self, array):
        self.array, self.shape, self.dtype = array, array.shape, array.dtype
        self.__cuda_array_interface__ = {**array.__array_interface__, "version": 3}

    def dim(self):
        return len(self.shape)


def part_of(rank, queries, heads=HEADS, dim=DIM):
    random = np.random.default_rng(10 * rank + queries)
    return random.standard_normal((queries, heads, dim)).astype("float32"), random.standard_normal((queries, heads)).astype("float32")


def whole_of(ranks, queries, **shape):
    outs, lses = zip(*(part_of(rank, queries, **shape) for rank in ranks))
    return deft.merge_states([*outs], [*lses])


def merge_and_compare(peers, ranks, queries, heads=None, **shape):
    """On the GPU, with `ranks` in the group."""
    out, lse = part_of(ranks[peers.rank], queries, **shape)
    begin, end = heads or (0, out.shape[1])
    to = np.zeros((queries, end - begin, out.shape[2]), "float32"), np.zeros((queries, end - begin), "float32")
    peers.merge(OnGpu(out), OnGpu(lse), heads=heads, to=(OnGpu(to[0]), OnGpu(to[1])))
    peers.check()
    expected = whole_of(ranks, queries, **shape)
    for merged, right in zip(to, expected):
        assert np.abs(merged - right[:, begin:end]).max() < 1e-5


def in_process(work, rank, count, folder, said):
    torch.cuda.is_current_stream_capturing = lambda: False  # torch has no GPU, and this driver is not for it
    try:
        torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=count)
        said.put((rank, work(rank, count)))
        torch.distributed.destroy_process_group()
    except BaseException:
        said.put((rank, traceback.format_exc()))


def run_ranks(work, count, folder):
    """What each rank says; a rank that fails says its traceback."""
    context = multiprocessing.get_context("spawn")
    said = context.Queue()
    processes = [context.Process(target=in_process, args=(work, rank, count, folder, said)) for rank in range(count)]
    for process in processes:
        process.start()
    results = dict(said.get(timeout=240) for _ in processes)
    for process in processes:
        process.join()
    return [results[rank] for rank in range(count)]


def exchange_and_merge(rank, count):
    peers = MappedPeers(queries=8, timeout=60)
    names = [None] * count
    torch.distributed.all_gather_object(names, peers._name)
    assert len(set(names)) == 1, "one name for all, which rank 0 has made"
    ranks = range(count)
    end = peers.reserve(HEADS, DIM, FLOAT, "cuda:0")
    for queries in (8, 1, 5):
        merge_and_compare(peers, ranks, queries)
        merge_and_compare(peers, ranks, queries, heads=(rank, rank + 1))
    assert peers.reserve(HEADS, DIM, FLOAT, "cuda:0") is end and len(peers._ends) == 1
    merge_and_compare(peers, ranks, 3, heads=None, dim=2 * DIM)  # another shape maps other memory
    assert len(peers._ends) == 2
    merge_and_compare(peers, ranks, 8)  # and what was mapped before stays
    return "done"


@pytest.mark.parametrize("count", [2, 3])
def test_ranks_map_each_others_memory_and_merge(count, tmp_path):
    assert run_ranks(exchange_and_merge, count, tmp_path) == ["done"] * count


def merge_many_queries(rank, count):
    peers = MappedPeers(queries=8, timeout=60)
    out, lse = map(torch.from_numpy, part_of(rank, 9))
    merged = peers.merge(out, lse)
    plain = TorchPeers().merge(out, lse)
    assert all(torch.equal(one, other) for one, other in zip(merged, plain))
    assert np.abs(merged[0].numpy() - whole_of(range(count), 9)[0]).max() < 1e-5
    assert not peers._ends, "nothing is mapped"
    return "done"


def test_more_queries_than_reserved_go_by_torch(tmp_path):
    assert run_ranks(merge_many_queries, 2, tmp_path) == ["done"] * 2


def merge_in_a_group(rank, _):
    group = torch.distributed.new_group([1, 2])
    if rank == 0:
        with pytest.raises(deft.UsageError, match="this process is not in the group"):
            MappedPeers(group)
    else:
        peers = MappedPeers(group, queries=4, timeout=60)
        assert (peers.count, peers.rank) == (2, rank - 1)
        merge_and_compare(peers, [1, 2], 4)
    torch.distributed.barrier()
    return "done"


def test_a_group_of_some_processes_has_ranks_of_its_own(tmp_path):
    assert run_ranks(merge_in_a_group, 3, tmp_path) == ["done"] * 3


def be_late(rank, _):
    peers = MappedPeers(queries=4, timeout=0.5)
    end = peers.reserve(HEADS, DIM, FLOAT, "cuda:0")
    merge_and_compare(peers, [0, 1], 4)
    if rank == 0:  # rank 1 stays away
        out, lse = map(OnGpu, part_of(0, 4))
        peers.merge(out, lse, to=(out, lse))
        with pytest.raises(deft.MachineError, match="rank 1 did not give its results of run 2 in time"):
            peers.check()
    torch.distributed.barrier()
    if rank == 0:
        with pytest.raises(deft.MachineError, match=r"rank 1 of `torch\..*\.1` did not come within 0.5 s"):
            peers.reserve(HEADS, 2 * DIM, FLOAT, "cuda:0")
        assert len(peers._ends) == 1, "what failed is not kept"
    del end
    torch.distributed.barrier()
    return "done"


def test_a_rank_that_is_late_is_named(tmp_path):
    assert run_ranks(be_late, 2, tmp_path) == ["done"] * 2


def meet_by_an_id(rank, count):
    """Without NCCL: what is asked of GpuPeers."""
    asked = []

    class End:
        @staticmethod
        def make_id():
            assert rank == 0, "one rank makes it"
            if asked:
                raise deft.MachineError("no NCCL", "install it")
            return bytes(range(128))

        def __init__(self, name, *of, **given):
            asked.append((name, of, given))

    deft.torch_peers.GpuPeers = End
    peers = MappedPeers(queries=4, transport="nccl")
    peers.reserve(HEADS, DIM, FLOAT, "cuda:0", merged=(rank, rank + 1))
    name, of, given = asked[0]
    assert name is None and of == (count, rank)
    assert (given["id"], given["transport"], given["merged"]) == (bytes(range(128)), "nccl", (rank, rank + 1))
    with pytest.raises(deft.MachineError, match="no NCCL[\\s\\S]*install it"):  # on all ranks
        peers.reserve(HEADS, 2 * DIM, FLOAT, "cuda:0")
    return "done"


def test_ranks_of_other_hosts_meet_by_an_id(tmp_path):
    assert run_ranks(meet_by_an_id, 2, tmp_path) == ["done"] * 2


def call_wrongly(rank, _):
    peers = MappedPeers(queries=4, timeout=5)
    out, lse = part_of(rank, 2)
    with pytest.raises(deft.UsageError, match="device is .*cpu.*, it must be a GPU"):
        peers.merge(torch.from_numpy(out), torch.from_numpy(lse))
    with pytest.raises(deft.UsageError, match="dtype is int32, it must be float32, float16 or bfloat16"):
        peers.reserve(HEADS, DIM, torch.int32, "cuda:0")
    torch.cuda.is_current_stream_capturing = lambda: True
    with pytest.raises(deft.UsageError, match=r"which no graph captures[\s\S]*call reserve\(\) before the capture"):
        peers.reserve(HEADS, DIM, FLOAT, "cuda:0")
    assert not peers._ends
    torch.cuda.is_current_stream_capturing = lambda: False
    peers.reserve(HEADS, DIM, FLOAT, "cuda:0")
    torch.cuda.is_current_stream_capturing = lambda: True
    merge_and_compare(peers, [0], 2)  # what is mapped may be captured
    return "done"


def test_wrong_calls_are_named(tmp_path):
    assert run_ranks(call_wrongly, 1, tmp_path) == ["done"]
    with pytest.raises(deft.UsageError, match="torch.distributed has no process group"):
        MappedPeers()
