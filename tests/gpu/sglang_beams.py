#!/usr/bin/env python3
"""Whole beam searches: SGLang's own beside deft.hf.beam_search, over one model in a file.

The model has Qwen3-0.6B's dimensions and random weights, those of wide_beams.py --search. Each search begins with a prompt whose K and V
lie in the cache already, and ends with the best answer on the host: the median of --repeat, the first of all left out. SGLang computes the
last token of the prompt again, so `one_token_ms` is what a request of one greedy token takes of it; that lies in `ms`. Scores are
log-probabilities divided by the length, in both.

SGLang has beam search from 0.5.19 on: a request with `beam_width`, over pages of one token, by the attention backend of its other
requests. Each beam is a row whose table names the prompt's tokens again, so attention reads these once for each beam.

  tests/gpu/sglang_beams.py [--sizes 512x2000x3,5000x8000x3] [--engines fa3,triton,deft] [--eager] [--json FILE]

A size is beams x tokens of the prompt x new tokens. --eager: SGLang without CUDA graphs. Exit code 1: an engine failed, or best scores lie
more than 0.1 apart; 3: no SGLang with beam search, or no GPU.
"""

import argparse
import importlib
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import workers
from vllm_engine import can_run

DEFT = "deft"
SIZES = "512x2000x3,512x8000x3,5000x2000x3,5000x8000x3,512x2000x16"
LARGEST_GAP = 0.1  # two beams may be as good as each other in bf16


def sizes_of(text):
    return [tuple(int(number) for number in size.split("x")) for size in text.split(",")]


def name_of(size):
    return "search_{}_below_{}_{}".format(*size)


def arguments_of(backend, sizes, folder, is_eager):
    """Of an engine that runs all of the sizes."""
    beams = sorted({size[0] for size in sizes})
    longest = max(history + new for _, history, new in sizes)
    tokens = max(history + count * (new + 2) for count, history, new in sizes) + longest
    graphs = {"disable_cuda_graph": True}
    if not is_eager:
        graphs = {"cuda_graph_config": {"decode": {"bs": [1, *beams]}, "prefill": {"backend": "disabled"}}}
    return {
        "model_path": folder, "skip_tokenizer_init": True, "dtype": "bfloat16", "attention_backend": backend, "sampling_backend": "pytorch",
        "grammar_backend": "none", "page_size": 1, "context_length": longest + 64, "max_running_requests": beams[-1] + 8,
        "max_total_tokens": tokens + 4096, "mem_fraction_static": 0.5, "random_seed": 0, "log_level": "info", **graphs,
    }  # fmt: skip


def prompt_of(size, vocabulary):
    """That of wide_beams.py."""
    import torch

    return torch.randint(5, vocabulary, (size[1],), generator=torch.Generator().manual_seed(size[1])).tolist()


def answer_of(output):
    """The tokens and the score of the best answer."""
    best = output["meta_info"]["beam_results"][0]
    score = best["meta_info"]["sequence_score"]
    if len(best["output_ids"]) == 0 or score is None:
        raise ValueError(f"no answer: {output['meta_info']}")
    return list(best["output_ids"]), float(score)


def timed(count, call):
    """The median milliseconds, the first call left out, and what the last one returned."""
    times = []
    for _ in range(count + 1):
        begin = time.perf_counter()
        result = call()
        times.append(1e3 * (time.perf_counter() - begin))
    return statistics.median(times[1:]), result


def search_sglang(backend, sizes, options):
    os.environ.update(SGLANG_IS_FLASHINFER_AVAILABLE="false", HF_HUB_OFFLINE="1")
    import sglang

    vocabulary = json.loads(Path(options.model, "config.json").read_text())["vocab_size"]
    engine = sglang.Engine(**arguments_of(backend, sizes, options.model, options.eager))
    found = {"engine": f"SGLang {sglang.__version__}", "backend": backend}
    for size in sizes:
        prompt = prompt_of(size, vocabulary)

        def generate(**asked):
            return engine.generate(input_ids=[prompt], sampling_params={"ignore_eos": True, **asked})[0]

        one_token, _ = timed(options.repeat, lambda: generate(max_new_tokens=1, temperature=0.0))
        whole, output = timed(options.repeat, lambda: generate(beam_width=size[0], n=1, max_new_tokens=size[2]))
        tokens, score = answer_of(output)
        found[name_of(size)] = {"ms": whole, "one_token_ms": one_token, "cached_tokens": output["meta_info"].get("cached_tokens"),
                                "tokens": tokens, "score": score}  # fmt: skip
    engine.shutdown()
    return found


def search_deft(sizes, options):
    import torch
    import transformers

    import deft

    model = transformers.Qwen3ForCausalLM.from_pretrained(options.model, dtype=torch.bfloat16).cuda().eval()
    found = {"engine": f"deft {deft.__version__}", "backend": DEFT}
    for size in sizes:
        whole, answer = search_of(model, size, options.repeat)
        found[name_of(size)] = {"ms": whole, "tokens": list(answer.tokens), "score": float(answer.score)}
    return found


def search_of(model, size, repeat):
    from deft.hf import TreeDecoder, beam_search

    from wide_beams import PAGE

    beams, history, new = size
    decoder = TreeDecoder(model, pages=-(-history // PAGE) + -(-beams * (new + 2) // PAGE) + 64)
    prompt = decoder.prefill(prompt_of(size, model.config.vocab_size))
    whole, answers = timed(repeat, lambda: beam_search(decoder, prompt, beams, new))
    return whole, answers[0]


def write_model(options):
    import torch
    import transformers

    from wide_beams import make_model

    make_model(torch, transformers, False).save_pretrained(options.model)
    return {}


def work(options):
    if options.worker == "model":
        return write_model(options)
    if options.worker == DEFT:
        return search_deft(sizes_of(options.sizes), options)
    return search_sglang(options.worker, sizes_of(options.sizes), options)


def run_worker(options, worker):
    arguments = ["--worker", worker, "--model", options.model, "--sizes", options.sizes, "--repeat", str(options.repeat), *(["--eager"] if options.eager else [])]
    return workers.result_of(__file__, arguments, options, worker)[0]


def compared(sizes, results):
    """(rows of the record, whether all best scores are near each other)"""
    rows, is_near = {}, True
    for size in sizes:
        name = name_of(size)
        row = {result["backend"]: {key: value for key, value in result[name].items() if key != "tokens"} for result in results}
        scores = [result[name]["score"] for result in results]
        row["score_gap"] = max(scores) - min(scores)
        row["tokens_are_the_same"] = all(result[name]["tokens"] == results[0][name]["tokens"] for result in results)
        is_near = is_near and row["score_gap"] <= LARGEST_GAP
        rows[name] = row
    return rows, is_near


def has_beam_search():
    try:
        importlib.import_module("sglang.srt.beam_search.types")
    except ImportError as error:
        print(f"skipped: this SGLang has no beam search ({error})")
        return False
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sizes", default=SIZES)
    parser.add_argument("--engines", default=f"fa3,{DEFT}", help=f"SGLang's backends, and {DEFT}")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--eager", action="store_true", help="SGLang without CUDA graphs")
    parser.add_argument("--timeout", type=int, default=240, help="seconds that an engine may take")
    parser.add_argument("--tail", type=int, default=6000, help="characters of the output of an engine that fails")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--model", default="", help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        options.out.write_text(json.dumps(work(options)))
        return 0
    if not can_run("sglang") or not has_beam_search():
        return 3
    import torch

    with tempfile.TemporaryDirectory() as folder:
        options.model = folder
        if run_worker(options, "model") is None:
            return 1
        results = [run_worker(options, engine) for engine in options.engines.split(",")]
    ran = [result for result in results if result is not None]
    rows, is_near = compared(sizes_of(options.sizes), ran) if ran else ({}, True)
    for name, row in rows.items():
        times = ", ".join(f"{result['backend']} {row[result['backend']]['ms']:.1f} ms" for result in ran)
        print(f"{name}: {times}, the same tokens: {row['tokens_are_the_same']}, scores {row['score_gap']:.4f} apart", flush=True)
    if options.json:
        record = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "engines": [result["engine"] for result in ran],
                  "graphs": not options.eager, "repeat": options.repeat, "searches": rows}  # fmt: skip
        options.json.write_text(json.dumps(record, indent=1) + "\n")
    return int(len(ran) < len(results) or not is_near)


if __name__ == "__main__":
    sys.exit(main())
