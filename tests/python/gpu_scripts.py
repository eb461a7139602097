"""Programs of tests/gpu as modules, where the tests lie in the repository."""

import importlib.util
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "gpu"
needs_repository = pytest.mark.skipif(not FOLDER.is_dir(), reason="the tests lie without the repository")


def load_script(name):
    """One may import its neighbours."""
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(FOLDER))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(FOLDER))
    return module
