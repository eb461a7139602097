#!/usr/bin/env python3
"""Large trees that nobody tuned for, and documents whose readers' rows do not fill a tile: the untuned choice beside
each kernel of family sm90, with plans as they are, and as if the last-level cache held whatever is read again.

  tests/gpu/irregular_trees.py --deftc DEFTC [--only TEXT] [--trees TEXT] [--kernels light,dealt,wide,tall] [--repeat N]
                               [--peers NAME,...] [--check] [--json FILE] [--write FOLDER]

Each point is a `deftc run` of its own: the median of so many launches with a cold L2. With --check all results are compared
with float64. Behind the points of a tree come those of FlashInfer's decode, by path, where torch and flashinfer are installed:
replays of a CUDA graph, L2 evicted, as tools/bench_peers has them. --peers names others of its peers, or none. --write only
writes the trees and configs. Exit code 1 where a point of deftc's fails or is wrong.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

SPEC = Path(__file__).with_suffix(".deft")
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools/peers"))
DIM = 128
ATTENTIONS = ("h32_8", "h64_8", "h16_1")
# tile_q, stages, warps, order
KERNELS = {"light": (64, 2, 8, "from_root"), "dealt": (64, 2, 8, "mixed"), "wide": (128, 4, 12, "from_root"),
           "tall": (192, 4, 16, "from_root")}
# Where memory is as fast as the cache, all that is read again has the cache's price.
PRICES = {"": None, "all held": {"cache_gb_s": 36000, "run_us": 0.0285, "slot_us": 0.06, "merged_share": 0.05}}


def agents(nodes, tokens, queries, root, roots=1, chain=0.45, seed=5):
    """Agents' work: `roots` prompts of `root` tokens. A turn continues the last one, or branches from any. The queries are
    at leaves."""
    draw = random.Random(seed)
    parents, sizes = [], []
    for i in range(nodes):
        parents.append(-1 if i < roots else i - 1 if draw.random() < chain else draw.randrange(i))
        sizes.append(draw.lognormvariate(0, 1))
    rest = (tokens - root * roots) / sum(sizes[roots:])
    leaves = sorted(set(range(nodes)) - set(parents))
    readers = sorted(draw.sample(leaves, queries)) if len(leaves) >= queries else sorted(
        leaves + [draw.randrange(nodes) for _ in range(queries - len(leaves))])
    return ([[parent, root if parent < 0 else max(1, round(size * rest))] for parent, size in zip(parents, sizes)], readers)


def document(tokens, readers, own=200, seed=1):
    """One document, and what each of its readers has."""
    draw = random.Random(seed)
    return [[-1, tokens]] + [[0, int(own * (0.5 + draw.random()))] for _ in range(readers)], list(range(1, readers + 1))


TREES = {
    "document_118k_19": document(118000, 19),
    "document_40k_19": document(40000, 19),
    "document_118k_33": document(118000, 33),
    "agents_330": agents(330, 98000, 115, 10000),
    "agents_700": agents(700, 188000, 258, 20000),
    "agents_700_prompts": agents(700, 188000, 258, 6000, roots=3),
    "agents_700_even": agents(700, 188000, 258, 300, chain=0.33),
}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--deftc", required=True)
    parser.add_argument("--only", default="", help="attentions whose name contains this")
    parser.add_argument("--trees", default="", help="trees whose name contains this")
    parser.add_argument("--kernels", default="light,dealt,wide,tall")
    parser.add_argument("--peers", default="flashinfer_decode", help="of tools/peers/of_flashinfer.py; empty: none")
    parser.add_argument("--repeat", type=int, default=21)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--commit", default="", help="of the sources, for the record")
    parser.add_argument("--json")
    parser.add_argument("--write", type=Path)
    return parser.parse_args()


def write_trees(folder):
    for name, (nodes, queries) in TREES.items():
        tree = {"format": "deftc-tree", "version": 1, "nodes": [{"parent": parent, "tokens": tokens} for parent, tokens in nodes],
                "queries": [{"node": node} for node in queries]}
        (folder / f"{name}.json").write_text(json.dumps(tree), encoding="utf-8")


def write_configs(folder, kernels):
    """The names of the configs, whose files are in the folder."""
    names = []
    for kernel in kernels:
        rows, stages, warps, order = KERNELS[kernel]
        for price, cost in PRICES.items():
            config = {"partition": "auto", "chunk_tokens": 0,
                      "phases": [{"name": "tiles", "rows_above": -1, "family": "sm90", "tile_q": rows, "tile_kv": 64,
                                  "stages": stages, "warps": warps}]}
            if order != "from_root":
                config["order"] = order
            if cost:
                config["cost"] = cost
            names.append(" ".join(filter(None, (kernel, price))))
            (folder / f"{names[-1]}.json").write_text(json.dumps(config), encoding="utf-8")
    return names


def run(options, folder, attention, tree, config):
    """The report of a run, or what it said."""
    report = folder / "report.json"
    report.unlink(missing_ok=True)
    command = [options.deftc, "run", f"{SPEC}#{attention}", "--tree", str(folder / f"{tree}.json"), "--backend", "cuda",
               "--repeat", str(options.repeat), "--json", str(report)]
    command += ["--config", str(folder / f"{config}.json")] if config else ["--untuned"]
    command += ["--check"] if options.check else []
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode or not report.exists():
        return (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[0]
    return json.loads(report.read_text(encoding="utf-8"))


def peers_of(names):
    """torch, and the peers by name; none where they cannot run, which is said."""
    if not names:
        return None, {}
    try:
        import flashinfer  # noqa: F401
        import torch
    except ImportError as error:
        print(f"no peers: {error}")
        return None, {}
    if not torch.cuda.is_available():
        print("no peers: torch finds no GPU")
        return None, {}
    import of_flashinfer

    return torch, {name: of_flashinfer.PEERS[name] for name in names.split(",")}


def heads_of(attention):
    """h32_8: 32, 8."""
    return tuple(int(part) for part in attention.removeprefix("h").split("_"))


def run_peers(torch, peers, options, folder, attention, tree):
    """Points of the same tree, whose K, V and q are random."""
    import case
    import timed
    import trees

    drawn = case.draw(torch, trees.of_file(folder / f"{tree}.json"), *heads_of(attention), DIM, 0)
    points = []
    for name, prepare in peers.items():
        found = timed.time_of(torch, drawn, prepare, options.repeat)
        print(f"{tree} {attention} {name}: {found['us']:.1f} us" if "us" in found else f"{tree} {attention} {name}: {found['why']}", flush=True)
        points.append({"tree": tree, "attention": attention, "config": name, **found})
    del drawn
    torch.cuda.empty_cache()
    return points


def main():
    options = parse_arguments()
    kernels = options.kernels.split(",")
    if options.write:
        options.write.mkdir(parents=True, exist_ok=True)
        write_trees(options.write)
        write_configs(options.write, kernels)
        return 0
    record = {"format": "deftc-irregular-trees", "version": 1, "device": None, "commit": options.commit,
              "command": " ".join(sys.argv), "points": []}
    failed = 0
    torch, peers = peers_of(options.peers)
    if peers:
        import flashinfer

        record |= {"torch": torch.__version__, "flashinfer": flashinfer.__version__}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_trees(folder)
        configs = [""] + write_configs(folder, kernels)
        for tree in (tree for tree in TREES if options.trees in tree):
            for attention in (attention for attention in ATTENTIONS if options.only in attention):
                for config in configs:
                    report = run(options, folder, attention, tree, config)
                    at = f"{tree} {attention} {config or 'untuned'}"
                    if isinstance(report, str):
                        print(f"{at}: {report}", flush=True)
                        failed += 1
                        continue
                    record["device"] = report["device"]
                    us, floor = report["time"]["median_us"], report["floor"]["us"] if "floor" in report else None
                    plan, rows = report["plan"], report["config"]["phases"][0]["tile_q"]
                    read = plan["item_tokens"] / report["tree"]["read_tokens"]
                    record["points"].append({"tree": tree, "attention": attention, "config": config or "untuned", "us": us,
                                             "floor_us": floor, "tile_q": rows, "reads": read, "plan": plan})
                    over = f", {us / floor:.2f} of the floor {floor:.1f}" if floor else ""
                    print(f"{at}: {us:.1f} us{over}; {plan['partition']}, {plan['items']} items of up to {rows} rows, tokens "
                          f"read {read:.2f} times", flush=True)
                if peers:
                    record["points"] += run_peers(torch, peers, options, folder, attention, tree)
    if options.json:
        Path(options.json).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
