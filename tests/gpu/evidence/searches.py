"""The section on what the parts of the tuner's search earn."""

from records import link, mean, times

RECORD = "search-parts.json"
ALL, NOW = "all parts", "the search now"
# Of the ways that were tried, by their name in the record: what the search was without.
WAYS = (
    (ALL, "nothing: the search before"),
    ("no probes", "first the best of each shape and partition"),
    ("no neighbours in the space", "neighbours of the best in its pool"),
    ("no oddness", "a price for unusual kernels"),
    ("no second sight of the same plan", "putting back what makes the same plan"),
    ("no surrogate: by price", "the surrogate"),
    ("no surrogate: neighbours of the best, by price", "the surrogate; neighbours of the best come first"),
    ("climb, no probes", "that and the probes"),
    (NOW, "that; ends after 24 without a gain"),
    ("by price alone", "all of these"),
    ("neighbouring classes first", "nothing; neighbouring classes' best come first"),
    ("random", "everything: random order"))


def parts_of_the_search(page, records):
    record = records.read(RECORD)
    if not record:
        page.no_record("what each part of the search earns", "`search_replay tests/data/spaces/*.json --json FILE`")
        return
    page.heading("What each part of the search earns")
    spaces = record["spaces"]
    kinds = {kind: [i for i, space in enumerate(spaces) if ("NVIDIA" in space["device"]) == (kind == "H200")] for kind in ("H200", "CPU")}
    page.add(f"{len(kinds['H200'])} spaces whose {spaces[0]['points']} configs were all measured on an H200, and {len(kinds['CPU'])} of a processor, searched again without the device ({link(RECORD)}, commit {record['commit']}, "
             f"*the search now* {record['search_now']}): the speed of the best of the first n measured candidates over the best of the space, mean of {record['seeds']} searches whose measurements err by 1 %. "
             f"*Other prices* differ from the recording's by {100 * record['price_error']:.0f} % each, as on a card that nobody calibrated. *Worst row*: the least of one space's mean over that of the whole search, after 32.")
    ways = {(way["way"], way["prices"]): way for way in record["ways"]}

    def share(way, after, kind):
        return times(mean(way["after"][str(after)][i] for i in kinds[kind]), 3)

    rows = []
    for name, words in WAYS:
        way, other = ways.get((name, "recorded")), ways.get((name, "other"))
        if not way:
            continue
        worst = min(way["after"]["32"][i] / ways[ALL, "recorded"]["after"]["32"][i] for i in kinds["H200"])
        rows.append([words, *(share(way, n, "H200") for n in (8, 16, 32)), share(other, 16, "H200"), *(share(way, n, "CPU") for n in (8, 32)), times(worst, 3),
                     f"{sum(way['measured'][i] for i in kinds['H200']) / len(kinds['H200']):.0f}"])
    page.table(["search without", "H200, n = 8", "16", "32", "16, other prices", "CPU, n = 8", "32", "worst row", "measured"], rows)
    page.add("The surrogate, the probes, the second sight of a plan and, in a search, the configs of neighbouring classes changed no row by 1 % after 32 candidates, so they are gone. "
             "Unusual kernels keep their price, and a search ends after 24 candidates without a gain. `--from-related`, budgets and resuming are documented and stay.")
