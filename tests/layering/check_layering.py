"""Checks that folders depend only on folders above them, and the other promises that an #include can break.

usage: check_layering.py [ROOT]      prints one line a violation; exit code 1 when there is any
"""

import re
import sys
from pathlib import Path

# From the top: a folder may include itself and whatever stands before it. The longest matching prefix counts.
LAYERS = [
    "templates",
    "compiler/support",
    "compiler/spec",
    "specs",
    "compiler/target",
    "compiler/config",
    "compiler/kernels",
    "compiler/codegen/cuda",
    "compiler/package",
    "compiler/dialect",
    "compiler/transforms",
    "compiler/codegen/cuda/hooks",
    "compiler/codegen/cpu",
    "compiler/driver",
    "runtime/include",
    "runtime/tree",
    "runtime/sharing",
    "runtime/plan",
    "runtime/device",
    "runtime/nvrtc",
    "runtime/module_cache",
    "runtime/exec",
    "runtime/peers",
    "runtime/config_cache",
    "runtime/reference",
    "runtime/program",
    "runtime/capture",
    "runtime/doctor",
    "runtime/api",
    "tuner/workload",
    "tuner/replay",
    "tuner/bench",
    "tuner/measure",
    "tuner/space",
    "tuner/search",
    "tuner/accounting",
    "tuner/sparse",
    "tuner/session",
    "tuner/api",
    "tuner/calibrate",
    "tuner/regret",
    "tuner/report",
    "tools/deftc/common",
    "tools/deftc/emit",
    "tools/deftc/plan",
    "tools/deftc/run",
    "tools/deftc/replay",
    "tools/deftc/compare",
    "tools/deftc/bench",
    "tools/deftc/cache",
    "tools/deftc/tune",
    "tools/deftc/shell",
    "tools/deftc",
    "tools",
    "tests",
]

# The half that needs LLVM and MLIR. Everything else reaches it through compiler/driver, if at all.
MLIR_HALF = ("compiler/dialect", "compiler/transforms", "compiler/codegen/cuda/hooks", "compiler/codegen/cpu")
MLIR_HEADER = re.compile(r"(mlir|mlir-c|llvm|llvm-c)/")
MAY_INCLUDE_MLIR = MLIR_HALF + ("compiler/driver", "tools/deft-opt", "tests")
# The build without the compiler lacks compiler/driver, so only what that build also lacks or guards may need it.
MAY_INCLUDE_DRIVER = ("compiler/driver", "runtime/program", "tools", "tests")

CUDA_HEADER = re.compile(r"(cuda|cuda_\w+|nvrtc|cooperative_groups|mma)\.h$|(cuda|cute|cutlass|cub|thrust)/")
MAY_INCLUDE_CUDA = ("runtime/device", "runtime/nvrtc", "tests/gpu", "tests/unit/runtime/device")

# The library's inside speaks C: the classes of C++ are headers over it, for programs.
CPP_HEADER = re.compile(r"runtime/include/deft/\w+\.hpp$")
WITHOUT_CPP_HEADERS = ("compiler", "runtime", "tuner", "tools")

# What a public header may include: standard headers have neither a slash nor an extension, the C ABI has C's.
STANDARD_HEADER = re.compile(r"[a-z_0-9]+$|(stddef|stdint|stdbool)\.h$")

SUFFIXES = {".h", ".hpp", ".c", ".cpp", ".cuh", ".cu", ".inc"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')

# Programs of somebody else, as far as includes go: they may know the public headers and their own folder.
OUTSIDE = ("tests/host_program/project", "tests/host_program/c_project")

MAX_LINES = 500
# Longer files, each with its reason.
LONG_FILES: dict[str, str] = {
    "tests/device/AttendCase.h": "one launch of any family, and what has to come of it",
}


def layer_of(path):
    """The longest layer that is a prefix of `path`, or None."""
    hits = [layer for layer in LAYERS if path == layer or path.startswith(layer + "/")]
    return max(hits, key=len, default=None)


def is_under(path, folders):
    return any(path.startswith(folder + "/") for folder in folders)


def own_target(path, name):
    """The file of ours, from the root, that `name` means in `path`; None for somebody else's."""
    if name.startswith("deft/"):
        # Device code sees the templates folder, host code the public headers.
        return ("templates/" if path.startswith("templates/") else "runtime/include/") + name
    return name if layer_of(name) else None


def check_include(path, name, quoted):
    """The promises that the line `#include name` in `path` breaks, as sentences."""
    target = own_target(path, name)
    layer = layer_of(path)
    if is_under(path, OUTSIDE):
        if target and layer_of(target) != "runtime/include":
            yield f"a host program includes public headers only, here {name}"
        return
    if layer == "templates":
        if target is None or layer_of(target) != "templates":
            yield f"templates include nothing from outside, here {name}"
        return
    if target and CPP_HEADER.match(target) and layer != "runtime/include" and is_under(path, WITHOUT_CPP_HEADERS):
        yield f"the library is made without the classes of C++, which are headers over it, here {name}"
        return
    if layer == "runtime/include":
        if target is None and not STANDARD_HEADER.match(name):
            yield f"public headers include standard headers only, here {name}"
            return
    if MLIR_HEADER.match(name):
        if not is_under(path, MAY_INCLUDE_MLIR):
            yield f"only {', '.join(MAY_INCLUDE_MLIR)} may include LLVM and MLIR, here {name}"
        if path.startswith("compiler/driver/") and path.endswith(".h"):
            yield f"the headers of compiler/driver show no MLIR, here {name}"
        return
    if CUDA_HEADER.match(name) and not is_under(path, MAY_INCLUDE_CUDA):
        yield f"only {', '.join(MAY_INCLUDE_CUDA)} may include CUDA's headers, here {name}"
        return
    if target is None:
        if quoted:
            yield f"own files are included from the repository root, here {name}"
        return
    if LAYERS.index(layer_of(target)) > LAYERS.index(layer):
        yield f"{layer} stands above {layer_of(target)}, so it may not include {name}"
    elif layer_of(target) in MLIR_HALF and not is_under(path, MAY_INCLUDE_MLIR):
        yield f"{layer_of(target)} is reached through compiler/driver, so {layer} may not include {name}"
    elif layer_of(target) == "compiler/driver" and not is_under(path, MAY_INCLUDE_DRIVER):
        yield f"{layer} must build without the compiler, so it may not include {name}"


def check_file(root, path):
    lines = (root / path).read_text(encoding="utf-8").splitlines()
    if layer_of(path) is None:
        yield f"{path}: belongs to no layer; add its folder to tests/layering/check_layering.py"
        return
    for number, line in enumerate(lines, 1):
        if match := INCLUDE.match(line):
            for fault in check_include(path, match[2], match[1] == '"'):
                yield f"{path}:{number}: {fault}"
    if path.endswith((".h", ".hpp", ".cuh")):
        if "#pragma once" not in lines:
            yield f"{path}: a header begins with #pragma once"
        for number, line in enumerate(lines, 1):
            if line.startswith("using namespace"):
                yield f"{path}:{number}: no using namespace in a header"
    if len(lines) > MAX_LINES and path not in LONG_FILES:
        yield f"{path}: {len(lines)} lines, at most {MAX_LINES} without a reason in LONG_FILES"


def violations(root):
    """Every broken promise under `root`, sorted by path."""
    folders = sorted({layer.split("/")[0] for layer in LAYERS})
    for folder in folders:
        for file in sorted((root / folder).rglob("*")):
            if file.suffix in SUFFIXES and file.is_file():
                yield from check_file(root, file.relative_to(root).as_posix())


def main():
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[2]
    found = list(violations(root))
    print("\n".join(found) if found else "layering: every folder depends only on folders above it")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
