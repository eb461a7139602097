"""Compares the functions of C in the shared library with the text that is kept of them, by abidiff: what the compiler of
C++ made of them against what a compiler of C makes of the text.

usage: check_binary.py COMPILER LIBRARY MAP KEPT      exit code 77 where there is no abidiff

The text becomes a library of empty functions with the same names, types and version nodes. The library must have been
compiled with debug information (-g2) of these functions.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import check_symbols

FUNCTION = re.compile(r"^[^{}\n]*?\b(deft_\w+)\(", re.MULTILINE)  # of the kept text

# The library shows what the program deftc calls, too; nothing of it is kept.
ONLY_C = """[suppress_function]
  symbol_name_not_regexp = ^deft_
  drop = yes
[suppress_function]
  symbol_version = DEFT_PRIVATE
  drop = yes
"""


def stub_of(kept):
    """The C source that the kept text stands for."""
    functions, types, structs = [], [], {}
    fields = None
    for line in kept.splitlines():
        if line.startswith("typedef "):
            types.append(line + ";")
        elif match := re.match(r"struct (\w+), ", line):
            fields = structs.setdefault(match[1], [])
        elif match := re.match(r"  \d+: (.*)", line):
            fields.append(f"  {match[1]};")
        elif "(" in line and not line.startswith("DEFT_"):
            functions.append(line + (" {}" if line.startswith("void ") else " { return 0; }"))
    forward = [f"typedef struct {name} {name};" for name in structs]
    bodies = [line for name, own in structs.items() for line in (f"struct {name} {{", *own, "};")]
    return "\n".join(["#include <stddef.h>", "#include <stdint.h>", *forward, *types, *bodies, *functions, ""])


def version_script_of(listed):
    nodes = {}
    for name, node in listed.items():
        nodes.setdefault(node, []).append(name)
    return "".join(f"{node} {{ global: {'; '.join(names)}; }};\n" for node, names in sorted(nodes.items()))


def soname_of(library):
    read = subprocess.run(["readelf", "-d", library], check=True, capture_output=True, text=True)
    return re.search(r"soname: \[(.*)\]", read.stdout)[1]


def build_stub(compiler, kept, map_text, soname, folder):
    """Compiles the kept text to a shared library, stub.so in the folder."""
    (folder / "stub.c").write_text(stub_of(kept), encoding="utf-8")
    script = folder / "stub.map"
    script.write_text(version_script_of(check_symbols.listed_functions(map_text, FUNCTION.findall(kept))), encoding="utf-8")
    command = [compiler, "-std=c99", "-w", "-g", "-fPIC", "-shared", folder / "stub.c"]
    subprocess.run([*command, f"-Wl,--version-script={script},-soname,{soname}", "-o", folder / "stub.so"], check=True)


def compare(folder, library):
    """What abidiff says of the stub in the folder and the library, and whether it found no difference."""
    suppressions = folder / "only_c.suppr"
    suppressions.write_text(ONLY_C, encoding="utf-8")
    # That handles, of which the text says nothing, are classes in the library is no difference to abidiff.
    command = ["abidiff", "--suppressions", suppressions, folder / "stub.so", library]
    ran = subprocess.run(command, capture_output=True, text=True)
    return ran.stdout + ran.stderr, ran.returncode == 0


def main():
    compiler, library, map_path, kept = sys.argv[1:]
    if not shutil.which("abidiff"):
        print("SKIPPED: THE BINARY IS NOT COMPARED, there is no abidiff here; tools/test installs it (package abigail-tools)")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        texts = [Path(path).read_text(encoding="utf-8") for path in (kept, map_path)]
        build_stub(compiler, *texts, soname_of(library), Path(folder))
        said, is_same = compare(Path(folder), library)
    print("abi: the binary has what is kept" if is_same else said)
    return 0 if is_same else 1


if __name__ == "__main__":
    sys.exit(main())
