"""The package on a GPU with torch, against torch's own attention in float32: streams, graphs, out=, tables on the device.

usage: gpu_check.py      needs the wheel installed, torch with CUDA; exit code 1 where something is wrong
"""

import sys

import deft
import torch

HEADS, KV_HEADS, DIM, PAGE = 32, 8, 128, 16
SPEC = f"attention a {{ query_heads = {HEADS}; kv_heads = {KV_HEADS}; head_dim = {DIM}; output = bf16 with lse; }}"


def check_parameters_on_the_device(tree, paths, q, k, v, table):
    """A table of biases by distance, read through the pointer that was captured."""
    att = deft.compile(SPEC.replace("a {", "a { param bias : f32[32]; score = s + bias[q_pos - kv_pos];"))
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
    select = "output = bf16 with lse; select { budget = tune(64, 4096); keep_first = 1; keep_last = 2; }"
    att = deft.compile(SPEC.replace("output = bf16 with lse;", select))
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
    torch.manual_seed(1)
    device = torch.device("cuda:0")
    att = deft.compile(SPEC)
    tree = deft.Tree()
    prompt = tree.add_root(1000, location=0)
    leaves = [tree.add_child(prompt, 20 + i, location=1008 + 64 * i) for i in range(8)]
    tree.set_queries(leaves)
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

    tables = torch.arange(4 * 8, dtype=torch.int32, device=device).reshape(4, 8)
    tables[1:, :4] = tables[0, :4]
    lengths = [100, 101, 102, 103]
    ends = [[int(tables[r, t // PAGE]) * PAGE + t % PAGE for t in range(n)] for r, n in enumerate(lengths)]
    in_order = torch.arange(pages, device=device)
    for name, rows in (("on the device", tables), ("on the host", tables.cpu())):
        batch = deft.PagedBatch(att, max_requests=8)
        batch.update(rows, torch.tensor(lengths, dtype=torch.int32))
        results.append(check(f"a batch with its table {name}", batch.run(q[:4], k, v), expected(ends, q, k, v, in_order)))
    assert batch.sharing().tokens < batch.sharing().request_tokens

    results += check_parameters_on_the_device(tree, paths(1), q, k, v, table)
    results += check_selection(tree, paths(1), q, k, v, table)

    for name, bad in (
        ("k on the host", {"k": k.cpu()}),
        ("q of float32", {"q": q.float()}),
        ("a page table of int64", {"page_table": table.long()}),
    ):
        try:
            att.run(tree, **{"q": q, "k": k, "v": v, "page_table": table, **bad})
            print(f"WRONG  {name} is taken")
            results.append(False)
        except deft.UsageError as error:
            print(f"ok  {name}: {error}")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
