"""A user's program with every name of the package, for type checkers (test_types.py); it runs, too. What it asserts of types is
what they are without a look at the sources."""

from typing import Any, Mapping

import deft
import numpy as np
from deft import lang
from numpy.typing import NDArray
from typing_extensions import Unpack, assert_type

Floats = NDArray[np.float16]


def attentions() -> deft.Attention:
    traced = deft.attention(
        query_heads=4,
        head_dim=64,
        score=lambda s: 30.0 * lang.tanh(s / 30.0),
        mask_mod=lambda b, h, q_idx, kv_idx: q_idx - kv_idx < 128,
        dtype="f16",
    )
    assert_type(traced, deft.Attention)
    assert_type(traced.spec, str)
    assert_type(traced.source("cuda", architecture="sm_80"), str)
    assert_type(traced.page_size, int | None)
    assert_type(traced.params, list[deft.Param])
    assert_type([(param.name, param.length, param.is_array) for param in traced.params], list[tuple[str, int, bool]])
    assert_type(traced.captured, dict[str, Any])
    return deft.compile(
        "attention a { query_heads = 4; kv_heads = 2; head_dim = 64; dtype = f16; output = f16 with lse; kv_cache = contiguous; }"
    )


def trees() -> deft.Tree:
    tree = deft.Tree()
    prompt = tree.add_root(20, location=0)
    assert_type(prompt, int)
    left, right = tree.add_child(prompt, 3, location=20), tree.add_child(prompt, 3)
    tree.place(right, 23)
    assert_type(tree.add_query(left), int)
    tree.set_queries([left, (right, 2), (right, None)])
    tree.append(left)
    assert_type(tree.node(left), deft.Node)
    assert_type(tree.node(left).parent, int | None)
    assert_type(tree.queries, list[deft.Query])
    assert_type(tree.queries[0].position, int | None)
    assert_type(tree.accept(prompt, left), list[deft.Stretch])
    assert_type(deft.Tree.from_json(tree.to_json()), deft.Tree)
    tree.clear_queries()
    tree.add_query(prompt)
    return tree


def runs(att: deft.Attention, tree: deft.Tree) -> Floats:
    q: Floats = np.ones((1, 4, 64), np.float16)
    k: Floats = np.ones((32, 2, 64), np.float16)
    params: Mapping[str, float] = {}
    out, lse = att.run(tree, q, k, k, params=params, return_lse=True)
    plan = att.plan(tree, partition="node", chunk_tokens=256, invariant=True)
    assert_type(plan, deft.Plan)
    plan.run(q, k, k, out=out, lse=lse)
    assert_type(plan.advance(), str)
    assert_type(plan.summary(), deft.PlanSummary)
    assert_type(plan.summary().tokens_read, int)
    assert_type(plan.choice(), deft.ConfigChoice)
    assert_type(plan.choice().rule, str)
    assert_type(plan.html(against=att.plan(tree)), str)
    assert_type(plan.show(height=500), deft.PlanPage)
    assert_type((plan.is_current, plan.query_count, plan.number), tuple[bool, int, int])
    result: Floats = ran(planned(att, tree, workers=1), q, k, check_finite=True)
    return result


def selections() -> list[int]:
    att = deft.compile(
        "attention a { query_heads = 4; kv_heads = 2; head_dim = 64; dtype = f16; kv_cache = contiguous; select { budget = 2; } }"
    )
    tree = deft.Tree()
    tree.add_query(tree.add_root(20, location=0))
    q, k = np.ones((1, 4, 64), np.float16), np.ones((20, 2, 64), np.float16)
    plan, selection = att.plan(tree), deft.Selection(att, budget=2)
    out: Floats = plan.run_selecting(selection, q, k, k)
    plan.run_sparse(selection, q, k, k, out=out)
    assert_type((selection.budget, selection.lists, selection.query_count), tuple[int, int, int])
    said = att.selects
    assert_type(said, deft.Selects | None)
    assert_type(said.budgets if said else (), tuple[int, ...])
    return selection.positions(0, list=1)


def batches() -> deft.Sharing:
    paged = deft.compile("attention a { query_heads = 4; kv_heads = 2; head_dim = 64; dtype = f16; }")
    batch = deft.PagedBatch(paged, max_requests=2)
    batch.update(np.array([[0, 1], [0, 2]], np.int32), [20, 21], ids=[7, 8])
    q, cache = np.ones((2, 4, 64), np.float16), np.ones((3, 16, 2, 64), np.float16)
    batch.run(q, cache, cache, out=np.empty_like(q))
    batch.grow(np.array([[0, 1], [0, 2]], np.int32), [20, 21])
    drafting = deft.PagedBatch(paged, max_requests=2, cache_pages=3, check_pages=True)
    drafting.update(np.array([0, 1, 0, 2], np.int32), indptr=[0, 2, 4], last_page_lengths=[4, 5], drafts=[1, 1])
    drafting.draft(np.ones((2, 1, 1), np.bool_), depths=np.zeros((2, 1), np.int32))
    drafted: Floats = drafting.run(q, cache, cache)
    drafting.check_replays()
    assert drafted.shape == q.shape
    assert_type(batch.tree.path_tokens(1), int)
    assert_type(batch.sharing().request_tokens, int)
    return batch.sharing()


def planned(att: deft.Attention, tree: deft.Tree, **options: Unpack[deft.TreePlanOptions]) -> deft.Plan:
    """Options are handed on by their types."""
    of_all: deft.PlanOptions = {"chunk_tokens": 256, "runs_ahead": 0}
    att.plan(tree, **of_all)
    return att.plan(tree, **options)


def ran(plan: deft.Plan, q: Floats, k: Floats, **options: Unpack[deft.RunOptions]) -> Floats:
    of_all: deft.TreeRunOptions = {"stream": None}
    plan.run(q, k, k, **of_all)
    out: Floats = plan.run(q, k, k, **options)
    return out


def reserved(plan: deft.Plan, batch: deft.PagedBatch) -> deft.PlanRoom:
    """For which a GPU would be needed."""
    assert_type(batch.reserve(2, 2, 100).host_bytes, int)
    return plan.reserve(2, 2, 100, longest_path=60, device="cuda:0")


def states() -> Floats:
    parts = [np.full((2, 4, 64), value, np.float16) for value in (1, 3)]
    out, lse = deft.merge_states(parts, [np.zeros((2, 4), np.float32)] * 2)
    merged: Floats = out
    deft.merge_states(parts, [lse, lse], out=out, lse=lse)
    rows: NDArray[np.uint8] = deft.quantize(merged, [1.0] * 4, "float8_e5m2").view(np.uint8)
    assert rows.shape == merged.shape
    return merged


def divided(heads: deft.Attention, tree: deft.Tree) -> deft.DividedPlan:
    latent = deft.compile(
        "attention a { query_heads = 4; kv_cache = latent(dim = 64, rope = 16); dtype = f16; scale = 0.2; output = f16 with lse; }"
    )
    node = deft.ExpandedNode(tree.nodes[0], tokens=tree.node(tree.nodes[0]).tokens, location=0)
    plan = deft.DividedPlan(latent, heads, tree, [node], choice="all", workers=1)
    assert_type(plan.advance([node]), list[int])
    return plan


def sequences() -> list[deft.TokenCopy]:
    own = deft.SequenceTree(pages=8, page_size=16)
    prompt = own.add_root(20)
    branch = own.fork(prompt, 10)
    assert_type(own.slot(prompt, 0), int)
    assert_type(own.free_pages, int)
    copies = own.append(branch, 2)
    own.pollute([deft.NodeTokens(branch, 0, 1)])
    assert_type(own.polluted(), list[deft.NodeTokens])
    own.correct(own.polluted())
    return copies


def beams() -> deft.BeamStep:
    own = deft.BeamTree(page_size=16, max_beams=8)
    own.start([20, [(32, 5)]], pages=8)
    own.start(20, pages=[2, 3], table=[0, 1])
    step = own.advance([0, 0])
    assert_type(step.slots.tolist(), list[int])
    assert_type(step.freed_pages, list[int])
    own.add_pages(own.take_pages(1))
    assert_type(own.free_pages, int)
    return step


def tuning(att: deft.Attention) -> deft.TuneResult:
    def watch(progress: deft.TuneProgress) -> None:
        assert_type(progress.best_us, float)

    result = deft.tune(att, workload=["few_shot"], budget=60, progress=watch)
    assert_type(result.classes, list[deft.TunedClass])
    assert_type(deft.merge_shards([deft.tune(att, "few_shot", shard=(0, 1)).journal]), deft.TuneResult)
    assert_type(result.classes[0].gain, float)
    if result.sparse is not None:
        assert_type(result.sparse, deft.TunedSparse)
        assert_type(result.sparse.lists, list[deft.TunedLists])
    return result


def errors() -> str:
    try:
        deft.compile("attention a {")
    except (deft.DiagnosticError, deft.UsageError, deft.MachineError, deft.InternalError) as error:
        caught: deft.Error = error
        assert_type(caught.message, str)
        assert_type(caught.hint, str)
        assert_type(caught.field, str)
        return caught.message
    return ""


def heard() -> list[str]:
    kinds: list[str] = []

    def hear(message: deft.LogMessage) -> None:
        assert_type(message.duration_us, float | None)
        kinds.append(message.kind)

    deft.set_log(hear)
    trees()
    deft.set_log(None)
    assert_type(deft.set_nvtx(False), bool)
    return kinds


def machine() -> bool:
    deft.set_threads(deft.get_threads())
    report = deft.doctor()
    assert_type(report, deft.Doctor)
    assert_type(deft.support(), dict[str, Any])
    assert_type((deft.get_include(), deft.get_library(), deft.__version__), tuple[str, str, str])
    return deft.has_compiler()


def captured(folder: str) -> deft.CaptureState:
    with deft.capture(folder, "host") as steps:
        assert_type(steps, deft.Capture)
        trees()
    deft.stop_capture()
    return deft.capture_state()


def ranks(att: deft.Attention) -> deft.AgreementHashes:
    here = deft.Ranks(count=2, rank=0, unit=16)
    assert_type(here.count, int)
    assert_type(deft.GpuPeers.bytes(count=2, queries=4, heads=8, head_dim=64, dtype="float16"), int)
    peers = deft.Peers("typed", count=1, rank=0, bytes=4096)
    peers.agree(att)
    return deft.agreement_hashes(att)


def group_of_hosts() -> bytes:
    made = deft.GpuPeers.make_id()
    peers = deft.GpuPeers(None, 2, 0, queries=4, heads=8, head_dim=64, id=made, merged=(0, 4), transport="nccl")
    assert_type(peers.transport, str)
    peers.agree()
    return made


def package(path: str) -> deft.Attention:
    return deft.load(path, attention="a")


if __name__ == "__main__":
    att = attentions()
    print(runs(att, trees()).mean(), batches(), sequences(), beams().slots, selections(), states().mean(), errors(), heard(), machine())
