"""Checks what the shared library shows: the functions that <deft/deft.h> declares, each under the version node that the
linker's map gives it, what the program deftc calls, and nothing else: no class, and MLIR and LLVM least of all.

usage: check_symbols.py LIBRARY MAP HEADERS      HEADERS: the folder of <deft/c/...>; exit code 1 with a line a fault
"""

import re
import subprocess
import sys
from pathlib import Path

NODE = re.compile(r"^(DEFT\w*_[\d.]+) \{(.*?)^\}", re.MULTILINE | re.DOTALL)
DECLARED = re.compile(r"^DEFT_C_API [^;]*?\b(deft_\w+)\(", re.MULTILINE)

PRIVATE = {"deftc_command_line": "DEFT_PRIVATE"}  # for the program deftc alone


def without_comments(text):
    return re.sub(r"#.*", "", text)


def listed_functions(map_text, declared):
    """The node that the map gives each declared function: the one that names it, else the one of all others."""
    named, others = {}, None
    for node, body in NODE.findall(without_comments(map_text)):
        for name in re.findall(r"\b(deft_\w*\*?);", body):
            if name == "deft_*":
                others = node
            else:
                named[name] = node
    return {name: named.get(name, others) for name in sorted(declared)}


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


def faults(listed, shown):
    for name, node in listed.items():
        if name not in shown:
            yield f"{name} is declared in a header and not in the library: no program can call it"
        elif shown[name] != node:
            yield f"{name} is of version {shown[name]} in the library, {node} in the map"
    for name, node in sorted(shown.items()):
        if name not in listed and PRIVATE.get(name) != (node or ""):
            yield f"{name} can be seen from outside, and is no function of <deft/deft.h>"


def main():
    library, map_path, headers = sys.argv[1:]
    nm = subprocess.run(
        ["nm", "-D", "--defined-only", "--with-symbol-versions", library], check=True, capture_output=True, text=True
    )
    listed = listed_functions(Path(map_path).read_text(encoding="utf-8"), declared_functions(headers))
    found = list(faults(listed, shown_symbols(nm.stdout)))
    print("\n".join(found) if found else f"abi: {len(listed)} functions of C, what deftc calls, and nothing else")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
