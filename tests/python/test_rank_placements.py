"""What tests/gpu/rank_placements.py checks on GPUs, here on processors: random trees and placements on 2 and 3 ranks."""

import json

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

import deft
from gpu_scripts import load_script, needs_repository

pytestmark = needs_repository
SEED = 20


def work(rank, folder, count, shift):
    from deft.torch_peers import TorchPeers

    script = load_script("rank_placements")
    if shift:  # of what one query sees
        seen = script.Drawn.seen
        script.Drawn.seen = lambda self, query: seen(self, query)[shift:] or seen(self, query)
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=count)
    found = script.check(torch, deft, TorchPeers(), torch.device("cpu"), SEED, 2)
    with open(f"{folder}/found{rank}", "w") as file:
        json.dump(found, file)
    torch.distributed.destroy_process_group()


def run(folder, count, shift=0):
    torch.multiprocessing.spawn(work, (str(folder), count, shift), nprocs=count)
    return [json.loads((folder / f"found{rank}").read_text()) for rank in range(count)]


@pytest.mark.parametrize("count", [2, 3])
def test_merged_rows_are_those_of_double_precision(tmp_path, count):
    for worst, wrong in run(tmp_path, count):
        assert wrong == [] and 0 < worst <= 1


def test_a_token_that_nobody_read_is_found(tmp_path):
    assert any(wrong for _, wrong in run(tmp_path, 2, shift=1))


def test_every_token_lies_on_one_rank():
    script = load_script("rank_placements")
    for layout in script.LAYOUTS:
        for seed in range(20):
            drawn = script.Drawn(seed)
            held = [x for rank in range(3) for x, _ in drawn.own(drawn.ranks(deft, layout, 3, rank))]
            every = [x for _, tokens, location in drawn.nodes for x in range(location, location + tokens)]
            assert sorted(held) == every, f"seed {seed}, {layout}"
