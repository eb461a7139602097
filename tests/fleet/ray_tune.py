"""Tunes an attention by the tasks of a Ray cluster, a shard each; this process joins them.

usage: ray_tune.py SHARDS SPEC WORKLOAD [--gpus N] [--budget SECONDS] [--candidates N] [--folder JOURNALS]

--gpus: of a shard, by default 1; 0 tunes processors, with a thread each
"""

import argparse
import os
from pathlib import Path

import deft
import ray


@ray.remote
def tune(spec, workload, shard, journal, options):
    """A task that runs again goes on with its journal. It is returned, since hosts need not share its folder."""
    result = deft.tune(deft.compile(spec), workload, shard=shard, journal=journal, **options)
    return result.end, os.getpid(), journal.read_bytes()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("shards", type=int)
    parser.add_argument("spec", type=Path)
    parser.add_argument("workload")
    parser.add_argument("--gpus", type=int, default=1)
    parser.add_argument("--budget", type=float)
    parser.add_argument("--candidates", type=int, default=0)
    parser.add_argument("--folder", type=Path, default=Path("journals"))
    given = parser.parse_args()

    ray.init()
    options = {"budget": given.budget, "candidates": given.candidates, "device": "cuda" if given.gpus else "cpu"}
    if not given.gpus:
        options["threads"] = 1
    journals = [given.folder.absolute() / f"{index}.jsonl" for index in range(given.shards)]
    tasks = [
        tune.options(num_gpus=given.gpus).remote(given.spec.read_text(), given.workload, (index, given.shards), journal, options)
        for index, journal in enumerate(journals)
    ]
    given.folder.mkdir(exist_ok=True)
    for index, (end, process, journal) in enumerate(ray.get(tasks)):
        print(f"shard {index}/{given.shards}: {end}, process {process}")
        journals[index].write_bytes(journal)
    print(deft.merge_shards(journals))


if __name__ == "__main__":
    main()
