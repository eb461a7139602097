#!/usr/bin/env python3
"""sglang_host_times.py notes each plan once, and tells steps of decoding from those in which requests join."""

import json
import os
import sys
import tempfile
import time
import unittest
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import sglang_host_times


class Backend:
    def init_forward_metadata(self, batch):
        self.init_forward_metadata_out_graph(batch)

    def init_forward_metadata_out_graph(self, batch, in_capture=False):
        self.read.wait()
        self.planned = batch


class Reading:
    def wait(self):
        time.sleep(0.01)


def batch(decodes, count):
    return SimpleNamespace(forward_mode=SimpleNamespace(is_decode=lambda: decodes), batch_size=count + 1, num_padding=1)


class Plugin(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        for patched in (mock.patch.dict(os.environ), mock.patch.object(sys, "path", list(sys.path)),
                        mock.patch.dict(sys.modules, {"deft.sglang.foreseen": SimpleNamespace(Reading=Reading)})):
            patched.start()
            self.addCleanup(patched.stop)
        self.calls = sglang_host_times.install(folder.name)

    def noted(self):
        return [json.loads(line) for line in self.calls.read_text().splitlines()]

    def test_sglang_finds_it(self):
        names = [point.value for point in metadata.entry_points(group="sglang.srt.plugins") if point.name == "host_times"]
        self.assertEqual(names, ["sglang_host_times:register"])
        self.assertIn(str(Path(__file__).parent), os.environ["PYTHONPATH"].split(os.pathsep))

    def test_each_plan_and_each_forward_is_noted_once(self):
        wait = Reading.wait
        self.addCleanup(setattr, Reading, "wait", wait)
        backend, runner = Backend(), SimpleNamespace(forward=lambda batch, **more: more)
        backend.read, runner.attn_backend = Reading(), backend
        self.assertEqual(sglang_host_times.follow("made", runner), "made")
        backend.init_forward_metadata_out_graph(batch(True, 4), in_capture=True)
        backend.init_forward_metadata(batch(False, 2))
        self.assertEqual(runner.forward(batch(True, 3), pp_proxy_tensors=5), {"pp_proxy_tensors": 5})
        seen = [(note["kind"], note["decodes"], note["requests"]) for note in self.noted()]
        self.assertEqual(seen, [("plan", False, 2), ("forward", True, 3)])
        self.assertGreater(self.noted()[0]["waited_s"], 0.009)
        self.assertGreaterEqual(self.noted()[0]["s"], self.noted()[0]["waited_s"])


def plan(decodes, count, taken, waited=0.0):
    return {"kind": "plan", "decodes": decodes, "requests": count, "s": taken, "waited_s": waited}


class Sums(unittest.TestCase):
    def test_a_step_behind_a_prompt_is_one_in_which_requests_join(self):
        notes = [plan(False, 32, 0.009), plan(True, 32, 0.003, 0.001), plan(True, 32, 0.001), plan(False, 2, 0.004), plan(True, 32, 0.003),
                 plan(True, 3, 9.0), *({"kind": "forward", "decodes": True, "requests": 32, "at": at, "s": 0.02, "waited_s": 0.0} for at in (5.0, 5.25))]
        seen = sglang_host_times.summed(notes, 32)
        self.assertEqual((seen["build"]["count"], seen["build"]["median_ms"]), (1, 1.0))
        self.assertEqual((seen["build_joins"]["count"], seen["build_joins"]["p99_ms"]), (4, 9.0))
        self.assertEqual((seen["waits"]["p99_ms"], seen["forward"]["median_ms"]), (1.0, 20.0))
        self.assertEqual(seen["step"], {"count": 1, "median_ms": 250.0, "p99_ms": 250.0})


if __name__ == "__main__":
    unittest.main()
