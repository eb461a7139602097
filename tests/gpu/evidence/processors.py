"""The section on processors."""

from records import link, mean, times

RECORD = "processor-rows.json"


def on_a_processor(page, records):
    record = records.read(RECORD)
    if not record:
        page.no_record("trees on a processor, tuned and untuned, beside torch", "`tests/bench/python/cpu_rows.py --deftc DEFTC --json FILE`")
        return
    rows = record["rows"]
    page.heading("Processors")
    page.add(f"{record['device']}, {record['threads']} threads, commit {record['commit']} ({link(RECORD)}): one layer of Llama 3 8B's attention in bf16. *Path by path* reads each request separately, with our "
             f"kernels (partition `query`). Torch {record['torch']} runs SDPA over contiguous copies of the paths; the copying is not counted. "
             f"This machine is shared and times of one row spread by {100 * record['spread']:.0f} % to either side, so ignore smaller differences.")
    page.table(["tree", "tuned, ms", "untuned, ms", "path by path, ms", "torch f32, ms", "torch bf16, ms", "path by path over tuned", "faster torch over tuned"], [
        [row["tree"], *(ms(row[key]) for key in ("tuned_us", "untuned_us", "flat_us", "torch_float32_us", "torch_bfloat16_us")),
         times(row["flat_us"] / best(row)), times(torch_us(row) / best(row))] for row in rows])
    gains = {row["tree"]: row["untuned_us"] / row["tuned_us"] for row in rows if row["tuned_us"]}
    if gains:
        page.add(f"The untuned choice takes {mean(gains.values()):.3f} times the tuned time on average of the {len(gains)} trees with a tuned config ({min(gains.values()):.3f} to {max(gains.values()):.3f}).")
    for tree, gain in gains.items():
        if gain < 1:
            page.loss(f"processor, {tree}: the tuned config takes {1 / gain:.3f} times the untuned choice's time{within_spread(gain, record)}")
    for row in rows:
        for name, us in (("path by path", row["flat_us"]), ("torch", torch_us(row))):
            if us < best(row):
                ratio = us / best(row)
                page.loss(f"processor, {row['tree']}: {name} takes {times(ratio)} of deftc's time{within_spread(ratio, record)}")
    page.command(record["command"])


def within_spread(ratio, record):
    """Every loss is listed. This marks those within the machine's noise."""
    return f" (within the machine's spread of {100 * record['spread']:.0f} %)" if ratio > 1 - record["spread"] else ""


def best(row):
    """The time after tuning: the untuned choice's where no config was faster."""
    return row["tuned_us"] or row["untuned_us"]


def torch_us(row):
    return min(row["torch_float32_us"], row["torch_bfloat16_us"])


def ms(us):
    return f"{us / 1e3:.2f}" if us else None
