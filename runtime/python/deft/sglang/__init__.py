"""deft as an attention backend of SGLang: `--attention-backend deft`, or `--decode-attention-backend deft` with another for
prompts, once this package is installed beside it.

`deft.support()["engines"]["SGLang"]` has the supported releases and features.
"""

from __future__ import annotations

import logging
from typing import Any

from .._adapters.releases import is_written_for, standing

NAME = "deft"
_log = logging.getLogger("sglang.deft")


def register() -> None:
    """SGLang calls it in each of its processes (entry point `sglang.srt.plugins`)."""
    if not is_written_for("SGLang", _log):
        return
    from sglang.srt import server_args
    from sglang.srt.layers.attention.attention_registry import register_attention_backend

    register_attention_backend(NAME)(_make)
    if NAME not in server_args.ATTENTION_BACKEND_CHOICES:
        server_args.add_attention_backend_choices([NAME])
    from .verify import let_trees_have_pages

    let_trees_have_pages(NAME, _log)


def _make(runner: Any) -> Any:
    from .backend import DeftAttnBackend

    if runner.use_mla_backend:
        _keep_prompts_latent()
    # Not sooner: SGLang loads plug-ins before it says what is shown of its log.
    _log.info("the attention backend is %s; it %s", NAME, standing("SGLang"))
    return DeftAttnBackend(runner)


def _keep_prompts_latent() -> None:
    """Of a backend that SGLang does not know it expands K and V in prompts that have no prefix, and not in others."""
    from sglang.srt.models.deepseek_common.attention_backend_handler import AttentionBackendRegistry, AttnForwardMethod

    AttentionBackendRegistry.register(NAME, lambda attention, forward_batch: AttnForwardMethod.MLA)
