"""Writes deft/_abi.py: what <deft/deft.h> declares, for ctypes.

usage: generate_abi.py HEADERS OUTPUT      HEADERS: the folder of <deft/c/...>

Made of the headers when the library is built, so that the two cannot differ. deft_run_settings becomes a TypedDict as well:
Python's options of runs, so that another one is a field of C and what it does.
"""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "api"))
import c_headers  # noqa: E402

SCALARS = {
    "int32_t": "c_int32",
    "int64_t": "c_int64",
    "uint64_t": "c_uint64",
    "size_t": "c_size_t",
    "double": "c_double",
}
FUNCTION = re.compile(r"(.*?)(deft_\w+)\((.*)\)$")
CALLBACK = re.compile(r"(\w+) \(\*\w+\)\((.*)\)$")
NAMED = re.compile(r"(.*?)(\w+)$")  # what something is, and its name
HANDLE = re.compile(r"struct (\w+) \1$")
ARRAY = re.compile(r"(.*)\[(\d+)\]$")
SETTINGS = "deft_run_settings"


class Types:
    """Types of C as expressions of ctypes."""

    def __init__(self, declared):
        self.structs = declared.structs
        self.names = dict(SCALARS)
        self.handles = [found[1] for found in map(HANDLE.match, declared.types) if found]
        for declaration in declared.types:  # "int32_t deft_status", "void *deft_gpu_stream", "struct deft_tree deft_tree"
            kind, name = NAMED.match(declaration).groups()
            if "*" in kind:
                self.names[name] = "c_void_p"
            elif kind.strip() in SCALARS:
                self.names[name] = SCALARS[kind.strip()]

    def of(self, kind):
        kind = kind.strip()
        if kind == "void":
            return "None"
        if kind == "const char *":
            return "c_char_p"
        pointee = kind.removeprefix("const ").removeprefix("struct ").removesuffix(" *")
        if pointee in self.handles:
            return f"POINTER({pointee})"
        if "*" in kind:
            return "c_void_p"
        if kind in self.structs:
            return kind
        return self.names[kind]  # a KeyError is a type that this script does not know yet

    def of_field(self, declaration):
        callback = CALLBACK.match(declaration)
        if callback:
            result, arguments = callback.groups()
            return f"CFUNCTYPE({self.of(result)}, {', '.join(self.of_parameters(arguments).values())})"
        array = ARRAY.match(declaration)
        if array:
            return f"{self.of_field(array[1])} * {array[2]}"
        return self.of(declaration[: -len(c_headers.field_name(declaration))])

    def of_parameters(self, parameters):
        """By their names."""
        if parameters == "void":
            return {}
        return {name: self.of(kind) for kind, name in (NAMED.match(one).groups() for one in parameters.split(", "))}


def settings_of(described):
    """The options of runs: "Not 0: ..." describes a truth value, all else a number."""
    options = {name: text for name, text in described.items() if name != "reserved"}
    explained = [f"    `{name}`: {text.removeprefix('Not 0: ')}" for name, text in options.items()]
    lines = ["", "", "class RunSettings(TypedDict, total=False):", '    """' + "\n\n".join(explained).lstrip() + '"""', ""]
    return lines + [f"    {name}: {'bool' if text.startswith('Not 0: ') else 'int'}" for name, text in options.items()]


def text_of(declared, settings):
    types = Types(declared)
    lines = ['"""What <deft/deft.h> declares; made by generate_abi.py, not written."""', "", "from ctypes import ("]
    lines += [f"    {name}," for name in ["CFUNCTYPE", "POINTER", "Structure", *sorted({"c_char_p", "c_void_p", *SCALARS.values()})]]
    lines += [")", "from typing import Any, TypedDict", ""]
    lines += [f"{name} = {value}" for name, value in sorted(declared.values.items())]
    for name in types.handles:
        lines += ["", "", f"class {name}(Structure):", '    """Handles point to it; the library alone looks into it."""']
    for name, fields in declared.structs.items():
        lines += ["", "", f"class {name}(Structure):", "    _fields_ = ["]
        lines += [f'        ("{c_headers.field_name(one)}", {types.of_field(one)}),' for one in fields]
        lines.append("    ]")
    lines += settings_of(settings)
    lines += ["", "", "# The result's type, and those of the arguments by name.", "FUNCTIONS: dict[str, tuple[Any, dict[str, Any]]] = {"]
    for declaration in declared.functions:
        result, name, parameters = FUNCTION.match(declaration).groups()
        arguments = ", ".join(f'"{one}": {kind}' for one, kind in types.of_parameters(parameters).items())
        lines.append(f'    "{name}": ({types.of(result)}, {{{arguments}}}),')
    return "\n".join([*lines, "}", ""])


def main():
    headers, output = sys.argv[1:3]
    Path(output).parent.mkdir(parents=True, exist_ok=True)
    Path(output).write_text(text_of(c_headers.read(headers), c_headers.described(headers, SETTINGS)), encoding="utf-8")


if __name__ == "__main__":
    main()
