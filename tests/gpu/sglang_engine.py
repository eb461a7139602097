#!/usr/bin/env python3
"""An offline SGLang engine with deft's attention beside the same engine with its own (fa3, triton).

A model of `--layers` layers with random weights, which lie in a file that every engine reads, once for each backend, eagerly and
with CUDA graphs: a Llama of Llama-3-8B's dimensions, or with `--kind deepseek` one with latent attention of DeepSeek-V2-Lite's.
`fa3+deft` is deft with prompts of fa3. Needs SGLang (0.5.12 to 0.5.23), deft with its entry point `sglang.srt.plugins` beside it
and a GPU; nothing is downloaded. The models, the requests and the comparison are those of vllm_engine.py.

- Tokens: 32 greedy requests that share 500 tokens and have 1 to 63 of their own, 64 tokens each. Where two backends choose
  different tokens, the gap in the first one's log probabilities says whether that was a tie in --dtype.
- Throughput, prompts in the prefix cache: 16 samples of one prompt of 4,096 tokens (n16); 32 requests on 4,096 shared
  tokens with 32 of their own (few_shot); 32 requests of 1,024 tokens that share nothing (alone). `--rates` names others, the
  rollouts of vllm_engine.py among them.
- With --host-times 32,256 so many requests decode while others join, and the record has how long the host makes the metadata of
  attention, inside the engine: of steps of decoding, and of those in which requests join. `waits` is how long a plan of a step waits for
  the GPU, which is in none of the others.

  tests/gpu/sglang_engine.py [--dtype bfloat16] [--layers 8] [--modes eager,graphs] [--backends fa3,triton,deft] [--json FILE]
  tests/gpu/sglang_engine.py --layers 32 --modes graphs --backends fa3,deft --rates rollout_64x8k,rollout_128x16k

The first of --backends that runs and is not deft is what the others are held against.

Exit code 1: an engine failed, or a token of deft's differs that was no tie. 3: no SGLang or no GPU.
"""

import json
import os
import sys
import tempfile
import time
from pathlib import Path

import host_times
import sglang_host_times
import workers
from engine_models import MODELS
from vllm_engine import TIES, can_run, compare, different_tokens, held_against, is_sampled, kept, model_in_a_file, parser_of, rate_of, rates_text, show, tokens, without_tokens, workloads

DEFT = "deft"
GRAPH_SIZES = [1, 2, 4, 8, 16, 24, 32]
LEAST_CACHE_TOKENS = 65536  # 8 GiB of 32 layers in 16 bits


class Needs:
    """What an engine needs for some workloads, and as many requests of the host's times."""

    def __init__(self, prepared, counts=()):
        self.requests = max([len(prompts) * samples for prompts, samples, _ in prepared.values()] + list(counts))
        self.longest = max(len(prompts[0]) + length for prompts, _, length in prepared.values())
        tokens = max(different_tokens(prompts) + len(prompts) * samples * (length + 64) for prompts, samples, length in prepared.values())
        self.cache_tokens = max(LEAST_CACHE_TOKENS, tokens)
        self.graph_sizes = [*GRAPH_SIZES, *range(64, self.requests + 1, 32)]


def graphs_of(mode, sizes):
    """Arguments of an engine: eager, graphs (of decoding alone), or default (of prompts as well, as SGLang has it)."""
    if mode == "eager":
        return {"disable_cuda_graph": True}
    prompts = {"prefill": {"backend": "disabled"}} if mode == "graphs" else {}
    return {"cuda_graph_config": {"decode": {"bs": sizes}, **prompts}}


def arguments_of(backend, mode, needs, options):
    prompts, _, decoding = backend.rpartition("+")
    return {
        "model_path": options.model, "skip_tokenizer_init": True, "dtype": options.dtype, "kv_cache_dtype": options.kv_cache_dtype,
        "attention_backend": decoding, **({"prefill_attention_backend": prompts} if prompts else {}),
        "sampling_backend": "pytorch", "grammar_backend": "none", "page_size": options.page_size, "context_length": max(8192, needs.longest + 64), "max_running_requests": needs.requests, "max_total_tokens": needs.cache_tokens,
        "mem_fraction_static": 0.7, "random_seed": 0, "log_level": "info", **graphs_of(mode, needs.graph_sizes),
    }


def logprobs_of(output):
    """Of each generated token: the chosen one and the best five, by token."""
    known = output["meta_info"]
    steps = zip(known["output_top_logprobs"], known["output_token_logprobs"], strict=True)
    return [{token: logprob for logprob, token, _ in [*best, chosen]} for best, chosen in steps]


def work(backend, mode, options):
    os.environ.update(SGLANG_IS_FLASHINFER_AVAILABLE="false", HF_HUB_OFFLINE="1")
    import sglang
    import torch

    rates = [name for name in options.rates.split(",") if name]
    prepared = workloads(rates)
    prepared = {name: prepared[name] for name in ("tokens", *rates)}
    counts = [int(count) for count in options.host_times.split(",") if count]
    folder = tempfile.TemporaryDirectory()
    calls = sglang_host_times.install(folder.name) if counts else None
    began = time.perf_counter()
    engine = sglang.Engine(**arguments_of(backend, mode, Needs(prepared, counts), options))
    result = {"backend": backend, "mode": mode, "dtype": options.dtype, "kv_cache_dtype": options.kv_cache_dtype, "kind": options.kind, "layers": options.layers,
              "page_size": options.page_size, "start_s": round(time.perf_counter() - began, 1), "sglang": sglang.__version__,
              "torch": torch.__version__, "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu", "rates": {}}

    def generate(name, length=None, **asked):
        prompts, samples, whole = prepared[name]
        params = {"n": samples, "temperature": float(is_sampled(name, samples)), "max_new_tokens": length or whole, "ignore_eos": True}
        began = time.perf_counter()
        outputs = engine.generate(input_ids=prompts, sampling_params=params, **asked)
        taken = time.perf_counter() - began
        return outputs, taken, sum(len(output["output_ids"]) for output in outputs)

    outputs, _, _ = generate("tokens", return_logprob=True, top_logprobs_num=5)
    result["tokens"] = [output["output_ids"] for output in outputs]
    result["logprobs"] = [logprobs_of(output) for output in outputs]
    for name in rates:
        rate, outputs = rate_of(name, generate, options.repeat)
        result["rates"][name] = {**rate, "cached_tokens": sum(output["meta_info"]["cached_tokens"] for output in outputs)}
        if name == "few_shot":
            result["few_shot_tokens"] = [output["output_ids"] for output in outputs]
    if counts:
        result["host"] = sglang_host_times.host_of(engine, calls, counts, tokens)
    engine.shutdown()
    return result


def run_worker(options, backend, mode):
    arguments = ["--worker", backend, mode, "--model", options.model, "--dtype", options.dtype, "--kv-cache-dtype", options.kv_cache_dtype,
                 "--layers", str(options.layers), "--repeat", str(options.repeat), "--page-size", str(options.page_size), "--kind", options.kind,
                 "--rates", options.rates, "--host-times", options.host_times]
    result, said = workers.result_of(__file__, arguments, options, f"{backend} {mode}")
    if options.log:
        lines = [line for line in said.splitlines() if "deft" in line.lower() or "attention" in line.lower()]
        print("\n".join(line[:400] for line in lines[-12:]), flush=True)
    return result


def is_deft(result):
    return result["backend"].rpartition("+")[2] == DEFT


def run_all(options):
    failed, record, first = False, [], None
    for mode in options.modes.split(","):
        seen = []
        for backend in options.backends.split(","):
            result = run_worker(options, backend, mode)
            if result is None:
                failed = True
                continue
            seen.append(result)
            print(f"{mode}: {backend}: {rates_text(result)}; started in {result['start_s']} s", flush=True)
            if "host" in result:
                print(host_times.text_of(result["host"]), flush=True)
            record.append(without_tokens(result))
        own = next((result for result in seen if not is_deft(result)), None)
        if own is None:
            continue
        if first and first["backend"] == own["backend"]:
            show(mode, f"{own['backend']} beside itself in the first mode", compare(first, own))
        first = first or own
        for other in seen:
            if other is not own:
                record.append(held_against(mode, own["backend"], own, other["backend"], other))
                failed |= is_deft(other) and record[-1]["compared"]["gap_where_they_differ"] > TIES[options.dtype]
    return failed, record


def main():
    parser = parser_of(__doc__)
    parser.add_argument("--page-size", type=int, default=16)
    parser.add_argument("--modes", default="eager,graphs", help="eager, graphs (of decoding), default (of prompts as well)")
    parser.add_argument("--backends", default=f"fa3,triton,{DEFT}")
    parser.add_argument("--rates", default="n16,few_shot,alone", help="workloads that are timed")
    parser.add_argument("--host-times", default="", help="numbers of requests for which the host's times are taken")
    parser.add_argument("--timeout", type=int, default=400, help="seconds an engine may take")
    options = parser.parse_args()
    if options.worker:
        options.out.write_text(json.dumps(work(*options.worker, options)))
        return 0
    if not can_run("sglang"):
        return 3
    with model_in_a_file(options):
        (Path(options.model) / "config.json").write_text(json.dumps(MODELS[options.kind].config(options.layers, options.dtype)))
        return kept(options, *run_all(options))


if __name__ == "__main__":
    sys.exit(main())
