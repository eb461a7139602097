"""The records behind the evidence, and what its sections share."""

import json
import re
from math import exp, log
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "records"
PUBLISHED_SUITES = ("fasttree", "deft")  # the suites whose 57 rows the published kernels were measured on


class Records:
    """Records by file name, read on demand. A missing file is None, and its section says so."""

    def __init__(self, folder=FOLDER):
        self.folder = folder

    def read(self, name):
        path = self.folder / name
        if not path.exists():
            return None
        text = path.read_text(encoding="utf-8")
        return [json.loads(line) for line in text.splitlines()] if name.endswith(".jsonl") else json.loads(text)

    def rows(self, name, suites=None):
        """The rows of a bench by name, of some suites or of all."""
        bench = self.read(name)
        return {row["name"]: row for suite in bench["suites"] if suites is None or suite["name"] in suites
                for row in suite["rows"]} if bench else {}

    def date(self, name):
        """The day of a record, as the table of records has it."""
        table = (self.folder / "README.md").read_text(encoding="utf-8")
        return next(cells[3].strip() for line in table.splitlines() if f"]({name})" in line for cells in [line.split("|")] if len(cells) > 5)

    @property
    def published(self):
        return self.read("published.json")


class Findings:
    """Losses and gaps of all pages."""

    def __init__(self):
        self.losses, self.missing = [], []


class Page:
    """A document as it is written, and the pictures that it shows. Losses and gaps go to a list that all pages share."""

    def __init__(self, findings, pictures_at=""):
        self.lines, self.pictures, self.findings, self.pictures_at = [], {}, findings, pictures_at

    def add(self, *paragraphs):
        for paragraph in paragraphs:
            self.lines += [paragraph, ""]

    def heading(self, words, level=2):
        self.add("#" * level + " " + words)

    def table(self, head, rows):
        self.lines += ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
        self.lines += ["| " + " | ".join("" if cell is None else str(cell) for cell in row) + " |" for row in rows] + [""]

    def picture(self, name, words, svg):
        self.pictures[name + ".svg"] = svg
        self.add(f"![{words}]({self.pictures_at}{name}.svg)")

    def command(self, *lines):
        """What reproduces a section: commands of a GPU's machine, so the documents' tests skip them."""
        self.lines += ["```sh reproduce", *lines, "```", ""]

    def no_record(self, what, command):
        """Nobody has measured `what` yet; the page of losses lists it with the command that would."""
        self.findings.missing.append((what, command))

    def loss(self, what):
        self.findings.losses.append(what)

    def text(self):
        return "\n".join(self.lines).rstrip() + "\n"


def link(name):
    """To a record, from a page in docs/evidence."""
    return f"[{name}](../../tests/gpu/records/{name})"


def card_of(name):
    return name.replace("NVIDIA ", "").replace(" 80GB HBM3", "")


def mean(ratios):
    """The geometric mean."""
    ratios = list(ratios)
    return exp(sum(map(log, ratios)) / len(ratios))


def us(value):
    return None if value is None else f"{value:,.0f}" if value >= 1000 else f"{value:.1f}"


def times(value, digits=2):
    return None if value is None else f"{value:.{digits}f}"


def ratio_of_heads(row):
    heads, kv_heads = map(int, row["heads"].split("/"))
    return heads // kv_heads


def tokens_of(row):
    """Tokens of the tree, from the bytes of its cache: K and V of 2 bytes an element."""
    return round(row["cache_bytes"] / (4 * row["head_dim"] * int(row["heads"].split("/")[1])))


def levels_of(row):
    """(nodes, tokens of each) by level, of a tree that is given by levels; else None."""
    found = re.fullmatch(r"levels:nodes=([\d,]+),tokens=([\d,]+)", row["workload"])
    return list(zip(*(list(map(int, part.split(","))) for part in found.groups()))) if found else None


def readers_of(row):
    """How many queries read a token on average: tokens of all paths over tokens of the tree. None where it is unknown."""
    levels = levels_of(row)
    if levels:
        return levels[-1][0] * sum(tokens for _, tokens in levels) / sum(nodes * tokens for nodes, tokens in levels)
    found = re.match(r"speculative_t(\d+)", row["workload"])
    return float(found[1]) if found else None  # nearly all tokens are the prompt's, which all drafts read
