"""Runs the tests of the Python package, and the examples of its documentation, on a package in a folder or, without one, on
the one that is installed.

usage: run_tests.py [FOLDER [TEST...]]      TEST: files of this folder, in place of all

The exit code is 77 where this Python has no pytest, NumPy or ml_dtypes.
"""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
NEEDED = ("pytest", "numpy", "ml_dtypes")


def main():
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        print(f"skipped: {sys.executable} has no {', '.join(missing)}")
        return 77
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    if len(sys.argv) > 1:
        before = os.environ.get("PYTHONPATH")  # where torch may be
        environment["PYTHONPATH"] = os.pathsep.join([str(Path(sys.argv[1]).resolve()), *([before] if before else [])])
    # What imports torch when it is read: scripts, and what tests of deft.hf share.
    scripts = ("gpu_check.py", "hf_models.py", "hf_plain_lists.py", "hf_ranks.py", "hf_real_model.py", "gpu_flashinfer.py", "rank_example.py")
    left_out = [f"--ignore={HERE / name}" for name in scripts]
    # From its own folder, so that what is imported is the package and not its sources. deft.hf imports torch.
    tests = [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "--doctest-modules", "--doctest-ignore-import-errors"]
    tests += left_out
    chosen = sys.argv[2:] or ["--pyargs", "deft", str(HERE)]
    return subprocess.run([*tests, *chosen], cwd=HERE, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
