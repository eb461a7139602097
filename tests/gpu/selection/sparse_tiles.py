#!/usr/bin/env python3
"""How long a sparse layer takes with which tile and which cut of its lists, beside those that rules choose.

    tests/gpu/selection/sparse_tiles.py --heads 32/8 --dim 128 [--tiles 64x2x4 ...] [--templates templates] [--out rows.jsonl]

Lists are drawn by lot, one for each KV head of each query, pages lie in no order. A tile is its tokens, stages and warps; a cut
the tokens of an item. The rules are those of compiler/kernels/SparsePhase.cpp and runtime/exec/cuda/SelectingTables.cpp. What a
kernel makes is compared with softmax in float64 first. The L2 cache is evicted by reading. Needs torch and NVRTC, no build of the
project.
"""

import argparse
import concurrent.futures
import ctypes
import json
import sys

import kernels
import torch

PAGE = 64
PARTS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 20, 24, 28, 32, 48, 64)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--heads", default="32/8")
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--length", type=int, default=32768)
    parser.add_argument("--queries", type=int, nargs="+", default=[1, 2, 4, 8, 16, 32, 64])
    parser.add_argument("--budgets", type=int, nargs="+", default=[1024, 4096])
    parser.add_argument("--tiles", nargs="+", help="only these")
    parser.add_argument("--templates", default="templates")
    parser.add_argument("--commit", default="", help="of the sources, for the record")
    parser.add_argument("--out")
    return parser.parse_args()


def rows_of(ratio):
    return (ratio + 15) // 16 * 16


def rule(rows):
    """sparsePhase: tile, stages, warps, where 64 tokens fit."""
    row_warps = rows // 16
    return 64, 2, max(row_warps, 4 // row_warps * row_warps)


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


def cut_of(budget, tile, parts):
    return -(-(-(-budget // parts)) // tile) * tile


def cut_by_rule(queries, budget, tile, at_once, kv_heads):
    """SparseSplit::cut."""
    blocks = kv_heads * queries
    most = min(max(at_once // blocks, 4 if blocks <= 4 * at_once else 1), -(-budget // tile))

    def cost(cut):
        parts = -(-budget // cut)
        return -(-blocks * parts // at_once) * (cut + 192) + 4 * parts + (96 if parts > 1 else 0)
    return min((cut_of(budget, tile, parts) for parts in range(1, most + 1)), key=cost)


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
    names = {tile: "x".join(map(str, tile)) for tile in tiles(rows)}
    candidates = [tile for tile, name in names.items() if not options.tiles or name in options.tiles or tile == rule(rows)]
    with concurrent.futures.ThreadPoolExecutor(14) as pool:
        texts = [kernels.attend_text("sparse_" + names[tile], "sm80", PAGE, rows, *tile, f"static constexpr int kLists = {kernels.KV_HEADS};") for tile in candidates]
        merge_cubin = pool.submit(nvrtc.cubin, kernels.merge_text())
        cubins = list(pool.map(nvrtc.cubin, texts))
    merge = kernels.Kernel(merge_cubin.result()[0], "merge", 128)
    loaded, spilled = {}, []
    for tile, (cubin, log) in zip(candidates, cubins):
        if any(" 0 bytes spill stores" not in line for line in log.splitlines() if "spill stores" in line):
            spilled.append(names[tile])
            continue
        try:
            loaded[tile] = kernels.Kernel(cubin, "sparse_" + names[tile], 32 * tile[2])
        except SystemExit:
            continue  # more shared memory than there is
    at_once = {tile: blocks_at_once(kernel, sms) for tile, kernel in loaded.items()}
    print(f"{options.heads} heads, dim {options.dim}: {len(loaded)} tiles, {len(spilled)} that spill left out", file=sys.stderr, flush=True)
    bench = Bench()
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
            times, rule_cuts = {}, {}
            for tile, kernel in loaded.items():
                by_rule = cut_by_rule(queries, budget, tile[0], at_once[tile], kernels.KV_HEADS)
                rule_cuts[names[tile]] = by_rule
                for cut in sorted({by_rule} | {cut_of(budget, tile[0], parts) for parts in PARTS}):
                    plan = Plan(queries, budget, cut, sparse=True)
                    made = arguments(plan, layer, table, selection.device)
                    if cut == by_rule and queries == options.queries[0]:
                        layer.out.zero_()
                        attend(kernel, merge, plan, made, 0, sms)
                        torch.cuda.synchronize()
                        exact = reference(layer, table, 0, selection.positions[0], options.length, PAGE)
                        error = (layer.out[0].double() - exact).abs().max().item()
                        assert error < 2e-3, (names[tile], error)
                    us = bench.time(lambda: attend(kernel, merge, plan, made, 0, sms), 11)
                    times.setdefault(names[tile], {})[cut] = round(us, 2)
            best = min((us, name, cut) for name, of_tile in times.items() for cut, us in of_tile.items())
            row = {"card": card.name, "commit": options.commit, "command": " ".join(sys.argv), "heads": options.heads, "dim": options.dim, "queries": queries, "budget": budget,
                   "rule": names[rule(rows)], "rule_us": times[names[rule(rows)]][rule_cuts[names[rule(rows)]]], "best": best[1:], "best_us": best[0],
                   "blocks_at_once": {names[tile]: count for tile, count in at_once.items()}, "us": times}
            print(json.dumps(row), flush=True)
            if options.out:
                with open(options.out, "a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
