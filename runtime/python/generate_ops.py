"""Writes deft/_ops.py and deft/_functions.py: what Python knows of the operations of the
language, and of the types of elements.

usage: generate_ops.py SPEC FOLDER      SPEC: the folder compiler/spec
"""

import json
import re
import sys
from pathlib import Path

LIST = re.compile(r"#define DEFT_(\w+)\(X\)((?:.*\\\n)+.*)")
COLUMNS = {"OPERATORS": 8, "FUNCTIONS": 7, "MATH_FUNCTIONS": 11, "DTYPES": 7}


def rows_of(text, name):
    """The columns of each row of the list DEFT_name, as text."""
    body = dict(LIST.findall(text))[name].replace("\\\n", " ")
    rows, depth, columns = [], 0, [""]
    for letter in re.sub(r"/\*.*?\*/", "", body):
        depth += (letter == "(") - (letter == ")")
        if depth == 0 and letter == ")":
            rows.append([column.strip().strip('"') for column in columns])
        elif depth == 1 and letter in "(,":
            columns = [""] if letter == "(" else [*columns, ""]
        else:
            columns[-1] += letter
    if not rows or {len(row) for row in rows} != {COLUMNS[name]}:
        raise SystemExit(f"the rows of DEFT_{name} are not of {COLUMNS[name]} columns")
    return rows


def data_of(table, tensors):
    """deft/_ops.py, below expressions."""
    functions, math = rows_of(table, "FUNCTIONS"), rows_of(table, "MATH_FUNCTIONS")
    natural = [row[2] for row in functions if row[5] == "true"] + [row[2] for row in math if row[3] == "true"]
    binary = {row[5]: int(row[6]) for row in rows_of(table, "OPERATORS") if row[6] != "0"}
    eight_bit = {row[1]: row[6] for row in rows_of(tensors, "DTYPES") if row[2] == "1"}
    return [
        f"FUNCTIONS = {json.dumps([row[2] for row in functions + math])}",
        f"REALS = {json.dumps(reals_of(table))}  # functions of one f32",
        f"NATURAL = {json.dumps(natural)}  # never below 0",
        f"PRECEDENCE = {json.dumps(binary)}",
        f"EIGHT_BIT_DTYPES = {json.dumps(eight_bit)}  # as a spec and as libraries of arrays have them",
    ]


def reals_of(table):
    functions, math = rows_of(table, "FUNCTIONS"), rows_of(table, "MATH_FUNCTIONS")
    return [row[2] for row in functions if row[3:5] == ["1", "Reals"]] + [row[2] for row in math]


def functions_of(table):
    """deft/_functions.py, above expressions."""
    reals = reals_of(table)
    lines = ["from typing import Any, Callable", "", "from ._expr import Expr, call", "", f"__all__ = {json.dumps(reals)}"]
    for word in reals:
        lines += ["", "", f"def {word}(value: Any) -> Expr:", f'    return call("{word}", value)']
    return [*lines, "", "", "REALS: dict[str, Callable[[Any], Expr]] = {", *(f'    "{word}": {word},' for word in reals), "}"]


def text_of(lines):
    head = ['"""The operations of the language; made by generate_ops.py, not written."""', "", "from __future__ import annotations", ""]
    return "\n".join([*head, *lines, ""])


def functions_text(spec):
    return text_of(functions_of(Path(spec, "Operations.h").read_text(encoding="utf-8")))


def main():
    spec, folder = map(Path, sys.argv[1:3])
    table, tensors = (Path(spec, name).read_text(encoding="utf-8") for name in ("Operations.h", "Tensors.h"))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "_ops.py").write_text(text_of(data_of(table, tensors)), encoding="utf-8")
    (folder / "_functions.py").write_text(functions_text(spec), encoding="utf-8")


if __name__ == "__main__":
    main()
