#!/usr/bin/env python3
"""Which arguments of a release of FlashInfer deft.flashinfer does not know, from the texts of both.

  python3 -m pip download --no-deps flashinfer-python==0.7.4
  tests/gpu/flashinfer_tests/arguments.py flashinfer_python-0.7.4-py3-none-any.whl

A class or function is compared wherever the release has it: each public method and its arguments, their order where they are taken by
position, and defaults. Ours may take more. What takes any arguments has all of them. Neither package is imported.

Exit code 0 where nothing is missing, 1 where something is.
"""

import ast
import sys
import zipfile
from pathlib import Path

OURS = Path(__file__).resolve().parents[3] / "runtime/python/deft/flashinfer"
# Of 0.6: `end_forward` went with 0.7. A wrapper's `plan` of 0.7 hands all to `_plan_impl`.
BEHIND = {"plan": "_plan_impl"}


class Signature:
    def __init__(self, arguments):
        by_place = [*arguments.posonlyargs, *arguments.args]
        without = len(by_place) - len(arguments.defaults)
        defaults = [None] * without + arguments.defaults + arguments.kw_defaults
        self.order = [one.arg for one in by_place]
        named = [*by_place, *arguments.kwonlyargs]
        self.defaults = {one.arg: value and _text(value) for one, value in zip(named, defaults, strict=True)}
        self.takes_all = arguments.vararg is not None and arguments.kwarg is not None

    def missing(self, ours):
        """What a call of ours would not take as this one does."""
        if ours.takes_all:
            return
        for name, default in self.defaults.items():
            if name not in ours.defaults:
                yield f"{name} is missing"
            elif default is not None and ours.defaults[name] != default:
                yield f"{name} is {ours.defaults[name]} without a value, not {default}"
        if not self.takes_all and ours.order[: len(self.order)] != self.order:
            yield f"by place it takes {', '.join(self.order)}"


def _text(value):
    text = ast.unparse(value).replace("torch.", "")
    return repr(ast.literal_eval(text)) if isinstance(value, ast.Constant) else text


def parsed(texts):
    """{class or function: a signature, or those of its methods} of files, and each class's bases."""
    found, bases = {}, {}
    for text in texts:
        for node in ast.parse(text).body:
            if isinstance(node, ast.FunctionDef):
                found[node.name] = Signature(node.args)
            elif isinstance(node, ast.ClassDef):
                found[node.name] = {one.name: Signature(one.args) for one in node.body if isinstance(one, ast.FunctionDef)}
                bases[node.name] = [base.id for base in node.bases if isinstance(base, ast.Name)]
                for one in node.body:  # begin_forward = plan, and functools.partialmethod(run, return_lse=True)
                    if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name):
                        value = one.value.args[0] if isinstance(one.value, ast.Call) and one.value.args else one.value
                        if isinstance(value, ast.Name) and value.id in found[node.name]:
                            found[node.name][one.targets[0].id] = found[node.name][value.id]
    return found, bases


def methods_of(name, found, bases):
    """With those of the classes that it is made from."""
    methods = {}
    for base in bases.get(name, []):
        if isinstance(found.get(base), dict):
            methods |= methods_of(base, found, bases)
    return methods | found[name]


def compare(theirs, ours, names):
    """Lines, one for each thing that is missing."""
    (found, bases), (known, known_bases) = theirs, ours
    for name in names:
        if name not in found:
            yield f"{name}: the release has none"
        elif isinstance(found[name], Signature):
            yield from (f"{name}: {what}" for what in found[name].missing(known[name]))
        else:
            has = methods_of(name, known, known_bases)
            their_methods = methods_of(name, found, bases)
            for method, signature in their_methods.items():
                if method.startswith("_") and method != "__init__":
                    continue
                if method not in has:
                    yield f"{name}.{method} is missing"
                    continue
                if signature.takes_all and BEHIND.get(method) in their_methods:
                    signature = their_methods[BEHIND[method]]
                    signature.order = []
                yield from (f"{name}.{method}: {what}" for what in signature.missing(has[method]))


def texts_of(wheel):
    """Of the files that may hold what we have, those of experiments and of traces left out."""
    left_out = ("experimental", "trace", "data", "moe_ep", "comm", "prims_ts")
    with zipfile.ZipFile(wheel) as file:
        for name in file.namelist():
            parts = name.split("/")
            if parts[0] == "flashinfer" and name.endswith(".py") and not set(parts) & set(left_out):
                yield file.read(name).decode()


def exported(folder):
    for node in ast.parse((folder / "__init__.py").read_text()).body:
        if isinstance(node, ast.Assign) and node.targets[0].id == "__all__":
            return ast.literal_eval(node.value)
    raise ValueError(f"{folder} exports nothing")


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    ours = parsed(path.read_text() for path in sorted(OURS.glob("*.py")))
    lines = list(compare(parsed(texts_of(sys.argv[1])), ours, exported(OURS)))
    print("\n".join(lines) or "nothing is missing")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
