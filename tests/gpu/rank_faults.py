"""A rank that is killed in the middle of its merges, for rank_trees.py: the others end with an error, within the watch's time.

Each rank starts a process, and these make a group of their own on the same GPUs: torchrun would end all that it has started. They replay
a graph of a merge. The last one kills itself behind a replay that it does not wait for. Every other one goes on until `check` raises,
prints what that said and when, and ends by itself."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REPLAYS_BEFORE = 100  # the kill
MOST_REPLAYS = 10000
SLACK = 3.0  # seconds beyond the watch's time
START = 90  # seconds that processes have to begin and to end


def work(folder, rank, count, timeout, transport, gpu):
    """A process's part: what `check` said, and when."""
    import deft
    import torch
    from deft.torch_peers import MappedPeers

    device = torch.device("cuda", gpu)
    torch.cuda.set_device(device)
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=count)
    peers = MappedPeers(timeout=timeout, transport=transport)
    out, lse = torch.ones(64, 32, 128, dtype=torch.float16, device=device), torch.zeros(64, 32, device=device)
    to = torch.empty_like(out), torch.empty_like(lse)
    peers.merge(out, lse, to=to)  # the ranks meet, which no graph captures
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        peers.merge(out, lse, to=to)
    try:
        for replay in range(MOST_REPLAYS):
            graph.replay()
            if rank == count - 1 and replay == REPLAYS_BEFORE:
                (Path(folder) / "killed").write_text(str(time.monotonic()))
                os.kill(os.getpid(), signal.SIGKILL)
            torch.cuda.synchronize()
            peers.check()
    except deft.Error as error:
        return {"said": str(error), "ended": time.monotonic(), "replays": replay}
    return {"said": "", "ended": time.monotonic(), "replays": MOST_REPLAYS}


def run_process(arguments, own, program=__file__):
    """Its exit code, and what it reported; both None if it did not end."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TORCHELASTIC")}
    process = subprocess.Popen([sys.executable, program, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        said, errors = process.communicate(timeout=START + own)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return None, None
    lines = [line for line in said.splitlines() if line.startswith("{")]
    return process.returncode, json.loads(lines[-1]) if lines else {"said": errors[-400:], "ended": float("inf"), "replays": 0}


def row_of(ends, killed, timeout):
    """`ends`: of each rank, its exit code and report, the killed one's last."""
    *others, (code, _) = ends
    last = len(others)
    seconds = [report["ended"] - killed if report else float("inf") for _, report in others]
    is_right = code == -signal.SIGKILL and all(
        returned == 0 and f"rank {last}" in report["said"] and report["replays"] >= REPLAYS_BEFORE and 0 <= took < timeout + SLACK
        for (returned, report), took in zip(others, seconds))
    said = others[0][1]["said"] if others[0][1] else "a process did not end"
    return {"ranks": len(ends), "said": said, "seconds": round(max(seconds), 2) if max(seconds) < float("inf") else None, "is_right": is_right}


def check_kill(rank, timeout, transport, suffix=""):
    """`rank`: a Rank of rank_trees.py; all call it."""
    distributed = rank.torch.distributed
    with tempfile.TemporaryDirectory() as folder:
        told = [folder]
        distributed.broadcast_object_list(told)
        ends = [None] * rank.count
        distributed.all_gather_object(ends, run_process([told[0], rank.rank, rank.count, timeout, transport, rank.device.index], timeout))
        killed = Path(told[0], "killed")
        row = row_of(ends, float(killed.read_text()) if killed.exists() else float("inf"), timeout)
        distributed.barrier()
    return {"row": f"a_rank_is_killed{suffix}", **row}


if __name__ == "__main__":
    folder, rank, count, timeout, transport, gpu = sys.argv[1:]
    print(json.dumps(work(folder, int(rank), int(count), float(timeout), transport, int(gpu))), flush=True)
