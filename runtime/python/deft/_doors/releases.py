"""Which releases of an engine a plug-in was written for, and which it was seen with."""

from __future__ import annotations

import logging
import re
from importlib.metadata import PackageNotFoundError, version


def _numbers(release: str, count: int) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", release)[:count])


def is_written_for(package: str, first: tuple[int, ...], last: tuple[int, ...], log: logging.Logger) -> bool:
    """Whether the installed release is one of these, both ends included; else the log says so."""
    try:
        installed = version(package)
    except PackageNotFoundError:
        log.warning("deft's plug-in of %s is left out: %s is not installed", package, package)
        return False
    if first <= _numbers(installed, len(last)) <= last:
        return True
    ends = [".".join(map(str, end)) for end in (first, last)]
    log.warning("deft's plug-in of %s is left out: it is for %s to %s, installed is %s", package, *ends, installed)
    return False


def standing(package: str, seen: tuple[int, ...]) -> str:
    """What a plug-in says of itself once it is loaded. `seen`: the release whose engine ran with it on a GPU."""
    installed, name = version(package), f"{package} {'.'.join(map(str, seen))}"
    if _numbers(installed, len(seen)) == seen:
        return f"was seen with {name} on a GPU"
    return f"is experimental: it was seen with {name} on a GPU, not with {installed}"
