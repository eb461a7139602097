"""Makes docs/EVIDENCE.md, the pages and pictures of docs/evidence, and the README's figures from the records.

usage: make.py draw      writes them
       make.py check     exit code 1 if they are not what `draw` makes
"""

import sys
from pathlib import Path

import beams
import cards
import changes
import engines
import features
import front
import in_one_run
import kernels
import large
import layers
import lists
import papers
import processors
import ranks
import searches
import seen
import steps
from records import Findings, Page, Records

ROOT = Path(__file__).resolve().parents[3]
BEGIN, END = "<!-- figures: made by tests/gpu/evidence/make.py -->\n", "<!-- end of figures -->\n"
INTRODUCTION = """`tests/gpu/evidence/make.py draw` makes these pages from the [records](../tests/gpu/records/README.md); a test fails if they differ.
Each record names its card, its commit and its command. Cards differ by some per cent: compare ratios of one run, not microseconds of two."""


def losses(page, _):
    page.heading("Where deftc loses")
    found = page.findings
    page.add(*(["\n".join(f"- {loss}" for loss in found.losses)] if found.losses else ["Nowhere in these records."]))
    page.heading("Limits of the comparison, and gaps")
    page.add("- Except in \"Peers in the same run\", peers ran days earlier in runs of their own, and one figure scales them: a few per cent mean nothing.\n"
             "- GPU times exclude planning for deftc and peers; the page on planning has it.\n"
             "- All figures are of H200s and H100s. Other cards were not measured.\n"
             f"- Tuned configs ship for {' and '.join(f'the {name} ({count} entries)' for name, count in cards.shipped_entries())}. On other cards deftc runs untuned, or by these entries, until you run `deftc tune`.")
    page.table(["no record of", "command that would make one"], found.missing)


# File, title, contents in words, sections. The last page lists the losses of those before it.
PAGES = (
    ("trees", "Kernels on trees", "57 published trees, peers in the same run, nothing shared, other heads and head dims",
     (kernels.published_rows, in_one_run.peers_in_one_run, kernels.no_sharing, kernels.second_suite)),
    ("scaling", "How the time grows", "tokens, readers, width, depth, ratios, pages, windows", (kernels.scaling, changes.one_thing_changed, kernels.windows)),
    ("large", "Large trees", "irregular trees, shared latent nodes read expanded", (large.irregular_trees, large.expanded_nodes)),
    ("features", "Features", "latent caches, also of 8 bits, scores and masks, hooks, arrays over tokens, 8-bit caches",
     (features.latent, features.flash_mla, features.latent_bytes, features.variants, features.query_hook, features.key_hook, features.token_arrays, features.caches_of_8_bits)),
    ("sparse", "Sparse layers", "selection, sparse attention, unions, lists of a caller, whole models", (layers.selection, lists.of_a_caller, lists.in_a_model)),
    ("tuning", "Tuning, other cards, processors", "tuned and untuned, parts of the search, H100, CPUs", (kernels.tuned, searches.parts_of_the_search, searches.rules, cards.other_cards, processors.on_a_processor)),
    ("planning", "Prompts, drafts and plans", "appends, draft trees on the device, host time", (steps.new_tokens, steps.drafts, steps.plans)),
    ("models", "Whole steps of models", "one GPU, recorded searches, wide beams, several GPUs", (steps.whole_steps, beams.wide_beams, steps.decoder_on_two_gpus, ranks.trees, ranks.by_nccl, ranks.on_one_gpu, ranks.decoder)),
    ("engines", "Engines", "vLLM and SGLang", (engines.rollouts, steps.engine, steps.engine_latent, engines.drafts, engines.latent_bytes_vllm, engines.dcp, engines.host_times, steps.engine_sglang, engines.latent_sglang, engines.rollouts_sglang, engines.draft_trees_sglang, engines.texts_sglang)),
    ("papers", "Papers", "the tables of DeFT and FastTree beside ours", (papers.deft, papers.fasttree)),
    ("correctness", "Correctness", "random cases", (steps.right,)),
    ("losses", "Losses and gaps", "every row that loses, and what nobody has measured", (losses,)))


def evidence(records):
    """The pages by their path from the folder of documents, the first screen last made."""
    findings, pages = Findings(), {}
    for name, title, _, sections in PAGES:
        page = pages[f"evidence/{name}.md"] = Page(findings)
        page.add(f"# {title}", f"A page of the [evidence](../EVIDENCE.md), made from records.")
        for section in sections:
            section(page, records)
    first = pages["EVIDENCE.md"] = Page(findings, "evidence/")
    first.add("# Evidence")
    front.screen(first, records)
    first.heading("All tables")
    first.table(["page", "contents"], [[f"[{title}](evidence/{name}.md)", words] for name, title, words, _ in PAGES])
    first.add(INTRODUCTION)
    return pages


def with_figures(readme, records):
    """The README with today's figures between its two marks."""
    before, _, rest = readme.partition(BEGIN)
    _, mark, after = rest.partition(END)
    if not mark:
        raise SystemExit("README.md has no place for figures")
    return before + BEGIN + "\n" + "\n".join(front.readme(records)) + "\n\n" + END + after


def made(records, readme):
    """All generated files, by their path from the repository's root."""
    pages = evidence(records)
    files = {f"docs/evidence/{name}": svg for page in pages.values() for name, svg in page.pictures.items()}
    return {**{f"docs/{name}": page.text() for name, page in pages.items()}, "README.md": with_figures(readme, records),
            "runtime/doctor/declared/seen.json": seen.seen(records), **files}


def main(arguments):
    if arguments not in (["draw"], ["check"]):
        print(__doc__, file=sys.stderr)
        return 2
    files = made(Records(), (ROOT / "README.md").read_text(encoding="utf-8"))
    stale = [name for name, text in files.items()
             if not (ROOT / name).exists() or (ROOT / name).read_text(encoding="utf-8") != text]
    stale += [f"docs/evidence/{path.name}" for path in (ROOT / "docs/evidence").iterdir() if f"docs/evidence/{path.name}" not in files]
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
