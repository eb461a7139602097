"""What <deft/deft.h> declares, as text of C: functions, types, structs with their fields, constants."""

import re
from dataclasses import dataclass, field
from pathlib import Path

COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
FUNCTION = re.compile(r"^DEFT_C_API ([^;]+);", re.MULTILINE)
TYPE = re.compile(r"^typedef ([^;{]+);", re.MULTILINE)
STRUCT = re.compile(r"^typedef struct (\w+) \{(.*?)^\} \1;", re.MULTILINE | re.DOTALL)
ENUM = re.compile(r"^enum \{(.*?)\};", re.MULTILINE | re.DOTALL)
CONSTANT = re.compile(r"\b(DEFT_\w+) = (-?\w+)")
FIELD_NAME = re.compile(r"\(\*(\w+)\)|(\w+)(?:\[\d+\])?$")
DESCRIBED = re.compile(r"((?:^ *///[^\n]*\n)*)^ *([^/\n]+;)(?: *///< ([^\n]*))?", re.MULTILINE)


def squeezed(text):
    return re.sub(r"\s+", " ", text).strip()


def function_name(declaration):
    return re.search(r"\b(deft_\w+)\(", declaration)[1]


def field_name(declaration):
    match = FIELD_NAME.search(declaration)
    return match[1] or match[2]


def in_order(structs):
    """By name, but each behind those that it contains."""
    ordered = {}

    def add(name):
        for one in structs[name]:
            inner = one.split()[0]
            if inner in structs and "*" not in one and inner not in ordered:
                add(inner)
        ordered.setdefault(name, structs[name])

    for name in sorted(structs):
        add(name)
    return ordered


def described(folder, struct):
    """The fields of a struct with their comments, each in one line."""
    for header in sorted(Path(folder).glob("*.h")):
        for name, body in STRUCT.findall(header.read_text(encoding="utf-8")):
            if name == struct:
                return {
                    field_name(declaration.rstrip(";")): squeezed(above.replace("///", " ") + behind)
                    for above, declaration, behind in DESCRIBED.findall(body)
                }
    raise KeyError(struct)


@dataclass
class Declared:
    functions: list[str] = field(default_factory=list)  # whole declarations, sorted by name
    types: list[str] = field(default_factory=list)  # "int32_t deft_status", "struct deft_tree deft_tree"
    structs: dict[str, list[str]] = field(default_factory=dict)  # name -> declarations of the fields, in_order()
    constants: list[str] = field(default_factory=list)
    values: dict[str, int] = field(default_factory=dict)  # of the constants


def read(folder):
    """All headers of the folder together."""
    declared = Declared()
    for header in sorted(Path(folder).glob("*.h")):
        text = COMMENT.sub("", header.read_text(encoding="utf-8"))
        declared.functions += [squeezed(match) for match in FUNCTION.findall(text)]
        declared.types += [squeezed(match) for match in TYPE.findall(text)]
        for name, body in STRUCT.findall(text):
            declared.structs[name] = [squeezed(line) for line in body.split(";") if squeezed(line)]
        for body in ENUM.findall(text):
            for name, value in CONSTANT.findall(body):
                declared.constants.append(name)
                declared.values[name] = int(value, 0)
    declared.functions.sort(key=function_name)
    declared.types.sort()
    declared.structs = in_order(declared.structs)
    return declared
