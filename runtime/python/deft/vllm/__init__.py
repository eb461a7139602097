"""deft as an attention backend of vLLM: `--attention-backend CUSTOM`, once this package is installed beside it.

`deft.support()["engines"]["vLLM"]` has the supported releases and features.
"""

from __future__ import annotations

import logging

from .._adapters.releases import is_written_for, standing

BACKEND = "deft.vllm.backend.DeftBackend"
_log = logging.getLogger("vllm.deft")  # vLLM shows what is below its own name


def register() -> None:
    """vLLM calls it in each of its processes (entry point `vllm.general_plugins`)."""
    if not is_written_for("vLLM", _log):
        return
    from vllm.v1.attention.backends.registry import AttentionBackendEnum, register_backend

    custom = AttentionBackendEnum.CUSTOM
    if custom.is_overridden() and custom.get_path() != BACKEND:
        _log.warning("deft is left out: the attention backend CUSTOM is %s already", custom.get_path())
        return
    register_backend(custom, BACKEND)
    _log.info("the attention backend CUSTOM is deft, which %s", standing("vLLM"))
