"""Checks what the shared library shows: the functions of <deft/deft.h> that the linker's map lists, each under its version
node and declared in a header, the classes of the public headers, what the program deftc calls, and nothing else, MLIR and
LLVM least of all.

usage: check_symbols.py LIBRARY MAP HEADERS      HEADERS: the folder of <deft/c/...>; exit code 1 with a line a fault
"""

import re
import subprocess
import sys
from pathlib import Path

NODE = re.compile(r"^(DEFT\w*_[\d.]+) \{(.*?)^\}", re.MULTILINE | re.DOTALL)
DECLARED = re.compile(r"^DEFT_C_API [^;]*?\b(deft_\w+)\(", re.MULTILINE)
CPP_CLASS = re.compile(r"_ZNK?4deft\d+[A-Z]|_ZN4deft\d+(compileSpec|compileSpecFile|doctorReport|hasCompiler|loadPackage|logKindName|mergeStates|quantize|roomFor|setLog|setNvtx|version)")

PRIVATE = {"deft_command_line": "DEFT_PRIVATE"}  # for the program deftc alone


def without_comments(text):
    return re.sub(r"#.*", "", text)


def listed_functions(map_text):
    """The C functions of the map: name -> node."""
    functions = {}
    for node, body in NODE.findall(without_comments(map_text)):
        for name in re.findall(r"\b(deft_\w+);", body):
            functions[name] = node
    return functions


def declared_functions(folder):
    return {name for header in Path(folder).glob("*.h") for name in DECLARED.findall(header.read_text(encoding="utf-8"))}


def shown_symbols(nm_output):
    """What `nm -D --defined-only --with-symbol-versions` prints: name -> version node, None without one."""
    symbols = {}
    for line in nm_output.splitlines():
        name, _, version = line.split()[-1].partition("@")
        kind = line.split()[-2]
        if kind == "A" and name.startswith("DEFT"):
            continue  # the node itself
        if kind in "bdrt":
            continue  # local: GNU ld lists what another library has too, and nobody can link it
        symbols[name] = version.lstrip("@") or None
    return symbols


def faults(listed, declared, shown):
    for name in sorted(declared - listed.keys()):
        yield f"{name} is declared in a header and not in the linker's map: no program can call it"
    for name in sorted(listed.keys() - declared):
        yield f"{name} is in the linker's map and declared in no header"
    for name, node in sorted(listed.items()):
        if name not in shown:
            yield f"{name} is in the linker's map and not defined in the library"
        elif shown[name] != node:
            yield f"{name} is of version {shown[name]} in the library, {node} in the map"
    for name, node in sorted(shown.items()):
        if name in listed or PRIVATE.get(name) == (node or ""):
            continue
        if not CPP_CLASS.match(name):
            yield f"{name} can be seen from outside, and is neither a function of <deft/deft.h> nor of a public class"
        elif node is None or not node.startswith("DEFT_CXX_"):
            yield f"{name} is of version {node}, classes are of DEFT_CXX_..."


def main():
    library, map_path, headers = sys.argv[1:]
    nm = subprocess.run(
        ["nm", "-D", "--defined-only", "--with-symbol-versions", library], check=True, capture_output=True, text=True
    )
    listed = listed_functions(Path(map_path).read_text(encoding="utf-8"))
    found = list(faults(listed, declared_functions(headers), shown_symbols(nm.stdout)))
    print("\n".join(found) if found else f"abi: {len(listed)} functions of C, the public classes, what deftc calls, and nothing else")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
