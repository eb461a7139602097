#!/usr/bin/env python3
"""Family sm90's dense kernels over pages of 16 and 64, compiled of two folders of templates and timed in turn: has a change of
device code that is no change of the algorithm cost time?

    git archive COMMIT templates | tar x -C FOLDER
    python3 tests/gpu/template_times.py --before FOLDER/templates --commit COMMIT --out record.json

Plain kernels, light and wide, and light ones with a window; flat requests and a path that 32 queries share; pages in order
and in none. Each time is the median of graph replays with a cold L2; the two take turns. Outputs must be the same bits.
Needs torch and NVRTC, no build of the project.
"""

import argparse
import datetime
import json
import math
import pathlib
import statistics
import sys

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "selection"))
import kernels as text  # noqa: E402
from kernels import DIM, HEADS, Kernel, Nvrtc, attend_text, ints, merge_text  # noqa: E402
from layers import Bench, Layer, Plan, arguments, attend  # noqa: E402

TURNS, REPEATS = 5, 15
WINDOW = """
struct Params {};
struct Variant {
  using Params = ::Params;
  static constexpr bool kHasMask = true, kHasScore = false, kSigmoid = false, kReadsDepth = false, kReadsQuery = false;
  static constexpr float kScale = 0.088388346f;
  struct Row { int least; };
  static __device__ __forceinline__ Row row(const Params &, int q_pos, int, int, int) { return {q_pos - 1000}; }
  static __device__ __forceinline__ bool mask(const Params &, const Row &row, int kv_pos, int, int) { return kv_pos > row.least; }
  static __device__ __forceinline__ deft::TileVisibility tile(const Params &, const deft::TileBounds &b) {
    return {b.qLo - 1000 < b.kvHi, b.qHi - 1000 < b.kvLo};
  }
};
"""
#: Name, rows of a tile, stages, warps, blocks at once, whether a window hides tokens, and on which plans.
KERNELS = (
    ("light", 64, 2, 8, 2, False, (("flat", 64, 2048, 2048), ("flat", 8, 16384, 1024), ("flat", 200, 512, 512))),
    ("wide", 128, 4, 12, 1, False, (("shared", 32, 16384, 1024), ("shared", 32, 65536, 4096))),
    ("light, window", 64, 2, 8, 2, True, (("flat", 64, 2048, 2048), ("shared", 16, 16384, 1024))),
)


class Shared(Plan):
    """All queries over one path, in chunks."""

    def __init__(self, queries, length, chunk):
        super().__init__(1, length, length)
        items, runs = [], []
        chunks = [(at, min(chunk, length - at)) for at in range(0, length, chunk)]
        for number, (at, tokens) in enumerate(chunks):
            items += [0, queries, number, 1, tokens, number * queries, 0, 0]
            runs += [0, tokens, at, at, 0, 0, queries, 0]
        slots = [number * queries + query for query in range(queries) for number in range(len(chunks))]
        self.queries, self.count, self.merged = queries, len(chunks), True
        self.items, self.runs, self.order = ints(items), ints(runs), ints(range(queries))
        self.merge_begin, self.slots = ints(range(0, len(slots) + 1, len(chunks))), ints(slots)
        self.partial = torch.empty(len(slots), HEADS, DIM, dtype=torch.float16, device="cuda")
        self.partial_lse = torch.empty(len(slots), HEADS, dtype=torch.float32, device="cuda")
        self.position = ints([length - 1] * queries)


def compiled(folder, page, tile, stages, warps, has_window):
    plain = text.VARIANT
    text.VARIANT = WINDOW if has_window else plain
    try:
        nvrtc = Nvrtc(str(folder), "sm_90a")
        cubin, _ = nvrtc.cubin(attend_text("full", "sm90", page, tile, 64, stages, warps))
        return Kernel(cubin, "full", 32 * warps), Kernel(nvrtc.cubin(merge_text())[0], "merge", 128)
    finally:
        text.VARIANT = plain


def layer_of(kind, queries, length, page):
    layer = Layer(queries if kind == "flat" else 1, length, page)
    layer.q = torch.randn(queries, HEADS, DIM, dtype=torch.float16, device="cuda")
    layer.out, layer.lse = torch.zeros_like(layer.q), torch.zeros(queries, HEADS, device="cuda")
    return layer


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", required=True, type=pathlib.Path, help="a folder of templates")
    parser.add_argument("--after", default="templates", type=pathlib.Path)
    parser.add_argument("--commit", default="", help="of the templates before")
    parser.add_argument("--out", type=pathlib.Path)
    options = parser.parse_args()
    card = torch.cuda.get_device_properties(0)
    bench, rows = Bench(), []
    torch.manual_seed(3)
    for page in (16, 64):
        for name, tile, stages, warps, at_once, has_window, plans in KERNELS:
            pair = {key: compiled(folder, page, tile, stages, warps, has_window)
                    for key, folder in (("before", options.before), ("after", options.after))}
            for kind, queries, length, chunk in plans:
                for order in ("in order", "in no order"):
                    layer = layer_of(kind, queries, length, page)
                    pages = layer.k.shape[0]
                    table = (torch.arange(pages, device="cuda") if order == "in order" else torch.randperm(pages, device="cuda")).int()
                    plan = Plan(queries, length, chunk) if kind == "flat" else Shared(queries, length, chunk)
                    made, times, outputs = arguments(plan, layer, table), {key: [] for key in pair}, {}
                    for _ in range(TURNS):
                        for key, (kernel, merge) in pair.items():
                            times[key].append(bench.time(
                                lambda: attend(kernel, merge, plan, made, at_once, card.multi_processor_count), REPEATS))
                            outputs[key] = layer.out.clone()
                    assert torch.equal(outputs["before"], outputs["after"]), "other bits"
                    medians = {f"{key}_us": round(statistics.median(values), 2) for key, values in times.items()}
                    spread = max(max(values) / min(values) - 1 for values in times.values())
                    rows.append({"page": page, "kernel": name, "plan": f"{kind}, {queries} queries, {length} tokens", "pages": order,
                                 **medians, "spread": round(spread, 4), "ratio": round(medians["after_us"] / medians["before_us"], 4)})
                    print(json.dumps(rows[-1]), flush=True)
    ratios = [row["ratio"] for row in rows]
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    print(f"after / before: {mean:.4f} in the geometric mean, {min(ratios):.3f} to {max(ratios):.3f}")
    if options.out:
        record = {"device": card.name, "date": datetime.date.today().isoformat(), "before": options.commit,
                  "command": " ".join(["tests/gpu/template_times.py", *sys.argv[1:]]), "mean_ratio": round(mean, 4), "rows": rows}
        options.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
