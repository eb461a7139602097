"""SGLang's verify steps: each request has a tree of drafts behind its context. Knows SGLang's types by their attributes alone."""

from __future__ import annotations

import functools
import logging
from itertools import accumulate
from typing import Any

import numpy as np
import torch

from .._adapters.draft_masks import MOST_DRAFTS, Bits, rows_of, words_of
from .._adapters.outside import outside

ALGORITHMS = ("EAGLE", "EAGLE3", "NEXTN", "NGRAM", "STANDALONE")  # whose drafts these are
_OF_PAGES = ("flashinfer", "fa3", "triton")  # that let a draft model have trees over pages


def check_speculation(runner: Any) -> None:
    """Of a backend that is made for `runner`."""
    arguments = runner.server_args
    algorithm = arguments.speculative_algorithm
    if algorithm is None:
        return
    if algorithm not in ALGORITHMS:
        raise outside("speculative_algorithm", algorithm, f"it is one of {', '.join(ALGORITHMS)}")
    if getattr(runner, "is_draft_worker", False):
        why = "the model that drafts runs with another backend: choose it"
        raise outside("speculative_draft_attention_backend", arguments.speculative_draft_attention_backend, why)
    if runner.use_mla_backend:
        raise outside("speculative_algorithm", algorithm, "a model with latent attention has no drafts here")
    count = arguments.speculative_num_draft_tokens
    if count is not None and count > MOST_DRAFTS:
        raise outside("speculative_num_draft_tokens", count, f"a request has at most {MOST_DRAFTS}")


def verify_mask(most_requests: int, drafts: int, device: torch.device) -> Any:
    """Where SGLang writes masks of its draft models: only what drafts see of each other, for contexts are seen anyway. None:
    the release has no such thing, and hands over masks of whole contexts."""
    try:
        from sglang.srt.layers.attention.verify_mask import VerifyMask
        from sglang.srt.speculative.eagle_utils import TreeMaskMode
    except ImportError:
        return None
    buffer = torch.zeros(most_requests * drafts * drafts, dtype=torch.bool, device=device)
    return VerifyMask(buffer=buffer, mode=TreeMaskMode.QLEN_ONLY, max_bs=most_requests)


@functools.lru_cache(maxsize=64)
def _chain(count: int, device: torch.device) -> torch.Tensor:
    """The words of a chain: each draft follows the one before."""
    row = [((2 << draft) - 1) >> 32 * word & 0xFFFFFFFF for draft in range(count) for word in range(-(-count // 32))]
    return torch.from_numpy(np.array(row, np.uint32).view(np.int32)).view(1, count, -1).to(device)


def words_for(spec: Any, lengths: np.ndarray[Any, Any], device: torch.device, own_mask: torch.Tensor | None) -> torch.Tensor:
    """Which drafts see which, [requests, drafts, words], of a verify input of SGLang; made where the mask is, without a copy to the
    host. `lengths`: tokens of each request before its drafts. `own_mask`: the buffer of verify_mask.

    SGLang hands over a mask of the context and the drafts, or of the drafts alone. It shows all of a context. Requests that it has
    no drafts of are those that fill a graph up; while one is captured there are no others. They have chains, whose results nobody
    reads."""
    count, requests = int(spec.draft_token_num), len(lengths)
    if count > MOST_DRAFTS:
        raise outside("speculative_num_draft_tokens", count, f"a request has at most {MOST_DRAFTS}")
    known = 0
    if spec.draft_token is not None and spec.custom_mask is not None:
        known = min(spec.draft_token.numel() // count, requests)
    chains = _chain(count, device).expand(requests - known, -1, -1)
    if known == 0:
        return chains.contiguous()
    mask = spec.custom_mask.reshape(-1)
    tokens = [int(length) + count for length in lengths[:known]]
    is_own = own_mask is not None and mask.data_ptr() == own_mask.data_ptr()
    if is_own or mask.numel() < count * sum(tokens):
        tokens = [count] * known
    ends = [*accumulate((count * length for length in tokens), initial=0)]
    if mask.numel() < ends[-1]:
        raise ValueError(f"custom_mask has {mask.numel()} elements and {ends[-1]} are needed for {known} requests of {count} drafts")
    rows = rows_of(ends[:-1], [count] * known, tokens, device)
    words = words_of(Bits(mask.to(device, non_blocking=True), is_packed=False), rows, has_padding=False)
    return words if known == requests else torch.cat([words, chains])


def let_trees_have_pages(name: str, log: logging.Logger) -> None:
    """SGLang refuses trees over pages of more than one token of every backend that it does not know. Here `name` is one that can:
    what SGLang says of others it says as before."""
    try:
        from sglang.srt.arg_groups import speculative_hook as hook
    except ImportError:
        log.info("this release of SGLang has draft trees with --page-size 1 only")
        return

    def is_served(arguments: Any) -> bool:
        decodes = arguments.speculative_attention_mode == "decode"
        chosen = arguments.decode_attention_backend if decodes else arguments.prefill_attention_backend
        drafting = arguments.speculative_algorithm == "NGRAM" or arguments.speculative_draft_attention_backend in _OF_PAGES
        return (chosen or arguments.attention_backend) == name and drafting and not arguments.enable_dp_attention

    def relaxed(check: Any) -> Any:
        @functools.wraps(check)
        def checked(server_args: Any) -> None:
            try:
                check(server_args)
            except ValueError as refusal:
                if "page_size" not in str(refusal) or not is_served(server_args):
                    raise

        checked.knows_deft = True  # type: ignore[attr-defined]
        return checked

    for function in ("_handle_ngram", "_handle_eagle_family"):
        check = getattr(hook, function, None)
        if check is not None and not hasattr(check, "knows_deft"):
            setattr(hook, function, relaxed(check))
