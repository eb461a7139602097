#!/usr/bin/env python3
"""Which tile and which split of lists a sparse layer is fastest with, beside those that rules choose.

    tests/gpu/selection/sparse_tiles.py --heads 32/8 --dim 128 [--templates templates] [--out rows.jsonl]

Lists are drawn by lot, one for each KV head of each query, pages lie in no order. The rules are those of
compiler/kernels/SparsePhase.cpp (the tile) and runtime/exec/cuda (the split: three waves of blocks). Each row has the time of
the rules' choice, of the best tile split by the rule, and of the best of all. The L2 cache is evicted by reading. What a kernel
makes is compared with softmax in float64 first. Needs torch and NVRTC, no build of the project.
"""

import argparse
import concurrent.futures
import ctypes
import json
import sys

import kernels
import torch

PAGE, LEAST_TOKENS, WAVES = 64, 128, 3


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--heads", default="32/8")
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--length", type=int, default=32768)
    parser.add_argument("--queries", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--budgets", type=int, nargs="+", default=[1024, 4096])
    parser.add_argument("--templates", default="templates")
    parser.add_argument("--out")
    return parser.parse_args()


def rows_of(ratio):
    return (ratio + 15) // 16 * 16


def rule(rows):
    """sparsePhase: tile, stages, warps, where 64 tokens fit."""
    row_warps = rows // 16
    return 64, 2, max(max(row_warps, 2), min(4, 4) // row_warps * row_warps)


def tiles(rows):
    """Those that might be better: each warp has 16 rows, and as many tokens as the tile has for it."""
    row_warps = rows // 16
    found = {rule(rows)}
    for tokens in (16, 32, 64, 128):
        for splits in (1, 2, 4, 8):
            warps = splits * row_warps
            if tokens % (16 * splits) == 0 and warps <= 8 and tokens <= 32 * warps:
                found.update((tokens, stages, warps) for stages in (2, 3, 4) if tokens * stages <= 384)
    return sorted(found)


def split(queries, budget, tile, at_once, kv_heads):
    """SparseSplit::itemTokens."""
    items = max(WAVES * at_once // kv_heads, 1)
    most = -(-budget // max(LEAST_TOKENS, tile))
    wanted = min(max(items // queries, 1), most)
    return -(-(-(-budget // wanted)) // tile) * tile


def blocks_at_once(kernel, sms):
    count = ctypes.c_int()
    kernels.cu(kernels.CUDA.cuOccupancyMaxActiveBlocksPerMultiprocessor(
        ctypes.byref(count), kernel.function, kernel.threads, ctypes.c_size_t(kernel.smem)), "cuOccupancy")
    return count.value * sms


def main():
    options = parse_arguments()
    kernels.HEADS, kernels.KV_HEADS = map(int, options.heads.split("/"))
    kernels.DIM, kernels.RATIO = options.dim, kernels.HEADS // kernels.KV_HEADS
    from expected import reference
    from layers import Bench, Layer, Plan, Selection, arguments, attend
    torch.zeros(1, device="cuda")
    card = torch.cuda.get_device_properties(0)
    sms, rows = card.multi_processor_count, rows_of(kernels.RATIO)
    nvrtc = kernels.Nvrtc(options.templates, f"sm_{card.major}{card.minor}" + ("a" if card.major >= 9 else ""))
    candidates = tiles(rows)
    names = {tile: "sparse_" + "x".join(map(str, tile)) for tile in candidates}
    with concurrent.futures.ThreadPoolExecutor(14) as pool:
        texts = [kernels.attend_text(names[tile], "sm80", PAGE, rows, *tile, f"static constexpr int kLists = {kernels.KV_HEADS};") for tile in candidates]
        merge_cubin = pool.submit(nvrtc.cubin, kernels.merge_text())
        cubins = list(pool.map(nvrtc.cubin, texts))
    merge = kernels.Kernel(merge_cubin.result()[0], "merge", 128)
    loaded, spilled = {}, []
    for tile, (cubin, log) in zip(candidates, cubins):
        if any(" 0 bytes spill stores" not in line for line in log.splitlines() if "spill stores" in line):
            spilled.append(names[tile])
            continue
        try:
            loaded[tile] = kernels.Kernel(cubin, names[tile], 32 * tile[2])
            if blocks_at_once(loaded[tile], sms) == 0:
                raise SystemExit
        except SystemExit:
            loaded.pop(tile, None)  # more shared memory than there is
    print(f"{options.heads} heads, dim {options.dim}: {len(loaded)} tiles, {len(spilled)} that spill left out", file=sys.stderr, flush=True)
    bench = Bench()
    big = torch.zeros(32 << 20, dtype=torch.int64, device="cuda")
    bench.flush = type("Read", (), {"zero_": lambda self: big.max()})()
    torch.manual_seed(1)
    for queries in options.queries:
        layer = Layer(queries, options.length, PAGE)
        table = torch.randperm(queries * options.length // PAGE, device="cuda").int()
        for budget in options.budgets:
            selection = Selection(queries, options.length, budget, table)
            noise = torch.rand(queries, kernels.KV_HEADS, options.length, device="cuda")
            selection.positions.copy_(noise.topk(budget, dim=-1).indices.sort(dim=-1).values.int())
            selection.counts.fill_(budget)
            location = selection.positions.long() + torch.arange(queries, device="cuda")[:, None, None] * options.length
            selection.places.copy_((table[location // PAGE].long() * PAGE + location % PAGE).int())
            times = {}
            chosen = rule(rows)
            for tile, kernel in loaded.items():
                own = split(queries, budget, tile[0], blocks_at_once(kernel, sms), kernels.KV_HEADS)
                for chunk in sorted({own, 128, 256, 512, 1024}):
                    if chunk > budget or chunk % tile[0]:
                        continue
                    plan = Plan(queries, budget, chunk, sparse=True)
                    made = arguments(plan, layer, table, selection.device)
                    if chunk == own and queries == options.queries[0]:
                        layer.out.zero_()
                        attend(kernel, merge, plan, made, 0, sms)
                        torch.cuda.synchronize()
                        exact = reference(layer, table, 0, selection.positions[0], options.length, PAGE)
                        error = (layer.out[0].double() - exact).abs().max().item()
                        assert error < 2e-3, (names[tile], error)
                    us = round(bench.time(lambda: attend(kernel, merge, plan, made, 0, sms), 11), 2)
                    times[names[tile], chunk] = us
                    if chunk == own:
                        times[names[tile], "rule"] = us
            by_rule = times[names[chosen], "rule"]
            split_by_rule = {name: us for (name, chunk), us in times.items() if chunk == "rule"}
            best_tile, best = min(split_by_rule, key=split_by_rule.get), min(times, key=times.get)
            row = {"card": card.name, "heads": options.heads, "dim": options.dim, "queries": queries, "budget": budget, "rule": names[chosen],
                   "rule_us": by_rule, "best_tile": best_tile, "best_tile_us": split_by_rule[best_tile], "best": list(best), "best_us": times[best],
                   "bytes_us_at_4000_gb_s": round(queries * kernels.KV_HEADS * budget * options.dim * 4 / 4e6, 2)}
            print(json.dumps(row), flush=True)
            if options.out:
                with open(options.out, "a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
