"""Which releases of an engine a plug-in was written for."""

from __future__ import annotations

import logging
import re
from importlib.metadata import PackageNotFoundError, version

EXPERIMENTAL = "is experimental: it has not been seen with the engine on a GPU"


def is_written_for(package: str, first: tuple[int, ...], last: tuple[int, ...], log: logging.Logger) -> bool:
    """Whether the installed release is one of these, both ends included; else the log says so."""
    try:
        installed = version(package)
    except PackageNotFoundError:
        log.warning("deft's plug-in of %s is left out: %s is not installed", package, package)
        return False
    numbers = tuple(int(part) for part in re.findall(r"\d+", installed)[: len(last)])
    if first <= numbers <= last:
        return True
    ends = [".".join(map(str, end)) for end in (first, last)]
    log.warning("deft's plug-in of %s is left out: it is for %s to %s, installed is %s", package, *ends, installed)
    return False
