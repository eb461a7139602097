"""llms.txt and llms-full.txt at the site's root, for programs that read documents: a list of the pages with a sentence about each, and the
documents themselves in one text. Made of the pages and of the order in mkdocs.yml."""

import re

FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
FULL = ("Begin", "The language", "Understand", "Use")  # the sections whose documents are in llms-full.txt


def sections(config):
    """[(section, [page])] of the `nav` of mkdocs.yml; a section of one page is a list of one."""
    nav = config[config.index("\nnav:\n"):]
    found = []
    for name, pages in re.findall(r"^  - ([^:\n]+): (.+)$", nav, re.MULTILINE):
        found.append((name, [page.strip() for page in pages.strip("[]").split(",")]))
    return found


def plain(text):
    """Markdown without links and marks."""
    text = re.sub(r"!?\[((?:[^\[\]]|\[[^\]]*\])*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"\s+", " ", re.sub(r"[`*]", "", text)).strip()


def title_of(text):
    found = re.search(r"^# (.+)$", text, re.MULTILINE)
    return plain(found[1]) if found else ""


def paragraph_of(text):
    """The first paragraph behind the title; empty where the page begins with something else."""
    for block in re.split(r"\n\s*\n", FENCE.sub("", text)):
        block = block.strip()
        if not block or block.startswith(("# ", "![")):
            continue
        if block.startswith(("#", "|", "-", "<", ">")):
            return ""
        return plain(block)
    return ""


def summary_of(text):
    """The first sentence of that paragraph."""
    words = paragraph_of(text)
    sentence = re.match(r".{20,}?[.!?](?= |$)", words)  # longer than a heading in bold
    return sentence[0] if sentence else words


def listing(pages, config):
    """The text of llms.txt. `pages` gives the text of a page of the site by its path."""
    first = pages("index.md")
    out = [f"# {title_of(first)}", "", f"> {paragraph_of(first)}", ""]
    for section, paths in sections(config):
        out += [f"## {section}", ""]
        for path in paths:
            text = pages(path)
            summary = summary_of(text)
            out.append(f"- [{title_of(text)}]({path.removesuffix('.md')}.html)" + (f": {summary}" if summary else ""))
        out.append("")
    return "\n".join(out)


def full(pages, config):
    """The text of llms-full.txt: the documents of the sections that users read, each behind a line that names it."""
    out = []
    for section, paths in sections(config):
        if section in FULL:
            out += [f"<!-- {path} -->\n\n{pages(path).strip()}\n" for path in paths]
    return "\n".join(out)
