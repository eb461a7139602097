#!/usr/bin/env python3
"""One tree over several GPUs of a host: whether merged results are right, and what a step takes beside one GPU.

  torchrun --standalone --nproc-per-node N tests/gpu/rank_trees.py [--repeat N] [--replays N] [--only WORDS] [--json FILE]

Each rank holds every N-th page of the cache. A step is the attention over a rank's pages and a merge of its slice of the heads, in a CUDA graph.
Times are those of the slowest rank, the median of --repeat replays, the L2 cache evicted before each step; what the eviction takes is
subtracted. `one` is the same tree on one GPU; `sent` is the exchange by NCCL in place of mapped memory, `nccl` that by torch.distributed. A
merge's time is that of a graph of twenty, divided. Merged rows are compared with those of one GPU, and some of them with attention in
double precision; those by NCCL must have the same bits as those in mapped memory.
The rows that end with `_proposed` are the same trees with pages where the tree proposes them (`propose_holders`); pages of other ranks are NaN.
Random trees with random placements on 2 ranks, 3 and so on are compared with double precision (rank_placements.py; --trees of each kind, --seed).
Then a graph is replayed --replays times under requests whose lengths the device alone knows, one rank stays away from a merge, and one is
killed (rank_faults.py): the others must name it; both by mapped memory and by NCCL. With --one-gpu all ranks share the first GPU, whose
processes take turns: then only results and faults by mapped memory are checked, and nothing is timed. Prints a line a row, and with --json
writes the same. Exit code 1: a wrong result; 3: no torch or fewer GPUs than ranks.
"""

import argparse
import json
import os
import statistics
import sys
import time
from typing import NamedTuple

import rank_faults
import rank_placements

PAGE, ALIGN = 64, 1024  # tokens of a page; where branches begin
PATIENCE = 2.0  # seconds that a late rank may take
SENT_PATIENCE = 10.0  # the same with NCCL, in which it also begins


class Case(NamedTuple):
    name: str
    heads: int
    kv_heads: int  # 0: a latent cache
    shared: int
    branches: int  # of 128 tokens each, with a query
    drafts: int = 0  # of one token each, a binary tree below the shared tokens

    @property
    def spec(self):
        return rank_placements.spec_of(self.heads, self.kv_heads, PAGE)

    @property
    def columns(self):
        return 128 if self.kv_heads else 512

    def tree(self, deft):
        tree = deft.Tree()
        root = tree.add_root(self.shared, location=0)
        end = -(-self.shared // ALIGN) * ALIGN
        for _ in range(self.branches):
            tree.add_query(tree.add_child(root, 128, location=end))
            end += ALIGN
        nodes = []
        for draft in range(self.drafts):
            nodes.append(tree.add_child(nodes[(draft - 1) // 2] if draft else root, 1, location=end + draft))
            tree.add_query(nodes[-1])
        return tree, end + -(-self.drafts // ALIGN) * ALIGN


CASES = [
    Case("16_below_32k_h32_8", 32, 8, 32 << 10, 16),
    Case("16_below_128k_h32_8", 32, 8, 128 << 10, 16),
    Case("16_below_512k_h32_8", 32, 8, 512 << 10, 16),
    Case("16_below_512k_h16_1", 16, 1, 512 << 10, 16),
    Case("64_drafts_of_128k_h32_8", 32, 8, 128 << 10, 0, 64),
    Case("32_below_32k_latent_h16", 16, 0, 32 << 10, 32),
    Case("32_below_32k_latent_h64", 64, 0, 32 << 10, 32),
    Case("32_below_32k_latent_h128", 128, 0, 32 << 10, 32),
]


class Rank:
    """A process: its GPU, its peers, and graphs that are timed together."""

    def __init__(self, options):
        import deft
        import torch
        from deft.torch_peers import MappedPeers, TorchPeers

        self.torch, self.deft, self.options = torch, deft, options
        self.rank, self.count = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        self.device = torch.device("cuda", 0 if options.one_gpu else int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(self.device)
        torch.distributed.init_process_group(**({"backend": "gloo"} if options.one_gpu else {"backend": "nccl", "device_id": self.device}))
        self.peers, self.slow = MappedPeers(timeout=PATIENCE, transport="mapped"), TorchPeers()
        self.sent = MappedPeers(timeout=SENT_PATIENCE, transport="nccl")
        self.evicted = torch.zeros(32 << 20, dtype=torch.int64, device=self.device)

    def heads_of(self, heads):
        each = -(-heads // self.count)
        return min(heads, self.rank * each), min(heads, (self.rank + 1) * each)

    def graph(self, step, times=1):
        torch = self.torch
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            step()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(times):
                step()
        return graph

    def time_us(self, step, times=10, evicts=True):
        """Of one step, on the slowest rank."""
        torch = self.torch
        evict = self.evicted.max if evicts else lambda: None
        full = self.graph(lambda: (evict(), step()), times)
        took = self.replay_us(full)
        if evicts:
            took -= self.replay_us(self.graph(evict, times))
        slowest = torch.tensor([took / times], device=self.device)
        torch.distributed.all_reduce(slowest, op=torch.distributed.ReduceOp.MAX)
        return float(slowest)

    def replay_us(self, graph):
        torch, found = self.torch, []
        for _ in range(self.options.repeat):
            torch.distributed.barrier()
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            graph.replay()
            end.record()
            torch.cuda.synchronize()
            found.append(1e3 * begin.elapsed_time(end))
        return statistics.median(found)


class Step:
    """A case's tensors on one rank, over its own part of the cache and over the whole of it."""

    def __init__(self, rank, case, is_proposed=False):
        torch, deft = rank.torch, rank.deft
        self.rank, self.case = rank, case
        self.attention = deft.compile(case.spec)
        whole_tree, tokens = case.tree(deft)
        own_tree, _ = case.tree(deft)
        holders = own_tree.propose_holders(rank.count, PAGE) if is_proposed else None
        own_tree.set_ranks(deft.Ranks(rank.count, rank.rank, unit=PAGE, layout="by_page" if is_proposed else "interleaved", holders=holders))
        rank.peers.agree(self.attention, own_tree)
        generator = torch.Generator(rank.device).manual_seed(7)
        make = {"dtype": torch.bfloat16, "device": rank.device, "generator": generator}
        rows = (tokens, case.kv_heads, 128) if case.kv_heads else (tokens, 576)
        self.whole = [torch.randn(rows, **make) for _ in range(2 if case.kv_heads else 1)]
        pages = torch.arange(tokens, device=rank.device) // PAGE
        if is_proposed:  # pages stay where they are; those past the last token are nobody's
            holder = torch.tensor(holders + [-1] * (tokens // PAGE - len(holders)), device=rank.device)
            is_others = (holder != rank.rank)[pages]
            own = [part.masked_fill(is_others.view(-1, *[1] * (part.dim() - 1)), float("nan")) for part in self.whole]
        else:
            own = [part[pages % rank.count == rank.rank] for part in self.whole]
        self.q = torch.randn(whole_tree.query_count, case.heads, 128 if case.kv_heads else 576, **make)
        self.queries = len(self.q)
        self.plans, self.caches = [], []
        for tree, cache in ((whole_tree, self.whole), (own_tree, own)):
            paged = [part.view(-1, PAGE, *part.shape[1:]) for part in cache]
            table = torch.arange(len(paged[0]), dtype=torch.int32, device=rank.device)
            self.plans.append(self.attention.plan(tree, device=rank.device))
            self.caches.append((*paged, *([None] * (2 - len(paged))), table))
        self.tree = whole_tree
        self.out, self.lse = self.room(case.heads), self.room(case.heads, is_lse=True)
        begin, end = rank.heads_of(case.heads)
        self.heads = begin, end
        self.merged = self.room(end - begin), self.room(end - begin, is_lse=True)
        rank.sent.reserve(case.heads, case.columns, torch.bfloat16, rank.device, merged=self.heads)

    def room(self, heads, is_lse=False):
        torch, device = self.rank.torch, self.rank.device
        if is_lse:
            return torch.zeros(self.queries, heads, device=device)
        return torch.zeros(self.queries, heads, self.case.columns, dtype=torch.bfloat16, device=device)

    def attend(self, which):
        self.plans[which].run(self.q, *self.caches[which], out=self.out, lse=self.lse)

    def merge(self):
        self.rank.peers.merge(self.out, self.lse, heads=self.heads, to=self.merged)

    def merge_sent(self):
        self.rank.sent.merge(self.out, self.lse, heads=self.heads, to=self.merged)

    def step(self):
        self.attend(1)
        self.merge()

    def step_sent(self):
        self.attend(1)
        self.merge_sent()

    def has_same_bits(self):
        """Whether both ways merge the same results to the same bits, on all ranks."""
        torch = self.rank.torch
        self.step()
        mapped = [part.clone() for part in self.merged]
        self.merge_sent()
        torch.cuda.synchronize()
        self.rank.sent.check()
        is_same = torch.tensor([all(torch.equal(one, other) for one, other in zip(mapped, self.merged))], device=self.rank.device).int()
        torch.distributed.all_reduce(is_same, op=torch.distributed.ReduceOp.MIN)
        return bool(is_same)

    def step_by_nccl(self):
        self.attend(1)
        self.rank.slow.merge(self.out, self.lse, heads=self.heads)

    def error(self):
        """The largest distance of a merged row to that of one GPU, and of a few to double precision, relative to the row."""
        torch = self.rank.torch
        self.step()
        merged, lse = (part.clone() for part in self.merged)
        self.rank.peers.check()
        self.attend(0)
        alone, its_lse = self.out[:, slice(*self.heads)].double(), self.lse[:, slice(*self.heads)]
        worst = float(((merged.double() - alone).norm(dim=-1) / alone.norm(dim=-1)).max()) if merged.numel() else 0.0
        worst_lse = float((lse - its_lse).abs().max()) if merged.numel() else 0.0
        exact = 0.0
        for query in (0, self.queries - 1):
            exact = max(exact, self.exact_error(query, merged[query]))
        found = torch.tensor([worst, worst_lse, exact], device=self.rank.device)
        torch.distributed.all_reduce(found, op=torch.distributed.ReduceOp.MAX)
        return found.tolist()

    def exact_error(self, query, rows):
        torch, case = self.rank.torch, self.case
        begin, end = self.heads
        path, node = [], self.tree.queries[query].node
        while node is not None and node >= 0:
            facts = self.tree.node(node)
            path.append(torch.arange(facts.location, facts.location + facts.tokens, device=self.rank.device))
            node = facts.parent
        seen = torch.cat(path)
        worst = 0.0
        for head in sorted({begin, end - 1}) if end > begin else ():
            of = (slice(None), head * case.kv_heads // case.heads) if case.kv_heads else (slice(None),)
            k = self.whole[0][seen][of].double()
            v = self.whole[1][seen][of].double() if case.kv_heads else k[:, :512]
            scale = 128**-0.5 if case.kv_heads else 192**-0.5
            right = torch.softmax(k @ self.q[query, head].double() * scale, 0) @ v
            worst = max(worst, float((rows[head - begin].double() - right).norm() / right.norm()))
        return worst


def measure(rank, case, is_proposed=False):
    step = Step(rank, case, is_proposed)
    worst, worst_lse, exact = step.error()
    row = {"row": case.name, **({"placement": "proposed"} if is_proposed else {}), "ranks": rank.count, "error": worst, "lse_error": worst_lse, "error_to_double": exact}
    row["has_same_bits"] = step.has_same_bits()
    row["is_right"] = worst < 0.02 and worst_lse < 0.01 and exact < 0.02 and row["has_same_bits"]
    row["one_us"] = rank.time_us(lambda: step.attend(0))
    row["own_part_us"] = rank.time_us(lambda: step.attend(1))
    row["step_us"] = rank.time_us(step.step)
    row["nccl_us"] = rank.time_us(step.step_by_nccl)
    row["sent_us"] = rank.time_us(step.step_sent)
    row["merge_us"] = rank.time_us(step.merge, times=20, evicts=False)
    row["merge_sent_us"] = rank.time_us(step.merge_sent, times=20, evicts=False)
    row["of_ideal"] = row["one_us"] / rank.count / row["step_us"]
    row["sent_of_ideal"] = row["one_us"] / rank.count / row["sent_us"]
    rank.peers.check()
    rank.sent.check()
    return row


def measure_exchange(rank):
    """Merges alone: 64 queries, 32 heads, 128 columns in 16 bits, a rank its slice of the heads."""
    torch = rank.torch
    out = torch.randn(64, 32, 128, dtype=torch.float16, device=rank.device)
    lse = torch.randn(64, 32, device=rank.device)
    heads = rank.heads_of(32)
    to = torch.empty_like(out[:, slice(*heads)].contiguous()), torch.empty(64, heads[1] - heads[0], device=rank.device)
    rank.sent.reserve(32, 128, torch.float16, rank.device, merged=heads)
    return {
        "row": "exchange_64x32x128",
        "ranks": rank.count,
        "is_right": True,
        "merge_us": rank.time_us(lambda: rank.peers.merge(out, lse, heads=heads, to=to), times=20, evicts=False),
        "merge_sent_us": rank.time_us(lambda: rank.sent.merge(out, lse, heads=heads, to=to), times=20, evicts=False),
        "nccl_us": rank.time_us(lambda: rank.slow.merge(out, lse, heads=heads), times=20, evicts=False),
    }


def check_placements(rank, count):
    """Random trees over the first `count` ranks, which are a group."""
    torch, distributed = rank.torch, rank.torch.distributed
    group, found, began = distributed.new_group(list(range(count))), (0.0, []), time.monotonic()
    if rank.rank < count:
        peers = type(rank.peers)(group, timeout=SENT_PATIENCE, transport="mapped")
        found = rank_placements.check(torch, rank.deft, peers, rank.device, rank.options.seed, rank.options.trees)
    everyone = [None] * rank.count
    distributed.all_gather_object(everyone, found)
    wrong = sorted({one for _, of_rank in everyone for one in of_rank})
    trees = rank.options.trees * len(rank_placements.KINDS) * len(rank_placements.LAYOUTS)
    return {"row": "random_placements", "ranks": count, "seed": rank.options.seed, "trees": trees, "error_over_allowed": max(worst for worst, _ in everyone),
            "wrong": wrong, "is_right": not wrong, "seconds": round(time.monotonic() - began, 2)}


def check_growth(rank, peers, suffix=""):
    """A captured step is replayed while the device alone makes requests longer; leaves lie on one rank each."""
    torch, deft = rank.torch, rank.deft
    leaves, shared, slack = 8, 1024, 64
    room = 2 * PAGE
    attention = deft.compile(CASES[0].spec)
    tree = deft.Tree()
    root = tree.add_root(shared, location=0)
    for leaf in range(leaves):
        tree.add_query(tree.add_child(root, 16, location=shared + leaf * room))
    tokens = shared + leaves * room
    holders = [page % rank.count for page in range(shared // PAGE)]
    holders += [leaf % rank.count for leaf in range(leaves) for _ in range(room // PAGE)]
    own = tree.copy()
    own.set_ranks(deft.Ranks(rank.count, rank.rank, unit=PAGE, layout="by_page", holders=holders))
    generator = torch.Generator(rank.device).manual_seed(9)
    make = {"dtype": torch.bfloat16, "device": rank.device, "generator": generator}
    k, v = (torch.randn(tokens // PAGE, PAGE, 8, 128, **make) for _ in range(2))
    q = torch.randn(leaves, 32, 128, **make)
    table = torch.arange(tokens // PAGE, dtype=torch.int32, device=rank.device)
    steps = torch.arange(leaves, dtype=torch.int32, device=rank.device)
    lengths = torch.empty_like(steps)
    plans = []
    for planned in (tree, own):
        plan = attention.plan(planned, device=rank.device, follows_lengths=True, slack=slack)
        plans.append(plan)
    out, lse = torch.empty_like(q), torch.empty(leaves, 32, device=rank.device)
    to = torch.empty_like(out), torch.empty_like(lse)

    def step():
        steps.add_(1)
        torch.remainder(steps, slack, out=lengths).add_(shared + 16)
        plans[1].follow(lengths)
        plans[1].run(q, k, v, table, out=out, lse=lse)
        peers.merge(out, lse, to=to)

    peers.reserve(32, 128, torch.bfloat16, rank.device)
    graph = rank.graph(step)
    most, worst, began = rank.options.replays, 0.0, time.monotonic()
    for replay in range(most):
        graph.replay()
        if replay % max(1, most // 97) == 0 or replay == most - 1:
            merged = to[0].clone()
            plans[0].follow(lengths)
            alone = plans[0].run(q, k, v, table).double()
            worst = max(worst, float(((merged.double() - alone).norm(dim=-1) / alone.norm(dim=-1)).max()))
    torch.cuda.synchronize()
    peers.check()
    plans[1].check_replays()
    return {"row": f"replays_with_device_lengths{suffix}", "ranks": rank.count, "replays": most, "error": worst, "is_right": worst < 0.02,
            "seconds": round(time.monotonic() - began, 2)}


def check_absence(rank, peers, suffix=""):
    """The last rank makes no merge, in a call or a replay: the others find out which."""
    torch, last = rank.torch, rank.count - 1
    out, lse = torch.ones(4, 32, 64, dtype=torch.float16, device=rank.device), torch.zeros(4, 32, device=rank.device)
    to = torch.empty_like(out), torch.empty_like(lse)
    graph = rank.graph(lambda: peers.merge(out, lse, to=to))
    graph.replay()
    torch.cuda.synchronize()
    peers.check()
    torch.distributed.barrier()
    torch.cuda.synchronize()
    said, began = "", time.monotonic()
    if rank.rank != last:
        graph.replay()
        torch.cuda.synchronize()
        try:
            peers.check()
        except rank.deft.Error as error:
            said = str(error)
    took = time.monotonic() - began
    del graph
    is_right = rank.rank == last or (f"rank {last}" in said and "did not give" in said and took < peers.timeout + 3)
    everyone = [None] * rank.count
    torch.distributed.all_gather_object(everyone, (said, is_right, round(took, 2)))
    row = {"row": f"a_rank_stays_away{suffix}", "ranks": rank.count, "said": everyone[0][0], "seconds": everyone[0][2]}
    return {**row, "is_right": all(one[1] for one in everyone)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeat", type=int, default=15)
    parser.add_argument("--replays", type=int, default=10000)
    parser.add_argument("--trees", type=int, default=12, help="random ones of each kind and layout")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--one-gpu", action="store_true", help="for all ranks")
    parser.add_argument("--only", nargs="*", default=[], help="rows whose names hold one of these words")
    parser.add_argument("--json")
    options = parser.parse_args()
    try:
        import torch
    except ImportError:
        sys.exit(3)
    needed = 1 if options.one_gpu else int(os.environ.get("LOCAL_WORLD_SIZE", 1))
    if "RANK" not in os.environ or torch.cuda.device_count() < needed:
        print("needs torchrun, and a GPU for each rank", file=sys.stderr)
        sys.exit(3)
    rank = Rank(options)
    timed = [(case.name, lambda rank, case=case: measure(rank, case)) for case in CASES]
    timed += [(f"{case.name}_proposed", lambda rank, case=case: measure(rank, case, is_proposed=True)) for case in CASES]
    timed.append(("exchange", measure_exchange))
    by_nccl = [("sent_replays", lambda rank: check_growth(rank, type(rank.peers)(timeout=SENT_PATIENCE, transport="nccl"), "_by_nccl")),
               ("sent_killed", lambda rank: rank_faults.check_kill(rank, SENT_PATIENCE, "nccl", "_by_nccl")),
               ("sent_absence", lambda rank: check_absence(rank, rank.sent, "_by_nccl"))]
    makers = [] if options.one_gpu else timed
    makers += [(f"random_placements_{count}", lambda rank, count=count: check_placements(rank, count)) for count in range(2, rank.count + 1)]
    makers.append(("replays", lambda rank: check_growth(rank, rank.peers)))
    makers.append(("killed", lambda rank: rank_faults.check_kill(rank, PATIENCE, "mapped")))
    makers += [] if options.one_gpu else by_nccl
    # Behind a rank's absence a group is of no use.
    makers.append(("absence", lambda rank: check_absence(rank, rank.peers)))
    rows = []
    for name, make in makers:
        if options.only and not any(word in name for word in options.only):
            continue
        rows.append(make(rank))
        torch.cuda.empty_cache()
        if rank.rank == 0:
            print(json.dumps(rows[-1]), flush=True)
    if rank.rank == 0 and options.json:
        with open(options.json, "w") as file:
            json.dump({"device": torch.cuda.get_device_name(), "one_gpu": options.one_gpu, "rows": rows}, file, indent=1)
    torch.distributed.destroy_process_group()
    sys.exit(0 if all(row["is_right"] for row in rows) else 1)


if __name__ == "__main__":
    main()
