"""What a whole decode step costs over a tree, beside the same model with attention that knows of no sharing.

usage: end_to_end.py [ROW...] [--tree FILE ...] [--tiny] [--steps N] [--partition NAME] [--output FILE]      --list: the rows

Measures the time between two steps of a decoder, median over `--steps`: planning, copies and the model, as a caller waits for
them. The model has the dimensions of Llama-3-8B and random weights in bf16; K and V of what was before are random, too, as
nothing depends on them but the check. Rows are the workloads that DeFT and FastTree report on, rollouts, wide beams, and
conversations that share next to nothing. Three ways to attend:

  tree      deft.hf.TreeDecoder as it is
  flat      the same, each query reading its whole path by itself (partition `query`)
  sdpa      torch's scaled_dot_product_attention over a copy of each request's own K and V; where they fit, and not for token
            trees, whose guesses are no requests

  sparse    with --budget: the tree's decoder, two layers of which are full, two select and the others read that many tokens

and `no attention`, a step whose layers only write K and V: the difference is attention's share. Logits of the first step of
all ways are compared. To expect: at t = 256 at least 2.5 times flat, at b = 50 at least 1.3, and never below 0.98 of the
faster other way on `chats`. --tiny runs the same rows on the CPU with a model of two small layers, to test this script.
"""

import argparse
import gc
import itertools
import json
import random
import statistics
import sys
import time
from pathlib import Path

import torch
import transformers
from deft.hf import LayerPlan, TreeDecoder
from deft.hf._attention import attending_by_deft
from deft.hf._branch import Branch
from deft.hf._forward import PlannedStep

NAMES = ("tree", "flat", "sdpa", "sparse", "no attention")


class Row:
    """A tree, and what a step does to it. `scale` divides lengths and counts, for the CPU."""

    def __init__(self, name, plant, guesses=0, pages=0):
        self.name = name
        self.pages = pages  # of 16 tokens, where it takes more than others
        self.plant = plant  # (forest, scale) -> leaves
        self.guesses = guesses  # tokens of a token tree, 0: each leaf decodes one


def few_shot(branches, prompt=4000, decoded=200):
    def plant(forest, scale):
        root = forest.add(None, prompt // scale)
        return [forest.add(root, max(decoded // scale, 1)) for _ in range(max(branches // min(scale, 8), 2))]

    return plant


def levels(nodes, tokens):
    def plant(forest, scale):
        above = [None]
        for count, length in zip(nodes, tokens):
            count = max(count // scale, 1)
            above = [forest.add(above[i * len(above) // count], max(length // scale, 1)) for i in range(count)]
        return above

    return plant


def alone(count, tokens):
    def plant(forest, scale):
        return [forest.add(None, max(tokens // scale, 1)) for _ in range(count)]

    return plant


def system_prompts(forest, scale):
    above = [None]
    for tokens, variants in ((459, 1), (38, 4), (584, 4), (2112, 1)):
        above = [forest.add(one, max(tokens // scale, 1)) for one in above for _ in range(variants)]
    return [forest.add(forest.random.choice(above), max(192 // scale, 1)) for _ in range(max(128 // scale, 4))]


def multi_few_shot(forest, scale):
    system = forest.add(None, max(3193 // scale, 1))
    leaves = []
    for _ in range(8):
        shots = forest.add(system, max(sum(forest.random.randint(90, 150) for _ in range(20)) // scale, 1))
        leaves += [forest.add(shots, max(192 // scale, 1)) for _ in range(max(16 // scale, 1))]
    return leaves


def multi_document(forest, scale):
    documents = [forest.random.randint(750, 2250) for _ in range(8)]
    nodes, leaves = {}, []
    for _ in range(max(128 // scale, 4)):
        path = ()
        for document in sorted(forest.random.sample(range(8), 3)):
            parent, path = nodes.get(path), (*path, document)
            if path not in nodes:
                nodes[path] = forest.add(parent, max(documents[document] // scale, 1))
        leaves.append(forest.add(nodes[path], max(192 // scale, 1)))
    return leaves


def chats(forest, scale):
    """64 conversations of which 4 % of the tokens are one system prompt."""
    root = forest.add(None, max(82 // scale, 1))
    return [forest.add(root, max(forest.random.randint(984, 2952) // scale, 1)) for _ in range(max(64 // scale, 4))]


def of_file(path):
    """A tree as `deftc workloads --output` writes it. Each query is a branch, which has a token below its node where others go on from there."""
    document = json.loads(path.read_text(encoding="utf-8"))
    if document.get("format") != "deftc-tree":
        raise SystemExit(f"{path}: the format is {document.get('format')!r}, not 'deftc-tree'")

    def plant(forest, scale):
        branches = []
        for node in document["nodes"]:
            parent = branches[node["parent"]] if node["parent"] >= 0 else None
            branches.append(forest.add(parent, max(node["tokens"] // scale, 1)))
        ends = [query["node"] for query in document["queries"]]
        shared = {node["parent"] for node in document["nodes"]} | {end for end in ends if ends.count(end) > 1}
        return [forest.add(branches[end], 1) if end in shared else branches[end] for end in ends]

    return Row(path.stem, plant)


def speculative(forest, scale):
    root = forest.add(None, 4000 // scale)
    return [forest.add(root, max(200 // scale, 1))]


ROWS = [
    *(Row(f"few_shot_b{b}", few_shot(b)) for b in (20, 30, 50)),
    *(Row(f"speculative_t{t}", speculative, t) for t in (32, 64, 128, 256)),
    Row("reasoning", levels((1, 10, 10), (1000, 300, 100))),
    Row("system_prompts", system_prompts),
    Row("multi_few_shot", multi_few_shot),
    Row("multi_chain_reasoning", levels((1, 32, 128), (1000, 120, 200))),
    Row("multi_document", multi_document),
    *(Row(f"grpo_{k}k_{group}", few_shot(group, 1024 * k, 512)) for k in (8, 16) for group in (8, 16)),
    *(Row(f"rollout_{count}x{k}k", few_shot(count, 1024 * k, 500)) for count, k in ((64, 8), (128, 16), (64, 32))),
    *(Row(f"beams_{beams}_{suffix}", few_shot(beams, 1024, suffix)) for beams in (128, 400) for suffix in (3, 64)),
    Row("long_prompt_128k", few_shot(16, 128 * 1024)),
    Row("chats", chats),
    *(Row(f"alone_{count}x{k}k", alone(count, 1024 * k), pages=count * (1024 * k // 16 + 16)) for count, k in ((8, 10), (8, 32), (2, 100))),
]


class Forest:
    """Branches whose K and V are random, in place of a prefill that takes longer than what is measured."""

    def __init__(self, decoder):
        self.decoder = decoder
        self.random = random.Random(1)

    def add(self, parent, tokens):
        sequences = self.decoder.sequences
        node = sequences.add_root(tokens) if parent is None else sequences.add_child(parent.node, tokens)
        branch = Branch(sequences, node, parent)
        branch.own = [1] * tokens
        return branch


class NoAttention(PlannedStep):
    def attend(self, layer, q, k, v):
        self._cache.write(layer, self._slots, k, v)
        return torch.zeros_like(q[0].transpose(0, 1))


class Bare(TreeDecoder):
    STEP = NoAttention


class DenseDecoder:
    """Requests that each have all of their K and V: what a model does that knows of no sharing."""

    def __init__(self, decoder, leaves, room):
        self.model = decoder.model
        self.kinds = decoder.kinds
        self.lengths = torch.tensor([leaf.length for leaf in leaves])
        cache, longest = decoder.cache, int(self.lengths.max()) + room
        layers, kv_heads, head_dim = len(self.kinds), cache.pages.shape[-2], cache.pages.shape[-1]
        self.kv = torch.zeros((layers, 2, len(leaves), kv_heads, longest, head_dim), dtype=cache.dtype, device=cache.device)
        flat = cache.pages.flatten(2, 3)
        for request, leaf in enumerate(leaves):
            places = [
                decoder.sequences.node(branch.node).location + index
                for branch in leaf.path()
                for index in range(len(branch.own))
            ]
            slots = cache.slots_of(torch.tensor(places)).to(cache.device)
            self.kv[:, :, request, :, : len(places)] = flat[:, :, slots].transpose(2, 3)

    @torch.no_grad()
    def step(self, tokens):
        device = self.model.device
        self.places = self.lengths.to(device, copy=True)  # on the CPU it would count up with them
        self.lengths += 1
        seen = int(self.lengths.max())
        # A mask only where lengths differ: without one torch takes its faster kernels.
        self.mask = None
        if int(self.lengths.min()) != seen:
            self.mask = (torch.arange(seen, device=device)[None] < self.lengths.to(device)[:, None])[:, None, None]
        self.seen = seen
        with attending_by_deft(self.model):
            output = self.model(
                input_ids=torch.tensor(tokens, device=device)[None],
                position_ids=self.places[None],
                use_cache=False,
                deft_step=self,
            )
        return output.logits[0]

    def attend(self, layer, q, k, v):
        rows = torch.arange(len(self.places), device=q.device)
        for which, new in enumerate((k, v)):
            self.kv[layer, which, rows, :, self.places] = new[0].transpose(0, 1).to(self.kv.dtype)
        keys, values = self.kv[layer, :, :, :, : self.seen]
        out = torch.nn.functional.scaled_dot_product_attention(
            q[0].transpose(0, 1)[:, :, None].to(keys.dtype),
            keys,
            values,
            attn_mask=self.mask,
            scale=self.kinds[layer].scale,
            enable_gqa=True,
        )
        return out[:, :, 0]


def guess_parents(count):
    """As wide as Medusa's trees: an early token has more guesses behind it."""
    draw = random.Random(2)
    return [-1, *(min(draw.randrange(i), draw.randrange(i)) for i in range(1, count))]


def steps_of(decoder, row, leaves):
    """Endlessly, the logits of each step; of token trees the first step's only, whose rows are gathered for the check."""
    if row.guesses:
        [sequence] = leaves
        parents = guess_parents(row.guesses)
        for number in itertools.count():
            branches = decoder.verify(sequence, [1] * row.guesses, parents)
            logits = torch.stack([branch.logits for branch in branches]) if number == 0 else None
            decoder.accept(sequence, branches[min(3, row.guesses - 1)])
            yield logits
    while True:
        yield decoder.step(leaves, [1] * len(leaves))


def measure(model, row, way, options, fill=torch.Tensor.normal_, more=None):
    """What a step takes with its plan, and the logits of the first one; `fill` makes the K and V of what was before, `more` are
    other arguments of the decoder."""
    is_gpu = model.device.type == "cuda"
    torch.manual_seed(3)
    kind = Bare if way == "no attention" else TreeDecoder
    layers = None
    if way == "sparse":  # a tiny model's second layer reads what its first one selects
        layers = LayerPlan(options.budget, full=0, select=(0,)) if options.tiny else LayerPlan(options.budget)
    decoder = kind(
        model,
        pages=max(options.pages, 0 if options.tiny else row.pages),
        partition="query" if way == "flat" else options.partition,
        layers=layers,
        **(more or {}),
    )
    fill(decoder.cache.pages)
    leaves = row.plant(Forest(decoder), 32 if options.tiny else 1)
    if way == "sdpa":
        dense = DenseDecoder(decoder, leaves, room=options.steps + options.warmup + 1)
        steps = (dense.step([1] * len(leaves)) for _ in itertools.count())
    else:
        steps = steps_of(decoder, row, leaves)
    first, times = None, []
    for number in range(options.warmup + options.steps):
        begin = time.perf_counter()
        logits = next(steps)
        if is_gpu:
            torch.cuda.synchronize()
        if number == 0:
            first = logits.float().clone()
        if number >= options.warmup:
            times.append(1e3 * (time.perf_counter() - begin))
    plan = None
    if way not in ("sdpa", "no attention"):
        plan = next(iter(decoder.summary().values()))._asdict() | next(iter(decoder.choices().values()))._asdict()
    quarters = statistics.quantiles(times, n=4)
    return {"ms": statistics.median(times), "spread_ms": quarters[2] - quarters[0], "plan": plan}, first


def make_model(tiny, **others):
    """With random weights; `others` are sizes in place of these."""
    sizes = dict(
        vocab_size=128256,
        hidden_size=4096,
        intermediate_size=14336,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=8,
        max_position_embeddings=131072,
    )
    if tiny:
        sizes.update(
            vocab_size=211,
            hidden_size=128,
            intermediate_size=192,
            num_hidden_layers=2,
            num_attention_heads=8,
            num_key_value_heads=2,
        )
    sizes.update(others)
    device = "cpu" if tiny else "cuda"
    torch.manual_seed(0)
    with torch.device(device):
        before = torch.get_default_dtype()
        torch.set_default_dtype(torch.bfloat16)
        try:
            return transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes)).eval()
        finally:
            torch.set_default_dtype(before)


def run_row(model, row, options):
    found, logits = {"row": row.name}, {}
    for way in NAMES:
        if (way in ("sdpa", "sparse") and row.guesses) or (way == "sparse" and not options.budget) or way in options.without:
            continue
        try:
            found[way], logits[way] = measure(model, row, way, options)
        except torch.OutOfMemoryError:
            found[way] = {"left_out": "out of memory"}
        gc.collect()  # a decoder's graph and its cache refer to each other
        if not options.tiny:
            torch.cuda.empty_cache()
    for way in ("flat", "sdpa", "sparse"):
        if way in logits and "tree" in logits:
            error = float((logits[way] - logits["tree"]).abs().max() / logits["tree"].abs().max())
            found[way]["difference"] = error
            if way != "sparse" and not error <= 0.1:  # bf16 through all layers; a wrong path gives 1 and more
                raise SystemExit(f"{row.name}: logits of `{way}` differ by {error:.3f} of their largest")
    return found


def table_line(found):
    ms = {way: result["ms"] for way, result in found.items() if way in NAMES and "ms" in result}
    cells = {way: f"{ms[way]:.2f}" if way in ms else found.get(way, {}).get("left_out", "") for way in NAMES}
    share = ratio = ""
    if {"tree", "no attention"} <= ms.keys():
        share = f"{100 * max(ms['tree'] - ms['no attention'], 0) / ms['tree']:.0f} %"
    if "tree" in ms and ms.keys() & {"flat", "sdpa"}:
        ratio = f"**{min(ms[way] for way in ('flat', 'sdpa') if way in ms) / ms['tree']:.2f}**"
    return f"| {found['row']} | {cells['tree']} | {share} | {cells['flat']} | {cells['sdpa']} | {ratio} | {cells['sparse']} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", nargs="*", help="names, or how they begin; all without these and trees")
    parser.add_argument("--tree", action="append", default=[], type=Path, metavar="FILE", help="also this tree, of which each query decodes")
    parser.add_argument("--tiny", action="store_true", help="on the CPU, to test the script")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--warmup", type=int, default=5)
    parser.add_argument("--partition", help="of the tree's plans, in place of the one that they would choose")
    parser.add_argument("--budget", type=int, help="also a decoder whose sparse layers read so many tokens")
    parser.add_argument("--without", action="append", default=[], choices=NAMES[1:], help="a way that is not run")
    parser.add_argument("--output", help="a JSON line a row")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    all_rows = not options.rows and not options.tree
    chosen = [row for row in ROWS if all_rows or any(row.name.startswith(name) for name in options.rows)]
    chosen += [of_file(path) for path in options.tree]
    if options.list or not chosen:
        print("\n".join(row.name for row in ROWS))
        return 0 if chosen else 2
    if not options.tiny and not torch.cuda.is_available():
        print("there is no GPU", file=sys.stderr)
        return 3
    options.pages = 2048 if options.tiny else 10240  # of 16 tokens: 20 GiB; multi_document takes 9439
    model = make_model(options.tiny)
    device = "cpu" if options.tiny else torch.cuda.get_device_name()
    print(f"{device}, torch {torch.__version__}, transformers {transformers.__version__}, median of {options.steps} steps\n")
    print("| row | tree, ms | attention | flat, ms | sdpa, ms | faster of both / tree | sparse, ms |\n|---|---|---|---|---|---|---|")
    for row in chosen:
        found = run_row(model, row, options)
        print(table_line(found), flush=True)
        if options.output:
            with open(options.output, "a", encoding="utf-8") as file:
                file.write(json.dumps({"device": str(device), "steps": options.steps, **found}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
