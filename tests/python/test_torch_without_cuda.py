"""What takes the place of CUDA's libraries for a torch of the registry (tests/with_torch)."""

import importlib.util
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from gpu_scripts import needs_repository

SCRIPT = Path(__file__).resolve().parents[1] / "with_torch" / "without_cuda.py"
pytestmark = [
    needs_repository,
    pytest.mark.skipif(not all(map(shutil.which, ("cc", "nm", "readelf"))), reason="there is no compiler with its binutils"),
]
USES = """
extern void cuNowhereCreate(void), ncclNowhereInit(void);
void uses(void) { cuNowhereCreate(); ncclNowhereInit(); }
int unharmed(void) { return 7; }
"""


def link(folder, name, source, *options):
    command = ["cc", "-shared", "-fPIC", "-x", "c", "-", "-x", "none", "-o", folder / name, f"-Wl,-soname={name}", *options]
    subprocess.run(command, input=source, text=True, check=True)
    return folder / name


def run(library, call):
    code = f"import ctypes; print(ctypes.CDLL({str(library)!r}).{call}())"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


def script():
    spec = importlib.util.spec_from_file_location("without_cuda", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_library_loads_without_those_of_cuda_and_a_call_of_one_is_seen(tmp_path):
    versions = tmp_path / "versions"
    versions.write_text("libcunowhere.so.99 { cuNowhereCreate; };\n")
    real = [
        link(tmp_path, "libcunowhere.so.99", "void cuNowhereCreate(void) {}", f"-Wl,--version-script={versions}"),
        link(tmp_path, "libncclnowhere.so.99", "void ncclNowhereInit(void) {}"),
    ]
    user = link(tmp_path, "libtorch_cuda.so", USES, "-Wl,--no-as-needed", *real, "-Wl,-rpath,$ORIGIN", "-Wl,-z,now")
    assert run(user, "unharmed").stdout == "7\n"
    for library in real:
        library.unlink()
    assert "libcunowhere.so.99: cannot open" in run(user, "unharmed").stderr

    assert script().make_stand_in([user], tmp_path) == ["libcunowhere.so.99", "libncclnowhere.so.99"]
    assert script().make_stand_in([user], tmp_path) == ["libcunowhere.so.99", "libncclnowhere.so.99"]  # over those of before
    done = run(user, "unharmed")
    assert done.stdout == "7\n" and done.stderr == ""
    assert run(user, "uses").returncode in (-signal.SIGILL, -signal.SIGTRAP)


def test_a_library_that_needs_none_of_cuda_is_left_alone(tmp_path):
    user = link(tmp_path, "libtorch_cpu.so", "int unharmed(void) { return 7; }")
    assert script().make_stand_in([user], tmp_path) == [] and list(tmp_path.iterdir()) == [user]
