#!/usr/bin/env python3
"""SGLang's NGRAM speculation with deft's attention and with SGLang's own: trees of drafts, verified by the target model.

Two parts; each engine is a process of its own:

- `text`: a trained model (`--model FOLDER`, as tests/gpu/smollm2.py writes it) answers 16 questions greedily, by each backend without
  speculation, with chains (breadth 1) and with trees (`--breadths`) of `--drafts` tokens. Shows how many texts are those without
  speculation, new tokens a second, and accepted tokens a step (the one that each step gives anyway is counted). Where a text parts
  from that without speculation, the record has the gap of the two tokens' log probabilities without speculation. Up to 1/4 is a tie
  in bfloat16: steps of other shapes round otherwise.
- `steps`: the time of a verify step, of a model of Llama-3-8B's dimensions with dummy weights, over contexts of 1k, 8k and 32k
  tokens, for `--requests` that share nothing or all of their context. It is that of the whole step, the search for drafts included.

  tests/gpu/sglang_speculation.py text --model FOLDER [--backends fa3,triton,deft] [--drafts 16] [--breadths 1,8] [--json FILE]
  tests/gpu/sglang_speculation.py steps [--backends fa3,triton,deft] [--drafts 32,60,128] [--layers 32] [--json FILE]

A backend may name its page size: `deft:16`. SGLang's own take trees with pages of one token only, but for flashinfer. Without
package flashinfer leave that backend out. Needs SGLang 0.5.17 or near it, deft beside it and a GPU.

Exit code 1: an engine failed, or a text of deft's parts from that without speculation at no tie. 3: no SGLang or no GPU.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path

import workers
from engine_models import MODELS
from vllm_engine import can_run, kept, tokens

QUESTIONS = [
    "Write the numbers from 1 to 40, one on each line.", "List the days of the week three times.",
    "Write a Python function that adds two numbers, then the same for subtraction, multiplication and division.",
    "Repeat this sentence five times: the quick brown fox jumps over the lazy dog.", "What is the capital of France, and why is it known?",
    "Write a JSON list of five people with name, age and city.", "Explain how rain is made, in simple words.",
    "Write a short poem about the sea.", "Give ten reasons to go for a walk.", "Write an HTML table of three rows and three columns.",
    "Tell a story about a fox and a hen.", "What is the difference between a list and a tuple in Python?",
    "Write the multiplication table of 7.", "Write a letter to a friend about a journey to the mountains.",
    "Write a SQL table for books and three rows that are inserted.", "Name twelve animals and the sound that each makes.",
]  # fmt: skip
NEW_TOKENS = 256
LIKELY = 8  # tokens whose log probabilities are kept at each place
TIE = 1 / 4  # two steps of a logit between 16 and 32 in bfloat16
CONTEXTS = [1024, 8192, 32768]
STEP_TOKENS = 64  # new ones of each request, while verify steps are timed


def arguments_of(job):
    """Of an engine."""
    backend, _, page_size = job["backend"].partition(":")
    given = {
        "attention_backend": backend, "page_size": int(page_size or 1), "dtype": "bfloat16", "sampling_backend": "pytorch", "grammar_backend": "none",
        "model_path": job["model"], "skip_tokenizer_init": True, "max_running_requests": job["most"], "random_seed": 0, "log_level": "info",
        "cuda_graph_config": {"decode": {"bs": job["sizes"]}, "prefill": {"backend": "disabled"}}, "mem_fraction_static": 0.7, **job["more"],
    }  # fmt: skip
    if job["drafts"]:
        given |= {
            "speculative_algorithm": "NGRAM", "speculative_num_draft_tokens": job["drafts"],
            "speculative_ngram_max_bfs_breadth": job["breadth"], "speculative_ngram_min_bfs_breadth": 1,
        }  # fmt: skip
    return given


def accepted_of(outputs):
    """Tokens that a verify step gives a request, on average; 1 without speculation."""
    new = sum(len(output["output_ids"]) for output in outputs)
    steps = sum(output["meta_info"].get("spec_verify_ct") or len(output["output_ids"]) - 1 for output in outputs)
    return (new - len(outputs)) / max(steps, 1)  # the first token is that of the prompt


def answer(engine, job):
    """Twice: the first time fills the prefix cache and makes kernels. Of the second, what was written, and how fast."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(job["model"])
    asked = [
        tokenizer.apply_chat_template([{"role": "user", "content": one}], add_generation_prompt=True, tokenize=False) for one in QUESTIONS
    ]
    prompts = [tokenizer(text)["input_ids"] for text in asked]
    for _ in range(1 + job["repeat"]):
        began = time.perf_counter()
        outputs = engine.generate(input_ids=prompts, sampling_params={"temperature": 0.0, "max_new_tokens": NEW_TOKENS})
        taken = time.perf_counter() - began
    result = {"tokens_s": round(sum(len(output["output_ids"]) for output in outputs) / taken, 1), "accepted": round(accepted_of(outputs), 3)}
    if not job["drafts"]:
        params = {"temperature": 0.0, "max_new_tokens": NEW_TOKENS}
        outputs = engine.generate(input_ids=prompts, sampling_params=params, return_logprob=True, top_logprobs_num=LIKELY)
        result["likely"] = [[[(token, value) for value, token, *_ in place] for place in output["meta_info"]["output_top_logprobs"]] for output in outputs]
    written = [output["output_ids"] for output in outputs]
    return {**result, "tokens": written, "text": [tokenizer.decode(ids, skip_special_tokens=True) for ids in written]}


def steps_time(engine, job):
    """Milliseconds of a verify step, by context, requests and whether they share it."""
    rows = []
    for context in CONTEXTS:
        for count, shares in job["requests"]:
            prompts = [tokens(context, 7 if shares else 7 + i) + tokens(3, 99 + i) for i in range(count)]
            params = {"temperature": 0.0, "ignore_eos": True}
            engine.generate(input_ids=prompts, sampling_params={**params, "max_new_tokens": 1})  # fills the prefix cache
            times = []
            for _ in range(1 + job["repeat"]):
                began = time.perf_counter()
                engine.generate(input_ids=prompts, sampling_params={**params, "max_new_tokens": 1})
                prompt_taken = time.perf_counter() - began
                began = time.perf_counter()
                outputs = engine.generate(input_ids=prompts, sampling_params={**params, "max_new_tokens": STEP_TOKENS})
                taken = time.perf_counter() - began - prompt_taken
                steps = max(output["meta_info"].get("spec_verify_ct") or 0 for output in outputs)
                times.append(1e3 * taken / max(steps, 1))
            rows.append({"context": context, "requests": count, "shares": shares, "step_ms": round(min(times), 3), "verify_steps": steps,
                         "times_ms": [round(one, 3) for one in times]})  # fmt: skip
    return {"rows": rows}


def work(job):
    os.environ.update(HF_HUB_OFFLINE="1", SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN="1")
    if not job["backend"].startswith("flashinfer"):
        os.environ["SGLANG_IS_FLASHINFER_AVAILABLE"] = "false"
    import sglang
    import torch

    engine = sglang.Engine(**arguments_of(job))
    known = {name: job[name] for name in ("part", "backend", "drafts", "breadth")}
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
    result = {**known, "sglang": sglang.__version__, "torch": torch.__version__, "device": device}
    result |= (answer if job["part"] == "text" else steps_time)(engine, job)
    engine.shutdown()
    return result


def run_worker(options, job):
    what = f"{job['backend']} with {job['drafts']} drafts"
    return workers.result_of(__file__, [job["part"], "--worker", json.dumps(job)], options, what)[0]


def gap_of(likely, *pair):
    """Of the log probabilities of two tokens at a place; None: one is not among the likely ones."""
    known = dict(map(tuple, likely))
    return round(abs(known[pair[0]] - known[pair[1]]), 4) if all(token in known for token in pair) else None


def compared(plain, drafted):
    """How many texts are the same, and where the others part, with the gap of the two tokens there."""
    same, parted = 0, []
    for number, (one, other) in enumerate(zip(plain["tokens"], drafted["tokens"], strict=True)):
        if one == other:
            same += 1
            continue
        at = next((i for i, pair in enumerate(zip(one, other)) if pair[0] != pair[1]), min(len(one), len(other)))
        gap = gap_of(plain["likely"][number][at], one[at], other[at]) if at < min(len(one), len(other)) else None
        parted.append({"question": number, "at": at, "gap": gap, "without": one[at : at + 4], "with": other[at : at + 4]})
    ties = sum(part["gap"] is not None and part["gap"] <= TIE for part in parted)
    return {"same": same, "ties": ties, "of": len(plain["tokens"]), "parted": parted}


def job_of(options, backend, drafts, breadth, **more):
    return {"part": options.part, "backend": backend, "drafts": drafts, "breadth": breadth, "repeat": options.repeat, "model": options.model, **more}


def run_text(options):
    """Without speculation, with chains, with trees."""
    failed, record = False, []
    for backend in options.backends.split(","):
        plain = None
        for drafts, breadth in [(0, 0)] + [(int(drafts), int(breadth)) for drafts in options.drafts.split(",") for breadth in options.breadths.split(",")]:
            job = job_of(options, backend, drafts, breadth, most=len(QUESTIONS), sizes=[1, 2, 4, 8, 12, 16], more={})
            result = run_worker(options, job)
            if result is None:
                failed = True
                continue
            if not drafts:
                plain = result
            elif plain:
                result["compared"] = compared(plain, result)
                found = result["compared"]
                failed |= backend.startswith("deft") and found["same"] + found["ties"] < found["of"]
            says = "; {same} of {of} texts are those without, {ties} part at a tie".format(**result["compared"]) if "compared" in result else ""
            kind = "no drafts" if not drafts else f"{drafts} drafts, breadth {breadth}"
            print(f"{backend}: {kind}: {result['tokens_s']:.0f} tokens/s, {result['accepted']:.2f} a step{says}", flush=True)
            if options.show:
                print("\n".join(f"  {text!r}" for text in result["text"][: options.show]), flush=True)
            record.append({name: value for name, value in result.items() if name not in ("tokens", "likely")})
    return failed, record


def run_steps(options):
    failed, record = False, []
    counts = [int(count) for count in options.requests.split(",")]
    asked = [(count, shares) for count in counts for shares in ([False] if count == 1 else [False, True])]
    most = max(counts)
    config = MODELS["llama"].config(options.layers, "bfloat16") | {"max_position_embeddings": 2 * max(CONTEXTS)}
    (Path(options.model) / "config.json").write_text(json.dumps(config))
    for drafts in options.drafts.split(","):
        for backend in options.backends.split(","):
            more = {"load_format": "dummy", "context_length": max(CONTEXTS) + 1024, "max_total_tokens": most * (max(CONTEXTS) + 1024)}
            result = run_worker(options, job_of(options, backend, int(drafts), 8, most=most, sizes=sorted(set(counts)), more=more, requests=asked))
            if result is None:
                failed = True
                continue
            record.append({**result, "layers": options.layers})
            for row in result["rows"]:
                how = "that share it" if row["shares"] else "apart"
                print(f"{backend}: {drafts} drafts: context {row['context']}, {row['requests']} requests {how}: {row['step_ms']:.3f} ms a step", flush=True)
    return failed, record


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("part", choices=["text", "steps"])
    parser.add_argument("--model", default="")
    parser.add_argument("--backends", default="fa3,triton,deft,deft:16")
    parser.add_argument("--drafts", default="")
    parser.add_argument("--breadths", default="1,8", help="of the drafts' trees; 1: chains")
    parser.add_argument("--requests", default="1,8")
    parser.add_argument("--layers", type=int, default=32)
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--show", type=int, default=2, help="texts that are printed")
    parser.add_argument("--timeout", type=int, default=280, help="seconds an engine may take")
    parser.add_argument("--tail", type=int, default=6000, help="characters of the output of an engine that fails")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        options.out.write_text(json.dumps(work(json.loads(options.worker))))
        return 0
    if not can_run("sglang"):
        return 3
    options.drafts = options.drafts or ("16" if options.part == "text" else "32,60,128")
    if options.part == "text":
        return kept(options, *run_text(options))
    with tempfile.TemporaryDirectory() as folder:
        options.model = folder
        return kept(options, *run_steps(options))


if __name__ == "__main__":
    sys.exit(main())
