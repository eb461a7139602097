"""The section on peers that were timed in the same run as ours."""

from records import card_of, link, mean, times, us

NAME = "h200-peers.json"
WORDS = {"sdpa_by_path": "torch SDPA, each path by itself", "sdpa_by_level": "torch flash by level, merged", "flex": "FlexAttention, the tree as a mask",
         "fasttree": "FastTree", "deft_in_fasttree": "DeFT, rewritten in FastTree's artifact", "flashinfer_decode": "FlashInfer decode", "flashinfer_cascade": "FlashInfer cascade"}


def peers_in_one_run(page, records):
    record = records.read(NAME)
    rows = record["rows"]
    names = [name for name in WORDS if any(name in times_of for times_of in rows.values())]
    page.heading("Peers in the same run")
    page.add(f"{card_of(record['device'])}, torch {record['torch']}, {record['artifact']}, {record['date']} ({link(NAME)}): `tools/bench_peers` times what is installed on the same tensors, each result checked; microseconds, with some that events cost. "
             "Empty: it failed or was wrong there, and the record says how.")
    page.table(["tree", "deftc", *(WORDS[name] for name in names)], [
        [row, us(found["deftc"]["us"]), *(us(found.get(name, {}).get("us")) for name in names)] for row, found in rows.items()])
    page.table(["peer", "rows", "times deftc's time, mean", "least"], [
        [WORDS[name], len(ratios), times(mean(ratios)), times(min(ratios))] for name in names
        for ratios in [[found[name]["us"] / found["deftc"]["us"] for found in rows.values() if "us" in found.get(name, {})]] if ratios])
    for row, found in rows.items():
        for name in names:
            if found.get(name, {}).get("us", float("inf")) < found["deftc"]["us"]:
                page.loss(f"{row}: {found['deftc']['us']:.1f} us beside {found[name]['us']:.1f} of {WORDS[name]}")
    page.command(record["command"])
    if "flashinfer_decode" not in names:
        page.no_record("FlashInfer's wrappers, DeFT's own kernels and PAT in the same run as ours", "`tools/bench_peers` with FlashInfer installed, and `--peer FILE` for the others")
