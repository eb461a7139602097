"""Provides deft as an attention backend of vLLM: install this package next to vLLM and pass `--attention-backend CUSTOM`.

`deft.support()["engines"]["vLLM"]` has the supported releases and features."""

from __future__ import annotations

import logging
from typing import Any

from .._adapters.releases import is_written_for, standing

BACKEND = "deft.vllm.Backend"
_log = logging.getLogger("vllm.deft")  # vLLM shows what is below its own name


def register() -> None:
    """Registers the backend. vLLM calls this in each of its processes (entry point `vllm.general_plugins`)."""
    if not is_written_for("vLLM", _log):
        return
    from vllm.v1.attention.backends.registry import AttentionBackendEnum, register_backend

    custom = AttentionBackendEnum.CUSTOM
    if custom.is_overridden() and custom.get_path() != BACKEND:
        _log.warning("deft is left out: the attention backend CUSTOM is %s already", custom.get_path())
        return
    register_backend(custom, BACKEND)
    _log.info("the attention backend CUSTOM is deft, which %s", standing("vLLM"))


def __getattr__(name: str) -> Any:
    """Returns `Backend`: the class for the kind of model that vLLM is making layers for. vLLM imports it by its path. It has
    one place for another project's backend, but a backend serves either latent caches or all others."""
    if name != "Backend":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from vllm.config import get_current_vllm_config_or_none

    config = get_current_vllm_config_or_none()
    if config is not None and config.model_config is not None and config.model_config.use_mla:
        from .mla import DeftMLABackend

        return DeftMLABackend
    from .backend import DeftBackend

    return DeftBackend
