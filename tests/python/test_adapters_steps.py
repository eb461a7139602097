"""Steps of wrappers and plug-ins over caches of 8-bit floats, whose scales come with each run.

What planning asks of a GPU is seen on the tests' driver, which takes the host's memory for a GPU's (ctest -R python.gpu_calls)."""

import dataclasses
import os
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

import deft._adapters.steps  # noqa: E402
from deft import _abi  # noqa: E402
from deft._adapters.steps import PagedWork, Room, Steps  # noqa: E402
from deft._adapters.variant import make_variant  # noqa: E402
from deft._library import filled, lib  # noqa: E402
from deft.flashinfer import BatchPrefillWithPagedKVCacheWrapper, CUDAGraphBatchDecodeWithPagedKVCacheWrapper  # noqa: E402


def variant_of(**given):
    heads = {"query_heads": 4, "kv_heads": 2, "head_dim": 64, "page_size": 16, "kv_layout": "NHD"}
    rest = {"sm_scale": None, "logits_soft_cap": None, "window_left": -1}
    return make_variant(**heads, **rest, dtype="bf16", output_dtype="bf16", **given)


on_the_tests_driver = pytest.mark.skipif(
    "DEFT_EXPECT_FAKE_CUDA" not in os.environ, reason="the tests' driver is not there: ctest -R python.gpu_calls"
)


@on_the_tests_driver
@pytest.mark.parametrize("room", [None, Room(4, 4, 4096)])
@pytest.mark.parametrize(
    "given",
    [
        {},
        {"cache_dtype": "fp8_e4m3", "has_scales": True},
        {"has_sinks": True},
        {"cache_dtype": "fp8_e4m3", "has_scales": True, "has_head_scales": True, "has_sinks": True},
    ],
)
def test_a_step_is_planned_before_a_run_brings_its_scales(monkeypatch, given, room):
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: SimpleNamespace(cuda_stream=0))
    steps = Steps(torch.device("cuda", 0), room)
    table = torch.tensor([[1, 2], [3, 4]], dtype=torch.int32)
    variant = variant_of(**given)
    for length in 20, 21:
        steps.plan(PagedWork(table, None, [length, 9]), variant)


@on_the_tests_driver
@pytest.mark.parametrize("is_planned", [False, True])
def test_steps_that_were_expected_need_no_more_memory(monkeypatch, is_planned):
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: SimpleNamespace(cuda_stream=0))
    steps, variant, rooms = Steps(torch.device("cuda", 0)), variant_of(), []
    table = torch.arange(64, dtype=torch.int32).view(8, 8)

    def plan(lengths, counts):
        steps.plan(PagedWork(table, None, lengths, [sum(counts[:i]) for i in range(9)]), variant)
        (planned,) = steps._planned.values()
        room = filled(_abi.deft_gpu_room, lib.deft_gpu_plan_get_room, planned.gpu_plan(0).handle)
        rooms.append((room.queries, room.items, room.runs, room.partials))

    if is_planned:
        plan([4] * 8, [1] * 8)
    steps.expect(Room(8, 72, 1024))
    for counts in ([1] * 8, [16, 1] * 4, [1, 8] * 4):
        plan([100 + count for count in counts], counts)
    assert len({*rooms[is_planned:]}) == 1 and (not is_planned or rooms[0] < rooms[1])


class Workspace:
    """On a GPU, as far as a wrapper looks."""

    device = torch.device("cuda", 0)

    def numel(self):
        return 0


@on_the_tests_driver
def test_a_refused_plan_of_a_wrapper_for_graphs_puts_nothing_on_the_gpu(monkeypatch):
    uploads = []
    upload = deft._runs.GpuPlan.upload
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: SimpleNamespace(cuda_stream=0))
    monkeypatch.setattr(deft._runs.GpuPlan, "upload", lambda plan, stream: uploads.append(plan) or upload(plan, stream))
    ints = lambda *values: torch.tensor(values, dtype=torch.int32)
    buffers = ints(0, 0, 0), torch.zeros(8, dtype=torch.int32), ints(0, 0)
    wrapper = CUDAGraphBatchDecodeWithPagedKVCacheWrapper(Workspace(), *buffers)
    shapes = 4, 2, 64, 16

    def plan(indices, last):
        wrapper.plan(ints(0, 2, 4), ints(*indices), ints(*last), *shapes, q_data_type=torch.bfloat16)

    plan([1, 2, 3, 4], [4, 9])
    for indices, last in (([5, 6, 7, -1], [4, 9]), ([5, 6, 7, 8], [4, 17]), ([5, 6, 7], [4, 9])):
        with pytest.raises(ValueError):
            plan(indices, last)
        assert len(uploads) == 1 and buffers[1].tolist() == [1, 2, 3, 4, 0, 0, 0, 0]
        assert not uploads[0].needs_upload  # nor with the next run
    (only,) = uploads
    only.needs_upload = True
    plan([5, 6, 7, 0], [5, 9])  # which uploads by the call that plans
    assert uploads == [only] and not only.needs_upload and buffers[1].tolist() == [5, 6, 7, 0, 0, 0, 0, 0]


class Kept:
    """A step's plan that refuses some work."""

    def __init__(self, work, refuses):
        self.work, self.refuses = work, refuses

    def follow(self, work, stream):
        self.work = work  # as a batch that changes before its plan is found to be too large
        if self.refuses(work):
            raise ValueError(f"{work.length} tokens are too many")


class Work(SimpleNamespace):
    def anew(self):
        return self

    def plan(self, attention, how):
        return Kept(self, (lambda work: work.length > 9) if "tanh" in attention.spec else lambda work: False)


def test_a_step_that_grows_is_taken_back_and_makes_batches_of_its_own(monkeypatch):
    from deft._adapters.steps import PagedWork
    from deft._paged_batch import PagedBatch

    calls = []
    for name in ("update", "grow"):
        method = getattr(PagedBatch, name)
        monkeypatch.setattr(PagedBatch, name, lambda self, *given, name=name, method=method, **more: (calls.append(name), method(self, *given, **more)))
    steps, plain = Steps(torch.device("cpu")), variant_of()
    table = torch.arange(4, dtype=torch.int32).reshape(2, 2)

    def plan(lengths, *variants, grows=True):
        steps.plan(PagedWork(table, None, torch.tensor(lengths, dtype=torch.int32), grows=grows), *variants)

    plan([3, 5], plain, grows=False)
    plan([4, 5], plain)
    plan([4, 6], plain, dataclasses.replace(plain, soft_cap=5.0))  # one that follows, and one that is new
    assert calls == ["update", "grow", "grow", "update"]
    with pytest.raises(deft.UsageError):
        plan([4, 60])  # more than its pages hold
    assert calls[4:] == ["grow", "update"]  # back to the step before
    plan([5, 6])
    assert calls[6:] == ["grow", "grow"]


def test_a_step_that_one_attention_refuses_is_followed_by_none(monkeypatch):
    monkeypatch.setattr(deft._adapters.steps, "attention_of", lambda variant: SimpleNamespace(spec=variant.spec()))
    steps, plain = Steps(torch.device("cpu")), variant_of()
    capped = dataclasses.replace(plain, soft_cap=5.0)
    steps.plan(Work(length=8), plain, capped)
    with pytest.raises(ValueError, match="10 tokens are too many"):
        steps.plan(Work(length=10), plain, capped)
    assert [one.work.length for one in steps._planned.values()] == [8, 8] and steps._work.length == 8
    steps.plan(Work(length=9), plain, capped)
    assert [one.work.length for one in steps._planned.values()] == [9, 9] and steps._work.length == 9


def test_a_refused_step_of_another_kind_leaves_what_was_planned(monkeypatch):
    steps, variant = Steps(torch.device("cpu")), variant_of()
    pages = torch.tensor([[1, 2]], dtype=torch.int32)
    steps.plan(PagedWork(pages, None, [20]), variant)
    (had,) = steps._planned.values()
    with pytest.raises(ValueError):
        steps.plan(PagedWork(pages, None, [-1]), variant, invariant=True)
    assert list(steps._planned.values()) == [had] and not steps._invariant


def test_a_run_without_its_scales_is_told():
    steps = Steps(torch.device("cpu"))
    steps.plan(PagedWork(torch.tensor([[1, 2]], dtype=torch.int32), None, [20]))
    with pytest.raises(RuntimeError, match="with scales is given them"):
        steps.run(variant_of(cache_dtype="fp8_e4m3", has_scales=True), None, None, None)


def on_gpu(array):
    """As a tensor of torch there would be."""
    from test_gpu_calls import OnGpu

    given = OnGpu(array)
    given.is_cuda, given.shape = True, array.shape
    return given


@on_the_tests_driver
def test_drafts_of_a_gpu_go_behind_the_upload_of_each_step(monkeypatch, rng):
    from evaluate import assert_close
    from test_gpu_calls import Step
    from test_paged_batch_drafts import LENGTHS, PARENTS, TABLES, expected, mask_of, words_of

    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: SimpleNamespace(cuda_stream=0))
    steps, variant, step = Steps(torch.device("cuda", 0), Room(3, 9, 4096)), variant_of(), Step(rng, 9)

    def plan(parents, lengths):
        bits = on_gpu(words_of(mask_of(parents, 5)))
        steps.plan(PagedWork(TABLES, None, lengths, drafts=[len(own) for own in parents], bits=bits), variant)

    others = [[-1, 0, -1, 2, 3], [-1], [-1, -1, -1]]
    for parents, lengths in (PARENTS, LENGTHS), (others, LENGTHS), (others, [length + 1 for length in LENGTHS]):
        plan(parents, lengths)
        (planned,) = steps._planned.values()
        assert_close(step.run(planned._batch), expected(step.q, step.k, step.v, parents, lengths)[0], "bfloat16")
    steps.check_drafts()


@on_the_tests_driver
@pytest.mark.parametrize("is_captured", [False, True])
def test_a_mask_of_no_tree_on_a_gpu_is_named_by_the_plan_behind_it(monkeypatch, is_captured):
    """But where a graph was captured with it: what it then holds is nobody's."""
    import deft.flashinfer._prefill as prefill

    def drafts_on_gpu(*given, **more):
        drafts = in_place(*given[:-1], torch.device("cpu"), **more)
        return drafts._replace(bits=on_gpu(drafts.bits.numpy()), depths=on_gpu(drafts.depths.numpy()))

    in_place = prefill.drafts_of
    monkeypatch.setattr(prefill, "drafts_of", drafts_on_gpu)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: SimpleNamespace(cuda_stream=0))
    ints = lambda *values: torch.tensor(values, dtype=torch.int32)
    buffers = {"qo_indptr_buf": ints(0, 0, 0), "paged_kv_indptr_buf": ints(0, 0, 0), "paged_kv_last_page_len_buf": ints(0, 0)}
    buffers |= {"paged_kv_indices_buf": torch.zeros(8, dtype=torch.int32), "custom_mask_buf": ints(0), "mask_indptr_buf": ints(0)}
    wrapper = BatchPrefillWithPagedKVCacheWrapper(Workspace(), "NHD", True, **buffers)

    def plan(mask):
        given = ints(0, 2, 5), ints(0, 2, 4), ints(1, 2, 3, 4), ints(4, 9), 4, 2, 64, 16
        wrapper.plan(*given, q_data_type=torch.bfloat16, custom_mask=mask)

    chains = [torch.ones(count, length).tril(length - count).bool().flatten() for count, length in ((2, 20), (3, 25))]
    plan(torch.cat([torch.ones(40, dtype=torch.bool), chains[1]]))
    wrapper._was_captured = is_captured
    if not is_captured:
        with pytest.raises(NotImplementedError, match="custom_mask=.*what query 1 of request 0 sees is no tree"):
            plan(torch.cat(chains))
    plan(torch.cat(chains))
    plan(torch.cat(chains))
    wrapper._plans.check_mask()


@on_the_tests_driver
def test_verify_steps_of_sglang_are_drafted_on_a_gpu_before_a_graph_is_replayed(monkeypatch, rng):
    import numpy as np
    from deft.sglang import planner
    from deft.sglang.forwards import Forwards
    from evaluate import assert_close
    from test_gpu_calls import Step
    from test_paged_batch_drafts import LENGTHS, PAGE, TABLES, expected, mask_of

    made, in_place = torch.zeros, planner.words_for
    host = torch.device("cpu")
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: SimpleNamespace(cuda_stream=0))
    monkeypatch.setattr(torch, "zeros", lambda *sizes, device=None, **more: made(*sizes, **more))
    monkeypatch.setattr(planner, "words_for", lambda spec, lengths, device, own: on_gpu(in_place(spec, lengths, host, own).numpy()))
    tokens = torch.from_numpy(TABLES[..., None] * PAGE + np.arange(PAGE, dtype="int32")).flatten(1)
    steps_of = planner.Planner(torch.device("cuda", 0), tokens, PAGE, 4096, Forwards(None))
    steps_of.make_room(3)
    variant, step = variant_of(), Step(rng, 9)

    def plan(parents, lengths):
        mask = torch.from_numpy(mask_of(parents, 3)).flatten()
        spec = SimpleNamespace(draft_token_num=3, draft_token=torch.zeros(9), custom_mask=mask)
        return steps_of.plan_graph(torch.arange(3), torch.tensor(lengths), spec)

    seen = set()
    for parents, gain in (([[-1, 0, 0], [-1, 0, 1], [-1, 0, 0]], 0), ([[-1, 0, 1], [-1, 0, 0], [-1, 0, 1]], 0), ([[-1, 0, 0]] * 3, 2)):
        lengths = [length + gain for length in LENGTHS]
        steps = plan(parents, lengths)
        batch = steps._of(variant)._batch
        assert_close(step.run(batch), expected(step.q, step.k, step.v, parents, lengths)[0], "bfloat16")
        seen.add((steps, steps.work.pages.data_ptr()))
    assert len(seen) == 1
    # Drafts that are no tree: their results are nobody's, and the next step says so.
    plan([[-1, -1, -1]] * 3, LENGTHS)
    broken = mask_of([[-1, 0, 0]] * 3, 3)
    broken[1, 2] = False
    spec = SimpleNamespace(draft_token_num=3, draft_token=torch.zeros(9), custom_mask=torch.from_numpy(broken).flatten())
    steps_of.plan_graph(torch.arange(3), torch.tensor(LENGTHS), spec)
    with pytest.raises(NotImplementedError, match="of request 1 sees is no tree"):
        plan([[-1, 0, 0]] * 3, LENGTHS)
    plan([[-1, 0, 0]] * 3, LENGTHS)
