"""The section on what the parts of tuning earn: of the search, and the rules that choose entries."""

import json

from cards import CONFIGS
from records import link, mean, times

RECORD, REGRET = "search-parts.json", "h200-regret.json"
ALL, NOW = "all parts", "the search now"
# The searches that were tried, by their name in the record.
WAYS = (
    (ALL, "whole"),
    ("no surrogate: neighbours of the best, by price", "no surrogate"),
    ("no second sight of the same plan", "no memory of equal plans"),
    ("no probes", "no probes of each shape and partition"),
    ("no oddness", "no price of unusual kernels"),
    ("no neighbours in the space", "no neighbours of the best in its pool"),
    ("neighbouring classes first", "neighbouring classes' best first"),
    ("by price alone", "none of these, by price"),
    ("random", "random order"),
    (NOW, "smaller: probes, then neighbours by price"))


def parts_of_the_search(page, records):
    record = records.read(RECORD)
    spaces, ways = record["spaces"], {(way["way"], way["prices"]): way for way in record["ways"]}
    of_card = [i for i, space in enumerate(spaces) if "NVIDIA" in space["device"]]
    of_processor = [i for i in range(len(spaces)) if i not in of_card]
    page.heading("What each part of the search earns")
    page.add(f"{len(of_card)} spaces of {spaces[0]['points']} configs that were all measured on an H200, and {len(of_processor)} that a processor measured, searched again without the device ({link(RECORD)}, commit {record['commit']}). "
             f"A number is the speed of the best of the first n measured configs over the best of the space, mean of {record['seeds']} searches with measurements that err by {100 * record['noise']:.0f} %. "
             f"*Other prices* differ from the recording's by {100 * record['price_error']:.0f} % each, as on a card that nobody calibrated. *Worst row* is over the whole search, of one space, n = 32.")

    def share(way, after, own):
        return times(mean(way["after"][str(after)][i] for i in own), 3)

    def worst(way, own):
        return min(way["after"]["32"][i] / ways[ALL, "recorded"]["after"]["32"][i] for i in own)

    rows = []
    for name, words in WAYS:
        way, other = ways[name, "recorded"], ways[name, "other"]
        rows.append([words, *(share(way, n, of_card) for n in (8, 16, 32)), share(other, 16, of_card), times(worst(way, of_card), 3),
                     *(share(way, n, of_processor) for n in (8, 32)), f"{mean(way['measured'][i] for i in of_card):.0f}"])
    page.table(["search", "H200, n = 8", "n = 16", "n = 32", "n = 16, other prices", "worst row", "CPU, n = 8", "n = 32", "measured on the H200"], rows)
    now, chance = ways[NOW, "recorded"], record["chance_after_16"]
    page.add("The surrogate is a Gaussian process over the errors of prices. It, the memory of equal plans and neighbouring classes' configs earn less than 1 % on every row of the H200. The *smaller* search has none of them: it measures the "
             "probes, then the cheapest neighbours of the best by price, corrected by the mean error of their shape and partition, and ends after 32 without a gain. "
             f"Its worst row is {times(worst(now, of_card), 3)} on the H200 and {times(worst(now, of_processor), 3)} on the processor. deftc does not use it: in the median of the "
             f"processor's spaces it found {times(chance['smaller'], 3)} of the best after 16 configs, and random order {times(chance['random'], 3)} (commit {chance['commit']}).")
    page.add("`search_replay` of that commit has the switches.")


def rules(page, records):
    """What would be lost without a rule."""
    regret = records.read(REGRET)
    page.heading("What rules earn", 3)
    some = [entry["measurement"] for path in sorted(CONFIGS.glob("*.json")) for entry in json.loads(path.read_text(encoding="utf-8"))["entries"] if "only_for" in entry]
    gains = [one["untuned_us"] / one["tuned_us"] for one in some]
    near = [one for one in regret["summary"] if one["of"].startswith("near")]
    page.table(["rule", "what it earns"], [
        ["`sibling`", "see the rows of the H100 above"],
        ["`only_for`", f"{len(gains)} shipped entries are {times(mean(gains), 3)} times as fast as the untuned choice on their trees, {times(max(gains), 3)} at best"],
        ["`nearby`", f"of {sum(one['offers'] for one in near)} near entries {sum(one['below_2_percent'] for one in near)} were over 2 % faster than the untuned choice and {sum(one['above_2_percent'] for one in near)} over 2 % slower "
                     f"({link(REGRET)}, kernels and prices of {regret['date']})"]])
