"""The recipes of tests/fleet: shards of one tuning session by Slurm, by torchrun and by Ray."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import deft
import pytest
from deftc_program import deftc, program

FOLDER = Path(__file__).resolve().parents[1] / "fleet"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the tests lie without the repository")
SPEC = "attention a { query_heads = 2; kv_heads = 1; head_dim = 16; kv_cache = contiguous; }\n"
WORKLOAD = "few_shot:prompt=200,branches=3,iterations=400"  # three classes
ARGUMENTS = ["a.deft", "--workload", WORKLOAD, "--backend", "cpu", "--threads", "1", "--candidates", "2"]


def in_folder(folder, command, **variables):
    """What it prints."""
    (folder / "a.deft").write_text(SPEC)
    paths = {"PATH": os.pathsep.join([str(program().parent), os.environ["PATH"]]), "DEFT_CACHE_DIR": str(folder / "cache")}
    paths["PYTHONPATH"] = os.pathsep.join([str(Path(deft.__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(command, cwd=folder, env={**os.environ, **paths, **variables}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def events_of(folder, shards):
    lines = [line for index in range(shards) for line in (folder / f"journals/{index}.jsonl").read_text().splitlines()]
    return [json.loads(line)["event"] for line in lines]


def check_journals(folder, shards):
    """Each candidate was measured once, and all classes have a result."""
    events = events_of(folder, shards)
    measured = [(event["class"], event["id"], event["tree"], event["round"]) for event in events if event["event"] == "measured"]
    assert measured and len(set(measured)) == len(measured)
    classes = [event for event in events if event["event"] == "session"][0]["classes"]
    assert len(classes) > 1
    assert sorted(event["class"] for event in events if event["event"] == "done") == sorted(classes)


def merge(folder, shards):
    journals = [folder / f"journals/{index}.jsonl" for index in range(shards)]
    return deftc("cache", "merge", *journals, "-o", folder / "merged.json")


def test_an_array_of_slurm(tmp_path):
    """Without Slurm: its variables are set by hand."""
    for index in (2, 0, 1, 0):  # one of them again, as a requeued array does
        variables = {"SLURM_ARRAY_TASK_ID": str(index), "SLURM_ARRAY_TASK_COUNT": "3"}
        said = in_folder(tmp_path, ["bash", FOLDER / "tune.sbatch", *ARGUMENTS], **variables)
        assert f"shard {index}/3: " in said
    assert "0 measurements made" in said
    check_journals(tmp_path, 3)
    assert "3 shards of one session" in merge(tmp_path, 3)
    assert json.loads((tmp_path / "merged.json").read_text())["entries"]


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
def test_ranks_of_torchrun(tmp_path):
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "--no-python"]
    in_folder(tmp_path, [*torchrun, "bash", FOLDER / "tune_rank.sh", *ARGUMENTS])
    check_journals(tmp_path, 2)
    assert "2 shards of one session" in merge(tmp_path, 2)


@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed")
def test_tasks_of_ray(tmp_path):
    options = ["--gpus", "0", "--candidates", "2"]
    said = in_folder(tmp_path, [sys.executable, FOLDER / "ray_tune.py", "3", "a.deft", WORKLOAD, *options])
    processes = re.findall(r"shard \d/3: complete, process (\d+)", said)
    assert len(processes) == 3
    check_journals(tmp_path, 3)
    assert "us tuned" in said
    assert "3 shards of one session" in merge(tmp_path, 3)
