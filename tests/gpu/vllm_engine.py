#!/usr/bin/env python3
"""An offline vLLM engine with deft's attention beside the same engine with its own (FLASH_ATTN).

A model of `--layers` layers with random weights, once for each backend, eagerly and with CUDA graphs of decoding: a Llama of
Llama-3-8B's dimensions, or with `--kind deepseek` one with latent attention of DeepSeek-V2-Lite's, whose own backend is
FLASH_ATTN_MLA. Needs vLLM (0.22 to 0.33), the deftc wheel beside it and a GPU; nothing is downloaded.

- Tokens: 32 greedy requests that share 500 tokens and have 1 to 63 of their own, 64 tokens each. Where the two backends
  choose different tokens, the gap in the own backend's log probabilities says whether that was a tie in --dtype.
- Throughput, prompts in the prefix cache: 16 samples of one prompt of 4,096 tokens (n16); 32 requests on 4,096 shared
  tokens with 32 of their own (few_shot); 32 requests of 1,024 tokens that share nothing (alone). `--rates` names others:
  rollouts of 200 tokens (64 or 128 samples of a prompt of 8,192, 16,384 or 32,768 tokens, 16 of each of 16 prompts of 8,192)
  are rollout_64x8k to rollout_128x32k and grpo_16x16x8k; those that begin after 500 or 1,000 own tokens of each sample are
  rollout_64x8k_after500 and so on. Those of 128 samples need --cache 40. The own tokens are random. They end each sample's
  prompt and lie in the prefix cache. An offline engine tells no times of single tokens, so the time is that of a call
  for 201 tokens less that of a call for one: what hashes prompts and fills the last page cancels.

  tests/gpu/vllm_engine.py [--dtype bfloat16] [--layers 8] [--modes eager,graphs] [--tensor-parallel 2 [--ranks-only]] [--json FILE]

The first of --backends is what the others are held against. A backend may name its cache: `CUSTOM:fp8`. So which of two caches of
8 bits is nearer to 16, and how far the two are apart, is told by

  tests/gpu/vllm_engine.py --modes graphs --backends FLASH_ATTN,CUSTOM,CUSTOM:fp8,FLASH_ATTN:fp8 --pairs
  tests/gpu/vllm_engine.py --kind deepseek --modes graphs --backends FLASH_ATTN_MLA,CUSTOM,CUSTOM:fp8,TRITON_MLA:fp8,CUSTOM:fp8_ds_mla

and `CUSTOM:fp8:fp8_e4m3` also has products of 8 bits, of a q that vLLM quantizes as it does for FLASH_ATTN:fp8:

  tests/gpu/vllm_engine.py --modes graphs --backends FLASH_ATTN,FLASH_ATTN:fp8,CUSTOM:fp8,CUSTOM:fp8:fp8_e4m3 --pairs

With --host-times 32,256 so many requests decode while others join, and the record has how long the host makes the metadata of
attention in each step, median and 99th percentile; in the engine's process, what the build waits for included. A second round says
which part of the plug-in takes what, with calls of the driver timed by themselves (`driver_us`).

With --drafts N the engine guesses N tokens by n-grams of its text, for all backends alike.

With --tensor-parallel N, on a machine of as many GPUs, the weights lie in a file that each rank takes its part of, and a run
of deft on one GPU comes first, whose tokens those on N are held against; with --ranks-only, those of the own backend on N.
With --dcp N these N also split the tokens of each request (decode context parallelism), --interleave of them at a time; for models
with one KV head:

  tests/gpu/vllm_engine.py --kind deepseek --dcp 2 --modes graphs --rates n16,few_shot,alone
  tests/gpu/vllm_engine.py --kind one_kv_head --dcp 2 --modes graphs --interleave 16

Exit code 1: a token differs that was no tie. 3: no vLLM or no GPU.
"""

import argparse
import contextlib
import functools
import importlib.metadata
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import host_times
from engine_models import MODELS, VOCABULARY, give_weights, write_weights

DEFT = "CUSTOM"
GRAPH_SIZES = [1, 2, 4, 8, 16, 24, 32]
# Prompts, their tokens, samples of each.
ROLLOUTS = {f"rollout_{samples}x{size}k": (1, size << 10, samples) for samples in (64, 128) for size in (8, 16, 32)} | {"grpo_16x16x8k": (16, 8192, 16)}
AFTER = "_after"  # then own tokens that each sample of a rollout has already
NEW = 200  # tokens of each sample that are measured
TIES = {"bfloat16": 1 / 8, "float16": 1 / 64}  # two steps of a logit between 8 and 16


def tokens(count, seed):
    """Random ones, which every process finds alike."""
    chosen = random.Random(seed)
    return [chosen.randrange(3, VOCABULARY) for _ in range(count)]


def own_before(name):
    """Tokens of its own that each sample of a workload has before the measured ones."""
    return int(name.partition(AFTER)[2] or 0)


def rollout(name):
    """Samples with tokens of their own are prompts that begin alike. Their first new token is not measured."""
    prompts, length, samples = ROLLOUTS[name.partition(AFTER)[0]]
    shared, own = [tokens(length, 400 + i) for i in range(prompts)], own_before(name)
    if not own:
        return shared, samples, NEW
    return [prompt + tokens(own, 1000 * (i + 1) + sample) for i, prompt in enumerate(shared) for sample in range(samples)], 1, 1 + NEW


def workloads(names=()):
    """Name: prompts, and how many samples and tokens of each."""
    shared, few_shot = tokens(500, 1), tokens(4096, 2)
    return {name: rollout(name) for name in names if name.partition(AFTER)[0] in ROLLOUTS} | {
        "tokens": ([shared + tokens(1 + 2 * i, 100 + i) for i in range(32)], 1, 64),
        "n16": ([tokens(4096, 3)], 16, 256),
        "few_shot": ([few_shot + tokens(32, 200 + i) for i in range(32)], 1, 256),
        "alone": ([tokens(1024, 300 + i) for i in range(32)], 1, 256),
    }


def is_sampled(name, samples):
    """Whether each sample draws its tokens; else they are the most likely ones."""
    return samples > 1 or own_before(name) > 0


def different_tokens(prompts):
    """Counts the tokens of prompts. Where a prompt begins like the one before it, these tokens count once."""
    alike = (sum(1 for _ in itertools.takewhile(lambda two: two[0] == two[1], zip(*two))) for two in itertools.pairwise(prompts))
    return sum(map(len, prompts)) - sum(alike)


def rate_of(name, generate, repeat):
    """What a workload takes, and the last outputs. `generate` gives outputs, seconds and how many tokens."""
    generate(name)  # fills the prefix cache, makes kernels
    times = []
    for _ in range(repeat):
        start_s = generate(name, length=1)[1] if own_before(name) else 0
        outputs, taken, count = generate(name)
        times.append(taken - start_s)
    taken = min(times)
    measured = count - len(outputs) * bool(own_before(name))
    return {"tokens_s": round(measured / taken, 1), "step_ms": round(1e3 * taken * len(outputs) / measured, 3), "times_s": [round(one, 3) for one in times]}, outputs


def work(backend, mode, options):
    os.environ.update(VLLM_ENABLE_V1_MULTIPROCESSING="0", VLLM_NO_USAGE_STATS="1", HF_HUB_OFFLINE="1",
                      VLLM_USE_FLASHINFER_SAMPLER="0")
    import torch
    import vllm

    folder = Path(options.model or tempfile.mkdtemp())
    (folder / "config.json").write_text(json.dumps(MODELS[options.kind].config(options.layers, options.dtype)))
    more = {"enforce_eager": True}
    rates = [name for name in options.rates.split(",") if name]
    counts = [int(count) for count in options.host_times.split(",") if count]
    prepared = workloads(rates)
    requests = max([len(prompts) * samples for prompts, samples, _ in prepared.values()] + counts)
    longest = max(len(prompts[0]) + length for prompts, _, length in prepared.values())
    if mode != "eager":
        sizes = [size * (1 + options.drafts) for size in GRAPH_SIZES + list(range(64, requests + 1, 32))]
        more = {"compilation_config": {"cudagraph_capture_sizes": sizes}}
    if mode == "graphs":  # of whole steps, and no torch.compile
        more["compilation_config"].update(mode=0, cudagraph_mode="FULL_DECODE_ONLY")
    began = time.perf_counter()
    if options.block_size:
        more["block_size"] = options.block_size
    if options.drafts:
        more["speculative_config"] = {"method": "ngram", "num_speculative_tokens": options.drafts, "prompt_lookup_max": 4, "prompt_lookup_min": 1}
    if options.products:
        more["additional_config"] = {"deft": {"products": options.products}}
    if options.dcp > 1:
        more.update(decode_context_parallel_size=options.dcp, cp_kv_cache_interleave_size=options.interleave)
    llm = vllm.LLM(str(folder), load_format="auto" if options.model else "dummy", tensor_parallel_size=options.ranks,
                   skip_tokenizer_init=True, dtype=options.dtype, attention_backend=backend, kv_cache_dtype=options.kv_cache_dtype,
                   max_model_len=max(8192, longest + 64), max_num_seqs=requests, kv_cache_memory_bytes=options.cache << 30,
                   generation_config="vllm", **more)
    if not options.model:
        llm.apply_model(give_weights(options.kind))
    result = {"backend": backend, "mode": mode,
              **{name: getattr(options, name) for name in ("kind", "ranks", "dcp", "interleave", "dtype", "kv_cache_dtype", "layers", "drafts",
                                                                "products")},
              "start_s": round(time.perf_counter() - began, 1), "device": torch.cuda.get_device_name(), "vllm": vllm.__version__,
              "torch": torch.__version__, "rates": {}}

    def generate(name, length=None, **asked):
        prompts, samples, whole = prepared[name]
        params = vllm.SamplingParams(n=samples, temperature=float(is_sampled(name, samples)), max_tokens=length or whole, ignore_eos=True,
                                     detokenize=False, **asked)
        began = time.perf_counter()
        done = llm.generate([{"prompt_token_ids": prompt} for prompt in prompts], params, use_tqdm=False)
        taken = time.perf_counter() - began
        outputs = [output for request in done for output in request.outputs]
        return outputs, taken, sum(len(output.token_ids) for output in outputs)

    outputs, _, _ = generate("tokens", logprobs=5)
    result["tokens"] = [list(output.token_ids) for output in outputs]
    result["logprobs"] = [[{token: known.logprob for token, known in step.items()} for step in output.logprobs]
                          for output in outputs]
    for name in rates:
        result["rates"][name], outputs = rate_of(name, generate, options.repeat)
        if name == "few_shot":
            result["few_shot_tokens"] = [list(output.token_ids) for output in outputs]
    if counts:
        watch = host_times.Watch(1 + options.drafts)
        llm.collective_rpc(watch.wrap_all)
        params_of = lambda length: vllm.SamplingParams(temperature=0.0, max_tokens=length, ignore_eos=True, detokenize=False)
        result["host"], result["driver_us"] = {}, host_times.driver_calls()
        for count in counts:
            drive = functools.partial(host_times.drive, llm.llm_engine, watch, host_times.prompts_of(count, tokens), count, params_of)
            result["host"][str(count)] = {**drive(), "sections": drive(sections=host_times.Sections())}
    return result


def compare(own, other):
    """What the other's tokens are beside those of the own backend. What follows a token that differs has another text, so of log
    probabilities the mean is of the first token's alone, which all requests have."""
    differ, worst_gap, worst_difference, agreed = 0, 0.0, 0.0, 0
    firsts = [abs(mine[0][str(token[0])] - theirs[0][str(token[0])])
              for token, mine, theirs in zip(own["tokens"], own["logprobs"], other["logprobs"]) if str(token[0]) in theirs[0]]
    for mine, theirs, my_logs, their_logs in zip(own["tokens"], other["tokens"], own["logprobs"], other["logprobs"]):
        for step, (a, b) in enumerate(zip(mine, theirs)):
            if a != b:
                at = my_logs[step]
                worst_gap = max(worst_gap, at[str(a)] - at.get(str(b), float("-inf")))
                differ += 1
                break
            agreed += 1
            worst_difference = max(worst_difference, abs(my_logs[step][str(a)] - their_logs[step][str(a)]))
    return {"requests": len(own["tokens"]), "requests_that_differ": differ, "tokens_that_agree": agreed,
            "gap_where_they_differ": round(worst_gap, 5), "logprob_difference": round(worst_difference, 5),
            "first_logprob_difference": round(sum(firsts) / max(1, len(firsts)), 5)}


def run_worker(options, backend, mode, ranks=1):
    """`backend`: its name, NAME:CACHE or NAME:CACHE:PRODUCTS."""
    backend, cache, products = [*backend.split(":"), "", ""][:3]
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        command = [sys.executable, __file__, "--worker", backend, mode, "--out", file.name, "--kv-cache-dtype", cache or options.kv_cache_dtype,
                   "--ranks", str(ranks), "--dcp", str(options.dcp if ranks > 1 else 1), "--products", products]
        for name in ("kind", "dtype", "layers", "repeat", "model", "block_size", "drafts", "rates", "cache", "host_times", "interleave"):
            command += ["--" + name.replace("_", "-"), str(getattr(options, name))]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            print(f"{backend} {mode} failed with {done.returncode}:\n" + done.stdout[-options.tail:], flush=True)
            return None
        if options.log:
            lines = [line for line in done.stdout.splitlines() if "deft" in line.lower() or "attention" in line.lower()]
            print("\n".join(lines[-12:]), flush=True)
        return json.loads(Path(file.name).read_text())


def show(mode, name, compared):
    print(f"{mode}: {name}: {compared['requests'] - compared['requests_that_differ']} of {compared['requests']} requests have "
          f"the same tokens, {compared['tokens_that_agree']} tokens agree, gap where they differ "
          f"{compared['gap_where_they_differ']}, log probabilities differ by up to {compared['logprob_difference']}, "
          f"{compared['first_logprob_difference']} in the mean of first tokens", flush=True)


def rates_text(result):
    return ", ".join(f"{name} {rate['tokens_s']:.0f} tokens/s ({rate['step_ms']} ms a step)"
                     for name, rate in result["rates"].items())


def without_tokens(result):
    return {key: value for key, value in result.items() if key not in ("tokens", "logprobs", "few_shot_tokens")}


@contextlib.contextmanager
def model_in_a_file(options):
    with tempfile.TemporaryDirectory() as folder:
        options.model = folder
        write_weights(options.kind, Path(folder), options.layers, options.dtype)
        yield


def run_ranks(options):
    """deft on one GPU and on several, and the own backend on several. Whether all is right, and the record."""
    record, right, own = [], True, MODELS[options.kind].own
    with model_in_a_file(options):
        for mode in options.modes.split(","):
            seen = {}
            runs = [(DEFT, 1)] * (not options.ranks_only) + [(DEFT, options.tensor_parallel), (own, options.tensor_parallel)]
            for backend, ranks in runs:
                result = seen[backend, ranks] = run_worker(options, backend, mode, ranks)
                if result is None:
                    return False, record
                print(f"{mode}: {backend} on {ranks}: {rates_text(result)}; started in {result['start_s']} s", flush=True)
                record.append(without_tokens(result))
            beside = (own, options.tensor_parallel) if options.ranks_only else (DEFT, 1)
            compared = compare(seen[beside], seen[DEFT, options.tensor_parallel])
            show(mode, f"{DEFT} on {options.tensor_parallel} beside {beside[0]} on {beside[1]}", compared)
            right &= compared["gap_where_they_differ"] <= TIES[options.dtype]
            ratios = {name: round(rate["tokens_s"] / seen[own, options.tensor_parallel]["rates"][name]["tokens_s"], 3)
                      for name, rate in seen[DEFT, options.tensor_parallel]["rates"].items()}
            print(f"{mode}: throughput as a multiple of {own} on as many: {ratios}", flush=True)
            record.append({"mode": mode, "dtype": options.dtype, "backend": DEFT, "ranks": options.tensor_parallel, "dcp": options.dcp,
                           "interleave": options.interleave, "ratios": ratios, "beside": "{} on {}".format(*beside), "compared": compared})
    return right, record


def held_against(mode, own_name, own, name, other):
    compared = compare(own, other)
    show(mode, f"{name} beside {own_name}", compared)
    alike = [sum(1 for _ in itertools.takewhile(lambda two: two[0] == two[1], zip(mine, theirs)))
             for mine, theirs in zip(own.get("few_shot_tokens", []), other.get("few_shot_tokens", []))]  # tokens, until one differs
    same = sum(count == len(mine) for count, mine in zip(alike, own.get("few_shot_tokens", [])))
    ratios = {rate: round(other["rates"][rate]["tokens_s"] / own["rates"][rate]["tokens_s"], 3) for rate in own["rates"]}
    print(f"{mode}: {name}: few_shot: {same} of {len(alike)} requests have the same tokens, {min(alike, default=0)} of a request at least; "
          f"throughput as a multiple: {ratios}", flush=True)
    return {"mode": mode, "dtype": other["dtype"], "backend": name, "beside": own_name, "compared": compared, "few_shot_same": same,
            "few_shot_alike": alike, "ratios": ratios}


def run_all(options):
    """Whether an engine failed, or deft's tokens are not those of the first backend over the same kind of cache; and the record."""
    failed, record, first = False, [], None
    names = options.backends.split(",")
    for mode in options.modes.split(","):
        seen = {}
        for name in names:
            result = run_worker(options, name, mode)
            if result is None:
                failed = True
                continue
            print(f"{mode}: {name}: {rates_text(result)}; started in {result['start_s']} s", flush=True)
            if "host" in result:
                print(host_times.text_of(result["host"]), flush=True)
            record.append(without_tokens(result))
            for other_name, other in seen.items():
                if other_name != names[0] and not options.pairs:
                    continue
                record.append(held_against(mode, other_name, other, name, result))
                is_alike = other_name == names[0] and other["kv_cache_dtype"] == result["kv_cache_dtype"] and not result.get("products")
                failed |= result["backend"] == DEFT and is_alike and record[-1]["compared"]["gap_where_they_differ"] > TIES[options.dtype]
            seen[name] = result
        if names[0] in seen and first:
            show(mode, f"{names[0]} beside itself in the first mode", compare(first, seen[names[0]]))
        first = first or seen.get(names[0])
    return failed, record


def parser_of(about):
    """What the programs for engines are all told."""
    parser = argparse.ArgumentParser(description=about.split("\n")[0])
    parser.add_argument("--dtype", choices=sorted(TIES), default="bfloat16")
    parser.add_argument("--kv-cache-dtype", default="auto", help="auto, fp8_e4m3, fp8_e5m2: of all backends, each rounds differently")
    parser.add_argument("--kind", choices=sorted(MODELS), default="llama", help="of model")
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--log", action="store_true", help="what the engines say of attention")
    parser.add_argument("--tail", type=int, default=6000, help="characters of the output of an engine that fails")
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--model", default="", help=argparse.SUPPRESS)
    return parser


def can_run(engine):
    """Whether it is installed and has a GPU; else the reason is said."""
    try:
        import torch

        importlib.metadata.version(engine)  # importing an engine takes up to 25 s
    except ImportError as error:
        print(f"skipped: {error}")
        return False
    if not torch.cuda.is_available():
        print("skipped: no GPU")
        return False
    return True


def kept(options, failed, record):
    """The record, where one was asked for; the exit code."""
    if options.json:
        options.json.write_text(json.dumps(record, indent=1) + "\n")
    return int(failed)


def main():
    parser = parser_of(__doc__)
    parser.add_argument("--modes", default="eager,graphs", help="eager, graphs (of whole steps), default (vLLM's own choice)")
    parser.add_argument("--block-size", type=int, default=0, help="tokens of a page; 0: the backend's own choice")
    parser.add_argument("--backends", default=f"{{own}},{DEFT}", help="NAME, NAME:CACHE or NAME:CACHE:PRODUCTS; others, such as TRITON_ATTN, show what two backends differ by")
    parser.add_argument("--drafts", type=int, default=0, help="tokens that the engine guesses in a step")
    parser.add_argument("--rates", default="n16,few_shot,alone", help="workloads that are timed")
    parser.add_argument("--host-times", default="", help="numbers of requests for which the host's times are taken")
    parser.add_argument("--cache", type=int, default=8, help="GB of K and V")
    parser.add_argument("--pairs", action="store_true", help="each backend beside each, not beside the first alone")
    parser.add_argument("--tensor-parallel", type=int, default=1, help="how many GPUs")
    parser.add_argument("--dcp", type=int, default=1, help="how many GPUs, which split heads and also the tokens of requests")
    parser.add_argument("--interleave", type=int, default=1, help="with --dcp: tokens that lie on a GPU before the next one's turn")
    parser.add_argument("--ranks-only", action="store_true", help="with --tensor-parallel: no run on one GPU")
    parser.add_argument("--ranks", type=int, default=1, help=argparse.SUPPRESS)
    parser.add_argument("--products", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        options.out.write_text(json.dumps(work(*options.worker, options)))
        return 0
    options.backends = options.backends.format(own=MODELS[options.kind].own)
    if not can_run("vllm"):
        return 3
    options.tensor_parallel = max(options.tensor_parallel, options.dcp)
    if options.tensor_parallel > 1:
        right, record = run_ranks(options)
        return kept(options, not right, record)
    # What vLLM makes of weights of latent attention it makes as it loads them.
    with model_in_a_file(options) if options.kind == "deepseek" else contextlib.nullcontext():
        return kept(options, *run_all(options))


if __name__ == "__main__":
    sys.exit(main())
