"""Makes docs/EVIDENCE.md, its pictures and the README's figures of the records; what has no record isn't claimed.

usage: make.py draw      writes them
       make.py check     exit code 1 if they are not what `draw` makes
"""

import re
import sys
from pathlib import Path

import cards
import changes
import in_one_run
import kernels
import layers
import papers
import processors
import steps
from records import Page, Records

ROOT = Path(__file__).resolve().parents[3]
BEGIN, END = "<!-- figures: made by tests/gpu/evidence/make.py -->\n", "<!-- end of figures -->\n"
SECTIONS = (kernels.published_rows, in_one_run.peers_in_one_run, kernels.no_sharing, kernels.second_suite, kernels.scaling, changes.one_thing_changed,
            kernels.tuned, cards.other_cards, kernels.windows, kernels.variants, kernels.query_hook, kernels.key_hook, kernels.token_arrays, kernels.caches_of_8_bits, layers.selection, processors.on_a_processor, steps.new_tokens, steps.drafts, steps.plans, steps.whole_steps, steps.decoder_on_two_gpus, steps.engine, steps.engine_sglang, papers.deft,
            papers.fasttree, steps.right)
INTRODUCTION = """What deftc was seen to do, and where it loses. `tests/gpu/evidence/make.py draw` makes this page of the [records](../tests/gpu/records/README.md); a test fails
where it is not what the records say, so there is no figure here that a record does not hold. Cards differ by some per cent, and clocks by the day: ratios say more than microseconds.
Each record says its card, its commit and its command; the commands below make it anew on such a machine."""


def left_to_say(page):
    page.heading("Where it loses")
    page.add(*(["\n".join(f"- {loss}" for loss in page.losses)] if page.losses else ["Nowhere in these records."]))
    page.heading("What cannot be compared, or was not measured")
    page.add("- Peers, but for the section that says so, were measured in runs of their own, days before, and scaled by one figure: a few per cent either way say nothing.\n"
             "- GPU time leaves planning out on both sides; the section on planning has it.\n"
             "- All our figures are of H200s and H100s, one at a time but for vLLM and a decoder on two; nothing is known of other cards.\n"
             f"- Tuned configs ship for {' and '.join(f'the {name} ({count} entries)' for name, count in cards.shipped_entries())}: on any other card ours ran untuned, or by their entries, until `deftc tune` has been there.")
    page.table(["no record of", "what would make one"], page.missing)


def evidence(records):
    page = Page()
    page.add("# Evidence", INTRODUCTION)
    page.add("\n".join(kernels.summary(records)))
    place = len(page.lines)
    for section in SECTIONS:
        section(page, records)
    left_to_say(page)
    page.lines[place:place] = contents(page.lines)
    return page


def contents(lines):
    """Links to the sections, for a page of some hundred lines."""
    heads = [line[3:] for line in lines if line.startswith("## ")]
    return ["In this page: " + " · ".join(f"[{head}](#{anchor_of(head)})" for head in heads) + ".", ""]


def anchor_of(heading):
    """As GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def with_figures(readme, records):
    """The README with the figures of today between its two marks."""
    before, _, rest = readme.partition(BEGIN)
    _, mark, after = rest.partition(END)
    if not mark:
        raise SystemExit("README.md has no place for figures")
    return before + BEGIN + "\n" + "\n".join(kernels.summary(records)) + "\n\n" + END + after


def made(records, readme):
    """All files that are made, by their path from the repository's root."""
    page = evidence(records)
    files = {f"docs/evidence/{name}": svg for name, svg in page.pictures.items()}
    return {"docs/EVIDENCE.md": page.text(), "README.md": with_figures(readme, records), **files}


def main(arguments):
    if arguments not in (["draw"], ["check"]):
        print(__doc__, file=sys.stderr)
        return 2
    files = made(Records(), (ROOT / "README.md").read_text(encoding="utf-8"))
    stale = [name for name, text in files.items()
             if not (ROOT / name).exists() or (ROOT / name).read_text(encoding="utf-8") != text]
    stale += [f"docs/evidence/{path.name}" for path in (ROOT / "docs/evidence").glob("*.svg") if f"docs/evidence/{path.name}" not in files]
    for name in stale:
        if arguments == ["check"]:
            print(f"{name}: not what `tests/gpu/evidence/make.py draw` makes", file=sys.stderr)
        elif name not in files:
            (ROOT / name).unlink()
        else:
            (ROOT / name).parent.mkdir(exist_ok=True)
            (ROOT / name).write_text(files[name], encoding="utf-8")
    return 1 if stale and arguments == ["check"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
