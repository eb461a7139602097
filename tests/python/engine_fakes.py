"""Modules of engines that are not installed, with what the plug-ins take from them."""

import enum
import importlib.metadata
import sys
import types


def install(monkeypatch, package, version, modules):
    """`modules`: name -> what is in it."""
    for name, contents in modules.items():
        parts = name.split(".")
        for end in range(1, len(parts) + 1):
            parent = ".".join(parts[:end])
            if parent not in sys.modules:
                monkeypatch.setitem(sys.modules, parent, types.ModuleType(parent))
            if end > 1:
                setattr(sys.modules[".".join(parts[: end - 1])], parts[end - 1], sys.modules[parent])
        vars(sys.modules[name]).update(contents)
    real = importlib.metadata.version
    monkeypatch.setattr(
        "deft._adapters.releases.version", lambda asked: version if asked == package else real(asked)
    )


def forget(monkeypatch, *modules):
    """They are imported anew, and the ones of this test are not kept."""
    for name in modules:
        monkeypatch.delitem(sys.modules, name, raising=False)
        parent, _, last = name.rpartition(".")
        if parent in sys.modules:
            monkeypatch.delattr(sys.modules[parent], last, raising=False)


class Support(enum.Enum):
    ALWAYS = 3
    UNIFORM_BATCH = 2
    UNIFORM_SINGLE_TOKEN_DECODE = 1
    NEVER = 0
