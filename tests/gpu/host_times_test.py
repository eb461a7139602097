#!/usr/bin/env python3
"""host_times.py tells steps of decoding from steps with new requests, and keeps as many running as it says."""

import sys
import time
import unittest
from types import ModuleType, SimpleNamespace

import host_times


class Builder:
    within = staticmethod(lambda: None)

    def build(self, common_prefix_len, common_attn_metadata, fast_build=False):
        self.within()
        return common_prefix_len, fast_build


class Engine:
    """Gives each request a token a step. Prompts are in a step's batch when they are new."""

    def __init__(self, watch):
        self.left, self.fresh, self.builder, self.most, self.names = {}, False, Builder(), 0, []
        watch.wrap_all(SimpleNamespace(model_runner=SimpleNamespace(attn_groups=[[SimpleNamespace(get_metadata_builder=lambda: self.builder)]])))

    def add_request(self, name, prompt, params):
        self.left[name], self.fresh = params, True
        self.names.append(name)

    def has_unfinished_requests(self):
        return bool(self.left)

    def step(self):
        common = SimpleNamespace(max_query_len=host_times.OWN if self.fresh else 1)
        self.made = self.builder.build(common_prefix_len=7, common_attn_metadata=common)
        self.most, self.fresh = max(self.most, len(self.left)), False
        self.left = {name: left - 1 for name, left in self.left.items()}
        ended = [name for name, left in self.left.items() if not left]
        self.left = {name: left for name, left in self.left.items() if left}
        return [SimpleNamespace(finished=True) for _ in ended]


class Drive(unittest.TestCase):
    def setUp(self):
        watch = host_times.Watch(1)
        self.engine = Engine(watch)
        self.prompts = [[i] for i in range(32 * (1 + host_times.ROUNDS))]
        self.seen = host_times.drive(self.engine, watch, self.prompts, 32, lambda length: length)

    def test_so_many_run_at_once_and_every_prompt_once(self):
        self.assertEqual(self.engine.most, 32)
        self.assertEqual(len(set(self.engine.names)), len(self.prompts) + 1)  # and the one that fills the prefix cache

    def test_a_group_joins_in_every_so_manieth_step(self):
        joins = self.seen["build_joins"]["count"]
        self.assertEqual(joins, host_times.GROUPS * host_times.ROUNDS - 1)  # in the last none is left to join behind
        self.assertEqual(self.seen["build"]["count"] + joins, self.seen["step"]["count"])
        self.assertGreater(self.seen["build"]["count"], 8 * joins)

    def test_what_is_built_is_what_the_builder_builds(self):
        self.assertEqual(self.engine.made, (7, False))


class Parts(unittest.TestCase):
    """Sections, of a module that calls itself."""

    def setUp(self):
        self.module = ModuleType("parts")
        self.module.inner = lambda: time.sleep(0.002)
        self.module.outer = lambda: self.module.inner() or self.module.inner()
        sys.modules["parts"] = self.module
        self.addCleanup(sys.modules.pop, "parts")
        places = {name: ("parts", name) for name in ("inner", "outer", "gone")} | {"elsewhere": ("no.such.module", "it")}
        self.sections = host_times.Sections(places)

    def test_time_within_is_not_counted_twice(self):
        before = self.module.outer
        with self.sections:
            self.module.outer()
        self.assertIs(self.module.outer, before)
        self.assertEqual(self.sections.calls, {"inner": 2, "outer": 1})
        self.assertGreaterEqual(self.sections.times["inner"], 0.004)
        self.assertLess(self.sections.times["outer"], 0.002)

    def test_a_second_round_tells_sections(self):
        watch = host_times.Watch(1)
        engine, prompts = Engine(watch), [[i] for i in range(16 * (1 + host_times.ROUNDS))]
        self.module.inner = lambda: None
        engine.builder.within = lambda: self.module.outer()
        first = host_times.drive(engine, watch, prompts, 16, lambda length: length)
        second = host_times.drive(engine, watch, prompts, 16, lambda length: length, self.sections)
        self.assertEqual(first["waits"]["count"], first["build"]["count"] + first["build_joins"]["count"])
        self.assertEqual(second["steady"]["outer"]["count"], first["build"]["count"])
        self.assertEqual(second["joins"]["inner"]["calls"], 2.0)
        self.assertEqual(second["again"]["count"], first["build"]["count"])
        self.assertEqual(host_times.text_of({"16": {**first, "sections": second}}).count("again"), 1)

    def test_what_is_in_no_section_is_the_rest(self):
        self.sections.note("inner", 0.25)
        self.sections.note(host_times.PLANS, 0.125)  # part of another
        build = host_times.Build(1.0, 0.75, self.sections, {"inner": 0.5})
        self.assertEqual((build.times["rest"], build.waited, build.times["ahead: inner"]), (0.75, 0.25, 0.5))
        self.assertEqual(host_times.in_sections([build, build])["inner"], {"count": 2, "median_ms": 250.0, "p99_ms": 250.0, "calls": 1.0})


class Summary(unittest.TestCase):
    def test_median_and_99th_percentile(self):
        self.assertEqual(host_times.summary([0.001] * 98 + [0.002, 0.003]), {"count": 100, "median_ms": 1.0, "p99_ms": 3.0})
        self.assertEqual(host_times.summary([]), {"count": 0})

    def test_the_text_names_what_was_seen(self):
        seen = {"build": host_times.summary([0.001]), "build_joins": host_times.summary([]), "step": host_times.summary([0.005])}
        self.assertEqual(len(host_times.text_of({"32": seen}).splitlines()), 2)


class Lengths(unittest.TestCase):
    def test_groups_end_one_behind_the_other(self):
        ends = [host_times.length_of(i, 32) for i in range(host_times.GROUPS)]
        self.assertEqual({later - sooner for sooner, later in zip(ends, ends[1:])}, {host_times.EVERY})
        self.assertEqual(host_times.length_of(32, 32), host_times.GROUPS * host_times.EVERY)


if __name__ == "__main__":
    unittest.main()
