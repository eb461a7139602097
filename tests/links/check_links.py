"""Checks that what documents and comments point to is there: files, anchors of documents, and, in docs/, paths of code.

usage: check_links.py [ROOT]      prints one line a broken link; exit code 1 when there is any
"""

import os
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent  # the check's own tests speak of files that are not there
SKIPPED = {".git", ".cache", "build", "installed", "shared"}
SOURCES = {".h", ".hpp", ".cpp", ".cuh", ".cu", ".td", ".py", ".mlir", ".deft", ".txt"}
LINK = re.compile(r"\]\(([^)\s]+)\)")
MENTION = re.compile(r"\b(docs/[\w-]+\.md)(#[\w-]+)?")  # in comments
CODE_PATH = re.compile(r"`((?:[\w.-]+/)+[\w.-]*)`")  # in docs/: of a file or a folder
HEADING = re.compile(r"^#+ +(.*?) *$", re.MULTILINE)
MARK = re.compile(r'<a id="([\w-]+)">')
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def slug(heading):
    """The anchor that a heading gets."""
    words = re.sub(r"[^\w\- ]", "", heading.lower())
    return words.replace(" ", "-")


def anchors_of(text):
    text = FENCED.sub("", text)
    return {slug(heading) for heading in HEADING.findall(text)} | set(MARK.findall(text))


class Checker:
    def __init__(self, root):
        self.root = root
        self.anchors = {}  # of documents, as they are asked for

    def fault(self, target, anchor):
        """What is wrong with a link to a path, or None."""
        if not target.exists():
            return "is not there"
        if anchor and target.suffix == ".md":
            if target not in self.anchors:
                self.anchors[target] = anchors_of(target.read_text(encoding="utf-8"))
            if anchor not in self.anchors[target]:
                return "has no such anchor"
        return None

    def links_of(self, path, text):
        """(as written, path, anchor) of all that a file points to."""
        if path.suffix == ".md":
            for link in LINK.findall(FENCED.sub("", text)):
                if not re.match(r"[a-z]+:", link):
                    name, _, anchor = link.partition("#")
                    yield link, (path.parent / name if name else path), anchor
            if path.parent == self.root / "docs":
                for name in CODE_PATH.findall(text):
                    yield name, self.root / name, ""
        else:
            for name, anchor in MENTION.findall(text):
                yield name + anchor, self.root / name, anchor[1:]

    def faults(self):
        for folder, folders, names in os.walk(self.root):
            folders[:] = sorted(set(folders) - SKIPPED)
            for path in sorted(Path(folder, name) for name in names):
                if (path.suffix != ".md" and path.suffix not in SOURCES) or path.parent == HERE:
                    continue
                text = path.read_text(encoding="utf-8", errors="replace")
                for link, target, anchor in self.links_of(path, text):
                    if fault := self.fault(target, anchor):
                        yield f"{path.relative_to(self.root).as_posix()}: {link} {fault}"


def main():
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[2]
    found = list(Checker(root).faults())
    print("\n".join(found) if found else "links: all that documents and comments point to is there")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
