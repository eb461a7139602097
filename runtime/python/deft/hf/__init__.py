"""transformers models that decode over trees: shared tokens are in the cache once, and each step reads them once.

    from deft.hf import TreeDecoder, best_of_n
    decoder = TreeDecoder(model)  # Llama, Mistral, Qwen 2 and 3, Gemma 2 and 3, DeepSeek V2 and V3
    answers = best_of_n(decoder, tokenizer("Once upon a time")["input_ids"], n=8, max_new_tokens=40)

Needs torch and transformers; no other part of deft does."""

from ._answers import Answer, best_of_n, greedy
from ._beam_search import beam_search
from ._branch import Branch
from ._decoder import TreeDecoder
from ._drafters import DraftHeads, DraftModel
from ._kinds import MODEL_TYPES, LayerKind, layer_kinds
from ._latent import LatentKind
from ._layer_plan import LayerPlan
from ._recall import LayerRecall, Recall, recall
from ._sampling import Greedy, Sampler
from ._search import Action, Finish, Fork, Policy, Prune, Search, Thought, keep_best, tree_search
from ._speculative import Drafter, Guesses, Speculation, speculate

__all__ = [
    "Action",
    "Answer",
    "Branch",
    "DraftHeads",
    "DraftModel",
    "Drafter",
    "Finish",
    "Fork",
    "Greedy",
    "Guesses",
    "LatentKind",
    "LayerKind",
    "LayerPlan",
    "LayerRecall",
    "MODEL_TYPES",
    "Policy",
    "Prune",
    "Recall",
    "Sampler",
    "Search",
    "Speculation",
    "Thought",
    "TreeDecoder",
    "beam_search",
    "best_of_n",
    "greedy",
    "keep_best",
    "layer_kinds",
    "recall",
    "speculate",
    "tree_search",
]
