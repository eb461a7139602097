"""deft as an attention backend of vLLM: `--attention-backend CUSTOM`, once this package is installed beside it.

Experimental: written for vLLM's doors as they are from 0.22 to 0.26, and not yet seen with vLLM on a GPU.
"""

from __future__ import annotations

import logging

from .._doors.releases import EXPERIMENTAL, is_written_for

BACKEND = "deft.vllm.backend.DeftBackend"
_log = logging.getLogger("vllm.deft")  # vLLM shows what is below its own name


def register() -> None:
    """vLLM calls it in each of its processes (entry point `vllm.general_plugins`)."""
    if not is_written_for("vllm", (0, 22), (0, 26), _log):
        return
    from vllm.v1.attention.backends.registry import AttentionBackendEnum, register_backend

    custom = AttentionBackendEnum.CUSTOM
    if custom.is_overridden() and custom.get_path() != BACKEND:
        _log.warning("deft is left out: the attention backend CUSTOM is %s already", custom.get_path())
        return
    register_backend(custom, BACKEND)
    _log.info("the attention backend CUSTOM is deft, which %s", EXPERIMENTAL)
