"""The package on a GPU with torch, against torch's own attention in float32: streams, graphs, out=, tables on the device,
masks of drafts and lengths that only the device knows.

usage: gpu_check.py      needs the wheel installed, torch with CUDA; exit code 1 where something is wrong

Most of its time is that of kernels, which are compiled side by side; the last line says how long it took.
"""

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import deft
import gpu_flashinfer
import gpu_latent
import torch
from deft._adapters.steps import PagedWork, Room, Steps
from deft._adapters.variant import Scales, make_variant

HEADS, KV_HEADS, DIM, PAGE = 32, 8, 128, 16
SPEC = f"attention a {{ query_heads = {HEADS}; kv_heads = {KV_HEADS}; head_dim = {DIM}; output = bf16 with lse; }}"
BIASED = SPEC.replace("a {", "a { param bias : f32[32]; score = s + bias[q_pos - kv_pos];")
SELECT = "select { budget = tune(64, 4096); keep_first = 1; keep_last = 2; }"
SELECTING = SPEC.replace("output = bf16 with lse;", f"output = bf16 with lse; {SELECT}")


def compile_kernels(tree, device):
    """Of all specs; later loads find them in the cache."""
    att, biased, selecting = map(deft.compile, (SPEC, BIASED, SELECTING))
    plans = [
        lambda: att.plan(tree, device=device),
        lambda: biased.plan(tree, device=device, params={"bias": torch.zeros(32, device=device)}),
        lambda: selecting.plan(tree, device=device, budget=4096),
        lambda: selecting.plan(tree, device=device, budget=64),
    ]
    with ThreadPoolExecutor() as pool:
        for made in [pool.submit(plan) for plan in plans]:
            made.result()
    return att


def captured(step):
    """A graph of what `step` puts on the stream; it has run once before."""
    step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph


def check_parameters_on_the_device(tree, paths, q, k, v, table):
    """A table of biases by distance, read through the pointer that was captured."""
    att = deft.compile(BIASED)
    bias = torch.randn(32, device=q.device)
    plan, out = att.plan(tree, device=q.device, params={"bias": bias}), torch.empty_like(q)
    results = [
        check("a table on the device", plan.run(q, k, v, table), expected(paths, q, k, v, table, bias)),
    ]
    graph = torch.cuda.CUDAGraph()
    plan.upload()
    with torch.cuda.graph(graph):
        plan.run(q, k, v, table, out=out)
    bias.copy_(torch.randn(32, device=q.device))
    graph.replay()
    results.append(check("its values of another step", out, expected(paths, q, k, v, table, bias)))
    return results


def check_selection(tree, paths, q, k, v, table):
    """Lists on the device: all tokens give the full attention; a captured step gives that of its lists."""
    att = deft.compile(SELECTING)
    plan, everything = att.plan(tree, device=q.device, budget=4096), deft.Selection(att, 4096)
    right = expected(paths, q, k, v, table)
    results = [
        check("a run that selects", plan.run_selecting(everything, q, k, v, table), right),
        check("a sparse run over all tokens", plan.run_sparse(everything, q, k, v, table), right),
    ]
    plan, some, out = att.plan(tree, device=q.device, budget=64), deft.Selection(att), torch.empty_like(q)
    plan.run_selecting(some, q, k, v, table)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        plan.run_selecting(some, q, k, v, table, out=out)
        plan.run_sparse(some, q, k, v, table, out=out)
    graph.replay()
    ratio, rows = HEADS // KV_HEADS, []
    for i, path in enumerate(paths):
        for group in range(KV_HEADS):
            positions = some.positions(i, group)
            assert len(positions) == 64 and positions == sorted(positions)
            assert {0, len(path) - 1, len(path) - 2} <= {*positions}
            listed = expected([[path[position] for position in positions]], q[i : i + 1], k, v, table)
            rows.append(listed[0, group * ratio : (group + 1) * ratio])
    results.append(check("a captured sparse run over its lists", out, torch.cat(rows).reshape(out.shape)))
    return results


DRAFTED = [100, 101, 45, 60]  # tokens of requests; the first two share pages
#: Of each request, of each draft: the draft above it, or -1. What a step has is what the one before had not.
TREES = [[-1, 0, 0, 1, 3], [-1], [-1, -1, 1], []], [[-1, 0, 1, 2, 3], [-1], [-1, 0, 0], []]


def mask_of(trees, drafts, device):
    """bool [requests, drafts, drafts]"""
    mask = torch.zeros(len(trees), drafts, drafts, dtype=torch.bool)
    for request, parents in enumerate(trees):
        for draft, parent in enumerate(parents):
            if parent >= 0:
                mask[request, draft] = mask[request, parent]
            mask[request, draft, draft] = True
    return mask.to(device)


def words_of(mask):
    """int32 [requests, drafts, 1], for less than 32 drafts."""
    weights = torch.tensor([1 << place for place in range(mask.shape[-1])], dtype=torch.int64, device=mask.device)
    return (mask.long() * weights).sum(-1, keepdim=True).to(torch.int32)


def drafted_paths(tables, size, trees, lengths):
    """Of each draft, in a table of pages of `size` tokens."""

    def places(row, tokens):
        return [int(tables[row, t // size]) * size + t % size for t in tokens]

    found = []
    for row, (parents, length) in enumerate(zip(trees, lengths)):
        own = []
        for draft, parent in enumerate(parents):
            own.append([*(own[parent] if parent >= 0 else places(row, range(length))), *places(row, [length + draft])])
        found += own
    return found


def check_drafts(att, q, k, v):
    """Only the mask in the GPU's memory says who sees whom; right is what a tree says that the host knows."""
    device = q.device
    tables = torch.arange(4 * 8, dtype=torch.int32, device=device).reshape(4, 8)
    tables[1, :4] = tables[0, :4]
    in_order, paths = torch.arange(len(k), device=device), partial(drafted_paths, tables, PAGE)
    q = torch.randn(9, HEADS, DIM, dtype=q.dtype, device=device)
    counts, (first, second) = [len(parents) for parents in TREES[0]], TREES
    right = [expected(paths(trees, DRAFTED), q, k, v, in_order) for trees in TREES]
    results = []
    for name, form in (("words", words_of), ("truth values", lambda mask: mask)):
        batch = deft.PagedBatch(att, max_requests=4, follows_lengths=True)
        batch.update(tables, DRAFTED, drafts=counts)
        bits, out = form(mask_of(first, 5, device)), torch.empty_like(q)
        lengths = torch.tensor(DRAFTED, dtype=torch.int32, device=device)

        def step():
            batch.draft(bits, lengths=lengths)
            batch.run(q, k, v, out=out)

        graph = captured(step)
        graph.replay()
        results.append(check(f"a captured step with drafts, {name}", out, right[0]))
        bits.copy_(form(mask_of(second, 5, device)))
        graph.replay()
        results.append(check("its replay with other trees", out, right[1]))
        lengths += 2
        graph.replay()
        longer = [length + 2 for length in DRAFTED]
        results.append(check("its replay with longer requests", out, expected(paths(second, longer), q, k, v, in_order)))
        torch.cuda.synchronize()
        batch.check_replays()
        batch.grow(tables, longer)
        batch.upload()
        graph.replay()
        results.append(check("its replay behind grow", out, expected(paths(second, longer), q, k, v, in_order)))
        bits.zero_()
        graph.replay()
        torch.cuda.synchronize()
        results.append(is_error("rows that are no tree's", batch.check_replays, "is not a row of a tree"))
    batch.update(tables, DRAFTED, drafts=[0] * 4)
    batch.draft(bits)  # there is nothing to say
    return results


def check_rank_drafts(att, k, v):
    """The batches of two ranks on this GPU: each reads its part of a draft's path, whose tree and length only the GPU knows."""
    tables = torch.tensor([[0, 1, 2, 3], [0, 1, 4, 5], [6, 7, 8, 9], [10, 11, 12, 13]], dtype=torch.int32, device=k.device)
    k, v = (one[: 14 * 2] for one in (k, v))
    in_order, q = torch.arange(len(k), device=k.device), torch.randn(9, HEADS, DIM, dtype=k.dtype, device=k.device)
    bits, out, results = words_of(mask_of(TREES[0], 5, k.device)), torch.empty_like(q), []
    for unit in (1, PAGE):
        in_turns = [one.reshape(-1, PAGE // unit, 2, unit, KV_HEADS, DIM).permute(2, 0, 1, 3, 4, 5) for one in (k, v)]
        dealt = [one.reshape(2, -1, PAGE, KV_HEADS, DIM) for one in in_turns]
        batches = [deft.PagedBatch(att, max_requests=4, follows_lengths=True, ranks=deft.Ranks(2, rank, unit)) for rank in range(2)]
        lengths = torch.tensor(DRAFTED, dtype=torch.int32, device=k.device)
        for batch in batches:
            batch.update(tables, DRAFTED, drafts=[len(parents) for parents in TREES[0]])

        def step():
            for batch in batches:
                batch.draft(bits, lengths=lengths)
            states = [batch.run(q, *kept, return_lse=True) for batch, *kept in zip(batches, *dealt)]
            deft.merge_states(*zip(*states), out=out)

        graph = captured(step)
        for more, trees in enumerate(TREES):
            bits.copy_(words_of(mask_of(trees, 5, k.device)))
            graph.replay()
            right = expected(drafted_paths(tables, 2 * PAGE, trees, [length + more for length in DRAFTED]), q, k, v, in_order)
            results.append(check(f"drafts over two ranks in turns of {unit} tokens", out, right))
            lengths += 1
        for batch in batches:
            batch.check_replays()
    return results


def check_lengths(att, tree, paths, q, k, v, table):
    """Requests grow by what the device alone knows."""
    plan, out = att.plan(tree, device=q.device, follows_lengths=True), torch.empty_like(q)
    lengths = torch.tensor([len(path) for path in paths()], dtype=torch.int32, device=q.device)

    def step():
        plan.follow(lengths)
        plan.run(q, k, v, table, out=out)

    graph = captured(step)
    results = []
    for extra in range(3):
        graph.replay()
        results.append(check(f"a captured step, {extra} tokens later", out, expected(paths(extra), q, k, v, table)))
        lengths += 1
    lengths -= 30
    graph.replay()
    torch.cuda.synchronize()
    return [*results, is_error("a length that no plan serves", plan.check_replays, "which its plan does not serve")]


def check_merged_states(att, paths, q, k, v, table):
    """Parts of the context, each of them a tree of its own, computed apart."""
    trees = [deft.Tree() for _ in range(2)]
    trees[0].set_queries([trees[0].add_root(1000, location=0)] * len(paths))
    for path in paths:
        trees[1].add_query(trees[1].add_root(len(path) - 1000, location=path[1000]))
    plans = [att.plan(tree, device=q.device) for tree in trees]
    states = [plan.run(q, k, v, table, return_lse=True) for plan in plans]
    right = expected(paths, q, k, v, table)
    out, lse = deft.merge_states(*zip(*states))
    whole = torch.logaddexp(*(lse for _, lse in states))
    results = [check("merged states", out, right), check("their lse", lse, whole)]
    into, merged = torch.empty_like(out), torch.empty_like(lse)

    def step():
        for plan, (part, its_lse) in zip(plans, states):
            plan.run(q, k, v, table, out=part, lse=its_lse)
        deft.merge_states(*zip(*states), out=into, lse=merged)

    graph = captured(step)
    for tensor in (into, *states[0]):
        tensor.zero_()
    graph.replay()
    return [*results, check("a captured merge", into, right)]


def check_scales_of_layers(tables, lengths, ends, q, k, v, in_order):
    """An engine's layers over a cache of 8-bit floats, each with scales of its own, planned before the first one runs."""
    variant = make_variant(
        query_heads=HEADS, kv_heads=KV_HEADS, head_dim=DIM, page_size=PAGE, kv_layout="NHD", dtype="bf16", output_dtype="bf16",
        sm_scale=None, logits_soft_cap=None, window_left=-1, cache_dtype="fp8_e4m3", has_scales=True)
    bytes_of_k, bytes_of_v = (cache.to(torch.float8_e4m3fn) for cache in (k, v))
    layers = {Scales(0.5, 2.0): torch.empty_like(q), Scales(2.0, 0.25): torch.empty_like(q)}
    steps = Steps(q.device, Room(len(lengths), len(lengths), 4096), runs_ahead=len(layers))
    steps.plan(PagedWork(tables, None, lengths), variant)

    def step():
        for scales, out in layers.items():
            steps.run(variant, q, bytes_of_k, bytes_of_v, out, scales=scales)

    graph = captured(step)
    results = []
    for extra in range(2):
        steps.plan(PagedWork(tables, None, [length + extra for length in lengths]), variant)
        graph.replay()
        paths = [[*path, *range(path[-1] + 1, path[-1] + 1 + extra)] for path in ends]
        for scales, out in layers.items():
            right = expected(paths, q, bytes_of_k.float() * scales.k_scale, bytes_of_v.float() * scales.v_scale, in_order)
            results.append(check(f"8-bit floats in a captured graph, {scales}, {extra} tokens later", out, right))
    return results


def check_pages(att, tree, paths, q, k, v, table):
    """An entry that names no page of the cache is told of. What is read there all the same is the rest of the whole cache."""
    plan = att.plan(tree, device=q.device, check_pages=True)
    results = [check("a run whose pages are looked at", plan.run(q, k, v, table), expected(paths, q, k, v, table))]
    torch.cuda.synchronize()
    plan.check_replays()
    entries = torch.tensor(sorted({location // PAGE for path in paths for location in path}), device=q.device)
    fewer = int(table[entries].max())  # one page is just beyond
    plan.run(q, k[:fewer], v[:fewer], table)
    torch.cuda.synchronize()
    return [*results, is_error("a page that the cache does not have", plan.check_replays, str(fewer))]


def check_reserved(att, q, k, v, table):
    """A graph that is captured of one query serves as many as there was room reserved for."""
    tree = deft.Tree()
    prompt = tree.add_root(600, location=0)
    tree.set_queries([prompt])
    plan, out = att.plan(tree, device=q.device), torch.zeros_like(q)
    room = plan.reserve(requests=len(q), queries=len(q), tokens=2000)
    print(f"    a plan with that room takes {room.device_bytes / 1024:.0f} KiB of the GPU")
    plan.upload()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        plan.run(q[:1], k, v, table, out=out[:1])  # of the buffers of all
    paths, results = [range(600)], []
    for leaves in (0, len(q)):
        if leaves:
            tree.set_queries([tree.add_child(prompt, 20 + i, location=608 + 32 * i) for i in range(leaves)])
            paths = [[*range(600), *range(608 + 32 * i, 608 + 32 * i + 20 + i)] for i in range(leaves)]
            plan.advance(tree)
            plan.upload()
        graph.replay()
        right = expected([list(path) for path in paths], q, k, v, table)
        results.append(check(f"a graph with room that was reserved, {len(paths)} queries", out[: len(paths)], right))
    plan.check_replays()
    return results


def check_beside_processor(name, cases, device):
    """Each case computes out and lse of tensors: those of the GPU are to be those of a processor."""
    out, lse = ([torch.cat([case(where)[at].float().cpu() for case in cases]) for where in (device, "cpu")] for at in (0, 1))
    return [check(name, *out), check(f"its lse, {name}", *lse)]


def check_repeated_pages(device):
    """A request with one page at two places that follow each other, under a window that begins inside a page."""
    att = deft.compile(
        "attention w { query_heads = 4; kv_heads = 1; head_dim = 64; dtype = bf16; mask = kv_pos > q_pos - 17; "
        "kv_cache = paged(page_size = 32, order = hnd); output = bf16 with lse; }")
    k, v = (torch.randn(128, 1, 32, 64).bfloat16() for _ in range(2))
    q, table = torch.randn(1, 4, 64).bfloat16(), torch.tensor([[110, 43, 80, 20, 117, 117]], dtype=torch.int32)

    def case_of(length):
        def run(where):
            batch = deft.PagedBatch(att, max_requests=1, partition="flatten")
            batch.update(table, [length])
            return batch.run(q.to(where), k.to(where), v.to(where), return_lse=True)

        return run

    return check_beside_processor("a page at two places, under a window", [case_of(length) for length in range(161, 193)], device)


def check_arrays_of_sparse_layers(device):
    """Values of tokens where siblings read a union of lists, in both orders of a page: lists hold all that is seen."""
    results = []
    for order, page in (("nhd", 2), ("hnd", 2), ("hnd", 16)):
        att = deft.compile(
            "attention a { query_heads = 2; kv_heads = 2; head_dim = 64; dtype = f16; output = bf16 with lse; "
            f"kv_cache = paged(page_size = {page}, order = {order}); param p : f32[tokens]; mask = kv_pos >= q_pos - 15; "
            "score = s + tanh(p[token]); select { budget = 61; by = kv_head; keep_last = 1; } }")
        pages, tokens = 512 // page, 500
        shape = (pages, page, 2, 64) if order == "nhd" else (pages, 2, page, 64)
        k, v, q = torch.randn(shape).half(), torch.randn(shape).half(), torch.randn(2, 2, 64).half()
        values, table = torch.randn(512), torch.randperm(pages).int()
        tree = deft.Tree()
        root = tree.add_root(tokens, location=0)
        tree.set_queries([root, root])

        def run(where):
            lists = deft.Selection(att)
            plan = att.plan(tree, device=where, budget=61, params={"p": values.to(where)})
            given = [tensor.to(where) for tensor in (q, k, v, table)]
            plan.run_selecting(lists, *given)
            return plan.run_sparse(lists, *given, return_lse=True)

        results += check_beside_processor(f"values of tokens in a sparse layer, {order}, pages of {page}", [run], device)
    return results


def is_error(name, call, said):
    try:
        call()
    except deft.UsageError as error:
        if said in str(error):
            print(f"ok  {name}: {error.message}")
            return True
        print(f"WRONG  {name}: {error}")
        return False
    print(f"WRONG  {name}: taken")
    return False


def expected(paths, q, k, v, table, bias=None):
    """The attention of each query over its path, a list of locations; `bias` by distance, the last one for all beyond."""
    flat_k, flat_v = (cache[table.long()].reshape(-1, KV_HEADS, DIM).float() for cache in (k, v))
    rows = []
    for i, locations in enumerate(paths):
        seen = torch.tensor(locations, device=q.device)
        keys, values = (cache[seen].repeat_interleave(HEADS // KV_HEADS, 1) for cache in (flat_k, flat_v))
        scores = torch.einsum("hd,thd->ht", q[i].float(), keys) / DIM**0.5
        if bias is not None:
            distance = torch.arange(len(locations) - 1, -1, -1, device=q.device)
            scores = scores + bias[distance.clamp(max=len(bias) - 1)]
        rows.append(torch.einsum("ht,thd->hd", scores.softmax(-1), values))
    return torch.stack(rows)


def check(what, out, right):
    torch.cuda.synchronize()
    error = (out.float() - right).abs().max().item()
    is_right = error < 2e-2
    print(f"{'ok' if is_right else 'WRONG'}  {what}: largest error {error:.2e}")
    return is_right


def main():
    began = time.monotonic()
    torch.manual_seed(1)
    device = torch.device("cuda:0")
    tree = deft.Tree()
    prompt = tree.add_root(1000, location=0)
    leaves = [tree.add_child(prompt, 20 + i, location=1008 + 64 * i) for i in range(8)]
    tree.set_queries(leaves)
    att = compile_kernels(tree, device)
    print(f"kernels after {time.monotonic() - began:.1f} s")
    pages = 1008 // PAGE + 8 * 4
    table = torch.randperm(pages, dtype=torch.int32, device=device)
    q = torch.randn(8, HEADS, DIM, dtype=torch.bfloat16, device=device)
    k, v = (torch.randn(pages, PAGE, KV_HEADS, DIM, dtype=torch.bfloat16, device=device) for _ in range(2))

    def paths(extra=0):
        return [[*range(1000), *range(1008 + 64 * i, 1008 + 64 * i + 20 + i + extra)] for i in range(8)]

    results = []
    out, lse = att.run(tree, q, k, v, page_table=table, return_lse=True)
    results.append(check("attention.run", out, expected(paths(), q, k, v, table)))
    assert out.device == device and lse.dtype == torch.float32

    plan, other = att.plan(tree, device=device, runs_ahead=1), torch.empty_like(q)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        plan.run(q, k, v, table, out=other)
    results.append(check("on a stream of its own, into out", other, expected(paths(), q, k, v, table)))

    graph, captured = torch.cuda.CUDAGraph(), torch.empty_like(q)
    plan.upload()
    with torch.cuda.graph(graph):
        plan.run(q, k, v, table, out=captured)
    graph.replay()
    results.append(check("a captured graph", captured, expected(paths(), q, k, v, table)))
    torch.cuda.synchronize()
    for leaf in leaves:
        tree.append(leaf)
    plan.advance(tree)
    plan.upload()
    graph.replay()
    results.append(check("its replay after a step", captured, expected(paths(1), q, k, v, table)))
    plan.check_replays()
    results += check_reserved(att, q, k, v, table)

    tables = torch.arange(4 * 8, dtype=torch.int32, device=device).reshape(4, 8)
    tables[1:, :4] = tables[0, :4]
    lengths = [100, 101, 102, 103]
    ends = [[int(tables[r, t // PAGE]) * PAGE + t % PAGE for t in range(n)] for r, n in enumerate(lengths)]
    in_order = torch.arange(pages, device=device)
    for name, rows in (("on the device", tables), ("on the host", tables.cpu())):
        batch = deft.PagedBatch(att, max_requests=8)
        batch.update(rows, torch.tensor(lengths, dtype=torch.int32))
        results.append(check(f"a batch with its table {name}", batch.run(q[:4], k, v), expected(ends, q, k, v, in_order)))
        batch.grow(rows, [length + 1 for length in lengths])
        longer = [[*path, int(tables[r, n // PAGE]) * PAGE + n % PAGE] for r, (path, n) in enumerate(zip(ends, lengths))]
        results.append(check("its requests with a token more", batch.run(q[:4], k, v), expected(longer, q, k, v, in_order)))
    assert batch.sharing().tokens < batch.sharing().request_tokens
    results += check_scales_of_layers(tables, lengths, ends, q[:4], k, v, in_order)

    results += check_parameters_on_the_device(tree, paths(1), q, k, v, table)
    results += check_selection(tree, paths(1), q, k, v, table)
    results += check_drafts(att, q, k, v)
    results += check_rank_drafts(att, k, v)
    results += check_lengths(att, tree, lambda extra=0: paths(1 + extra), q, k, v, table)
    results += check_merged_states(att, paths(1), q, k, v, table)
    results += check_pages(att, tree, paths(1), q, k, v, table)
    results += check_repeated_pages(device)
    results += check_arrays_of_sparse_layers(device)
    results += gpu_latent.check_all(device, check)
    results += gpu_flashinfer.check_all(device, check)

    for name, bad, said in (
        ("k on the host", {"k": k.cpu()}, "k is in memory of the CPU"),
        ("q of float32", {"q": q.float()}, "q is float32"),
        ("a page table of int64", {"page_table": table.long()}, "page_table"),
    ):
        given = {"q": q, "k": k, "v": v, "page_table": table, **bad}
        results.append(is_error(name, lambda: att.run(tree, **given), said))
    print(f"{'all' if all(results) else 'NOT ALL'} of {len(results)} are right, after {time.monotonic() - began:.1f} s")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
