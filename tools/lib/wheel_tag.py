"""The oldest manylinux tag of a wheel: what its binaries ask of the C library, read from the files themselves.

A binary that asks for no newer symbols than glibc 2.34's runs wherever glibc is 2.34 or newer, and so says manylinux_2_34
(PEP 600). A machine whose compiler or C library makes it ask for more gives a later tag, never one that promises too much.
"""

import base64
import hashlib
import os
import re
import subprocess
import tempfile
import zipfile
from pathlib import Path

# glibc's parts; what else is asked for must lie in the wheel.
GLIBC = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
NEEDED = re.compile(r"\(NEEDED\) +Shared library: \[(.*)\]")
SONAME = re.compile(r"\(SONAME\) +Library soname: \[(.*)\]")
VERSION = re.compile(r"Name: GLIBC_(\S+)")
OF_ANOTHER_KIND = {"ABI_DT_RELR": "2.36"}  # a version by another name


def oldest_glibc(dumps):
    """The version (2, N) that binaries need, of which `readelf --dynamic --version-info` said these texts; None where they
    need something that is neither glibc's nor theirs."""
    carried = {name for dump in dumps for name in SONAME.findall(dump)}
    if any(name not in GLIBC | carried for dump in dumps for name in NEEDED.findall(dump)):
        return None
    newest = (2, 17)  # the oldest that has a tag of this kind
    for name in (name for dump in dumps for name in VERSION.findall(dump)):
        version = OF_ANOTHER_KIND.get(name, name)
        if not re.fullmatch(r"2(\.\d+)+", version):
            return None  # GLIBC_PRIVATE: of one version of glibc alone
        newest = max(newest, tuple(int(part) for part in version.split(".")[:2]))
    return newest


def dumps_of(wheel):
    """What readelf says of each binary in a wheel."""
    dumps = []
    with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory() as folder:
        for entry in archive.infolist():
            with archive.open(entry) as file:
                if file.read(4) != b"\x7fELF":
                    continue
            path = Path(archive.extract(entry, folder))
            command = ["readelf", "--wide", "--dynamic", "--version-info", path]
            dumps.append(subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"}).stdout)
    return dumps


def tagged(wheel, platform):
    """The wheel under another platform's tag, in its place; returns its new path."""
    *rest, old = wheel.stem.split("-")
    renamed = wheel.with_name("-".join([*rest, platform]) + ".whl")
    with zipfile.ZipFile(wheel) as archive, zipfile.ZipFile(renamed, "w") as copy:
        contents = {entry.filename: entry for entry in archive.infolist()}
        (says,) = (name for name in contents if name.endswith(".dist-info/WHEEL"))
        (record,) = (name for name in contents if name.endswith(".dist-info/RECORD"))
        said = re.sub(rf"^(Tag: .*-){re.escape(old)}$", rf"\g<1>{platform}", archive.read(says).decode(), flags=re.MULTILINE).encode()
        digest = base64.urlsafe_b64encode(hashlib.sha256(said).digest()).rstrip(b"=").decode()
        rows = re.sub(rf"^{re.escape(says)},.*$", f"{says},sha256={digest},{len(said)}", archive.read(record).decode(), flags=re.MULTILINE)
        changed = {says: said, record: rows.encode()}
        for name, entry in contents.items():
            copy.writestr(entry, changed.get(name) or archive.read(name), compress_type=entry.compress_type)
    wheel.unlink()
    return renamed


def with_oldest_tag(wheel):
    """Gives a wheel that is tagged for Linux in general the tag that its binaries allow, where there is one; its path."""
    wheel = Path(wheel)
    platform = wheel.stem.split("-")[-1]
    if not platform.startswith("linux_"):
        return wheel
    try:
        glibc = oldest_glibc(dumps_of(wheel))
    except FileNotFoundError:
        return wheel  # no readelf
    if glibc is None:
        return wheel
    return tagged(wheel, f"manylinux_{glibc[0]}_{glibc[1]}_{platform.removeprefix('linux_')}")
