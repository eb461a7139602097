"""Calls that a GPU's plans and merges are given, on the tests' driver, which computes and takes the host's memory for a GPU's.

Torch, streams and captured graphs of a real one are what gpu_check.py looks at."""

import os
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor
from ctypes import addressof, byref, c_void_p
from types import SimpleNamespace

import deft
import ml_dtypes
import numpy as np
import pytest
from evaluate import assert_close
from test_paged_batch import expected as expected_of_requests
from test_paged_batch_drafts import LENGTHS, PAGE, PARENTS, TABLES, expected, mask_of, words_of

if "DEFT_EXPECT_FAKE_CUDA" not in os.environ:
    pytest.skip("the tests' driver is not there: ctest -R python.gpu_calls", allow_module_level=True)

HEADS = "query_heads = 4; kv_heads = 2; head_dim = 64; output = bf16 with lse;"  # as DEFT_FAKE_CUDA_VARIANT says


class OnGpu:
    def __init__(self, array):
        self.array, self.dtype = array, array.dtype
        interface = array.__array_interface__
        self.__cuda_array_interface__ = {**interface, "version": 3}


class Step:
    """What a run of a batch reads and writes."""

    def __init__(self, rng, queries):
        shapes = (queries, 4, 64), (10, PAGE, 2, 64), (10, PAGE, 2, 64)
        self.q, self.k, self.v = (rng.standard_normal(shape).astype(ml_dtypes.bfloat16) for shape in shapes)
        self.out = np.zeros_like(self.q)

    def run(self, batch, pages=TABLES, **given):
        # A batch takes copies of a table to a GPU by torch; this one is there already.
        batch._table = batch._table._replace(data=pages.ctypes.data, device_type=deft._abi.DEFT_DEVICE_CUDA)
        batch.run(OnGpu(self.q), OnGpu(self.k), OnGpu(self.v), out=OnGpu(self.out), **given)
        return self.out


@pytest.fixture(scope="module")
def att():
    return deft.compile(f"attention a {{ {HEADS} }}")


def test_a_mask_says_who_sees_whom_in_the_runs_behind_it(att, rng):
    batch = deft.PagedBatch(att, max_requests=4)
    batch.update(TABLES, LENGTHS, drafts=[len(parents) for parents in PARENTS])
    step, words = Step(rng, 9), OnGpu(words_of(mask_of(PARENTS, 5)))
    batch.draft(words)
    assert_close(step.run(batch), expected(step.q, step.k, step.v)[0], "bfloat16")
    batch.check_replays()
    # A later step, which needs an upload before its mask.
    others = [[-1, 0, -1, 2, 3], [-1], [-1, -1, -1]]
    grown = [length + 1 for length in LENGTHS]
    batch.grow(TABLES, grown)
    batch.draft(OnGpu(words_of(mask_of(others, 5))), depths=OnGpu((mask_of(others, 5).sum(-1) - 1).clip(0).astype("int32")))
    assert_close(step.run(batch), expected(step.q, step.k, step.v, others, grown)[0], "bfloat16")


def test_rows_that_are_no_trees_are_told_of_later(att):
    batch = deft.PagedBatch(att, max_requests=4)
    batch.update(TABLES, LENGTHS, drafts=[1, 2, 0])
    batch.draft(OnGpu(np.zeros((3, 2, 1), "int32")))
    with pytest.raises(deft.UsageError, match=r"bits\[\d+\]\[\d+\] is not a row of a tree of drafts"):
        batch.check_replays()
    batch.check_replays()  # told once


def test_lengths_of_a_mask_are_followed(att, rng):
    batch = deft.PagedBatch(att, max_requests=4, follows_lengths=True)
    batch.update(TABLES, LENGTHS, drafts=[len(parents) for parents in PARENTS])
    step, words = Step(rng, 9), OnGpu(words_of(mask_of(PARENTS, 5)))
    grown = [length + 2 for length in LENGTHS]
    batch.draft(words, lengths=OnGpu(np.array(grown, "int32")))
    assert_close(step.run(batch), expected(step.q, step.k, step.v, lengths=grown)[0], "bfloat16")
    batch.draft(words, lengths=OnGpu(np.array([1, 40, 20], "int32")))
    with pytest.raises(deft.UsageError, match="request 0 had 1 tokens before its drafts"):
        batch.check_replays()


def test_a_batch_follows_lengths(att, rng):
    batch = deft.PagedBatch(att, max_requests=4, follows_lengths=True)
    batch.update(TABLES, LENGTHS)
    step, grown = Step(rng, 3), [38, 42, 21]
    batch.follow(OnGpu(np.array(grown, "int32")))
    assert_close(step.run(batch), expected_of_requests(step.q, step.k, step.v, TABLES, grown)[0], "bfloat16")
    batch.follow(OnGpu(np.array([36, 42, 21], "int32")))
    with pytest.raises(deft.UsageError, match="query 0 saw 36 tokens on the device"):
        batch.check_replays()
    with pytest.raises(deft.UsageError, match="lengths are on the host, they are read on the GPU"):
        batch.follow(np.array(grown, "int32"))
    elsewhere = OnGpu(np.array(grown, "int32"))
    elsewhere.device = SimpleNamespace(id=1)
    with pytest.raises(deft.UsageError, match="lengths are on GPU 1, the plan is on GPU 0"):
        batch.follow(elsewhere)


def test_a_step_without_drafts_makes_no_plan(att):
    batch = deft.PagedBatch(att, max_requests=4)
    batch.update(TABLES, LENGTHS, drafts=[0, 0, 0])
    batch.draft(OnGpu(np.zeros((3, 1, 1), "int32")))
    assert batch._plans() == []


def test_a_mask_that_lies_elsewhere_or_is_of_bool_is_named(att):
    batch = deft.PagedBatch(att, max_requests=4)
    batch.update(TABLES, LENGTHS, drafts=[1, 1, 1])
    words = OnGpu(np.ones((3, 1, 1), "int32"))
    with pytest.raises(deft.UsageError, match="depths is in memory of the CPU, the run takes memory of CUDA device 0"):
        batch.draft(words, depths=np.zeros((3, 1), "int32"))
    with pytest.raises(deft.UsageError, match="bits is bool of a OnGpu, truth values are taken of NumPy and torch"):
        batch.draft(OnGpu(np.ones((3, 1, 1), bool)))
    with pytest.raises(deft.UsageError, match="does not follow lengths"):
        batch.draft(words, lengths=OnGpu(np.array(LENGTHS, "int32")))


def test_pages_that_the_cache_does_not_have_are_told_of(att, rng):
    tree = deft.Tree()
    tree.add_query(tree.add_root(40, location=0))
    step = Step(rng, 1)
    for pages, is_wrong in ([0, 1, 9], False), ([0, 1, 10], True):
        plan = att.plan(tree, device=0, check_pages=True)
        k = np.zeros((32, PAGE, 2, 64), ml_dtypes.bfloat16)  # room for what a driver of tests reads beyond
        cache = OnGpu(k[:10])
        plan.run(OnGpu(step.q), cache, cache, OnGpu(np.array(pages, "int32")), out=OnGpu(step.out))
        if is_wrong:
            with pytest.raises(deft.UsageError, match="entry 2 .*10"):
                plan.check_replays()
        else:
            plan.check_replays()


def test_cuda_is_torch_s_current_gpu(att, monkeypatch):
    tree = deft.Tree()
    tree.add_query(tree.add_root(40, location=0))
    current = SimpleNamespace(is_initialized=lambda: True, current_device=lambda: 1, is_current_stream_capturing=lambda: False)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=current))
    monkeypatch.setattr(deft._attention, "numbered", lambda plan: 0)  # which registers operations of torch
    for device, index in (("cuda", 1), ("cuda:0", 0), (0, 0)):
        assert list(att.plan(tree, device=device)._gpus) == [index]
    current.is_initialized = lambda: False
    assert list(att.plan(tree, device="cuda")._gpus) == [0]


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_states_become_one(dtype):
    outs = [OnGpu(np.full((2, 1, 8), value).astype(getattr(ml_dtypes, dtype, dtype))) for value in (1, 3)]
    lses = [OnGpu(np.zeros((2, 1), "float32")) for _ in outs]
    out, lse = deft.merge_states(outs, lses, out=outs[0], lse=lses[0])
    assert out is outs[0] and lse is lses[0]
    assert (out.array.astype("float32") == 2).all() and np.allclose(lse.array, np.log(2))


def test_the_kernel_of_merges_is_loaded_once_for_a_gpu_and_a_type(monkeypatch):
    loaded = []
    load = deft._library.lib.deft_gpu_state_merge_load
    monkeypatch.setattr(deft._library.lib, "deft_gpu_state_merge_load", lambda *given: loaded.append(given[1]) or load(*given))
    monkeypatch.setattr(deft._operations, "_loaded", {})
    for dtype in ("float32", "float16", "float32"):
        state = OnGpu(np.zeros((2, 1, 8), dtype)), OnGpu(np.zeros((2, 1), "float32"))
        deft.merge_states([state[0]], [state[1]], out=state[0], lse=state[1])
    assert loaded == [deft._abi.DEFT_F32, deft._abi.DEFT_F16]


def test_states_of_two_places_are_named():
    states = [np.zeros((2, 1, 8), "float32"), OnGpu(np.zeros((2, 1, 8), "float32"))]
    lse = np.zeros((2, 1), "float32")
    with pytest.raises(deft.UsageError, match=r"outs\[1\] is in memory of CUDA device 0"):
        deft.merge_states(states, [lse, lse])
    with pytest.raises(deft.UsageError, match="give the arrays to write to"):
        deft.merge_states(states[1:], [OnGpu(lse)])


def test_rows_on_a_gpu_are_not_quantized():
    with pytest.raises(deft.UsageError, match="values is on a GPU, it must be in the host's memory"):
        deft.quantize(OnGpu(np.zeros((2, 1, 8), "float16")), out=np.zeros((2, 1, 8), "uint8"))


def room_of(plan):
    room = deft._library.sized(deft._abi.deft_gpu_room)
    deft._library.check(deft._library.lib.deft_gpu_plan_get_room(plan._gpu_plan(0).handle, byref(room)))
    return room.queries, room.items, room.runs, room.partials


def small_tree():
    tree = deft.Tree()
    tree.add_query(tree.add_root(40, location=0))
    return tree


def test_room_is_for_plans_that_are_cut_as_this_one(att):
    tree, items = small_tree(), []
    for options in {}, {"chunk_tokens": 64}:
        plan = att.plan(tree, device=0, **options)
        plan.reserve(4, 4, 1_000_000)
        items.append(room_of(plan)[1])
    assert items[0] < 1_000_000 // 64 <= items[1]  # a piece of at most 64 tokens is an item


def test_what_was_reserved_serves_larger_trees(att):
    tree = small_tree()
    plans = [att.plan(tree, device="cuda") for _ in range(2)]
    plans[1].reserve(8, 8, 4096)
    had = [room_of(plan) for plan in plans]
    for place in range(1, 8):
        tree.add_query(tree.add_child(0, 512, location=place * 512))
    for plan in plans:
        plan.advance(tree)
    has = [room_of(plan) for plan in plans]
    assert has[0] > had[0] and has[1] == had[1]


def test_reserving_tells_the_memory_that_it_takes(att):
    plan = att.plan(small_tree(), device=0)
    small, large = plan.reserve(4, 4, 1000), plan.reserve(64, 64, 100_000)
    assert 0 < small.device_bytes < large.device_bytes and 0 < small.host_bytes < large.host_bytes


def test_a_batch_reserves_behind_its_first_update(att, rng):
    batch = deft.PagedBatch(att, max_requests=4)
    with pytest.raises(deft.UsageError, match="the batch has no requests yet"):
        batch.reserve(4, 4, 1000)
    batch.update(TABLES, LENGTHS)
    assert batch.reserve(4, 40, 1000).device_bytes > 0
    assert room_of(batch)[0] == 40
    step = Step(rng, len(LENGTHS))
    assert_close(step.run(batch), expected_of_requests(step.q, step.k, step.v, TABLES, LENGTHS)[0], "bfloat16")


def test_paths_of_invariant_plans_take_the_room_that_their_length_asks_for(att):
    plan = att.plan(small_tree(), device=0, invariant=True)
    plan.reserve(8, 8, 100_000)
    had = room_of(plan)
    plan.reserve(8, 8, 100_000, longest_path=100_000)
    assert room_of(plan) > had


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"requests": -1}, "requests = -1, it must be from 0"),
        ({"queries": 1.5}, "queries is a float"),
        ({"tokens": -1}, "tokens = -1, it must be from 0"),
        ({"longest_path": -1}, "longest_path = -1, it must be from 0"),
        ({"device": "cpu"}, "a plan of the processor needs no room"),
        ({"device": "tpu"}, "there is no device `tpu`"),
    ],
)
def test_what_cannot_be_reserved_is_named(att, arguments, message):
    plan = att.plan(small_tree(), device=0)
    with pytest.raises(deft.UsageError, match=message):
        plan.reserve(**{"requests": 4, "queries": 4, "tokens": 1000, **arguments})


def test_values_of_parameters_that_come_and_go_leave_the_plan_s_own(att, monkeypatch):
    monkeypatch.setattr(deft._gpu, "_MOST_KEPT", 2)
    tree = deft.Tree()
    tree.add_query(tree.add_root(40, location=0))
    with_cap = deft.compile(f"attention a {{ {HEADS} param cap : f32 = 30.0; score = cap * tanh(s / cap); }}")
    kernels = deft._gpu.GpuKernels(with_cap, 0, tree, (), False)
    for cap in range(1, 9):
        assert kernels.with_params(deft._params.freeze({"cap": cap})) is not kernels.loaded
    assert kernels.with_params(()) is kernels.loaded


def test_values_that_a_graph_has_captured_stay(att, monkeypatch):
    capturing = {"now": True}
    monkeypatch.setattr(deft._gpu, "_MOST_KEPT", 2)
    monkeypatch.setattr(deft._gpu, "_is_capturing", lambda: capturing["now"])
    tree = deft.Tree()
    tree.add_query(tree.add_root(40, location=0))
    with_cap = deft.compile(f"attention a {{ {HEADS} param cap : f32 = 30.0; score = cap * tanh(s / cap); }}")
    kernels = deft._gpu.GpuKernels(with_cap, 0, tree, (), False)
    values = [deft._params.freeze({"cap": cap}) for cap in range(1, 9)]
    captured = weakref.ref(kernels.with_params(values[0]))
    capturing["now"] = False
    others = [weakref.ref(kernels.with_params(one)) for one in values[1:]]
    assert captured() is kernels.with_params(values[0])
    assert others[0]() is None


def test_a_copy_of_a_host_s_table_is_kept_for_every_stream_that_reads_it(att, monkeypatch):
    class Tensor:
        device = "cuda:0"

    recorded = []
    streams = SimpleNamespace(
        is_initialized=lambda: False, current_stream=lambda device: "current", ExternalStream=lambda stream, device: stream
    )
    on_gpu = deft._tensors.View(0, deft._abi.DEFT_BF16, (1,), None, deft._abi.DEFT_DEVICE_CUDA, 0)
    batch = deft.PagedBatch(att, max_requests=4)
    batch.update(TABLES, LENGTHS)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(Tensor=Tensor, cuda=streams))
    monkeypatch.setattr(deft._paged_batch, "view", lambda name, array: on_gpu)
    copy = SimpleNamespace(record_stream=recorded.append)
    monkeypatch.setattr(deft._paged_batch, "copy_on_gpu", lambda table, device: copy)
    for stream in None, 7:
        batch._table_for(Tensor(), stream)
    assert recorded == ["current", 7]


def test_a_host_s_table_is_not_captured(att, rng, monkeypatch):
    batch = deft.PagedBatch(att, max_requests=4)
    batch.update(TABLES, LENGTHS)
    step = Step(rng, 3)
    monkeypatch.setattr(deft._gpu, "_is_capturing", lambda: True)
    with pytest.raises(deft.UsageError, match="block_tables are on the host, and a graph is being captured"):
        batch.run(OnGpu(step.q), OnGpu(step.k), OnGpu(step.v), out=OnGpu(step.out))


def test_ids_on_a_gpu_are_named(att):
    batch = deft.PagedBatch(att, max_requests=4)
    with pytest.raises(deft.UsageError, match="ids is on a GPU, it is read on the host"):
        batch.update(TABLES, LENGTHS, ids=OnGpu(np.arange(3, dtype="uint64")))


WINDOW = f"attention a {{ {HEADS} param w : i32; mask = kv_pos > q_pos - w; }}"


@pytest.mark.parametrize("given", [None, {"w": 100}])
def test_a_batch_has_its_values_from_the_constructor_or_from_runs(rng, given):
    """As on a processor."""
    att, step = deft.compile(WINDOW), Step(rng, 3)
    on_host, on_gpu = (deft.PagedBatch(att, max_requests=4, params=given) for _ in range(2))
    for batch in (on_host, on_gpu):
        batch.update(TABLES, LENGTHS)
    for params in (given, {"w": 100}) if given else ({"w": 100}, {"w": 90}):
        on_host.run(step.q, step.k, step.v, params=params)
        step.run(on_gpu, params=params)
        assert_close(step.out, expected_of_requests(step.q, step.k, step.v, TABLES, LENGTHS)[0], "bfloat16")
    if given is None:
        for run in (lambda: on_host.run(step.q, step.k, step.v), lambda: step.run(on_gpu)):
            with pytest.raises(deft.UsageError, match=r'params\["w"\] needs a value \(i32\)') as caught:
                run()
            assert caught.value.hint == 'params={"w": ...}'


def test_a_batch_whose_plan_cannot_follow_says_so_until_it_has(att, rng, monkeypatch):
    batch, step = deft.PagedBatch(att, max_requests=4), Step(rng, 3)
    batch.update(TABLES, LENGTHS)
    step.run(batch)
    grow, advance, refused = deft._library.lib.deft_paged_batch_grow_plans, deft._runs.GpuPlan.advance, []

    def grow_without_plans(*arguments):
        followers = arguments[-1]._obj
        missing = (c_void_p * 1)(None)
        kept, followers.gpu_plans = followers.gpu_plans, addressof(missing)
        try:
            return grow(*arguments)
        finally:
            followers.gpu_plans = kept

    def advance_the_second_time(plan, tree):
        if not refused:
            refused.append(plan)
            raise deft.UsageError("the plan has no room")
        return advance(plan, tree)

    monkeypatch.setattr(deft._library.lib, "deft_paged_batch_grow_plans", grow_without_plans)
    monkeypatch.setattr(deft._runs.GpuPlan, "advance", advance_the_second_time)
    grown = [length + 1 for length in LENGTHS]
    with pytest.raises(deft.UsageError, match="has one that is null"):
        batch.grow(TABLES, grown)
    with pytest.raises(deft.UsageError, match="the plan has no room"):
        step.run(batch)
    assert_close(step.run(batch), expected_of_requests(step.q, step.k, step.v, TABLES, grown)[0], "bfloat16")


def test_what_is_written_on_a_gpu_overlaps_with_nothing_that_is_read(att, rng):
    batch, step = deft.PagedBatch(att, max_requests=4), Step(rng, 3)
    batch.update(TABLES, LENGTHS)
    for name, out in (("q", step.q), ("k", step.k.reshape(-1)[8:][: step.q.size]), ("v", step.v.reshape(-1)[-step.q.size :])):
        step.out = out.reshape(step.q.shape)
        with pytest.raises(deft.UsageError, match=f"out overlaps with {name}"):
            step.run(batch)


def test_ranks_merge_in_memory_that_they_map_of_each_other():
    name, sizes = f"gpu_calls.{os.getpid()}", {"queries": 3, "heads": 2, "head_dim": 8, "dtype": "float16"}
    states = [(np.full((3, 2, 8), 2.0 + 4 * rank, "float16"), np.zeros((3, 2), "float32")) for rank in range(2)]
    merged = [(np.empty((3, 1, 8), "float16"), np.empty((3, 1), "float32")) for _ in range(2)]

    def take_part(rank):
        with pytest.raises(deft.UsageError, match="memories is given beside a name"):
            deft.GpuPeers(name, 2, rank, **sizes, device=0, memories=[1])
        peers = deft.GpuPeers(name, 2, rank, **sizes, device=0, timeout=20)
        given, to = ([OnGpu(part) for part in parts] for parts in (states[rank], merged[rank]))
        for _ in range(3):
            peers.merge(*given, heads=(rank, rank + 1), to=tuple(to), stream=0)
        peers.check()
        with pytest.raises(deft.UsageError, match="out must be on cuda:0"):
            peers.merge(states[rank][0][:2], states[rank][1][:2])
        return peers

    with ThreadPoolExecutor(2) as pool:
        assert [peers.rank for peers in pool.map(take_part, range(2))] == [0, 1]
    for out, lse in merged:
        assert (out == 4).all() and np.allclose(lse, np.log(2))


def test_a_rank_that_stays_away_is_named():
    peers = deft.GpuPeers(
        None, 2, 0, queries=1, heads=1, head_dim=8, dtype="float16", device=0, timeout=0.05, memories=[room_of_rank(), room_of_rank()]
    )
    out, lse = OnGpu(np.ones((1, 1, 8), "float16")), OnGpu(np.zeros((1, 1), "float32"))
    peers.merge(out, lse, to=(out, lse), stream=0)
    with pytest.raises(deft.MachineError, match="rank 1 did not give its results of run 1 in time"):
        peers.check()
    for wrong, said in (
        ({"dtype": "int8"}, "dtype is int8, it must be float32"),
        ({"timeout": 0}, "timeout is 0, it must be a number of seconds above 0"),
        ({"head_dim": 9}, "head_dim is 9, which is not a multiple of 8"),
        ({"device": "cpu"}, "device is 'cpu', it must be a GPU"),
    ):
        sizes = {"queries": 1, "heads": 1, "head_dim": 8, "dtype": "float16", "device": 0, **wrong}
        with pytest.raises(deft.UsageError, match=said):
            deft.GpuPeers("never", 2, 0, **sizes)


needs_nccl = pytest.mark.skipif("DEFT_EXPECT_FAKE_NCCL" not in os.environ, reason="the tests' NCCL is not there")


@needs_nccl
@pytest.mark.parametrize("by_id", [False, True])
def test_ranks_merge_by_nccl(by_id):
    sizes = {"queries": 3, "heads": 2, "head_dim": 8, "dtype": "float16", "device": 0, "timeout": 20}
    meeting = {"name": None, "id": deft.GpuPeers.make_id()} if by_id else {"name": f"nccl.{os.getpid()}", "transport": "nccl"}
    merged = [(np.empty((3, 1, 8), "float16"), np.empty((3, 1), "float32")) for _ in range(2)]

    def take_part(rank):
        peers = deft.GpuPeers(count=2, rank=rank, merged=(rank, rank + 1), **meeting, **sizes)
        assert peers.transport == "nccl"
        peers.agree()
        given = OnGpu(np.full((3, 2, 8), 2.0 + 4 * rank, "float16")), OnGpu(np.zeros((3, 2), "float32"))
        for _ in range(3):
            peers.merge(*given, to=tuple(OnGpu(part) for part in merged[rank]), stream=0)
        peers.check()
        with pytest.raises(deft.UsageError, match=rf"heads is 0 for 2 heads, but this rank's end was made for {rank} to {rank + 1}"):
            peers.merge(*given, heads=(0, 2), to=(OnGpu(np.empty((3, 2, 8), "float16")), OnGpu(np.empty((3, 2), "float32"))), stream=0)
        return peers

    with ThreadPoolExecutor(2) as pool:
        assert [peers.rank for peers in pool.map(take_part, range(2))] == [0, 1]
    for out, lse in merged:
        assert (out == 4).all() and np.allclose(lse, np.log(2))


def test_wrong_ways_to_meet_are_named():
    sizes = {"queries": 1, "heads": 1, "head_dim": 8, "dtype": "float16", "device": 0, "timeout": 0.1}
    for wrong, said in (
        ({"name": "a", "id": bytes(128)}, "id is given beside a name"),
        ({"name": None}, "memories is not given, and no name either"),
        ({"name": None, "id": b"short"}, "id must be 128 bytes, as make_id"),
        ({"name": "a", "transport": "pigeon"}, "transport is 'pigeon', it must be 'auto', 'mapped' or 'nccl'"),
        ({"name": None, "id": bytes(128), "transport": "mapped"}, "transport is mapped memory, and an id is for NCCL"),
        ({"name": "a", "merged": (0, 2)}, "is 2, not between 0 and 1"),
    ):
        with pytest.raises(deft.UsageError, match=said):
            deft.GpuPeers(count=2, rank=0, **sizes, **wrong)


@needs_nccl
def test_a_rank_that_hands_its_id_to_nobody_gives_up():
    sizes = {"queries": 1, "heads": 1, "head_dim": 8, "dtype": "float16", "device": 0, "timeout": 0.1}
    with pytest.raises(deft.MachineError, match="not all 2 ranks came within 0.1 s"):
        deft.GpuPeers(None, 2, 0, id=deft.GpuPeers.make_id(), **sizes)


_rooms = []


def room_of_rank():
    """The address of a rank's memory of zeros."""
    _rooms.append(np.zeros(1 << 12, "int64"))
    return -(-_rooms[-1].ctypes.data // 128) * 128
