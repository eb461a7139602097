"""Checks that modules of the Python package import only modules of layers below their own, also within functions and for types.

usage: check_python_layers.py [PACKAGE]      prints one line a violation; exit code 1 when there is any
"""

import ast
import sys
from pathlib import Path

# From the bottom: a module imports what stands in a line before its own. Modules of one line do not know each other. A folder is
# one of them, whose own modules import each other without circles.
LAYERS = [
    ["_abi", "_ops"],  # made of the C headers, and of the table of operations
    ["_errors"],
    ["_arguments"],
    ["_library"],
    ["_capture", "_options", "_process", "_ranks", "_tensors"],
    ["_compiled", "_page", "_tree", "torch_ops"],
    ["_params"],
    ["_gpu"],
    ["_beam_tree", "_plans", "_sequence_tree"],
    ["_runs"],
    ["_attention"],
    ["_batch_inputs", "_operations"],
    ["_divided_plan", "_paged_batch", "_peers", "_tune"],
    ["torch_peers"],
    ["_tune_results"],
    ["_shards", "_tune_worker"],
    ["_expr"],
    ["_functions"],  # made of the table, too
    ["_captured"],
    ["lang"],
    ["_hook_arguments"],
    ["_spec_of_functions"],
    ["__init__"],  # what users import
    ["_adapters"],
    ["flash_mla", "flashinfer", "hf", "sglang", "vllm"],
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


def modules(package):
    """{name: file} of all modules, as "_tree" and "hf._cache"; a folder's own is "hf.__init__"."""
    found = {}
    for file in sorted(package.rglob("*.py")):
        found[".".join(file.relative_to(package).with_suffix("").parts)] = file
    return found


def target_of(parts, known, package):
    """The module of ours that `parts` name, of the package's own name or not; None for somebody else's."""
    if parts[:1] == [package]:
        parts = parts[1:]
    # A module, a folder, or a name within one of the two.
    for module in (parts, [*parts, "__init__"], parts[:-1], [*parts[:-1], "__init__"]):
        if ".".join(module) in known:
            return ".".join(module)
    return None


def imports(name, file, known, package):
    """(line, module of ours) of each import, wherever in the file it stands."""
    folder = [package, *name.split(".")[:-1]]
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            wanted = [one.name.split(".") for one in node.names if one.name.split(".")[0] == package]
        elif isinstance(node, ast.ImportFrom) and (node.level or (node.module or "").split(".")[0] == package):
            base = folder[: len(folder) - node.level + 1] if node.level else []
            base = base + (node.module.split(".") if node.module else [])
            wanted = [[*base, one.name] for one in node.names]
        else:
            continue
        for parts in wanted:
            target = target_of(parts, known, package)
            if target is not None and target != name:
                yield node.lineno, target


def circle_of(name, imported):
    """The modules of a circle through this one, from it to itself; None where there is none."""
    paths, seen = [[name]], set()
    while paths:
        path = paths.pop()
        for target in sorted(imported.get(path[-1], ())):
            if target == name:
                return [*path, target]
            if target not in seen:
                seen.add(target)
                paths.append([*path, target])
    return None


def violations(package):
    """Every broken promise of the package's files, sorted by path."""
    known = {**modules(package), "_abi": None, "_ops": None, "_functions": None}
    imported = {}
    for name, file in known.items():
        top = name.split(".")[0]
        if top not in LEVEL:
            yield f"{name}: belongs to no layer; add it to tests/layering/check_python_layers.py"
        if file is None:
            continue
        for line, target in imports(name, file, known, package.name):
            other = target.split(".")[0]
            if top == other:
                imported.setdefault(name, set()).add(target)
            elif top in LEVEL and other in LEVEL and LEVEL[other] >= LEVEL[top]:
                stands = "beside" if LEVEL[other] == LEVEL[top] else "above"
                yield f"{name}:{line}: {other} stands {stands} {top}, which may not import {target}"
    for name in known:
        circle = circle_of(name, imported)
        if circle and name == min(circle):
            yield f"{name}: a circle of imports, {' -> '.join(circle)}"


def main():
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[2] / "runtime/python/deft"
    found = list(violations(root))
    print("\n".join(found) if found else "layers of the Python package: every module imports only what is below it")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
