"""Ranks of one tree: which of them holds what, and what they make of their results."""

import multiprocessing
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import deft

numpy = pytest.importorskip("numpy", reason="NumPy is not installed")

SPEC = """attention a { query_heads = 4; kv_heads = 2; head_dim = 64; dtype = f16; output = f16 with lse;
  kv_cache = paged(page_size = 16, order = nhd); }"""
SHAPE = (16, 2, 64)  # of a page
_groups = iter(range(1000))


def group_name():
    return f"test_peers.{os.getpid()}.{next(_groups)}"


def tree_of(ranks=None):
    """A prompt and two branches, in pages of 16 tokens of each rank."""
    tree = deft.Tree()
    prompt = tree.add_root(100, location=0)
    for branch in range(2):
        tree.add_query(tree.add_child(prompt, 20, location=128 + 64 * branch))
    tree.set_ranks(ranks)
    return tree


def caches(ranks):
    """K and V of each rank: those of a token follow from its location."""
    random = numpy.random.default_rng(1)
    whole = random.standard_normal((2, 256, 2, 64)).astype("float16")
    if ranks == 1:
        return [whole.reshape(2, 16, *SHAPE)]
    parts = numpy.full((ranks, 2, 256, 2, 64), numpy.nan, "float16")
    for location in range(256):
        where = deft.Ranks(ranks, 0, unit=16)
        parts[where.holder(location), :, where.place(location)] = whole[:, location]
    return [part.reshape(2, 16, *SHAPE) for part in parts]


def part_of(attention, ranks, rank):
    q = numpy.random.default_rng(2).standard_normal((2, 4, 64)).astype("float16")
    k, v = caches(ranks)[rank]
    tree = tree_of(deft.Ranks(ranks, rank, unit=16) if ranks > 1 else None)
    return attention.run(tree, q, k, v, numpy.arange(16, dtype="int32"), return_lse=True)


def take_part(name, ranks, rank, results):
    attention = deft.compile(SPEC)
    peers = deft.Peers(name, ranks, rank, bytes=1 << 16)
    peers.agree(attention, tree_of(deft.Ranks(ranks, rank, unit=16)))
    out, lse = peers.merge(*part_of(attention, ranks, rank))
    some, _ = peers.merge(*part_of(attention, ranks, rank), heads=(rank, rank + 1))
    assert (some[:, 0] == out[:, rank]).all()
    results.put((rank, out.astype("float32"), lse))


@pytest.mark.parametrize("ranks", [2, 3])
def test_processes_have_the_attention_of_one(ranks):
    context = multiprocessing.get_context("spawn")
    results, name = context.Queue(), group_name()
    processes = [context.Process(target=take_part, args=(name, ranks, rank, results)) for rank in range(ranks)]
    for process in processes:
        process.start()
    found = [results.get(timeout=120) for _ in processes]
    for process in processes:
        process.join()
        assert process.exitcode == 0
    out, lse = part_of(deft.compile(SPEC), 1, 0)
    for _, merged, merged_lse in found:
        assert abs(merged - out.astype("float32")).max() < 0.005
        assert abs(merged_lse - lse).max() < 1e-3


def meet_and_die(name):
    peers = deft.Peers(name, 2, 1, bytes=4096)
    os.kill(os.getpid(), 9)
    del peers


def test_a_rank_that_is_killed_is_named():
    context = multiprocessing.get_context("spawn")
    name = group_name()
    other = context.Process(target=meet_and_die, args=(name,))
    other.start()
    peers = deft.Peers(name, 2, 0, bytes=4096, timeout=60)
    reaped = []
    while not reaped and not other.join(0.05):
        reaped = [other.exitcode] if other.exitcode is not None else []
    began = time.monotonic()
    with pytest.raises(deft.MachineError, match=f"rank 1 of `{name}` has ended, it was process {other.pid}"):
        peers.merge(numpy.ones((1, 1, 2), "float32"), numpy.zeros((1, 1), "float32"))
    assert time.monotonic() - began < 10
    with pytest.raises(deft.UsageError, match="has failed before"):
        peers.merge(numpy.ones((1, 1, 2), "float32"), numpy.zeros((1, 1), "float32"))


def test_the_documents_example():
    script = Path(__file__).with_name("rank_example.py")
    commands = [[sys.executable, script, str(rank), f"example.{os.getpid()}"] for rank in range(2)]
    ranks = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for command in commands]
    assert [rank.communicate(timeout=120)[0] for rank in ranks] == [
        "rank 0: 84 of 140 tokens, 4 heads merged\n",
        "rank 1: 56 of 140 tokens, 4 heads merged\n",
    ]


def test_wrong_ranks_are_named():
    tree = tree_of()
    with pytest.raises(deft.UsageError, match="rank is 4, not between 0 and 3"):
        tree.set_ranks(deft.Ranks(4, 4))
    with pytest.raises(deft.UsageError, match="layout is 'by_row', it must be one of interleaved, by_page, by_node"):
        tree.set_ranks(deft.Ranks(4, 0, layout="by_row"))
    with pytest.raises(deft.UsageError, match=r"ranks is 3, it must be deft.Ranks\(count, rank, ...\)"):
        tree.set_ranks(3)
    with pytest.raises(deft.Error, match="page 1 lies on rank 4, and there are 4 ranks"):
        tree.set_ranks(deft.Ranks(4, 0, unit=16, layout="by_page", holders=[0, 4]))
    with pytest.raises(deft.MachineError, match="rank 1 of `.*` did not come within 0.1 s"):
        deft.Peers(group_name(), 2, 0, timeout=0.1)
    with pytest.raises(deft.UsageError, match="timeout is 0, it must be a number of seconds above 0"):
        deft.Peers(group_name(), 1, 0, timeout=0)
    peers = deft.Peers(group_name(), 1, 0)
    with pytest.raises(deft.UsageError, match="heads is 2, not between 0 and 1"):
        peers.merge(numpy.ones((1, 1, 2), "float32"), numpy.zeros((1, 1), "float32"), heads=(2, 2))


def test_holders_are_proposed_and_planned():
    tree = tree_of()
    holders = tree.propose_holders(2, 16)
    assert len(holders) == 14 and set(holders[:7]) == {0, 1} and holders[8] == holders[9] != holders[12] == holders[13]
    attention = deft.compile(SPEC)
    read = []
    for rank in range(2):
        tree.set_ranks(deft.Ranks(2, rank, unit=16, layout="by_page", holders=holders))
        read.append(attention.plan(tree, partition="node").summary().tokens_read)
    assert sum(read) == 140


def test_specs_whose_parts_make_no_whole_are_refused():
    spec = SPEC.replace("dtype = f16;", "dtype = f16; param sinks : f32[query_heads]; normalize = softmax with sink(sinks[head]);", 1)
    tree = tree_of(deft.Ranks(2, 0, unit=16))
    with pytest.raises(deft.UsageError, match="`a` has sinks, which each rank would count"):
        deft.compile(spec).plan(tree)


def test_a_batch_over_ranks_reads_its_part():
    attention = deft.compile(SPEC)
    tables = numpy.array([[0, 1, 2], [0, 1, 3]], "int32")
    holders = numpy.array([[0, 1, 0], [0, 1, 1]], "int32")
    q, cache = numpy.ones((2, 4, 64), "float16"), numpy.ones((8, *SHAPE), "float16")
    read = []
    for rank in range(2):
        batch = deft.PagedBatch(attention, 4, ranks=deft.Ranks(2, rank, unit=16))
        batch.update(tables, [90, 70])  # a page has 16 tokens of each rank
        assert batch.sharing().tokens == 90 + 70 - 64
        by_page = deft.Ranks(2, rank, unit=16, layout="by_page")
        batch = deft.PagedBatch(attention, 4, ranks=by_page, partition="node")
        batch.update(tables, [48, 40], holders=holders)
        batch.run(q, cache, cache)
        read.append(batch.summary().tokens_read)
    assert sum(read) == 48 + 40 - 32
    with pytest.raises(deft.UsageError, match="holders is null, and the batch has ranks by page"):
        batch.update(tables, [48, 40])
    with pytest.raises(deft.UsageError, match=r"holders has shape \[2, 2\], it must be packed, \[2, 3\] as block_tables"):
        batch.update(tables, [48, 40], holders=numpy.zeros((2, 2), "int32"))
