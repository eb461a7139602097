"""Pages of the API's reference: of public headers, and of the Python package's docstrings. Text alone: nothing is built or imported."""

import ast
import re
import textwrap

NAMES = (re.compile(r"\b(?:class|struct|enum class|enum)\s+(?:DEFT_API\s+)?(\w+)"), re.compile(r"\busing\s+(\w+)"),
         re.compile(r"#define\s+(\w+)"), re.compile(r"\b(\w+)\s*\("), re.compile(r"(\w+)\s*(?:=.*)?;$"))
SKIPPED = re.compile(r"#(pragma|include|if|endif|else|ifdef|ifndef)\b|namespace deft \{|\} // namespace deft|DEFT_C_(BEGIN|END)")


def without_private(code):
    return re.sub(r"\n *private:.*?(?=\n\};)", "", code, flags=re.DOTALL)


def declarations(text):
    """(comment, code) of each declaration of a header; a comment that stands alone has no code."""
    comment, code, depth = [], [], 0
    for line in text.splitlines():
        stripped = line.strip()
        if not code and SKIPPED.match(stripped):
            continue
        if not code and stripped.startswith("///"):
            comment.append(stripped[3:].removeprefix(" "))
            continue
        if not code and (not stripped or stripped.startswith("//")):
            if comment:
                yield "\n".join(comment), ""
            comment = []
            continue
        code.append(line)
        bare = re.sub(r"//.*", "", line).rstrip()
        depth += bare.count("{") - bare.count("}")
        if depth == 0 and (bare.endswith((";", "}")) or (code[0].lstrip().startswith("#define") and not bare.endswith("\\"))):
            yield "\n".join(comment), without_private("\n".join(code))
            comment, code = [], []
    if comment:
        yield "\n".join(comment), ""


def name_of(code):
    bare = re.sub(r"///?.*", "", code)
    if bare.lstrip().startswith(("enum {", "typedef enum {")):
        return "constants"
    for pattern in NAMES:
        found = pattern.search(bare)
        if found:
            return found[1]
    return code.split("\n")[0]


def as_text(comment):
    """A comment as Markdown: what is set in by more than a blank is an example."""
    out, example = [], []
    for line in [*comment.splitlines(), ""]:
        if line.startswith("  ") or (example and not line.strip() and out):
            example.append(line[2:] if line.startswith("  ") else "")
            continue
        if any(example):
            out += ["", "```cpp", *"\n".join(example).strip("\n").splitlines(), "```", ""]
        example = []
        out.append(line.replace("<", "&lt;"))
    if any(example):
        out += ["", "```cpp", *"\n".join(example).strip("\n").splitlines(), "```"]
    return "\n".join(out).strip()


def header_page(path, shown, language):
    """The page of one header."""
    parts = list(declarations(path.read_text(encoding="utf-8")))
    out = [f"# &lt;{shown}&gt;", ""]
    for comment, code in parts:
        if code:
            out += [f"## {name_of(code)}", ""]
        if comment:
            out += [as_text(comment), ""]
        if code:
            out += [f"```{language}", code, "```", ""]
    return "\n".join(out)


def as_docstring(text):
    """A docstring as Markdown: its examples, and what is set in, as code."""
    out, block = [], None
    for line in [*(text or "").splitlines(), ""]:
        is_code = line.startswith((">>>", "...")) or (block is not None and line.strip() and not block[-1].strip() == "") or line.startswith("    ")
        if is_code:
            block = [] if block is None else block
            block.append(line)
            continue
        if block is not None:
            language = "pycon" if block[0].startswith(">>>") else "python"
            out += ["", "```" + language, textwrap.dedent("\n".join(block)), "```", ""]
            block = None
        out.append(line)
    return "\n".join(out).strip()


def arguments(function):
    """The text of each argument, `*` and the like among them; without self."""
    whole = f"f({ast.unparse(function.args)})"
    call, out, depth = whole[2:-1], [""], 0
    for letter in call:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            out.append("")
        else:
            out[-1] += letter
    return [text.strip() for text in out if text.strip() not in ("", "self", "cls")]


def signature(function, name):
    """On one line where it fits, else a line for each argument."""
    returns = f" -> {ast.unparse(function.returns)}" if function.returns else ""
    parts = arguments(function)
    line = f"{name}({', '.join(parts)}){returns}"
    return line if len(line) <= 90 else f"{name}(\n" + "".join(f"    {part},\n" for part in parts) + f"){returns}"


def class_parts(node, known):
    """(heading, code, text) of a class and its methods, those of a base of the same package that has no page of its own among them."""
    bases = ", ".join(ast.unparse(base) for base in node.bases)
    yield f"## {node.name}", f"class {node.name}" + (f"({bases})" if bases else ""), ast.get_docstring(node)
    fields = [ast.unparse(item) for item in node.body if isinstance(item, ast.AnnAssign) and not ast.unparse(item.target).startswith("_")]
    if fields:
        yield "", "\n".join(fields), None
    is_made_elsewhere = "Made by" in (ast.get_docstring(node) or "")
    inherited = [item for base in node.bases if isinstance(known.get(ast.unparse(base)), ast.ClassDef)
                 for item in known[ast.unparse(base)].body if getattr(item, "name", "_") != "__init__"]
    for item in node.body + inherited:
        is_shown = isinstance(item, ast.FunctionDef) and (not item.name.startswith("_") or (item.name == "__init__" and not is_made_elsewhere))
        if is_shown:
            name = node.name if item.name == "__init__" else item.name
            is_property = any(ast.unparse(mark) == "property" for mark in item.decorator_list)
            shown = f"{name}: {ast.unparse(item.returns)}" if is_property and item.returns else signature(item, name)
            yield f"### {node.name}()" if item.name == "__init__" else f"### {node.name}.{item.name}", shown, ast.get_docstring(item)


def definitions(package):
    """{name: node} of all classes and functions of a package's files, its own `__init__` last."""
    found = {}
    for path in sorted(package.glob("*.py"), key=lambda path: path.name == "__init__.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
                found.setdefault(node.name, node)
    return found


def exported(tree):
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(ast.unparse(target) == "__all__" for target in node.targets):
            return ast.literal_eval(node.value)
    return [node.name for node in tree.body if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and not node.name.startswith("_")]


def python_page(path, module):
    """The page of a module, or of a package by the names that it shows."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    known = definitions(path.parent) if path.name == "__init__.py" else \
        {node.name: node for node in tree.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    out = [f"# {module}", "", as_docstring(ast.get_docstring(tree)), ""]
    for name in exported(tree):
        node = known.get(name)
        if isinstance(node, ast.ClassDef):
            parts = class_parts(node, known)
        elif node is not None:
            parts = [(f"## {name}", signature(node, f"{module}.{name}"), ast.get_docstring(node))]
        else:
            continue  # a module, or a value
        for heading, code, text in parts:
            out += [heading, "", "```python", code, "```", "", as_docstring(text), ""] if heading else ["```python", code, "```", ""]
    return "\n".join(out)
