"""The sections on large trees that nobody tuned for, and on latent nodes that are read expanded."""

from records import card_of, link, mean, times, us

PEER = "flashinfer_decode"
KINDS = {"before": "before", "untuned": "untuned", PEER: "FlashInfer's decode"}  # configs, as the table names them
GOALS = {"h32_8": 1.9, "h64_8": 1.9, "h16_1": 2.2}  # times the floor


def irregular_trees(page, records):
    name = "h200-irregular-trees.json"
    record = records.read(name)
    points = {}
    for point in record["points"]:
        points.setdefault((point["tree"], point["attention"]), {})[point["config"]] = point
    page.heading("Large irregular trees")
    page.add(f"{card_of(record['device'])}, commit {record['commit']} ({link(name)}): agents' trees of 330 and 700 nodes (115 and 258 queries), and documents of 118,000 and 40,000 tokens with 19 or 33 readers. f16, pages of one "
             f"token, cold L2. *Untuned* is deftc's choice without an entry. {record['note']}")
    kinds = {kind: words for kind, words in KINDS.items() if any(kind in by for by in points.values())}
    page.table(["tree", "heads", "floor us", *(f"{words} us" for words in kinds.values()), "untuned over the floor"], [
        [tree, attention[1:].replace("_", "/"), us(by["untuned"]["floor_us"]), *(us(by.get(kind, {}).get("us")) for kind in kinds), times(by["untuned"]["us"] / by["untuned"]["floor_us"])]
        for (tree, attention), by in points.items()])
    if PEER in kinds:
        ratios = {place: by[PEER]["us"] / by["untuned"]["us"] for place, by in points.items() if "us" in by.get(PEER, {})}
        page.add(f"FlashInfer {record['flashinfer']} reads each query's path on its own. It takes {times(mean(ratios.values()))} times deftc's untuned time on average of {len(ratios)}, {times(min(ratios.values()))} to {times(max(ratios.values()))}.")
        for (tree, attention), ratio in ratios.items():
            if ratio < 1:
                page.loss(f"{tree} at {attention[1:].replace('_', '/')}: FlashInfer's decode takes {times(ratio)} of deftc's untuned time")
    else:
        page.no_record("FlashInfer's decode on the large irregular trees in the same run", "`tests/gpu/irregular_trees.py --deftc deftc` where FlashInfer is installed")
    for (tree, attention), by in points.items():
        point, goal = by["untuned"], 1.5 if tree.startswith("document") else GOALS[attention]
        if point["us"] > goal * point["floor_us"]:
            page.loss(f"{tree} at {attention[1:].replace('_', '/')} takes {times(point['us'] / point['floor_us'])} times its floor untuned; the target was {goal}")
    page.command("tests/gpu/irregular_trees.py --deftc deftc")


def expanded_nodes(page, records):
    name = "h200-expanded.json"
    record = records.read(name)
    page.heading("Latent nodes that are read expanded")
    page.add(f"{card_of(record['device'])}, commit {record['commit']} ({link(name)}): {record['requests']} requests over {record['shared']:,} shared tokens, with {record['own']} of their own. *Latents only* is one run and the "
             "multiplication by W_UV. *Divided* is a run over latents, a run over the shared tokens' K and V of each head, the multiplication and a merge. The plan chooses by price; each side is one CUDA graph, L2 evicted.")
    page.table(["heads", "latents only us", "divided us", "faster by", "run over latents us", "run over K and V us"], [
        [str(row["heads"]), us(row["alone_us"]), us(row["divided_us"]), times(row["speedup"]), us(row["absorbed_part_us"]), us(row["expanded_part_us"])] for row in record["rows"]])
    page.command("tests/gpu/expanded_nodes.py --heads 128,64,16")
