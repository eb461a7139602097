"""Lays out the pages of the site: the repository's documents where they lie in it, what they point to, and the API's reference.

usage: stage.py FOLDER      FOLDER is made anew; mkdocs reads it

Documents keep their paths, so links between them need no change. A link to a source becomes one to a page that shows it, a link to a folder one
to a page that lists it, and a picture or a record is copied. For programs that read there are llms.txt and llms-full.txt (llms.py).
"""

import re
import shutil
import sys
from pathlib import Path

import llms
import reference

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "runtime/python"))
import generate_ops  # noqa: E402
DOCUMENTS = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "docs/*.md", "docs/evidence/*.md", "specs/*.md",
             "tests/gpu/records/*.md", "tests/SANITIZERS.md")
LINK = re.compile(r"(!?\[[^\]]*\]\()([^)\s]+)(\))")
FENCE = re.compile(r"^```(\S*)[^\n]*\n.*?^```$", re.DOTALL | re.MULTILINE)
NUMBERED = re.compile(r"^\d+\. .*\n(?:(?: {3}.*)?\n)*", re.MULTILINE)  # an item of a numbered list and all that is indented below it
SHOWN = {".cpp": "cpp", ".hpp": "cpp", ".h": "cpp", ".cuh": "cpp", ".c": "c", ".py": "python", ".deft": "text", ".td": "text", ".sh": "bash", "": "text"}
PYTHON = (("deft", "__init__.py"), ("deft.lang", "lang.py"), ("deft.hf", "hf/__init__.py"), ("deft.flashinfer", "flashinfer/__init__.py"),
          ("deft.torch_ops", "torch_ops.py"))


def nested(text):
    """What belongs to an item of a numbered list, by four columns: our documents indent by three, which mkdocs takes for the item's end. An item
    below points needs a blank line before it, or it becomes one of them."""
    def item_of(found):
        item = re.sub(r"^ {3}", "    ", found[0], flags=re.MULTILINE)
        return item + "\n" if "\n    - " in item and not item.endswith("\n\n") else item
    return NUMBERED.sub(item_of, text)


class Site:
    def __init__(self, root, folder):
        self.root, self.folder, self.broken = root, folder, []
        self.documents = sorted({path.relative_to(root) for pattern in DOCUMENTS for path in root.glob(pattern)})

    def write(self, path, text):
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")

    def page_of(self, path):
        """Where the site has a file or a folder of the repository."""
        if path == Path("README.md"):
            return Path("index.md")
        if path in self.documents:
            return path.with_name("index.md") if path == Path("docs/README.md") else path
        full = self.root / path
        if full.is_dir():
            page = Path("source") / path / "index.md"
            if not (self.folder / page).exists():
                names = sorted(entry.name + ("/" if entry.is_dir() else "") for entry in full.iterdir() if not entry.name.startswith((".", "__")))
                self.write(page, f"# {path}\n\nA folder of the repository:\n\n" + "".join(f"- `{name}`\n" for name in names))
            return page
        if full.suffix in SHOWN:
            page = Path("source") / (str(path) + ".md")
            if not (self.folder / page).exists():
                self.write(page, f"# {path.name}\n\n`{path}`\n\n````{SHOWN[full.suffix]}\n{full.read_text(encoding='utf-8')}\n````\n")
            return page
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(full, self.folder / path)
        return path

    def link(self, document, target):
        """The link as it is on the site."""
        if re.match(r"[a-z]+:", target) or target.startswith("#"):
            return target
        name, mark, anchor = target.partition("#")
        full = (self.root / document.parent / name).resolve()
        if not full.exists() or not full.is_relative_to(self.root):
            self.broken.append(f"{document}: {target}")
            return target
        page = self.page_of(full.relative_to(self.root))
        up = "../" * (len(self.page_of(document).parts) - 1)
        return up + page.as_posix() + mark + anchor

    def text(self, document):
        """A document with the links of the site. Blocks of code stay; what the tests read behind a language is left out, and the name that a
        block is saved under becomes its title."""
        text, out, at = (self.root / document).read_text(encoding="utf-8"), [], 0
        change = lambda words: LINK.sub(lambda found: found[1] + self.link(document, found[2]) + found[3], words)
        for block in FENCE.finditer(text):
            name = re.match(r"```\S* file=(\S+)", block[0])
            title = f' title="{name[1]}"' if name else ""
            out += [change(text[at:block.start()]), re.sub(r"^```(\S*)[^\n]*", lambda found: f"```{found[1]}{title}", block[0], count=1)]
            at = block.end()
        return nested("".join(out) + change(text[at:]))

    def reference(self):
        headers, index = self.root / "runtime/include/deft", ["# API reference", "", "Made of the public headers and of the package's docstrings.", ""]
        for title, pattern, language in (("C++", "*.hpp", "cpp"), ("C", "c/*.h", "c")):
            index += [f"## {title}", ""]
            for path in sorted(headers.glob(pattern)):
                shown = f"deft/{path.relative_to(headers)}"
                page = f"{title.lower().replace('+', 'p')}-{path.stem}.md"
                text = reference.header_page(path, shown, language)
                if text is None:
                    continue
                self.write(Path("api") / page, text)
                index.append(f"- [&lt;{shown}&gt;]({page})")
            index.append("")
        index += ["## Python", ""]
        operations = generate_ops.functions_text(self.root / "compiler/spec")
        for module, name in PYTHON:
            generated = operations if module == "deft.lang" else ""
            self.write(Path("api") / f"{module}.md", reference.python_page(self.root / "runtime/python/deft" / name, module, generated))
            index.append(f"- [{module}]({module}.md)")
        self.write(Path("api/index.md"), "\n".join(index) + "\n")

    def make(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        for document in self.documents:
            self.write(self.page_of(document), self.text(document))
        shutil.copy(self.root / "docs/site/site.css", self.folder)
        self.reference()
        config = (self.root / "docs/site/mkdocs.yml").read_text(encoding="utf-8")
        pages = lambda page: (self.folder / page).read_text(encoding="utf-8")
        self.write("llms.txt", llms.listing(pages, config))
        self.write("llms-full.txt", llms.full(pages, config))


def main():
    site = Site(ROOT, Path(sys.argv[1]).resolve())
    site.make()
    for fault in site.broken:
        print(f"broken link: {fault}", file=sys.stderr)
    return 1 if site.broken else 0


if __name__ == "__main__":
    sys.exit(main())
