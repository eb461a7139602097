"""The program deftc, of the wheel or of the build tree."""

import subprocess
from pathlib import Path

import deft

_OF_WHEEL = Path(deft.__file__).absolute().parent / "bin" / "deftc"
_OF_BUILD = Path(deft.get_library()).resolve().parents[2] / "tools" / "deftc" / "deftc"


def program():
    return _OF_WHEEL if _OF_WHEEL.exists() else _OF_BUILD


def deftc(*arguments):
    """What it prints; an error where it fails."""
    done = subprocess.run([program(), *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout
