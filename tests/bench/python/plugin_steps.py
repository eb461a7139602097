"""What a step of decoding costs the host in each plug-in, Python included: from the engine's metadata to a plan that is uploaded.

Requests grow by a token a step, as in a captured graph; `joins` has another request in the place of one in each step, in vLLM behind
all others. The engines
and the GPU are the tests' stand-ins, whose memory is the host's. So no wait for a GPU is in it, nor are the launches of the gather of
pages by which SGLang's steps begin. Other programs on the machine are in the 99th percentile, unless all steps are made several
times (--runs), of which each step's shortest counts.

usage: LD_LIBRARY_PATH=FOLDER PYTHONPATH=PACKAGES plugin_steps.py [--steps 400] [--runs 1] [--profile] [vllm|sglang ...]
FOLDER: of the tests' driver, build/dev/tests/support/fake_cuda. PACKAGES: build/dev/runtime/python, and torch
"""

import argparse
import cProfile
import gc
import os
import pstats
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
os.environ["DEFT_FAKE_CUDA_VARIANT"] = "4,2,64,16,bf16,0.125"

import torch

HEADS, KV_HEADS, DIM, PAGE, MOST_TOKENS = 4, 2, 64, 16, 8192
SHARED, OWN = 4096, 96  # tokens of a request when steps begin
LAYERS = 32


class Requests:
    """Their pages as the engine's host has them, a row each, and lengths."""

    def __init__(self, count, shared):
        self.shared, self.next = shared, 1 + shared // PAGE
        self.table = torch.zeros((count, MOST_TOKENS // PAGE), dtype=torch.int32)
        self.lengths = torch.zeros(count, dtype=torch.int32)
        self.order, self.fresh, self.given = [], set(), {}  # given: those that got pages and have not been told of, by row
        for row in range(count):
            self.begin(row)

    def begin(self, row):
        self.order = [*(other for other in self.order if other != row), row]  # behind all others, as in vLLM
        self.fresh.add(row)
        self.table[row, : self.shared // PAGE] = torch.arange(1, 1 + self.shared // PAGE, dtype=torch.int32)
        self.lengths[row] = self.shared
        own = OWN + 5 * row % PAGE  # new pages come in different steps
        self.give(row, -(-own // PAGE))
        self.lengths[row] += own

    def give(self, row, pages):
        first = -(-int(self.lengths[row]) // PAGE)
        self.table[row, first : first + pages] = torch.arange(self.next, self.next + pages, dtype=torch.int32)
        self.next += pages
        self.given[row] = first + pages

    def grow(self):
        for row in (self.lengths % PAGE == 0).nonzero().flatten().tolist():
            self.give(row, 1)
        self.lengths += 1


class OfVllm:
    def __init__(self, monkeypatch, requests):
        import vllm_fakes

        next(vllm_fakes.registry._get_wrapped_function()(monkeypatch))
        from deft.vllm.backend import DeftBackend
        from deft.vllm.host_tables import _made

        count = len(requests.lengths)
        impl = DeftBackend.get_impl_cls()
        layers = {f"layer{i}": SimpleNamespace(impl=impl(HEADS, DIM, DIM**-0.5, KV_HEADS)) for i in range(LAYERS)}
        config = vllm_fakes.config_of(layers)
        config.scheduler_config.max_num_seqs, config.model_config.max_model_len = count, MOST_TOKENS
        config.cache_config.num_gpu_blocks = None
        spec = SimpleNamespace(block_size=PAGE, dtype=torch.bfloat16)
        self.builder = DeftBackend.get_builder_cls()(spec, list(layers), config, torch.device("cuda", 0))
        self.on_gpu, self.requests = requests.table.clone(), requests
        ends = torch.zeros(1, count, dtype=int).numpy()
        self.tables = SimpleNamespace(input_block_tables=[self.on_gpu], num_blocks=SimpleNamespace(np=ends))
        _made(self.tables)
        self.starts, self.slots = torch.arange(count + 1, dtype=torch.int32), torch.zeros(count)
        self.prepare()
        self.builder.build_for_cudagraph_capture(self.given)

    def prepare(self):
        from deft.vllm.host_tables import _appended, _gathered

        requests, ends = self.requests, self.tables.num_blocks.np[0]
        for row, end in requests.given.items():
            begin = 0 if row in requests.fresh else ends[row]
            ends[row] = end
            _appended(self.tables, row, (requests.table[row, begin:end].tolist(),), row in requests.fresh)
        requests.given, requests.fresh = {}, set()
        order = torch.tensor(requests.order)
        self.tables.deft_announced = (order, order.numpy())
        _gathered(self.tables, order, len(order))
        count, lengths = len(order), requests.lengths[order]
        self.on_gpu.copy_(requests.table[order])
        self.given = SimpleNamespace(
            query_start_loc_cpu=self.starts, seq_lens=lengths, seq_lens_cpu_upper_bound=lengths, num_reqs=count,
            num_actual_tokens=count, max_query_len=1, max_seq_len=int(lengths.max()), block_table_tensor=self.on_gpu,
            slot_mapping=self.slots, causal=True,
        )  # fmt: skip

    def step(self):
        self.builder.build(0, self.given)


class OfSglang:
    def __init__(self, monkeypatch, requests):
        import sglang_fakes

        next(sglang_fakes.registry._get_wrapped_function()(monkeypatch))
        count = len(requests.lengths)
        self.requests, self.mode = requests, sglang_fakes.mode("decode")
        self.names = [f"request {row}" for row in range(count)]
        self.backend, self.runner = sglang_fakes.make(
            PAGE, device="cuda:0", max_total_num_tokens=count * MOST_TOKENS, dtype=torch.bfloat16, kv_cache_dtype=torch.bfloat16,
            req_to_token_pool=SimpleNamespace(req_to_token=torch.zeros((count, MOST_TOKENS), dtype=torch.int32)),
        )  # fmt: skip
        made = torch.zeros
        with monkeypatch.context() as here:
            here.setattr(torch, "zeros", lambda *sizes, device=None, **more: made(*sizes, **more))
            self.backend.init_cuda_graph_state(count, count)
        table = requests.table
        self.backend._planner._table = lambda rows, lengths: table[:, : -(-int(lengths.max()) // PAGE)]  # by the GPU
        # The first run says which variants there are, as capturing does.
        from deft.sglang.planner import variant_of

        layer = sglang_fakes.layer(0, qk_head_dim=DIM, v_head_dim=DIM)
        self.prepare()
        steps = self.backend._planner.plan_graph(self.given.req_pool_indices, self.given.seq_lens_cpu)
        steps._of(variant_of(layer, PAGE, torch.bfloat16, torch.bfloat16))

    def prepare(self):
        count = len(self.requests.lengths)
        for row in self.requests.fresh:
            self.names[row] = f"another request {row}"
        self.requests.fresh = set()
        self.given = SimpleNamespace(
            batch_size=count, forward_mode=self.mode, req_pool_indices=torch.arange(count), seq_lens=self.requests.lengths,
            seq_lens_cpu=self.requests.lengths, rids=[*self.names],
        )  # fmt: skip

    def step(self):
        self.runner.forward(self.given, self.backend.init_forward_metadata_out_graph)


ENGINES = {"vllm": OfVllm, "sglang": OfSglang}


def measure(engine, count, shared, joins, steps, profile, cold=None):
    """Of each step, in order."""
    monkeypatch = pytest.MonkeyPatch()
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: SimpleNamespace(cuda_stream=0))
    try:
        requests = Requests(count, shared)
        made = ENGINES[engine](monkeypatch, requests)
        times, spent = [], cProfile.Profile()
        for number in range(steps + 50):
            requests.grow()
            if joins:
                requests.begin(number % count)
            made.prepare()
            if profile:
                spent.enable()
            begin = time.perf_counter()
            made.step()
            times.append(time.perf_counter() - begin)
            spent.disable()
        if profile:
            pstats.Stats(spent).sort_stats("tottime").print_stats(25)
        return times[50:]
    finally:
        monkeypatch.undo()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("engines", nargs="*", default=[*ENGINES])
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--cold", action="store_true", help="64 MB are written ahead of each step, as a model's layers fill the caches")
    parser.add_argument("--runs", type=int, default=1, help="of each step the shortest of so many counts")
    options = parser.parse_args()
    gc.disable()
    cold = torch.zeros(1 << 23, dtype=torch.float64) if options.cold else None
    for engine in options.engines:
        for count in (32, 256):
            for shared in (SHARED, 0):
                for joins in (False, True):
                    runs = [measure(engine, count, shared, joins, options.steps, options.profile, cold) for _ in range(options.runs)]
                    times = sorted(map(min, zip(*runs)))
                    name = f"{count} requests, {shared} shared tokens" + (", joins" if joins else "")
                    print(f"{engine:7}{name:45} median {1e3 * times[len(times) // 2]:7.3f} ms, "
                          f"99th percentile {1e3 * times[len(times) * 99 // 100]:7.3f} ms", flush=True)


if __name__ == "__main__":
    main()
