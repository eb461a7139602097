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


DETAIL = re.compile(r"^namespace (?:deft::)?detail \{.*?^\} // namespace (?:deft::)?detail\n", re.MULTILINE | re.DOTALL)
NO_FUNCTION = re.compile(r"\s*(?:extern|namespace|struct|class|enum|union|using)\b")


def end_of_block(text, at):
    """Behind the bracket that closes the one at `at`."""
    depth = 0
    while True:
        depth += (text[at] == "{") - (text[at] == "}")
        at += 1
        if depth == 0:
            return at


def is_body(statement):
    """Whether a bracket behind it begins a function's body, and not a value of an argument or of a member."""
    return statement.count("(") == statement.count(")") and statement.endswith((" ", "\n"))


def public_part(text):
    """A header of C++ without what it has for itself, and without the bodies of its functions."""
    text = DETAIL.sub("", text)
    out, statement, at = [], "", 0  # finished text, the statement that is being read, the place
    while at < len(text):
        letter = text[at]
        if text.startswith("//", at) or (letter == "#" and not statement.strip()):
            end = text.find("\n", at)
            if not statement.strip():
                out.append(statement)
                statement = ""
            if statement:
                statement += text[at:end]
            else:
                out.append(text[at:end])
            at = end
        elif letter == "{" and "(" in statement and not is_body(statement):
            end = end_of_block(text, at)
            statement, at = statement + text[at:end], end
        elif letter == "{" and "(" in statement and not NO_FUNCTION.match(statement):
            without_members = re.sub(r"\)\s*:\s[^:].*\Z", ")", statement.rstrip(), flags=re.DOTALL)
            out.append(without_members + ";")
            statement, at = "", end_of_block(text, at)
        elif letter in ";{}":
            out.append(statement + letter)
            statement, at = "", at + 1
        else:
            statement, at = statement + letter, at + 1
    return "".join([*out, statement])


def header_page(path, shown, language):
    """The page of one header; none where it has nothing for programs."""
    text = path.read_text(encoding="utf-8")
    parts = list(declarations(public_part(text) if language == "cpp" else text))
    if not any(code for _, code in parts) and DETAIL.search(text):
        return None
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


def field(item):
    """`name: type = default` of a class's field, of an option as `Annotated[type, Option(default, ...)]` has them."""
    said = item.annotation
    if not (isinstance(said, ast.Subscript) and ast.unparse(said.value) == "Annotated"):
        return ast.unparse(item)
    kind, option = said.slice.elts
    return f"{ast.unparse(item.target)}: {ast.unparse(kind)} = {ast.unparse(option.args[0])}"


def inherited_by(node, known):
    """What the bodies of a class's bases have, which are of the same package, and of theirs; what the class has itself is left out."""
    own, found = {getattr(item, "name", None) for item in node.body}, []
    for base in node.bases:
        of = known.get(ast.unparse(base))
        if isinstance(of, ast.ClassDef):
            found += [item for item in [*of.body, *inherited_by(of, known)] if getattr(item, "name", "_") not in own]
    return found


def class_parts(node, known):
    """(heading, code, text) of a class and its methods, those of a base of the same package that has no page of its own among them."""
    bases = ", ".join(ast.unparse(base) for base in node.bases)
    yield f"## {node.name}", f"class {node.name}" + (f"({bases})" if bases else ""), ast.get_docstring(node)
    fields = [field(item) for item in node.body if isinstance(item, ast.AnnAssign) and not ast.unparse(item.target).startswith("_")]
    if fields:
        yield "", "\n".join(fields), None
    is_made_elsewhere = "Made by" in (ast.get_docstring(node) or "")
    inherited = [item for item in inherited_by(node, known) if getattr(item, "name", "_") != "__init__"]
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


def python_page(path, module, generated=""):
    """The page of a module, or of a package by the names that it shows. `generated` is text that is made when the library is built, whose
    functions it shows, too."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    tree.body += [node for node in ast.parse(generated).body if isinstance(node, ast.FunctionDef)]
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
