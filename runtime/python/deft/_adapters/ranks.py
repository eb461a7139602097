"""Makes all ranks of one model use the same configs.

Each machine keeps its own tuned configs, so ranks may know different ones. They would then plan and round differently. A rank
that captures a graph again, because its plan has grown, would wait in another collective than a rank that does not. So if ranks
differ, all use the configs of the first rank."""

from __future__ import annotations

import hashlib
import logging
import os
import pickle
import shutil
import stat
import tempfile
from pathlib import Path
from typing import Any, Mapping

import torch.distributed

from .._errors import UsageError

_log = logging.getLogger("deft")
_MOST_BYTES = 64 << 20  # of a file, as the library has it
Files = Mapping[str, bytes]


def agree_on_configs(group: Any = None) -> bool:
    """Makes the ranks of the group (None: of all processes) agree on configs. Each rank must call it before it compiles an
    attention. Returns True if this rank knew other configs: from then on it uses those of the group's first rank, and
    DEFT_CACHE_DIR and DEFT_CONFIG_PATH say where they are."""
    from .. import __version__

    known = _Known.read()
    mine = (known.digest, __version__)
    everyone: list[Any] = [None] * torch.distributed.get_world_size(group)
    torch.distributed.all_gather_object(everyone, mine, group=group)
    versions = sorted({version for _, version in everyone})
    if len(versions) > 1:
        raise UsageError(f"ranks of one model have deft {' and '.join(versions)}", "the same package for all ranks")
    if len(set(everyone)) == 1:
        return False
    first = 0 if group is None else torch.distributed.get_global_rank(group, 0)
    sent = [known if torch.distributed.get_rank(group) == 0 else None]
    torch.distributed.broadcast_object_list(sent, src=first, group=group)
    if known.digest == everyone[0][0]:
        return False
    sent[0].take()
    _log.warning("ranks know different tuned configs: this one takes those of the first, in %s", os.environ["DEFT_CACHE_DIR"])
    return True


class _Known:
    """The configs that a process may choose from, except those of the package."""

    def __init__(self, user: Files, override: Files) -> None:
        self.user, self.override = user, override

    @staticmethod
    def read() -> _Known:
        override = Path(os.environ.get("DEFT_CONFIG_PATH") or os.devnull)
        return _Known(_files(cache_folder() / "configs", is_private=True), _files(override, is_private=False))

    @property
    def digest(self) -> str:
        ordered = [sorted(files.items()) for files in (self.user, self.override)]
        return hashlib.sha256(pickle.dumps(ordered, protocol=4)).hexdigest()

    def take(self) -> None:
        """Makes this process use these configs. Their folder in the cache is named by their hash, so the next process finds the
        kernels that were compiled for them."""
        folder = cache_folder() / "ranks" / self.digest[:16]
        if not self._is_in(folder):
            folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            made = Path(tempfile.mkdtemp(prefix=".", dir=folder.parent))
            for name, files in (("configs", self.user), ("override", self.override)):
                (made / name).mkdir(mode=0o700)
                for file, content in files.items():
                    (made / name / file).write_bytes(content)
                    (made / name / file).chmod(0o600)
            try:
                made.rename(folder)
            except OSError:  # another rank of this machine was quicker, or somebody has changed what is there
                if self._is_in(folder):
                    shutil.rmtree(made)
                else:
                    folder = made
        os.environ["DEFT_CACHE_DIR"] = str(folder)
        os.environ.pop("DEFT_CONFIG_PATH", None)
        if self.override:
            only = [*self.override] if len(self.override) == 1 else []
            os.environ["DEFT_CONFIG_PATH"] = str(Path(folder, "override", *only))

    def _is_in(self, folder: Path) -> bool:
        there = _Known(_files(folder / "configs", is_private=True), _files(folder / "override", is_private=True))
        return there.digest == self.digest


def cache_folder() -> Path:
    """Returns the folder of the library's cache (specs/CONFIGS.md)."""
    named = os.environ.get("DEFT_CACHE_DIR")
    if named:
        return Path(named)
    shared = os.environ.get("XDG_CACHE_HOME", "")
    return Path(shared, "deftc") if shared.startswith("/") else Path(os.environ.get("HOME", os.devnull), ".cache", "deftc")


def _files(place: Path, is_private: bool) -> dict[str, bytes]:
    """Reads a file, or the files of a folder. Skips files that the library does not trust: links, and files that others may
    write."""
    found = sorted(place.glob("*.json")) if place.is_dir() else [place]
    if is_private and not _is_ours(place):
        return {}
    return {
        file.name: file.read_bytes()
        for file in found
        if file.is_file() and file.stat().st_size <= _MOST_BYTES and not (is_private and not _is_ours(file))
    }


def _is_ours(place: Path) -> bool:
    try:
        info = place.lstat()
    except OSError:
        return False
    return not stat.S_ISLNK(info.st_mode) and info.st_uid == os.getuid() and not info.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
