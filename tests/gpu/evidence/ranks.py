"""The section on one tree over several GPUs."""

from math import log2

import charts
from records import card_of, link, times, us

NAME = "h200-rank-trees.json"


def goal(ranks, one_us):
    """Of the ideal speed; None: no target for so short a step."""
    if one_us < 100:
        return None
    return 0.80 if ranks == 2 or one_us >= 250 else 0.60


def expected(by_ranks, ranks):
    """(own part, added to it, step) in us on more GPUs than were measured, by arithmetic: the own part is a constant and a share that
    shrinks with their number, as the two largest numbers measured have it; what exchange, merge and waiting add grows with each
    doubling as it did last."""
    less, more = sorted(by_ranks)[-2:]
    near, far = by_ranks[less], by_ranks[more]
    shared = (near["own_part_us"] - far["own_part_us"]) / (1 / less - 1 / more)
    own = far["own_part_us"] - shared * (1 / more - 1 / ranks)
    near_added, far_added = (row["step_us"] - row["own_part_us"] for row in (near, far))
    added = far_added + (far_added - near_added) * log2(ranks / more) / log2(more / less)
    return own, added, own + added


def growth(page, rows):
    """A step's speed by the number of GPUs, and what eight would have."""
    by_tree = {}
    for row in rows:
        by_tree.setdefault(row["row"], {})[row["ranks"]] = row
    counts = sorted({row["ranks"] for row in rows})
    series = [(name, [(1, 1.0), *((ranks, row["one_us"] / row["step_us"]) for ranks, row in sorted(by_ranks.items()))]) for name, by_ranks in by_tree.items()]
    page.picture("ranks", f"Speed of a step by the number of GPUs, from 1 to {counts[-1]}",
                 charts.points("One tree over several GPUs: speed over one", "GPUs", "times one GPU's speed", [("ideal", [(ranks, float(ranks)) for ranks in (1, *counts)]), *series],
                               log_x=False, log_y=False, lines=True))
    more = 2 * counts[-1]
    lines = []
    for name, by_ranks in by_tree.items():
        own, added, step = expected(by_ranks, more)
        one = by_ranks[counts[-1]]["one_us"]
        lines.append([name, us(one), us(own), us(added), us(step), times(one / step, 1), times(one / more / step)])
    page.add(f"**{more} GPUs were not measured.** This table is arithmetic from the parts measured on {counts[-2]} and {counts[-1]}: the own part is a constant plus a share that shrinks with the number of GPUs, "
             "and what the exchange, the merge and waiting add grows with each doubling as it did last.")
    page.table(["tree", "one GPU us, measured", "own part us", "added us", "step us", "speed over one", "of ideal"], lines)


def other_placements(page, record):
    """The rows with pages where deft proposes them. Also tells of random placements and of ranks that were killed."""
    placed, drawn, killed = ([row for row in record["rows"] if is_one(row)] for is_one in (
        lambda row: "placement" in row, lambda row: row["row"] == "random_placements", lambda row: row["row"].startswith("a_rank_is_killed")))
    if placed:
        page.add("The same trees with pages where deft proposes them (`propose_holders`): shared tokens split evenly, a query's own on one GPU.")
        page.table(["tree", "GPUs", "own part us", "step us", "of ideal"], [[row["row"], row["ranks"], us(row["own_part_us"]), us(row["step_us"]), times(row["of_ideal"])] for row in placed])
    if drawn:
        page.add("Random trees with random placements, compared with double precision: " + "; ".join(
            f"{row['trees']} on {row['ranks']} GPUs, {len(row['wrong'])} wrong, the largest error {times(row['error_over_allowed'])} of the allowed one" for row in drawn) + ".")
    if killed:
        page.add("A rank that is killed in the middle of its merges is an error of the others: " + "; ".join(
            f"{'never' if row['seconds'] is None else format(row['seconds'], '.1f') + ' s later'} on {row['ranks']} GPUs{' by NCCL' if row['row'].endswith('nccl') else ''}" for row in killed) + ".")
    for row in killed:
        if not row["is_right"]:
            page.loss(f"`{row['row']}` on {row['ranks']} GPUs: the others did not all end with an error that names it in time")
    program = "`torchrun --standalone --nproc-per-node 4 tests/gpu/rank_trees.py --only WORDS`"
    for rows, what, words in ((placed, "trees over GPUs with pages where deft proposes them", "proposed"), (drawn, "random placements over GPUs", "random"), (killed, "a rank that is killed on GPUs", "killed")):
        if not rows:
            page.no_record(what, program.replace("WORDS", words))
    return placed


def trees(page, records):
    record = records.read(NAME)
    rows = [row for row in record["rows"] if "one_us" in row and "placement" not in row]
    counts = sorted({row["ranks"] for row in rows})
    exchanges = [row for row in record["rows"] if row["row"].startswith("exchange")]
    replays = max(row["replays"] for row in record["rows"] if row["row"].startswith("replays"))
    page.heading("One tree over several GPUs")
    page.add(f"GPUs of one host, each an {card_of(record['device'])}, commit {record['commit']} ({link(NAME)}): pages of 64 tokens lie on the GPUs in turn, a step is attention over a GPU's own pages and a merge "
             "of its share of the heads, in one CUDA graph, L2 evicted. *Of ideal* is one GPU's time divided by the number of GPUs and the step's time. In the column *NCCL* torch.distributed exchanges the results.")
    page.table(["tree", "GPUs", "one GPU us", "own part us", "step us", "of ideal", "merge us", "step by NCCL us"], [
        [row["row"], str(row["ranks"]), us(row["one_us"]), us(row["own_part_us"]), us(row["step_us"]), times(row["of_ideal"]), us(row["merge_us"]), us(row["nccl_us"])]
        for row in sorted(rows, key=lambda row: [one["row"] for one in rows].index(row["row"]))])
    growth(page, rows)
    merges = ", ".join(f"{us(row['merge_us'])} us on {row['ranks']} GPUs (by NCCL {us(row['nccl_us'])})" for row in exchanges)
    page.add(f"Merging 64 queries of 32 heads and 128 columns takes {merges}. {replays:,} replays of a graph with lengths from the device were right.")
    placed = other_placements(page, record)
    page.command("torchrun --standalone --nproc-per-node 4 tests/gpu/rank_trees.py --json ranks.json")
    for words, chosen in (("", rows), (", pages where deft proposes them", placed)):
        for ranks in counts:
            short = [row for row in chosen if row["ranks"] == ranks and (goal(ranks, row["one_us"]) or 0) > row["of_ideal"]]
            if short:
                found = ", ".join(f"{row['row']} {times(row['of_ideal'])} (target {goal(ranks, row['one_us']):.2f})" for row in short)
                page.loss(f"trees over {ranks} GPUs{words}, of the ideal speed: {found}")


def by_nccl(page, records):
    name = "h200-rank-nccl.json"
    record = records.read(name)
    rows = [row for row in record["rows"] if "one_us" in row]
    exchange = next(row for row in record["rows"] if row["row"].startswith("exchange"))
    page.heading("GPUs that cannot map each other")
    page.add(f"Two {card_of(record['device'])}s, {record['date']}, commit {record['commit']} ({link(name)}): the same step by mapped memory, by NCCL as deftc calls it, and by torch.distributed's NCCL, in one run; results by the first two have the same bits.")
    page.table(["tree", "mapped us", "NCCL us", "torch's NCCL us", "of ideal, mapped", "of ideal, NCCL"], [
        [row["row"], us(row["step_us"]), us(row["sent_us"]), us(row["nccl_us"]), times(row["of_ideal"]), times(row["sent_of_ideal"])] for row in rows])
    page.add(f"Merging 64 queries of 32 heads and 128 columns takes {us(exchange['merge_us'])}, {us(exchange['merge_sent_us'])} and {us(exchange['nccl_us'])} us.")
    absent = next(row for row in record["rows"] if row["row"] == "a_rank_stays_away_by_nccl")
    page.add(f"A rank that stays away is an error after {absent['seconds']:.0f} s, at {absent['commit']}.")
    page.command("torchrun --standalone --nproc-per-node 2 tests/gpu/rank_trees.py --json ranks.json")


def on_one_gpu(page, records):
    """Results and faults of ranks that share a GPU, where several GPUs were not to be had."""
    name = "h200-ranks-on-one-gpu.json"
    record = records.read(name)
    first, checked, later = record["parts"]
    killed = next(row for row in first["rows"] if row["row"] == "a_rank_is_killed")
    replays = next(row for row in first["rows"] if "replays" in row and row["row"].startswith("replays"))
    trees = ", ".join(f"{row['trees']} on {row['ranks']} ranks" for row in first["rows"] if row["row"] == "random_placements")
    page.heading("Ranks that share a GPU", level=3)
    page.add(f"{card_of(record['device'])}, {record['date']}, commit {record['commit']} ({link(name)}): processes that take turns on one GPU. Random trees with random placements ({trees}) and {replays['replays']} replays with lengths "
             f"from the device are right, a killed rank is an error of the others {killed['seconds']:.1f} s later, and memcheck over the merge has {checked['reports']} reports.")
    wrong = max(len(row["wrong"]) for row in later["rows"])
    page.loss(f"ranks that share a GPU: in a later run {wrong} of {later['rows'][0]['trees']} random trees were beyond a bound that was too strict for a single token; with the mended bound no GPU has run them")
    page.command("torchrun --standalone --nproc-per-node 3 tests/gpu/rank_trees.py --one-gpu")


def decoder(page, records):
    name = "h200-decoder-tokens.json"
    record = records.read(name)
    one, two = record["rows"]
    page.heading("A decoder whose cache is split by tokens")
    page.add(f"{record['device']}, {record['date']}, commit {record['commit']} ({link(name)}): `{one['row']}`, {record['layers']} layers of Llama 3 70B's dimensions, a captured graph a step. A step takes {one['ms']['tree']:.2f} ms on one GPU and "
             f"{two['ms']['tree']:.2f} on two, which split tokens and not layers' weights; {two['beside_one']['tokens_that_differ']} of {two['beside_one']['tokens']} tokens differ.")
    page.command(record["command"].replace("FILE", "decoder.json"))
