"""The section on one tree over several GPUs."""

from records import card_of, link, times, us

NAME = "h200-rank-trees.json"
GOAL = 0.80  # of the ideal speed of two GPUs, for trees that take 100 us on one


def trees(page, records):
    record = records.read(NAME)
    rows = [row for row in record["rows"] if "one_us" in row]
    exchange = next(row for row in record["rows"] if row["row"].startswith("exchange"))
    replays = next(row for row in record["rows"] if row["row"].startswith("replays"))
    page.heading("One tree over two GPUs")
    page.add(f"Two GPUs of one host, each an {card_of(record['device'])}, commit {record['commit']} ({link(NAME)}): every second page of 64 tokens lies on each GPU, a step is attention over a GPU's own pages and a merge "
             "of its half of the heads, in one CUDA graph, L2 evicted. *Of ideal* is half of one GPU's time divided by the step's. In the column *NCCL* torch.distributed exchanges the results.")
    page.table(["tree", "one GPU us", "own part us", "step us", "of ideal", "merge us", "step by NCCL us"], [
        [row["row"], us(row["one_us"]), us(row["own_part_us"]), us(row["step_us"]), times(row["of_ideal"]), us(row["merge_us"]), us(row["nccl_us"])] for row in rows])
    page.add(f"Merging 64 queries of 32 heads and 128 columns takes {us(exchange['merge_us'])} us, by NCCL {us(exchange['nccl_us'])}. {replays['replays']:,} replays of a graph with lengths from the device were right.")
    page.command("torchrun --standalone --nproc-per-node 2 tests/gpu/rank_trees.py --json ranks.json")
    for row in rows:
        if row["one_us"] >= 100 and row["of_ideal"] < GOAL:
            page.loss(f"{row['row']} on two GPUs has {times(row['of_ideal'])} of the ideal speed; the target was {GOAL:.2f}")
    page.no_record("one tree over four GPUs", "`torchrun --standalone --nproc-per-node 4 tests/gpu/rank_trees.py --json FILE`")
