"""Compares the C ABI as a compiler of C lays it out with the text that is kept of it.

usage: check_kept.py COMPILER INCLUDE_FOLDER KEPT [--update]

The text has every function with its types, every struct with the places of its fields, every constant with its value. A
line that goes or differs breaks programs that were compiled before; new functions, new constants and new fields at the
end of structs that begin with `size` do not. --update writes the kept text anew.
"""

import difflib
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "runtime/api"))
import c_headers  # noqa: E402


def program_of(declared):
    """A C program that prints structs and constants."""
    lines = ["#include <deft/deft.h>", "#include <stdio.h>", "int main(void) {"]
    for name, fields in declared.structs.items():
        lines.append(f'  printf("struct {name}, %zu bytes\\n", sizeof({name}));')
        for declaration in fields:
            place = f"offsetof({name}, {c_headers.field_name(declaration)})"
            lines.append(f'  printf("  %zu: {declaration}\\n", {place});')
    lines += [f'  printf("{name} = %d\\n", {name});' for name in declared.constants]
    return "\n".join([*lines, "  return 0;", "}", ""])


def describe(compiler, include):
    declared = c_headers.read(Path(include, "deft/c"))
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder, "abi.c"), Path(folder, "abi")
        source.write_text(program_of(declared), encoding="utf-8")
        subprocess.run([compiler, "-std=c99", f"-I{include}", source, "-o", program], check=True)
        laid_out = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    return "\n".join([*declared.functions, *(f"typedef {name}" for name in declared.types), laid_out])


def main():
    compiler, include, kept = sys.argv[1:4]
    now = describe(compiler, include)
    if sys.argv[4:] == ["--update"]:
        Path(kept).write_text(now, encoding="utf-8")
        return 0
    before = Path(kept).read_text(encoding="utf-8")
    difference = list(difflib.unified_diff(before.splitlines(), now.splitlines(), "kept", "now", lineterm=""))
    if difference:
        print("\n".join(difference))
        print("the C ABI is another than the one that is kept; where that breaks no program, `tools/dev abi` keeps it")
        return 1
    print(f"abi: as it is kept, {len(before.splitlines())} lines")
    return 0


if __name__ == "__main__":
    sys.exit(main())
