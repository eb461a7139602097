"""deft as an attention backend of vLLM: `--attention-backend CUSTOM`, once this package is installed beside it.

Written for vLLM's doors as they are from 0.22 to 0.33, and seen with 0.26 on a GPU; with the others it is experimental.
"""

from __future__ import annotations

import logging

from .._doors.releases import is_written_for, standing

BACKEND = "deft.vllm.backend.DeftBackend"
SEEN = (0, 26)
_log = logging.getLogger("vllm.deft")  # vLLM shows what is below its own name


def register() -> None:
    """vLLM calls it in each of its processes (entry point `vllm.general_plugins`)."""
    if not is_written_for("vllm", (0, 22), (0, 33), _log):
        return
    from vllm.v1.attention.backends.registry import AttentionBackendEnum, register_backend

    custom = AttentionBackendEnum.CUSTOM
    if custom.is_overridden() and custom.get_path() != BACKEND:
        _log.warning("deft is left out: the attention backend CUSTOM is %s already", custom.get_path())
        return
    register_backend(custom, BACKEND)
    _log.info("the attention backend CUSTOM is deft, which %s", standing("vllm", SEEN))
