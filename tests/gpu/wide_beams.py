#!/usr/bin/env python3
"""Thousands of beams over one history that change parents in each step: what a step costs the host and the GPU, and whole searches.

  tests/gpu/wide_beams.py [--only TEXT] [--steps N] [--search] [--tiny] [--json FILE]

Heads 16/8 of 128 columns (Qwen3-0.6B, OneRec-1.7B) or 32/8 (OneRec-8B), bf16, pages of 16. Each beam of a step goes on from a
random one. A row has beams with 3 or 128 tokens of their own, some below four levels of tokens that they share. The step that is
timed gives them the last of these, in a search of its own each time:

  attention_us   the run alone: the median of replays of a CUDA graph, the L2 cache evicted before each
  floor_us       the larger of the bytes that some beam sees at 4,704 GB/s plus 3.6 us and 4 FLOP a column, head, beam and token at
                 750 TFLOP/s plus 2.8 us (H200)
  reorder_us, plan_us   of the host, each step; the plan's includes its upload where the call copies
  step_us        reorder, plan, upload and run, until the GPU is done; `added_us` is that less a step whose plan stays as it is

Some beams of each row are compared with torch in double precision. --search: whole searches of a model of Qwen3-0.6B's dimensions with
random weights by deft.hf.beam_search, by the tree and with attention by path (partition `query`). --tiny runs small rows on the CPU, to
test this script. Exit code 1: a wrong result; 3: no torch or no GPU.
"""

import argparse
import json
import statistics
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/peers"))
from graph_time import graph_time_us  # noqa: E402

HEADS, KV_HEADS, DIM, PAGE = 16, 8, 128, 16
LEVELS = (8, 40, 200, 1000)  # tokens of each level between the history and the beams' own tokens


class Row(NamedTuple):
    beams: int
    history: int  # tokens
    own: int  # tokens of each beam
    levels: tuple[int, ...] = ()
    heads: int = HEADS

    @property
    def name(self):
        shared = f"_levels_{len(self.levels)}" if self.levels else ""
        return f"beams_{self.beams}_below_{self.history}_own_{self.own}{shared}{'' if self.heads == HEADS else f'_heads_{self.heads}'}"

    @property
    def spec(self):
        return f"attention beams {{ query_heads = {self.heads}; kv_heads = {KV_HEADS}; head_dim = {DIM}; dtype = bf16; kv_cache = paged(page_size = {PAGE}); }}"

    @property
    def widths(self):
        """Beams of each step."""
        return (*self.levels, *[self.beams] * self.own)


SIZES = [(512, 500, 3), (512, 2000, 3), (512, 8000, 3), (2000, 2000, 3), (5000, 500, 3), (5000, 2000, 3), (5000, 8000, 3), (512, 2000, 128), (5000, 2000, 128)]
ROWS = [*(Row(*sizes) for sizes in SIZES), Row(2000, 2000, 3, LEVELS), Row(2000, 8000, 3, LEVELS),
        *(Row(*sizes, heads=32) for sizes in SIZES if sizes[0] > 2000 or sizes[1] == 2000), Row(2000, 2000, 3, LEVELS, 32)]  # fmt: skip
TINY = [Row(40, 50, 3), Row(40, 50, 20), Row(40, 50, 3, (2, 4, 8, 20)), Row(40, 50, 3, (2, 4, 8, 20), 32)]
# Beams, tokens of the prompt, new tokens.
SEARCHES = [(512, 2000, 3), (2000, 2000, 3), (5000, 2000, 3), (512, 2000, 16)]
LARGEST_ERROR = 0.02  # of a row's length


class Paths:
    """The slots that each beam sees, kept beside the tree to judge it."""

    def __init__(self, torch, history):
        self._torch = torch
        self._slots = torch.arange(history)[None]

    def advance(self, parents, slots):
        torch = self._torch
        self._slots = torch.cat([self._slots[parents.long()], torch.tensor(slots.tolist())[:, None]], 1)

    def of(self, beam):
        return self._slots[beam]

    def different(self):
        """How many slots some beam sees."""
        return len(self._slots.unique())


def error_of(torch, out, q, cache, paths):
    """The largest distance of some beams' rows to double precision, relative to the row."""
    worst, flat = 0.0, cache.flatten(1, 2)
    for beam in range(0, len(q), max(1, len(q) // 16)):
        k, v = (one[paths.of(beam).to(q.device)].double().repeat_interleave(q.shape[1] // KV_HEADS, 1) for one in flat)
        weights = torch.softmax(torch.einsum("hd,thd->ht", q[beam].double(), k) * DIM**-0.5, -1)
        right = torch.einsum("ht,thd->hd", weights, v)
        distance = (out[beam].double() - right).norm(dim=-1) / right.norm(dim=-1)
        worst = max(worst, float(distance.max()))
    return worst


def measure(torch, deft, attention, row, device, steps):
    beams, history, own, levels, heads = row
    draw = numpy.random.default_rng(beams + history + own)
    tree = deft.BeamTree(PAGE)
    room = beams * (own + 1) + sum(levels)
    pages = 2 * -(-room // PAGE) + 1  # twice what is seen: some pages have few tokens that anybody sees
    cache = torch.randn(2, -(-history // PAGE) + pages, PAGE, KV_HEADS, DIM, dtype=torch.bfloat16, device=device)
    q = torch.randn(beams, heads, DIM, dtype=torch.bfloat16, device=device)
    out = torch.empty_like(q)

    def parents_of(step):
        before = row.widths[step - 1] if step else 1
        if step <= len(levels):  # all of a level have children
            return torch.from_numpy(numpy.arange(row.widths[step], dtype="int32") * before // row.widths[step])
        return torch.from_numpy(draw.integers(0, before, beams, "int32"))

    def grow(tokens, see=lambda parents, slots: None):
        tree.start(history, pages=pages)
        for step in range(tokens):
            parents = parents_of(step)
            see(parents, tree.advance(parents).slots)

    def wait():
        if device == "cuda":
            torch.cuda.synchronize()

    paths = Paths(torch, history)
    depth = len(row.widths)
    grow(depth, paths.advance)
    table = torch.tensor(numpy.asarray(tree.page_table), device=device)
    plan = attention.plan(tree, device=device)
    if device == "cuda":  # a graph is captured once, and the plan grows behind it
        plan.reserve(beams, beams, 2 * (history + room))

    def run():
        plan.run(q, *cache, table, out=out)

    run()
    found = {"error": error_of(torch, out, q, cache, paths), "different_tokens": paths.different()}
    if device == "cuda":
        found["attention_us"] = graph_time_us(torch, run, 41)
        found["floor_us"] = max(found["different_tokens"] * KV_HEADS * DIM * 4 / 4704e3 + 3.6, 4 * DIM * heads * beams * (history + depth) / 750e6 + 2.8)
    times = {"reorder_us": [], "plan_us": [], "step_us": [], "same_us": []}
    for number in range(steps + 3):
        grow(depth - 1)
        plan.advance()
        run()
        parents = parents_of(depth - 1)
        wait()
        begin = time.perf_counter()
        tree.advance(parents)
        reordered = time.perf_counter()
        plan.advance()
        planned = time.perf_counter()
        run()
        wait()
        end = time.perf_counter()
        run()
        wait()
        again = time.perf_counter()
        if number >= 3:  # the first ones grow the plan's memory
            for name, seconds in zip(times, (reordered - begin, planned - reordered, end - begin, again - end)):
                times[name].append(1e6 * seconds)
    found |= {name: statistics.median(values) for name, values in times.items()}
    found["added_us"] = statistics.median(step - same for step, same in zip(times["step_us"], times["same_us"]))
    return found


def make_model(torch, transformers, is_tiny):
    sizes = dict(vocab_size=151936, hidden_size=1024, intermediate_size=3072, num_hidden_layers=28, num_attention_heads=HEADS,
                 num_key_value_heads=KV_HEADS, head_dim=DIM, max_position_embeddings=40960, tie_word_embeddings=True)  # fmt: skip
    if is_tiny:
        sizes |= dict(vocab_size=211, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=32)
    torch.manual_seed(0)
    with torch.device("cpu" if is_tiny else "cuda"):
        return transformers.Qwen3ForCausalLM(transformers.Qwen3Config(**sizes)).to(torch.bfloat16).eval()


def search(torch, model, row, partition):
    """Seconds of a search behind its prompt's prefill (the median of three, the first of all left out), and the best answer."""
    from deft.hf import TreeDecoder, beam_search

    beams, history, new = row
    decoder = TreeDecoder(model, pages=-(-history // PAGE) + -(-beams * (new + 2) // PAGE) + 64, partition=partition)
    prompt = decoder.prefill(torch.randint(5, model.config.vocab_size, (history,), generator=torch.Generator().manual_seed(history)).tolist())
    seconds = []
    for _ in range(4):
        begin = time.perf_counter()
        answers = beam_search(decoder, prompt, beams, new)
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds[1:]), answers[0]


def run_searches(torch, options, result):
    import transformers

    model = make_model(torch, transformers, options.tiny)
    is_right = True
    for row in [(40, 50, 3)] if options.tiny else SEARCHES:
        (tree, answer), (path, other) = (search(torch, model, row, partition) for partition in (None, "query"))
        gap = abs(answer.score - other.score)
        # Two beams may be as good as each other in bf16; then another token is no fault, and the score says so.
        is_right = is_right and gap <= 0.1
        name = "search_{}_below_{}_{}".format(*row)
        result["searches"][name] = {"tree_ms": round(1e3 * tree, 2), "path_ms": round(1e3 * path, 2), "tokens_are_the_same": answer.tokens == other.tokens, "score_gap": gap}
        print(f"{name}: {1e3 * tree:.1f} ms, by path {1e3 * path:.1f} ms, the same tokens: {answer.tokens == other.tokens}, scores {gap:.4f} apart", flush=True)
    return is_right


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=20, help="that are timed")
    parser.add_argument("--only", default="", help="rows whose names hold this text")
    parser.add_argument("--search", action="store_true", help="whole searches, too")
    parser.add_argument("--tiny", action="store_true", help="on the CPU, to test this script")
    parser.add_argument("--json")
    options = parser.parse_args()
    try:
        import deft
        import torch
    except ImportError as error:
        print(f"wide_beams: {error}", file=sys.stderr)
        return 3
    if not options.tiny and not torch.cuda.is_available():
        print("wide_beams: there is no GPU", file=sys.stderr)
        return 3
    device = "cpu" if options.tiny else "cuda"
    result = {"device": device if options.tiny else torch.cuda.get_device_name(), "rows": {}, "searches": {}}
    is_right = True
    attentions = {}
    for row in TINY if options.tiny else ROWS:
        if options.only not in row.name:
            continue
        if row.spec not in attentions:
            attentions[row.spec] = deft.compile(row.spec)
        found = measure(torch, deft, attentions[row.spec], row, device, options.steps)
        is_right = is_right and found["error"] <= LARGEST_ERROR
        result["rows"][row.name] = {name: round(value, 5 if name == "error" else 1) for name, value in found.items()}
        print(f"{row.name}: " + ", ".join(f"{name} {value:.4g}" for name, value in found.items()), flush=True)
    if options.search:
        is_right = run_searches(torch, options, result) and is_right
    if options.json:
        Path(options.json).write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
