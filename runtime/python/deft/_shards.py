"""Joins the journals of several processes that tuned one session."""

from __future__ import annotations

import os
from ctypes import c_char_p
from typing import Iterable

from ._arguments import kind_of, path_of
from ._errors import wrong
from ._library import lib, make
from ._tune import TuneResult
from ._tune_results import result_of


def merge_shards(
    journals: Iterable[str | os.PathLike[str]], config_file: str | os.PathLike[str] | None = None, *, partial: bool = False
) -> TuneResult:
    """Joins the journals of all shards of one session (`tune(..., shard=(index, count))`, `deftc tune --shard`), in any order,
    and stores the results in `config_file`, by default this device's file in the user's cache. The result has the classes of
    all shards.

    An error names shards that are missing, given twice, unfinished, or of another session, device or release. With `partial`,
    missing and unfinished shards are warnings of the result."""
    if isinstance(journals, (str, bytes, os.PathLike)) or not hasattr(journals, "__iter__"):
        raise wrong("journals", f"is {kind_of(journals)}, it must be a list of paths")
    paths = [path_of(f"journals[{place}]", path) for place, path in enumerate(journals)]
    file = None if config_file is None else path_of("config_file", config_file)
    summary = make(lib.deft_tune_merge_shards, (c_char_p * len(paths))(*paths), len(paths), file, bool(partial))
    try:
        return result_of(summary)
    finally:
        lib.deft_free(summary)
