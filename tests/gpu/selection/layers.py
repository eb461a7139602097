"""Layers, plans of queries that share nothing, lists, and times of what runs over them."""

import ctypes
import struct

import torch
from kernels import DIM, HEADS, KV_HEADS, boxes, buffer, ints


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
        self.flush = torch.zeros(32 << 20, dtype=torch.int64, device="cuda")

    def time(self, work, repeats=15):
        """Median microseconds of a graph of `work`, with a cold L2."""
        work()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            work()
        times = []
        for _ in range(repeats):
            self.flush.max()  # reads: lines that are to be written back would be in a kernel's way
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
