#!/usr/bin/env python3
"""Selection and sparse attention on a GPU: checked against torch, and timed beside full attention.

    python3 tests/gpu/selection/check.py --templates templates --out record.json

What is checked, for head dim 128, f16, 32 query heads over 8 KV heads:
- a full attention that gives worth has the bits of one that does not; worth is q.k in float64, to rounding;
- a selection has what a sort of the very same keys puts first, ties by position;
- sparse attention is softmax in float64 over the lists.
What is timed, a graph at a time with a cold L2: selection beside torch.topk; sparse attention beside a dense one
over as many tokens with pages of one; 32 layers (2 full, 2 that select, 28 sparse) beside 32 full ones. Layers
take turns in caches of their own, so that nothing is left in L2. Needs torch and NVRTC, no build of the project.
"""

import argparse
import concurrent.futures
import json
import sys

import torch
from expected import expected_lists, keys_in_order, recall, reference
from kernels import DIM, KV_HEADS, PAGE, RATIO, SCALE, Kernel, Nvrtc, attend_text, merge_text, select_text
from layers import Bench, Layer, Plan, Selection, arguments, attend


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--templates", default="templates")
    parser.add_argument("--out")
    parser.add_argument("--commit", default="", help="of the sources, for the record")
    options = parser.parse_args()
    torch.cuda.init()
    torch.zeros(1, device="cuda")
    card = torch.cuda.get_device_properties(0)
    sms = card.multi_processor_count
    nvrtc = Nvrtc(options.templates, f"sm_{card.major}{card.minor}" + ("a" if card.major >= 9 else ""))
    texts = {
        "full": (attend_text("full", "sm90", PAGE, 64, 64, 2, 8), 256),
        "giving": (attend_text("giving", "sm90", PAGE, 64, 64, 2, 8, "static constexpr int kWorthGroups = 8;"), 256),
        "dense1": (attend_text("dense1", "sm90", 1, 64, 64, 2, 8), 256),
        "dense1_sm80": (attend_text("dense1_sm80", "sm80", 1, 16, 64, 3, 4), 128),
        "merge": (128),
    }
    shapes = {"64x3x4": (64, 3, 4), "64x2x4": (64, 2, 4), "32x4x2": (32, 4, 2), "128x2x8": (128, 2, 8), "64x4x4": (64, 4, 4)}
    for name, (tile, stages, warps) in shapes.items():
        entry = "sparse_" + name
        texts[entry] = (attend_text(entry, "sm80", PAGE, 16, tile, stages, warps, "static constexpr int kLists = 8;"), 32 * warps)
    for blocks, cached in ((1, 51200), (2, 51200), (4, 32768), (8, 16384)):
        texts[f"select{blocks}"] = (select_text(f"select{blocks}", blocks, PAGE, cached), 1024)
    with concurrent.futures.ThreadPoolExecutor(14) as pool:
        cubins = dict(zip(texts, pool.map(lambda item: nvrtc.cubin(item[0]), texts.values())))
    kernels = {name: Kernel(cubins[name][0], name, threads) for name, (_, threads) in texts.items()}
    record = {"card": card.name, "commit": options.commit, "command": " ".join(sys.argv), "registers": {}, "checks": {},
              "selection": [], "sparse": [], "layers": [], "recall": {}}
    for name, (_, log) in cubins.items():
        words = log.split("Used ")[-1].split(" registers")[0]
        record["registers"][name] = {"registers": words, "smem": kernels[name].smem,
                                     "spills": [line.strip() for line in log.splitlines() if "spill" in line][-1:]}
    bench = Bench()
    print("compiled", flush=True)

    def note(kind, row):
        record[kind].append(row) if isinstance(record[kind], list) else record[kind].update(row)
        print(kind, json.dumps(row), flush=True)
        if options.out:
            with open(options.out, "w") as file:
                json.dump(record, file, indent=1)

    def best_chunk(kernel, queries, length, layer, table, page, blocks_at_once=2):
        best = None
        for waves in (1, 2, 3):
            chunk = -(-length * queries * KV_HEADS // (waves * blocks_at_once * sms) // 64) * 64
            plan = Plan(queries, length, chunk)
            made = arguments(plan, layer, table, page=page)
            us = bench.time(lambda: attend(kernel, kernels["merge"], plan, made, blocks_at_once, sms), 9)
            if best is None or us < best[0]:
                best = us, plan
        return best

    # --- right? ----------------------------------------------------------------------------------
    torch.manual_seed(1)
    queries, length, budget = 3, 10240, 1024
    layer = Layer(queries, length, PAGE)
    table = torch.randperm(queries * length // PAGE, device="cuda").int()
    selection = Selection(queries, length, budget, table)
    plan = Plan(queries, length, 1024)
    plain, giving = arguments(plan, layer, table), arguments(plan, layer, table, selection.device)
    attend(kernels["full"], kernels["merge"], plan, plain, 2, sms)
    torch.cuda.synchronize()
    before = layer.out.clone()
    for blocks in (1, 2, 4, 8):
        selection.worth.zero_()
        attend(kernels["giving"], kernels["merge"], plan, giving, 2, sms)
        torch.cuda.synchronize()
        assert torch.equal(layer.out, before), "giving worth changes the output"
        worth = selection.worth.clone()
        selection.run(kernels[f"select{blocks}"], blocks)
        torch.cuda.synchronize()
        assert int(selection.worth.abs().sum()) == 0, "worth is not left as it was"
        lists = expected_lists(worth, length, budget, selection.first, selection.last)
        got = selection.positions.view(-1, budget).cpu()
        for at, positions in enumerate(lists):
            assert got[at].tolist() == positions.tolist() + [-1] * (budget - len(positions)), f"list {at}, {blocks} blocks"
    keys = keys_in_order(worth)[0, 0, :length]
    bits = torch.where(keys >= 1 << 31, keys - (1 << 31), 0xFFFFFFFF - keys)
    scores = torch.where(bits >= 1 << 31, bits - (1 << 32), bits).int().view(torch.float32).double()
    token = table[torch.arange(length, device="cuda") // PAGE].long() * PAGE + torch.arange(length, device="cuda") % PAGE
    exact = (layer.q[0, :RATIO].double() @ layer.k.view(-1, KV_HEADS, DIM)[token, 0].double().T * SCALE).amax(0)
    note("checks", {"worth_error": (scores - exact).abs().max().item()})
    assert record["checks"]["worth_error"] < 1e-4
    places = table[(selection.positions.long() + torch.arange(queries, device="cuda")[:, None, None] * length) // PAGE].long() * PAGE \
        + selection.positions.long() % PAGE
    assert torch.equal(places.int(), selection.places), "places"
    for name in shapes:
        sparse_plan = Plan(queries, budget, 256, sparse=True)
        made = arguments(sparse_plan, layer, table, selection.device)
        layer.out.zero_()
        attend(kernels["sparse_" + name], kernels["merge"], sparse_plan, made, 0, sms)
        torch.cuda.synchronize()
        worst = max((layer.out[q].double() - reference(layer, table, q, selection.positions[q], length, PAGE)).abs().max().item()
                    for q in range(queries))
        note("checks", {f"sparse_{name}_error": worst})
        assert worst < 2e-3, name
    # lists with fewer tokens than the budget: ties, NaN, infinities, hidden ones
    special = Selection(2, 10240, 4096, table)
    generator = torch.Generator(device="cuda").manual_seed(5)
    values = (torch.randint(0, 3, special.worth.shape, generator=generator, device="cuda") + 0x7000).int()
    values[torch.rand(values.shape, generator=generator, device="cuda") < 0.8] = 0
    for blocks in (1, 8):
        special.worth.copy_(values)
        special.run(kernels[f"select{blocks}"], blocks)
        torch.cuda.synchronize()
        for at, positions in enumerate(expected_lists(values, 10240, 4096, 4, 64)):
            assert special.positions.view(-1, 4096)[at].tolist() == positions.tolist() + [-1] * (4096 - len(positions))
    note("checks", {"lists": "as a sort has them, by 1, 2, 4 and 8 blocks"})
    del layer, selection, special

    # --- selection beside torch.topk ---------------------------------------------------------------
    for queries, length, budget in ((8, 32768, 4096), (1, 32768, 4096), (1, 65536, 2048), (8, 65536, 512), (8, 102400, 4096), (1, 102400, 4096)):
        table = torch.arange(queries * length // PAGE, device="cuda").int()
        selection = Selection(queries, length, budget, table)
        scores = torch.randn(queries * KV_HEADS, length, device="cuda") * 2
        bits = scores.view(torch.int32)
        keys = torch.where(bits < 0, ~bits, bits | -(1 << 31)).view(queries, KV_HEADS, length)
        row = {"queries": queries, "length": length, "budget": budget}

        def refill():  # the kernel clears what it has read: the copy is timed apart
            selection.worth.copy_(keys)

        copy = bench.time(refill)
        for blocks in (1, 2, 4, 8):
            def work():
                refill()
                selection.run(kernels[f"select{blocks}"], blocks)
            row[f"select{blocks}_us"] = bench.time(work) - copy
        row["copy_us"] = copy
        row["topk_us"] = bench.time(lambda: torch.topk(scores, budget, dim=-1, sorted=False))
        note("selection", row)

    # --- sparse beside dense of as many tokens, and 32 layers ---------------------------------------
    memory = card.total_memory * 0.6
    for length in (10240, 32768, 102400):
        for queries in (1, 8):
            budget = 4096
            each = 2 * 2 * queries * length * KV_HEADS * DIM
            count = max(2, min(8, int(memory // each)))
            layers = [Layer(queries, length, PAGE) for _ in range(count)]
            table = torch.randperm(queries * length // PAGE, device="cuda").int()
            selection = Selection(queries, length, budget, table)
            full_us, full_plan = best_chunk(kernels["full"], queries, length, layers[0], table, PAGE)
            giving_args = arguments(full_plan, layers[2 % count], table, selection.device)
            giving_us = bench.time(lambda: attend(kernels["giving"], kernels["merge"], full_plan, giving_args, 2, sms))
            blocks = 4 if queries == 1 else 2

            def step_of(kind, plan, kernel, made):
                attend(kernel, kernels["merge"], plan, made, 0 if kind == "sparse" else 2, sms)

            def both():
                step_of("giving", full_plan, kernels["giving"], giving_args)
                selection.run(kernels[f"select{blocks}"], blocks)
            with_select_us = bench.time(both)
            # dense, pages of one, as many tokens: the first of each query's path, in no order
            dense_table = torch.randperm(queries * budget, device="cuda").int()
            dense = {}
            for name, at_once in (("dense1", 2), ("dense1_sm80", 0)):
                for chunk in (128, 256, 512):
                    plan = Plan(queries, budget, chunk)
                    made = arguments(plan, layers[0], dense_table, page=1)
                    dense[f"{name}_{chunk}"] = bench.time(lambda: attend(kernels[name], kernels["merge"], plan, made, at_once, sms), 9)
            sparse = {}
            for name in shapes:
                for chunk in (128, 256, 512):
                    plan = Plan(queries, budget, chunk, sparse=True)
                    made = arguments(plan, layers[0], table, selection.device)
                    us = bench.time(lambda: attend(kernels["sparse_" + name], kernels["merge"], plan, made, 0, sms), 9)
                    sparse[f"{name}_{chunk}"] = us
            best = min(sparse, key=sparse.get)
            row = {"queries": queries, "length": length, "budget": budget, "full_us": full_us, "giving_us": giving_us,
                   "giving_and_select_us": with_select_us, "dense_us": min(dense.values()),
                   "dense_best": min(dense, key=dense.get), "sparse_us": sparse[best], "sparse_best": best,
                   "sparse_over_dense": sparse[best] / min(dense.values()),
                   "select_over_full": (with_select_us - full_us) / full_us, "all": {**sparse, **dense}}
            note("sparse", row)
            shape, chunk = best.rsplit("_", 1)
            sparse_plan = Plan(queries, budget, int(chunk), sparse=True)
            full_args = [arguments(full_plan, one, table) for one in layers]
            give_args = [arguments(full_plan, one, table, selection.device) for one in layers]
            sparse_args = [arguments(sparse_plan, one, table, selection.device) for one in layers]

            def all_full():
                for at in range(32):
                    step_of("full", full_plan, kernels["full"], full_args[at % count])

            def tidal():
                for at in range(32):
                    if at < 2:
                        step_of("full", full_plan, kernels["full"], full_args[at % count])
                    elif at in (2, 13):
                        step_of("giving", full_plan, kernels["giving"], give_args[at % count])
                        selection.run(kernels[f"select{blocks}"], blocks)
                    else:
                        step_of("sparse", sparse_plan, kernels["sparse_" + shape], sparse_args[at % count])

            full32, tidal32 = bench.time(all_full, 7), bench.time(tidal, 7)
            note("layers", {"queries": queries, "length": length, "budget": budget, "caches": count, "full_us": full32,
                            "selecting_us": tidal32, "ratio": tidal32 / full32})
            del layers, selection, full_args, give_args, sparse_args
            torch.cuda.empty_cache()

    for name, structured in (("random", False), ("structured", True)):
        for budget in (256, 1024, 4096):
            note("recall", {f"{name}_{budget}_of_32768": recall(32768, budget, structured)})


if __name__ == "__main__":
    sys.exit(main())
