"""The releases of an engine that a plug-in supports, and their features: the declarations of the support table."""

from __future__ import annotations

import functools
import logging
import re
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from .._process import support


@functools.cache
def declared(engine: str) -> dict[str, Any]:
    """Returns an engine's part of the table, `deft.support()["engines"]`."""
    of_engine: dict[str, Any] = support()["engines"][engine]
    return of_engine


def takes(engine: str, feature: str) -> bool:
    """Returns whether the plug-in declares the feature as supported."""
    [row] = [row for row in declared(engine)["features"] if row["feature"] == feature]
    return bool(row["state"] != "no")


def _numbers(release: str, count: int) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", release)[:count])


def is_written_for(engine: str, log: logging.Logger) -> bool:
    """Returns whether the plug-in supports the installed release. If not, it logs that it stays out."""
    known = declared(engine)
    package, first, last = known["package"], known["first"], known["last"]
    try:
        installed = version(package)
    except PackageNotFoundError:
        log.warning("deft's plug-in for %s stays out: %s is not installed", engine, package)
        return False
    count = last.count(".") + 1
    if _numbers(first, count) <= _numbers(installed, count) <= _numbers(last, count):
        return True
    log.warning("deft's plug-in for %s stays out: it supports %s to %s, installed is %s", engine, first, last, installed)
    return False


def standing(engine: str) -> str:
    """Describes for the log how well the installed release was tested."""
    known = declared(engine)
    installed, tested = version(known["package"]), known["tested_with"]
    if _numbers(installed, tested.count(".") + 1) == _numbers(tested, 9):
        return f"was tested on a GPU with {engine} {tested}"
    return f"is experimental: it was tested on a GPU with {engine} {tested}, not with {installed}"
