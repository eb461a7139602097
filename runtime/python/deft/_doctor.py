"""What this machine can do."""

from __future__ import annotations

import json
from typing import Any

from ._library import lib, take_text


class Doctor(dict[str, Any]):
    """A report: `usable`, and a finding each for compiler, cpu, gpu, nvrtc and cache, with `ok`, `text` and, where
    something is missing, `mend`. As text it is the findings as `deftc doctor` lists them."""

    def __repr__(self) -> str:
        lines = [f"deftc {self['deftc']}"]
        for name in ("compiler", "cpu", "gpu", "nvrtc", "cache"):
            finding = self[name]
            lines.append(f"  {'ok' if finding['ok'] else '--'}  {name:10}{finding['text']}")
            if "mend" in finding:
                lines.append(f"                = hint: {finding['mend']}")
        return "\n".join(lines)

    __str__ = __repr__


def doctor() -> Doctor:
    """What this machine can do, and how to mend what is missing.

    >>> import deft
    >>> deft.doctor()["cpu"]["ok"]
    True
    """
    return Doctor(json.loads(take_text(lib.deft_doctor)))
