"""Captured steps, and `deftc replay` of them."""

import json
import os
import subprocess
import sys

import deft
import numpy
import pytest
from deftc_program import deftc

SPEC = """attention pages {
  query_heads = 4; kv_heads = 2; head_dim = 64; dtype = f16;
  kv_cache = paged(page_size = 16);
  param slope : f32[query_heads];
  score = s * slope[head];
}"""


def run_a_step(queries=2):
    attention = deft.compile(SPEC)
    tree = deft.SequenceTree(page_size=16, pages=32)
    prompt = tree.add_root(40)
    for _ in range(queries):
        tree.add_query(tree.add_child(prompt, 5))
    q = numpy.ones((queries, 4, 64), "float16")
    k = numpy.ones((32, 16, 2, 64), "float16")
    attention.run(tree, q, k, k, tree.page_table, params={"slope": [0.5, 1, 2, 4]})


def files(folder):
    return sorted(folder.glob("*.json"))


def test_a_step_is_captured_and_replayed(tmp_path):
    with deft.capture(tmp_path, "tensors"):
        run_a_step()
        assert deft.capture_state().is_on
    (path,) = files(tmp_path)
    step = json.loads(path.read_text())
    assert step["params"]["slope"] == {"f32": [0.5, 1.0, 2.0, 4.0]} and step["deftc"] == deft.__version__
    state = deft.capture_state()
    assert (state.steps, state.is_on, state.ended) == (1, False, "")
    shown = deftc("replay", path, "--backend", "cpu", "--repeat", "1")
    assert "check    right: error" in shown and "plan of " in shown and "are random" not in shown


def test_the_environment_asks_for_it(tmp_path):
    code = "import test_capture; test_capture.run_a_step(); import deft; assert deft.capture_state().steps == 1"
    environment = {**os.environ, "DEFT_CAPTURE": f"{tmp_path}/steps", "PYTHONPATH": os.pathsep.join(sys.path)}
    folder = os.path.dirname(__file__)
    subprocess.run([sys.executable, "-c", code], check=True, env=environment, cwd=folder)
    assert len(files(tmp_path / "steps")) == 1
    environment["DEFT_CAPTURE"] = f"{tmp_path}/steps:all"
    wrong = code.replace("steps == 1", "steps == 0")
    said = subprocess.run([sys.executable, "-c", wrong], check=True, env=environment, cwd=folder, capture_output=True, text=True)
    assert "DEFT_CAPTURE: `all` is neither `device` nor `tensors`; nothing is captured" in said.stderr


def test_a_program_of_a_step_runs(tmp_path):
    with deft.capture(tmp_path):
        run_a_step(queries=3)
    (path,) = files(tmp_path)
    program = tmp_path / "step.py"
    deftc("replay", path, "--program", "python", "-o", program)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    told = subprocess.run([sys.executable, program], check=True, env=environment, capture_output=True, text=True).stdout
    assert " items, " in told


def test_wrong_arguments_are_named(tmp_path):
    with pytest.raises(deft.UsageError, match="'all', not one of host, device, tensors"):
        deft.capture(tmp_path, "all")
    with pytest.raises(deft.UsageError, match="most_steps = 0, it must be from 1"):
        deft.capture(tmp_path, most_steps=0)
    with pytest.raises(deft.MachineError, match="Not a directory"):
        (tmp_path / "file").write_text("")
        deft.capture(tmp_path / "file" / "steps")


def test_the_log_tells_of_it(tmp_path):
    told = []
    deft.set_log(lambda message: told.append((message.kind, message.text)))
    try:
        with deft.capture(tmp_path, most_steps=1):
            run_a_step()
            run_a_step()
    finally:
        deft.set_log(None)
    captures = [text for kind, text in told if kind == "capture"]
    assert captures[0].startswith("a step of `pages` is in ") and captures[1] == "capturing has ended: the limit of 1 steps is reached"
