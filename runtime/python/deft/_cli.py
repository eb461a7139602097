"""The console script `deftc`: the program of the wheel, in the place of this process."""

from __future__ import annotations

import os
import sys

from ._library import FOLDER


def main() -> None:
    program = str(FOLDER / "bin" / "deftc")
    try:
        os.execv(program, [program, *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"cannot run {program}: {error.strerror}")
