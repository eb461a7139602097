#!/usr/bin/env python3
"""Selection and sparse attention on a GPU: checked against torch, and timed beside full attention.

    python3 tests/gpu/select_check.py --templates templates --out record.json

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
import ctypes
import json
import struct
import sys

import torch

HEADS, KV_HEADS, DIM, PAGE = 32, 8, 128, 64
RATIO = HEADS // KV_HEADS
SCALE = 0.088388346

VARIANT = """
struct Params {};
struct Variant {
  using Params = ::Params;
  static constexpr bool kHasMask = false, kHasScore = false, kSigmoid = false;
  static constexpr float kScale = 0.088388346f;
  struct Row {};
  static __device__ __forceinline__ Row row(const Params &, int, int, int, int) { return {}; }
};
"""


def attend_text(entry, family, page, tile_q, tile_kv, stages, warps, extra=""):
    bounds = ", deft::sm90::Layout<Config>::kBlocksAtOnce" if family == "sm90" else ""
    return f"""#include "deft/attend_{family}.cuh"
namespace {{ {VARIANT}
struct Config {{
  using Query = deft::f16; using Key = deft::f16; using Value = deft::f16; using Output = deft::f16;
  static constexpr int kQueryHeads = {HEADS}, kKvHeads = {KV_HEADS}, kRatio = {RATIO};
  static constexpr int kKeyDim = {DIM}, kValueDim = {DIM}, kPageSize = {page};
  static constexpr bool kWithLse = true, kIsDealt = false;
  static constexpr int kTileQ = {tile_q}, kTileKv = {tile_kv}, kStages = {stages}, kWarps = {warps};
  {extra}
}};
}}
__device__ int deft_smem = deft::{family}::smemBytes<Config>();
extern "C" __global__ void __launch_bounds__(32 * Config::kWarps{bounds})
{entry}(const __grid_constant__ deft::abi::AttendArgs args, const __grid_constant__ Params params) {{
  deft::{family}::attend<Config, Variant>(args, params);
}}
"""


MERGE_TEXT = f"""#include "deft/merge.cuh"
namespace {{
struct Config {{
  using Query = deft::f16; using Key = deft::f16; using Value = deft::f16; using Output = deft::f16;
  static constexpr int kQueryHeads = {HEADS}, kKvHeads = {KV_HEADS}, kRatio = {RATIO};
  static constexpr int kKeyDim = {DIM}, kValueDim = {DIM};
  static constexpr bool kWithLse = true;
}};
}}
__device__ int deft_smem = 0;
extern "C" __global__ void __launch_bounds__(128) merge(const __grid_constant__ deft::abi::MergeArgs args) {{
  deft::merge<Config, false>(args);
}}
"""


def select_text(entry, blocks, page, cached):
    peers = "deft::select::BlockAlone" if blocks == 1 else f"deft::select::BlockCluster<{blocks}>"
    return f"""#include "deft/select.cuh"
#include "deft/select/block_alone.cuh"
#include "deft/select/block_cluster.cuh"
namespace {{
struct Config {{
  using Peers = {peers};
  static constexpr int kGroups = {KV_HEADS}, kLists = {KV_HEADS}, kPageSize = {page};
  static constexpr int kThreads = 1024, kCachedKeys = {cached};
}};
}}
__device__ int deft_smem = deft::select::Select<Config>::kSmemBytes;
extern "C" __global__ void __launch_bounds__(1024) {entry}(const __grid_constant__ deft::abi::SelectArgs args) {{
  deft::select::Select<Config>::run(args);
}}
"""


class Nvrtc:
    def __init__(self, templates, arch):
        self.templates, self.arch = templates, arch
        names = ["libnvrtc.so.13", "libnvrtc.so", "/usr/local/cuda/lib64/libnvrtc.so", "libnvrtc.so.12"]
        for name in names:
            try:
                self.lib = ctypes.CDLL(name)
                break
            except OSError:
                continue
        else:
            raise SystemExit("NVRTC is not found")

    def cubin(self, text):
        lib, program, size = self.lib, ctypes.c_void_p(), ctypes.c_size_t()
        lib.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"k.cu", 0, None, None)
        options = [f"-arch={self.arch}", "-std=c++20", "-I" + self.templates, "--diag-suppress=177", "--ptxas-options=-v"]
        array = (ctypes.c_char_p * len(options))(*[o.encode() for o in options])
        status = lib.nvrtcCompileProgram(program, len(options), array)
        lib.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        lib.nvrtcGetProgramLog(program, log)
        if status != 0:
            raise SystemExit(log.value.decode()[:5000])
        lib.nvrtcGetCUBINSize(program, ctypes.byref(size))
        cubin = ctypes.create_string_buffer(size.value)
        lib.nvrtcGetCUBIN(program, cubin)
        return cubin.raw, log.value.decode()


class Attribute(ctypes.Structure):
    _fields_ = [("id", ctypes.c_uint), ("pad", ctypes.c_uint), ("value", ctypes.c_uint * 16)]


class LaunchConfig(ctypes.Structure):
    _fields_ = [("grid", ctypes.c_uint * 3), ("block", ctypes.c_uint * 3), ("shared", ctypes.c_uint),
                ("stream", ctypes.c_void_p), ("attributes", ctypes.POINTER(Attribute)), ("count", ctypes.c_uint)]


CUDA = ctypes.CDLL("libcuda.so.1")


def cu(status, what):
    if status != 0:
        raise SystemExit(f"{what} failed with {status}")


class Kernel:
    def __init__(self, cubin, entry, threads):
        module, self.function, at, size = (ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_size_t())
        cu(CUDA.cuModuleLoadData(ctypes.byref(module), cubin), "cuModuleLoadData")
        cu(CUDA.cuModuleGetFunction(ctypes.byref(self.function), module, entry.encode()), "cuModuleGetFunction")
        cu(CUDA.cuModuleGetGlobal_v2(ctypes.byref(at), ctypes.byref(size), module, b"deft_smem"), "cuModuleGetGlobal")
        smem = ctypes.c_int()
        cu(CUDA.cuMemcpyDtoH_v2(ctypes.byref(smem), at, ctypes.c_size_t(4)), "cuMemcpyDtoH")
        self.smem, self.threads = smem.value, threads
        if self.smem > 48 << 10:
            cu(CUDA.cuFuncSetAttribute(self.function, 8, self.smem), "cuFuncSetAttribute")

    def launch(self, grid, parameters, cluster=1, dependent=False):
        """`parameters`: ctypes buffers."""
        array = (ctypes.c_void_p * len(parameters))(*[ctypes.addressof(p) for p in parameters])
        attributes = (Attribute * 2)()
        count = 0
        if cluster > 1:
            attributes[count].id = 4
            attributes[count].value[0:3] = [cluster, 1, 1]
            count += 1
        if dependent:
            attributes[count].id = 6
            attributes[count].value[0] = 1
            count += 1
        config = LaunchConfig((grid, 1, 1), (self.threads, 1, 1), self.smem,
                              torch.cuda.current_stream().cuda_stream, attributes, count)
        cu(CUDA.cuLaunchKernelEx(ctypes.byref(config), self.function, array, None), "cuLaunchKernelEx")


def buffer(size, fields, align=64):
    """A zeroed struct with {offset: (format, values...)}."""
    raw = ctypes.create_string_buffer(size + align)
    start = -ctypes.addressof(raw) % align
    made = (ctypes.c_char * size).from_buffer(raw, start)
    made.keep = raw
    for offset, (form, *values) in fields.items():
        struct.pack_into("<" + form, made, offset, *values)
    return made


def ints(values):
    return torch.tensor(values, dtype=torch.int32, device="cuda").contiguous()


def tensor_map(tensor, sizes, strides, box):
    made = buffer(128, {})
    rank = len(sizes)
    cu(CUDA.cuTensorMapEncodeTiled(ctypes.byref(made), 6, rank, ctypes.c_void_p(tensor.data_ptr()),
                                   (ctypes.c_uint64 * rank)(*sizes), (ctypes.c_uint64 * (rank - 1))(*strides[1:]),
                                   (ctypes.c_uint32 * rank)(*box), (ctypes.c_uint32 * rank)(*[1] * rank), 0, 3, 2, 0),
       "cuTensorMapEncodeTiled")
    return bytes(made)


def boxes(pool, page):
    """The maps of AttendArgs::kBoxes of a pool [pages, page, KV heads, dim]."""
    token, head = 2 * KV_HEADS * DIM, 2 * DIM
    pages = pool.shape[0]
    tokens = page if page > 1 else pages
    made = b""
    for taken in (16, 32):
        sizes, strides, box = [DIM, KV_HEADS, tokens], [2, head, token], [64, 1, taken]
        if page > 1:
            sizes, strides, box = sizes + [pages], strides + [page * token], box + [1]
        made += tensor_map(pool, sizes, strides, box)
    if page % 64 == 0:
        return made + tensor_map(pool, [64, tokens, 2, KV_HEADS, pages], [2, token, 128, head, page * token],
                                 [64, 64, 2, 1, 1])
    return made + bytes(128)


class Plan:
    """Queries that share nothing, each over a path of its own in chunks; partials are merged, where there are
    several. Sparse: chunks of a list."""

    def __init__(self, queries, length, chunk, sparse=False, location=0):
        items, runs, slots, begin = [], [], [], [0]
        for query in range(queries):
            chunks = [(at, min(chunk, length - at)) for at in range(0, length, chunk)]
            for at, tokens in chunks:
                partial = len(items) if len(chunks) > 1 else -1
                if sparse:
                    items += [query, 1, query, 0, tokens, partial if partial < 0 else len(slots), 0, at]
                else:
                    items += [query, 1, len(runs) // 8, 1, tokens, partial if partial < 0 else len(slots), 0, 0]
                    runs += [0, tokens, location + query * length + at, at, 0, 0, 1, 0]
                if partial >= 0:
                    slots.append(len(slots))
            begin.append(len(slots))
        self.queries, self.count = queries, len(items) // 8
        self.items, self.runs = ints(items), ints(runs or [0] * 8)
        self.merged = len(slots) > 0
        self.order = ints(range(queries))
        self.merge_begin, self.slots = ints(begin), ints(slots or [0])
        self.partial = torch.empty(max(len(slots), 1), HEADS, DIM, dtype=torch.float16, device="cuda")
        self.partial_lse = torch.empty(max(len(slots), 1), HEADS, dtype=torch.float32, device="cuda")
        self.position = ints([length - 1] * queries)


class Layer:
    """Keys, values and queries; a page table that puts pages in no order."""

    def __init__(self, queries, length, page, pages=None):
        count = pages or queries * length // page
        self.k = torch.randn(count, page, KV_HEADS, DIM, dtype=torch.float16, device="cuda")
        self.v = torch.randn(count, page, KV_HEADS, DIM, dtype=torch.float16, device="cuda")
        self.q = torch.randn(queries, HEADS, DIM, dtype=torch.float16, device="cuda")
        self.out = torch.zeros(queries, HEADS, DIM, dtype=torch.float16, device="cuda")
        self.lse = torch.zeros(queries, HEADS, dtype=torch.float32, device="cuda")
        self.page = page
        self.maps = boxes(self.k, page) + boxes(self.v, page)


def arguments(plan, layer, table, selected=None, page=None):
    page = page or layer.page
    token, head = KV_HEADS * DIM // 16, DIM // 16
    places = (page * token, token, head)
    made = buffer(960, {
        0: ("5Q", plan.items.data_ptr(), plan.runs.data_ptr(), plan.order.data_ptr(), table.data_ptr(), layer.q.data_ptr()),
        40: ("6i", 0, plan.count, 1 if page == layer.page else 0, 0, 0, 0),
        64: ("7Q", plan.position.data_ptr(), layer.k.data_ptr(), layer.v.data_ptr(), layer.out.data_ptr(),
             layer.lse.data_ptr(), plan.partial.data_ptr(), plan.partial_lse.data_ptr()),
        120: ("2i", HEADS * DIM, HEADS * DIM), 128: ("6I", *places, *places),
        152: ("Q", selected.data_ptr() if selected is not None else 0)})
    ctypes.memmove(ctypes.addressof(made) + 192, layer.maps, len(layer.maps))
    merge = buffer(88, {
        0: ("8Q", layer.out.data_ptr(), layer.lse.data_ptr(), plan.partial.data_ptr(), plan.partial_lse.data_ptr(),
            plan.order.data_ptr(), plan.order.data_ptr(), plan.merge_begin.data_ptr(), plan.slots.data_ptr()),
        64: ("2i2Q", plan.queries, HEADS * DIM, 0, 0)})
    return made, merge


class Selection:
    def __init__(self, queries, length, budget, table, first=4, last=64, stretches=1):
        self.queries, self.length, self.budget, self.first, self.last = queries, length, budget, first, last
        self.stride = (length + 3) // 4 * 4
        self.worth = torch.zeros(queries, KV_HEADS, self.stride, dtype=torch.int32, device="cuda")
        self.positions = torch.zeros(queries, KV_HEADS, budget, dtype=torch.int32, device="cuda")
        self.places, self.counts = torch.zeros_like(self.positions), ints([0] * queries * KV_HEADS)
        paths = []
        for query in range(queries):
            paths += [0, length, query * length, 0]
        self.paths, self.begin, self.table = ints(paths), ints(range(queries + 1)), table
        raw = struct.pack("<7Q2i", self.worth.data_ptr(), self.paths.data_ptr(), self.begin.data_ptr(), table.data_ptr(),
                          self.positions.data_ptr(), self.places.data_ptr(), self.counts.data_ptr(), self.stride, budget)
        self.device = torch.frombuffer(bytearray(raw), dtype=torch.uint8).cuda()
        self.args = buffer(80, {0: ("64s", raw), 64: ("3i", queries, first, last)})

    def run(self, kernel, blocks, dependent=False):
        kernel.launch(self.queries * KV_HEADS * blocks, [self.args], cluster=blocks, dependent=dependent)


EMPTY = buffer(64, {})


class Bench:
    def __init__(self):
        self.flush = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")

    def time(self, work, repeats=15):
        """Median microseconds of a graph of `work`, with a cold L2."""
        work()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            work()
        times = []
        for _ in range(repeats):
            self.flush.zero_()
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            graph.replay()
            end.record()
            end.synchronize()
            times.append(1000 * begin.elapsed_time(end))
        return sorted(times)[len(times) // 2]


def attend(kernel, merge_kernel, plan, made, blocks_at_once, sms):
    args, merge = made
    grid = min(plan.count * KV_HEADS, blocks_at_once * sms) if blocks_at_once else plan.count * KV_HEADS
    kernel.launch(grid, [args, EMPTY])
    if plan.merged:
        merge_kernel.launch(plan.queries * HEADS, [merge], dependent=True)


def keys_in_order(worth):
    """Unsigned keys as int64."""
    return worth.to(torch.int64) & 0xFFFFFFFF


def expected_lists(worth, length, budget, first, last):
    """What a sort puts first, by numpy: another program than the kernel."""
    import numpy as np

    keys = keys_in_order(worth).cpu().numpy()[..., :length]
    lists = []
    for row in keys.reshape(-1, length):
        row = row.copy()
        kept = np.zeros(length, bool)
        kept[:first] = kept[length - last:] = True
        row[kept & (row > 0)] = 1 << 40
        order = np.argsort(-row, kind="stable")[:budget]
        lists.append(np.sort(order[row[order] > 0]))
    return lists


def reference(layer, table, query, positions_of_group, length, page):
    """Softmax in float64 of a query over positions of its path, a list a KV head."""
    outs = []
    for group in range(KV_HEADS):
        positions = positions_of_group[group].long() + query * length
        token = table[positions // page].long() * page + positions % page
        k = layer.k.view(-1, KV_HEADS, DIM)[token, group].double()
        v = layer.v.view(-1, KV_HEADS, DIM)[token, group].double()
        q = layer.q[query, group * RATIO:(group + 1) * RATIO].double()
        outs.append(torch.softmax(q @ k.T * SCALE, -1) @ v)
    return torch.cat(outs)


def recall(length, budget, structured):
    """Of the mass of each head's softmax, and of each head's own best tokens: the share that a list by the
    group's largest score has, and one by the sum of its scores."""
    torch.manual_seed(3)
    k = torch.randn(KV_HEADS, length, DIM, device="cuda")
    if structured:  # keys about few directions, which a group's heads seek each in its own way
        centres = torch.randn(KV_HEADS, 64, DIM, device="cuda") * 1.5
        k = k + centres[:, torch.randint(64, (length,), device="cuda")]
        q = torch.stack([centres[:, torch.randint(64, (RATIO,), device="cuda")][:, i] for i in range(RATIO)], 1)
        q = q + 0.5 * torch.randn_like(q)
    else:
        q = torch.randn(KV_HEADS, RATIO, DIM, device="cuda") * 3
    scores = torch.einsum("grd,gtd->grt", q, k) * SCALE
    mass = torch.softmax(scores.double(), -1)
    own = scores.topk(budget, -1).indices
    row = {}
    for name, worth in (("maximum", scores.amax(1)), ("sum", scores.sum(1))):
        chosen = torch.zeros(KV_HEADS, length, dtype=torch.bool, device="cuda")
        chosen.scatter_(1, worth.topk(budget, -1).indices, True)
        wide = chosen[:, None].expand_as(scores)
        share = (mass * wide).sum(-1)
        row[name] = {"mass_mean": share.mean().item(), "mass_least": share.min().item(),
                     "own_best": wide.gather(2, own).double().mean().item()}
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--templates", default="templates")
    parser.add_argument("--out")
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
        "merge": (MERGE_TEXT, 128),
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
    record = {"card": card.name, "registers": {}, "checks": {}, "selection": [], "sparse": [], "layers": [], "recall": {}}
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
