"""The section of processors, for which one compiles as for GPUs."""

from records import link, mean, times

RECORD = "processor-rows.json"


def on_a_processor(page, records):
    record = records.read(RECORD)
    if not record:
        page.no_record("trees on a processor, tuned and untuned, beside torch", "`tests/bench/python/cpu_rows.py --deftc DEFTC --json FILE`")
        return
    rows = record["rows"]
    page.heading("On a processor")
    page.add(f"{record['device']}, {record['threads']} threads, commit {record['commit']} ({link(RECORD)}): a layer of Llama 3 8B's attention in bf16. *Path by path* is each request by itself, by our "
             f"kernels (partition `query`); torch {record['torch']} is its SDPA over contiguous copies of the paths, which are not counted. Rows of deftc are timed in turn, torch's after them. "
             f"Times of one row spread by {100 * record['spread']:.0f} % to either side on this machine, which others share: less than that says nothing.")
    page.table(["tree", "tuned, ms", "untuned, ms", "path by path, ms", "torch f32, ms", "torch bf16, ms", "path by path over tuned", "torch's faster one over tuned"], [
        [row["tree"], *(ms(row[key]) for key in ("tuned_us", "untuned_us", "flat_us", "torch_float32_us", "torch_bfloat16_us")),
         times(row["flat_us"] / best(row)), times(torch_us(row) / best(row))] for row in rows])
    gains = {row["tree"]: row["untuned_us"] / row["tuned_us"] for row in rows if row["tuned_us"]}
    if gains:
        page.add(f"The untuned choice takes {mean(gains.values()):.3f} times what was tuned in the mean of the {len(gains)} trees that have a tuned config, {min(gains.values()):.3f} to {max(gains.values()):.3f}.")
    for tree, gain in gains.items():
        if gain < 1:
            page.loss(f"on a processor what was tuned takes {1 / gain:.3f} times the untuned choice's time on {tree}{within_spread(gain, record)}")
    for row in rows:
        for name, us in (("path by path", row["flat_us"]), ("torch", torch_us(row))):
            if us < best(row):
                ratio = us / best(row)
                page.loss(f"on a processor {name} takes {times(ratio)} of our time on {row['tree']}{within_spread(ratio, record)}")
    page.command(record["command"])


def within_spread(ratio, record):
    """A loss is listed however small it is; this says where the machine alone may have made it."""
    return f" (times of one row spread by {100 * record['spread']:.0f} % there)" if ratio > 1 - record["spread"] else ""


def best(row):
    """What runs once it was tuned: where no config is faster, the untuned choice."""
    return row["tuned_us"] or row["untuned_us"]


def torch_us(row):
    return min(row["torch_float32_us"], row["torch_bfloat16_us"])


def ms(us):
    return f"{us / 1e3:.2f}" if us else None
