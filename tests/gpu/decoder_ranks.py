"""What a step of a decoder takes on several GPUs beside one: a model that transformers' tensor-parallel plan has cut.

usage: decoder_ranks.py [ROW...] [--ranks N ...] [--split heads|tokens] [--layers N] [--steps N] [--tiny] [--json FILE]

Rows are those of end_to_end.py. The model has random weights in bf16 and the dimensions of Llama 3 70B with fewer layers and words:
64 query heads and 8 KV heads, of which each of two ranks has 32 and 4. It is written to a folder, from which torchrun's processes read
their parts. With `--split tokens` each rank has the whole model and a part of the cache's tokens. K and V of earlier tokens are random
and the same on any number of ranks. So the first step must have the logits of one GPU, and its tokens except at near-ties. The time between two steps is that of the slowest rank, the median of
--steps; `no attention` is a step whose layers only write K and V. --tiny runs on processors, to test this script.
"""

import argparse
import gc
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
import transformers

from deft.torch_peers import MappedPeers, TorchPeers

import end_to_end

TOKENS_A_PAGE = 64  # of all ranks together, where they split tokens
WAYS = ("tree", "no attention")
BEYOND_ROUNDING = 0.1  # of the largest logit: bf16 through all layers; a wrong path gives 1 and more
LARGE = dict(vocab_size=32000, hidden_size=8192, intermediate_size=28672, num_attention_heads=64)  # 8 KV heads
TINY = dict(vocab_size=212)  # a multiple of the ranks: transformers deals the rows of lm_head evenly or not at all


def write_model(folder, tiny, layers):
    end_to_end.make_model(tiny, num_hidden_layers=layers, **(TINY if tiny else LARGE)).save_pretrained(folder)


def rows_named(names):
    return [row for row in end_to_end.ROWS if any(row.name.startswith(name) for name in names)]


def fill_of_rank(rank, ranks):
    """Random K and V of this rank's heads: those that one GPU has in the same place."""

    def fill(pages):
        kv_heads = pages.shape[-2]
        generator = torch.Generator(pages.device).manual_seed(3)
        for layer in pages:
            for half in layer:
                whole = torch.empty((*half.shape[:-2], kv_heads * ranks, half.shape[-1]), dtype=half.dtype, device=half.device)
                whole.normal_(generator=generator)
                half.copy_(whole[..., rank * kv_heads : (rank + 1) * kv_heads, :])

    return fill


def fill_of_tokens(rank, ranks, count):
    """Random K and V of this rank's tokens in `count` pages: those that one GPU has in the same place, in pages `ranks` times as large."""

    def fill(pages):
        generator = torch.Generator(pages.device).manual_seed(3)
        for layer in pages:
            for half in layer:
                whole = torch.empty((count, ranks, *half.shape[1:]), dtype=half.dtype, device=half.device)
                half[:count] = whole.normal_(generator=generator)[:, rank]

    return fill


def work(options):
    """One of torchrun's processes: writes what it has measured, and the first logits of each row."""
    ranks, rank = int(os.environ["WORLD_SIZE"]), int(os.environ["RANK"])
    device = "cpu" if options.tiny else f"cuda:{os.environ['LOCAL_RANK']}"
    if not options.tiny:
        torch.cuda.set_device(device)
    torch.distributed.init_process_group("gloo" if options.tiny else "nccl")
    folder, output = options.worker
    cut, decoder, fill = {}, {}, fill_of_rank(rank, ranks)
    if options.split == "tokens":
        peers = (TorchPeers if options.tiny else MappedPeers)() if ranks > 1 else None
        options.pages //= TOKENS_A_PAGE // 16
        decoder, fill = {"peers": peers, "page_size": TOKENS_A_PAGE // ranks}, fill_of_tokens(rank, ranks, options.pages)
    elif ranks > 1:
        cut = {"distributed_config": transformers.distributed.DistributedConfig(tp_size=ranks)}
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16, **cut).to(device).eval()
    for row in rows_named(options.rows):
        found = {"row": row.name}
        for way in WAYS:
            torch.distributed.barrier()
            found[way], logits = end_to_end.measure(model, row, way, options, fill, decoder)
            gc.collect()  # NCCL waits for graphs, and a decoder's graph and its cache refer to each other
            if way == "tree":
                torch.save(logits.cpu(), Path(output, f"{row.name}-{ranks}-{rank}.pt"))
        Path(output, f"{row.name}-{ranks}-{rank}.json").write_text(json.dumps(found))
    torch.distributed.destroy_process_group()


def run_ranks(ranks, folder, output, options):
    handed_on = [f"--{name}={getattr(options, name)}" for name in ("steps", "warmup", "layers", "split")] + ["--tiny"] * options.tiny
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks), __file__]
    names = [row.name for row in rows_named(options.rows)]
    ran = subprocess.run([*command, *names, *handed_on, "--worker", folder, output], capture_output=True, text=True)
    if ran.returncode:
        raise SystemExit(f"{ranks} ranks failed:\n{ran.stderr[-6000:]}")


def compare(own, other):
    """Logits of several ranks beside those of one. A token that differs was a tie, by so much."""
    difference = float((own - other).abs().max() / own.abs().max())
    if not difference <= BEYOND_ROUNDING:
        raise SystemExit(f"logits differ by {difference:.3f} of their largest")
    tokens, others = own.argmax(-1), other.argmax(-1)
    differ = (tokens != others).nonzero().flatten().tolist()
    gaps = [float(own[i, tokens[i]] - own[i, others[i]]) for i in differ]
    return {
        "logits_differ_by": difference,
        "tokens": len(tokens),
        "tokens_that_differ": len(differ),
        "largest_gap_of_these": max(gaps, default=0.0),
        "largest_logit": float(own.abs().max()),
    }


def read_ranks(row, ranks, output):
    """The slowest rank's time for each way, the plans' summaries of the first, and its logits, which must be every rank's."""
    files = [Path(output, f"{row.name}-{ranks}-{rank}") for rank in range(ranks)]
    found = [json.loads(file.with_suffix(".json").read_text()) for file in files]
    first, *others = [torch.load(file.with_suffix(".pt")) for file in files]
    if not all(torch.equal(first, other) for other in others):
        raise SystemExit(f"{row.name}: ranks disagree on logits")
    ms = {way: max(one[way]["ms"] for one in found) for way in WAYS}
    spread = {way: max(one[way]["spread_ms"] for one in found) for way in WAYS}
    return {"ms": ms, "spread_ms": spread, "plan": found[0]["tree"]["plan"]}, first


def run(options):
    results = []
    with tempfile.TemporaryDirectory(dir=options.folder) as folder, tempfile.TemporaryDirectory() as output:
        writing = [sys.executable, __file__, f"--layers={options.layers}", "--write", folder, *["--tiny"] * options.tiny]
        subprocess.run(writing, check=True)  # a process of its own, which gives the GPU's memory back
        for ranks in (1, *options.ranks):
            print(f"{ranks} rank{'s' * (ranks > 1)} ...", file=sys.stderr, flush=True)
            run_ranks(ranks, folder, output, options)
        print("| row | ranks | step, ms | beside one | no attention, ms | beside one | tokens that differ |\n|---|---|---|---|---|---|---|")
        for row in rows_named(options.rows):
            alone, logits = read_ranks(row, 1, output)
            results.append({"row": row.name, "ranks": 1, **alone})
            print(line_of(row, 1, alone, alone, ""))
            for ranks in options.ranks:
                found, others = read_ranks(row, ranks, output)
                beside = compare(logits, others)
                results.append({"row": row.name, "ranks": ranks, **found, "beside_one": beside})
                print(line_of(row, ranks, found, alone, f"{beside['tokens_that_differ']} of {beside['tokens']}"), flush=True)
    return results


def line_of(row, ranks, found, alone, tokens):
    cells = [f"{found['ms'][way]:.2f} | {found['ms'][way] / alone['ms'][way]:.2f}" for way in WAYS]
    return f"| {row.name} | {ranks} | {' | '.join(cells)} | {tokens} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", nargs="*", default=["few_shot_b20"], help="names of end_to_end.py's rows, or how they begin (few_shot_b20)")
    parser.add_argument("--ranks", type=int, nargs="+", default=[2], help="beside one (2)")
    parser.add_argument("--split", choices=("heads", "tokens"), default="heads", help="what ranks have a part of (heads)")
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--warmup", type=int, default=5)
    parser.add_argument("--tiny", action="store_true", help="on processors, to test the script")
    parser.add_argument("--folder", help="where the model is written: 15 GB with 8 layers")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--write", help=argparse.SUPPRESS)
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.write:
        return write_model(options.write, options.tiny, options.layers)
    if not rows_named(options.rows):
        parser.error(f"no row is called so; there are {', '.join(row.name for row in end_to_end.ROWS)}")
    options.pages = 2048 if options.tiny else 10240
    options.partition = options.budget = None
    if options.worker:
        return work(options)
    devices = torch.cuda.device_count()
    if not options.tiny and devices < max(options.ranks):
        print(f"there are {devices} GPUs, {max(options.ranks)} are needed", file=sys.stderr)
        return 3
    results = run(options)
    if options.json:
        record = {
            "device": "cpu" if options.tiny else f"{devices} x {torch.cuda.get_device_name()}",
            "torch": torch.__version__,
            "transformers": transformers.__version__,
            "command": " ".join(["tests/gpu/decoder_ranks.py", *sys.argv[1:]]),
            "layers": options.layers,
            "rows": results,
        }
        options.json.write_text(json.dumps(record, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
