#!/usr/bin/env python3
"""Times of latent attention in two runs: a shared prefix read in expanded form (deft.DividedPlan), next to latents only.

256 requests over 8,192 shared tokens with 64 of their own (others by --requests, --shared, --own), DeepSeek V3's dims: latents of
512 + 64 in pages of 64, expanded K of 192 and V of 128 a head. Both sides end with [queries, heads, 128]: latents only is a run and
the multiplication by W_UV (torch.bmm), divided is two runs, the multiplication and the merge. Each is a CUDA graph; a time
is the median of its replays, the L2 cache evicted before each, as `deftc bench` has it. Results are compared with each other, and
those of some heads of some requests with float64.

  tests/gpu/expanded_nodes.py [--heads 16,64,128] [--requests N] [--shared N] [--own N] [--repeat N] [--json FILE]

Prints a line for each number of heads, and with --json writes the same. Exit code 1: a result is wrong; 3: no torch or no GPU.
"""

import argparse
import json
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools/peers"))
from graph_time import graph_time_us  # noqa: E402

LATENT, ROPE, NOPE, VALUE, PAGE = 512, 64, 128, 128, 64
SCALE = (NOPE + ROPE) ** -0.5
ABSORBED = """attention absorbed {{ query_heads = {heads}; kv_cache = latent(dim = 512, rope = 64, page_size = 64); scale = 1 / sqrt(192);
  output = bf16 with lse; }}"""
EXPANDED = """attention expanded {{ query_heads = {heads}; kv_heads = {heads}; key_dim = 192; value_dim = 128; scale = 1 / sqrt(192);
  kv_cache = paged(page_size = 64); output = bf16 with lse; }}"""


class Problem:
    """Random weights, latents whose keys are about 1, and K and V made of them."""

    def __init__(self, torch, heads, requests, shared, own):
        self.torch, self.heads, self.requests, self.shared, self.own = torch, heads, requests, shared, own
        generator = torch.Generator("cuda").manual_seed(heads)

        def draw(*shape, scale=1.0):
            return (torch.randn(*shape, device="cuda", generator=generator) * scale).bfloat16()

        self.w_uk = draw(heads, NOPE, LATENT, scale=LATENT**-0.5)
        self.w_uv = draw(heads, LATENT, VALUE, scale=LATENT**-0.5)
        own_pages = -(-own // PAGE)
        pages = shared // PAGE + requests * own_pages
        self.cache = draw(pages, PAGE, LATENT + ROPE)
        self.table = torch.randperm(pages, device="cuda", generator=generator).int()
        q_nope, q_pe = draw(requests, heads, NOPE), draw(requests, heads, ROPE)
        self.q_expanded = torch.cat([q_nope, q_pe], -1)
        self.q = torch.cat([torch.einsum("qhn,hnl->qhl", q_nope, self.w_uk), q_pe], -1)
        prefix = self.cache[self.table[: shared // PAGE].long()].flatten(0, 1)
        latents, rope = prefix[:, :LATENT], prefix[:, LATENT:]
        keys = torch.einsum("tl,hnl->thn", latents, self.w_uk)
        self.k = torch.cat([keys, rope[:, None].expand(-1, heads, -1)], -1).unflatten(0, (-1, PAGE)).contiguous()
        self.v = torch.einsum("tl,hlv->thv", latents, self.w_uv).unflatten(0, (-1, PAGE)).contiguous()
        self.expanded_table = torch.arange(shared // PAGE, dtype=torch.int32, device="cuda")
        self.own_pages = own_pages

    def tree(self, deft):
        tree = deft.Tree()
        self.prompt = tree.add_root(self.shared, location=0)
        for request in range(self.requests):
            location = self.shared + request * self.own_pages * PAGE
            tree.add_query(tree.add_child(self.prompt, self.own, location=location))
        return tree

    def right(self, request, heads):
        """(out, lse) of some heads in float64, of latents only."""
        torch = self.torch
        first = self.shared // PAGE + request * self.own_pages
        rows = torch.cat([self.table[: self.shared // PAGE], self.table[first : first + self.own_pages]]).long()
        tokens = self.cache[rows].flatten(0, 1)[: self.shared + self.own].double()
        scores = self.q[request, heads].double() @ tokens.T * SCALE
        out = torch.einsum("ht,tl,hlv->hv", scores.softmax(-1), tokens[:, :LATENT], self.w_uv[heads].double())
        return out, scores.logsumexp(-1)


def error(actual, right):
    return (actual.double() - right.double()).abs().max().item() / max(right.double().abs().max().item(), 1e-30)


def captured(torch, run):
    """A graph of a call, and the call's result; a first one outside loads what has to be loaded."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        run()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = run()
    graph.replay()
    torch.cuda.synchronize()
    return results


def measure(torch, deft, options, heads):
    problem = Problem(torch, heads, options.requests, options.shared, options.own)
    tree = problem.tree(deft)
    absorbed, expanded = deft.compile(ABSORBED.format(heads=heads)), deft.compile(EXPANDED.format(heads=heads))
    alone = absorbed.plan(tree, device="cuda")
    nodes = [deft.ExpandedNode(problem.prompt, tokens=options.shared, location=0)]
    by_price = deft.DividedPlan(absorbed, expanded, tree, nodes, device="cuda")
    divided = deft.DividedPlan(absorbed, expanded, tree, nodes, choice="all", device="cuda")
    by_price.advance([])
    began = time.perf_counter()
    by_price.advance(nodes)  # which chooses and plans both anew
    host_us = (time.perf_counter() - began) * 1e6
    latents = torch.empty(options.requests, heads, LATENT, dtype=torch.bfloat16, device="cuda")
    out = torch.empty(options.requests, heads, VALUE, dtype=torch.bfloat16, device="cuda")

    def run_alone():
        _, lse = alone.run(problem.q, problem.cache, page_table=problem.table, out=latents, return_lse=True)
        torch.bmm(latents.transpose(0, 1), problem.w_uv, out=out.transpose(0, 1))
        return out, lse

    def run_divided():
        return divided.run(
            problem.q, problem.q_expanded, problem.cache, problem.k, problem.v, problem.w_uv,
            page_table=problem.table, expanded_page_table=problem.expanded_table, return_lse=True)

    def run_absorbed_part():
        return divided.absorbed.run(problem.q, problem.cache, page_table=problem.table, return_lse=True)

    def run_expanded_part():
        return divided.expanded.run(problem.q_expanded, problem.k, problem.v, problem.expanded_table, return_lse=True)

    row = {"heads": heads, "chosen_by_price": len(by_price.chosen), "advance_us": round(host_us)}
    results = {"alone": captured(torch, run_alone), "divided": captured(torch, run_divided)}
    some = torch.arange(0, heads, max(heads // 4, 1), device="cuda")
    for name, (found, lse) in results.items():
        errors, lse_errors = [], []
        for request in sorted({0, options.requests // 2, options.requests - 1}):
            right, right_lse = problem.right(request, some)
            errors.append(error(found[request, some], right))
            lse_errors.append((lse[request, some].double() - right_lse).abs().max().item())
        row[f"{name}_error"], row[f"{name}_lse_error"] = max(errors), max(lse_errors)
    row["difference"] = error(results["divided"][0], results["alone"][0])
    # bf16 rounds q, K, V and results once each: some hundredths of the largest value; a lost node would be far more.
    row["is_right"] = all(row[f"{name}_error"] < 0.03 and row[f"{name}_lse_error"] < 0.03 for name in results) and row["difference"] < 0.04
    runs = {"alone": run_alone, "divided": run_divided, "absorbed_part": run_absorbed_part, "expanded_part": run_expanded_part}
    for name, run in runs.items():
        row[f"{name}_us"] = round(graph_time_us(torch, run, options.repeat), 1)
    pairs = options.requests * heads * options.shared
    row["expanded_tflops"] = round(2 * (NOPE + ROPE + VALUE) * pairs / row["expanded_part_us"] * 1e-6, 1)
    row["speedup"] = round(row["alone_us"] / row["divided_us"], 2)
    for name, plan in (("alone", alone), ("absorbed_part", divided.absorbed), ("expanded_part", divided.expanded)):
        row[f"{name}_plan"] = {"why": plan.choice().why, **plan.summary()._asdict()}
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--heads", default="16,64,128")
    parser.add_argument("--requests", type=int, default=256)
    parser.add_argument("--shared", type=int, default=8192)
    parser.add_argument("--own", type=int, default=64)
    parser.add_argument("--repeat", type=int, default=41)
    parser.add_argument("--json")
    options = parser.parse_args()
    if options.shared % PAGE:
        parser.error(f"--shared {options.shared} is not a multiple of {PAGE}")
    try:
        import deft
        import torch
    except ImportError as missing:
        print(f"expanded_nodes: {missing}", file=sys.stderr)
        return 3
    if not torch.cuda.is_available():
        print("expanded_nodes: there is no GPU", file=sys.stderr)
        return 3
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    record = {"device": torch.cuda.get_device_name(), "deft": deft.__version__, "torch": torch.__version__,
              "requests": options.requests, "shared": options.shared, "own": options.own, "rows": []}
    for heads in map(int, options.heads.split(",")):
        row = measure(torch, deft, options, heads)
        record["rows"].append(row)
        print(f"{heads:4} heads: latents only {row['alone_us']:8.1f} us, divided {row['divided_us']:8.1f} us ({row['absorbed_part_us']:.1f} "
              f"+ {row['expanded_part_us']:.1f}, {row['expanded_tflops']} TFLOP/s), {row['speedup']}x; errors {row['alone_error']:.4f} and "
              f"{row['divided_error']:.4f}, {'right' if row['is_right'] else 'WRONG'}; by price {row['chosen_by_price']} node(s)", flush=True)
        if options.json:  # also of what has been measured before an error
            pathlib.Path(options.json).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return 0 if all(row["is_right"] for row in record["rows"]) else 1


if __name__ == "__main__":
    sys.exit(main())
