"""`deftc run --dump` against attention.py: masks, scores, GQA ratios, layouts, sigmoid, partitions, trees, workloads.

usage: dump_test.py DEFTC [FILTER]
"""

import math
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from attention import Dump, lists, worst

DEFTC = "deftc"

FOREST = """{"format": "deftc-tree", "version": 1,
 "nodes": [{"parent": -1, "tokens": 23}, {"parent": 0, "tokens": 5}, {"parent": 1, "tokens": 0},
           {"parent": 0, "tokens": 17}, {"parent": 2, "tokens": 9}, {"parent": -1, "tokens": 3},
           {"parent": 5, "tokens": 1}],
 "queries": [{"node": 4}, {"node": 0, "position": 11}, {"node": 6}, {"node": 3}, {"node": 4, "position": 3},
             {"node": 5, "position": 0}, {"node": 2}, {"node": 3}]}"""
CHAIN = (
    '{"format": "deftc-tree", "version": 1, "nodes": ['
    + ", ".join('{"parent": %d, "tokens": %d}' % (i - 1, 1 + i % 3) for i in range(24))
    + '], "queries": [{"node": 23}, {"node": 11}, {"node": 12, "position": 0}]}'
)
FAN = (
    '{"format": "deftc-tree", "version": 1, "nodes": [{"parent": -1, "tokens": 30}, '
    + ", ".join('{"parent": 0, "tokens": %d}' % (i % 4) for i in range(30))
    + '], "queries": ['
    + ", ".join('{"node": %d}' % (30 - i) for i in range(30))
    + "]}"
)
TREES = {"forest": FOREST, "chain": CHAIN, "fan": FAN}

HEAD = "attention a { query_heads = %d; kv_heads = %d; head_dim = 64; "
PLAIN = HEAD % (4, 2) + "output = bf16 with lse; }"


def bf16(value):
    """The nearest, ties to even."""
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    return struct.unpack("<f", struct.pack("<I", (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000))[0]


class DumpTest(unittest.TestCase):
    def dump(self, folder, spec, tree, *options):
        (Path(folder) / "a.deft").write_text(spec)
        what = ["--workload", tree]
        if tree in TREES:
            (Path(folder) / "tree.json").write_text(TREES[tree])
            what = ["--tree", f"{folder}/tree.json"]
        command = [DEFTC, "run", f"{folder}/a.deft", *what, "--dump", f"{folder}/out", "--backend", "cpu"]
        run = subprocess.run([*command, "--repeat", "1", *options], capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        return Dump(f"{folder}/out")

    def check(self, spec, *options, tree="forest", dtype="bf16", has_lse=True, has_scales=False, **formula):
        """`has_scales`: the dump has exact elements of K and V, and processors round them."""
        with tempfile.TemporaryDirectory() as folder:
            dump = self.dump(folder, spec, tree, *options)
            self.assertEqual(dump.lse is not None, has_lse)
            if has_scales:
                for tensor in (dump.k, dump.v):
                    tensor.values = [bf16(value) for value in tensor.values]
            for tensor in (dump.q, dump.k, dump.v, dump.out):
                self.assert_rounded(tensor, dtype)
            error, distance = worst(dump, scale=formula.pop("scale", 1 / 8), **formula)
        # Rounding the output to the dtype alone makes half of this error.
        self.assertLessEqual(error, 0.006 if dtype == "bf16" else 0.001)
        self.assertLessEqual(distance, 1e-3)

    def assert_rounded(self, tensor, dtype):
        for value in tensor.values:
            if dtype == "bf16":
                self.assertEqual(struct.unpack("<I", struct.pack("<f", value))[0] & 0xFFFF, 0, value)
            else:
                self.assertEqual(struct.unpack("<e", struct.pack("<e", value))[0], value)

    def test_every_partition_on_every_tree(self):
        for partition in ("query", "node", "node_chunk", "flatten", "cascade", "greedy", "union", "auto"):
            for tree in TREES:
                with self.subTest(partition=partition, tree=tree):
                    self.check(PLAIN, "--partition", partition, "--chunk", "16", "--seed", "3", tree=tree)

    def test_mask_hides_what_it_says(self):
        spec = HEAD % (6, 2) + "mask = tree && (kv_pos > q_pos - 7 || kv_pos < 3); output = bf16 with lse; }"
        self.check(spec, "--pages", "scattered", sees=lambda at: at.kv_pos > at.q_pos - 7 or at.kv_pos < 3)

    def test_mask_bound_by_the_path_shows_what_comes_later(self):
        spec = HEAD % (6, 2) + "mask = path && (kv_pos <= q_pos || kv_pos < 9); output = bf16 with lse; }"
        for partition in ("query", "node", "union"):
            self.check(spec, "--partition", partition, sees=lambda at: at.kv_pos <= at.q_pos or at.kv_pos < 9, sees_path=True)
        self.check(HEAD % (2, 1) + "mask = path; output = bf16 with lse; }", sees_path=True)

    def test_mask_may_hide_everything(self):
        spec = HEAD % (2, 1) + "mask = tree && depth > 1 && head == 1; output = bf16 with lse; }"
        self.check(spec, sees=lambda at: at.depth > 1 and at.head == 1)

    def test_score_with_parameters(self):
        spec = HEAD % (5, 1) + (
            "dtype = f16; param cap : f32 = 30; param slope : f32[query_heads];"
            "score = cap * tanh(s / cap) + slope[head] * (kv_pos - q_pos); output = f16 with lse; }"
        )
        self.check(
            spec, "--param", "slope=0.25", "--param", "cap=2", dtype="f16",
            score=lambda s, at: 2 * math.tanh(s / 2) + 0.25 * (at.kv_pos - at.q_pos),
        )  # fmt: skip

    def test_layouts_and_scale(self):
        for cache in ("contiguous", "paged(page_size = 4, order = hnd)", "paged(page_size = 1, order = nhd)"):
            with self.subTest(cache=cache):
                spec = HEAD % (7, 7) + f"scale = 0.3; kv_cache = {cache}; }}"
                self.check(spec, "--pages", "scattered", scale=0.3, has_lse=False)

    def test_latent_caches_and_dims_of_their_own(self):
        latent = "attention a { query_heads = 6; kv_cache = latent(dim = 32, rope = 16, page_size = 5); scale = 0.3; output = bf16 with lse; }"
        apart = "attention a { query_heads = 6; kv_heads = 2; key_dim = 40; value_dim = 24; output = bf16 with lse; }"
        scaled = "attention a { query_heads = 6; kv_cache = latent(dim = 64, rope = 16, page_size = 5, dtype = fp8_e4m3, scales = 16); scale = 0.2; output = bf16 with lse; }"
        for spec, scale in ((latent, 0.3), (scaled, 0.2), (apart, 40**-0.5)):
            for partition in ("query", "node_chunk", "greedy", "union"):
                with self.subTest(spec=spec, partition=partition):
                    options = ("--partition", partition, "--chunk", "16", "--pages", "scattered")
                    self.check(spec, *options, scale=scale, has_scales=spec == scaled)

    def test_sigmoid_has_no_lse(self):
        spec = HEAD % (3, 1) + "normalize = sigmoid(-2); score = s + 0.5 * query; }"
        self.check(spec, has_lse=False, sigmoid_bias=-2, score=lambda s, at: s + 0.5 * at.query)

    def test_only_denominators_see_sinks(self):
        spec = HEAD % (6, 2) + (
            "param logit : f32[query_heads]; mask = tree && depth > 0;"
            "normalize = softmax with sink(logit[head] - head); output = bf16 with lse; }"
        )
        for partition in ("query", "node", "union"):  # finished by items and by merges
            with self.subTest(partition=partition):
                self.check(
                    spec, "--param", "logit=4.5", "--partition", partition, "--chunk", "16",
                    sees=lambda at: at.depth > 0, sink=lambda head: 4.5 - head,
                )  # fmt: skip

    def test_queries_and_outputs_are_what_their_hooks_make_of_them(self):
        spec = 'import "library.deft"; ' + HEAD % (6, 2) + (
            "param gain : f32[kv_heads]; query = rope(rms_norm(1.5, 0.01), rms_norm_half(1.5, 0.01), 100.0);"
            "output = x * gain[kv_head] + 0.25 * (dim % 2) - 0.125 * head + query as bf16 with lse; }"
        )

        def made(q, at):
            norm = 1.5 / math.sqrt(sum(x * x for x in q) / 64 + 0.01)
            out = []
            for dim, x in enumerate(q):
                angle = at.q_pos / 100 ** ((dim % 32) / 32)
                half = q[dim - 32] if dim >= 32 else -q[dim + 32]
                out.append(bf16((x * math.cos(angle) + half * math.sin(angle)) * norm))
            return out

        def written(row, at):
            return [2 * x + 0.25 * (dim % 2) - 0.125 * at.head + at.query for dim, x in enumerate(row)]

        for partition in ("query", "node", "union"):  # finished by items and by merges
            with self.subTest(partition=partition):
                self.check(
                    spec, "--param", "gain=2", "--partition", partition, "--chunk", "16", made=made, written=written
                )

    def test_keys_are_what_their_hook_makes_of_them(self):
        spec = 'import "library.deft"; ' + HEAD % (6, 2) + (
            "param gain : f32[kv_heads]; key = rope_pairs(x, x_pair, 100.0) * gain[kv_head] + 0.125 * x_rms;"
            "output = bf16 with lse; }"
        )

        def keyed(k, at):
            rms = math.sqrt(sum(x * x for x in k) / 64)
            out = []
            for dim, x in enumerate(k):
                angle = at.kv_pos / 100 ** ((dim // 2) / 32)
                pair = k[dim - 1] if dim % 2 else -k[dim + 1]
                out.append(bf16((x * math.cos(angle) + pair * math.sin(angle)) * 1.5 + 0.125 * rms))
            return out

        for partition in ("query", "node", "union"):
            with self.subTest(partition=partition):
                self.check(spec, "--param", "gain=1.5", "--partition", partition, "--chunk", "16", keyed=keyed)

    def test_arrays_over_tokens_have_a_value_for_each_token_of_the_dump(self):
        spec = HEAD % (6, 2) + (
            "param doc : i32[tokens]; param gain : f32[tokens]; param own : i32[queries];"
            "mask = doc[token] == own[query] || kv_pos < 2; score = s + gain[token]; output = bf16 with lse; }"
        )
        for partition in ("query", "node", "union"):
            with self.subTest(partition=partition):
                self.check(
                    spec, "--partition", partition, "--pages", "scattered", "--param", "own=1",
                    sees=lambda at: at.params["doc"][at.token] == at.params["own"][at.query] or at.kv_pos < 2,
                    score=lambda s, at: s + at.params["gain"][at.token],
                )  # fmt: skip

    def test_rows_of_tokens_have_scales(self):
        spec = HEAD % (6, 2) + (
            "param ks : f32[tokens, kv_heads]; param vs : f32[tokens, kv_heads]; param gain : f32[tokens];"
            "score = s * ks[token, kv_head]; value = x * vs[token, kv_head] / (1 + abs(gain[token])); %s }"
        )
        of_row = lambda name, at: at.params[name][2 * at.token + at.kv_head]  # noqa: E731
        formula = {
            "score": lambda s, at: s * of_row("ks", at),
            "factor": lambda at: of_row("vs", at) / (1 + abs(at.params["gain"][at.token])),
        }
        for partition in ("query", "node", "union"):
            with self.subTest(partition=partition):
                options = ("--partition", partition, "--pages", "scattered", "--chunk", "16")
                self.check(spec % "output = bf16 with lse;", *options, **formula)
                self.check(spec % "normalize = sigmoid(-1.0);", *options, sigmoid_bias=-1.0, has_lse=False, **formula)

    def test_arrays_over_tokens_come_back_with_the_inputs_that_they_were_dumped_with(self):
        spec = HEAD % (4, 2) + (
            "param doc : i32[tokens]; param own : i32[queries]; mask = doc[token] == own[query]; output = bf16 with lse; }"
        )
        with tempfile.TemporaryDirectory() as folder:
            first = self.dump(folder, spec, "forest", "--pages", "scattered")
            command = [DEFTC, "run", f"{folder}/a.deft", "--inputs", f"{folder}/out", "--dump", f"{folder}/again"]
            run = subprocess.run([*command, "--backend", "cpu", "--check"], capture_output=True, text=True, check=False)
            self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
            second = Dump(f"{folder}/again")
            self.assertEqual(first.params, second.params)
            self.assertGreater(len(set(first.params["doc"])), 1)
            self.assertEqual(list(first.out.values), list(second.out.values))

    def test_rows_with_scales_come_back_as_they_were(self):
        spec = "attention a { query_heads = 2; kv_cache = latent(dim = 64, rope = 16, dtype = fp8_e4m3, scales = 16); scale = 0.2; }"
        with tempfile.TemporaryDirectory() as folder:
            first = self.dump(folder, spec, "forest")
            again = [DEFTC, "run", f"{folder}/a.deft", "--inputs", f"{folder}/out", "--dump", f"{folder}/again", "--backend", "cpu"]
            run = subprocess.run(again, capture_output=True, text=True, check=False)
            self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
            second = Dump(f"{folder}/again")
            self.assertEqual(list(first.k.values), list(second.k.values))
            self.assertEqual(list(first.out.values), list(second.out.values))
            Path(f"{folder}/out/k_scales.npy").unlink()
            run = subprocess.run(again, capture_output=True, text=True, check=False)
            self.assertIn("k_scales.npy", run.stderr)
            self.assertNotEqual(run.returncode, 0)

    def select(self, spec, heads_of_list, budget, *options, tree="forest", **formula):
        """Lists against a sort, and sparse outputs over the lists that were found."""
        keeps = {key: formula.pop(key) for key in ("keep_first", "keep_last") if key in formula}
        with tempfile.TemporaryDirectory() as folder:
            dump = self.dump(folder, spec, tree, *options)
            found = {}
            for query, number, expected, worth in lists(dump, 1 / 8, heads_of_list, budget, **keeps, **formula):
                row = dump.selected.row(query, number)
                found[query, number] = {int(position) for position in row if position >= 0}
                self.assertEqual(len(found[query, number]), len(expected))
                self.assertEqual(sorted(p for p in row if p >= 0), [p for p in row if p >= 0])
                for other in found[query, number] ^ set(expected):  # roundings of f32 may decide
                    edge = min(worth[position] for position in expected)
                    self.assertAlmostEqual(worth[other], edge, delta=1e-5 * max(1, abs(edge)))
            sees = formula.pop("sees", lambda at: True)
            error, _ = worst(
                dump, out_of=dump.sparse_out, scale=1 / 8, **formula,
                sees=lambda at: sees(at) and at.kv_pos in found[at.query, at.head // heads_of_list],
            )  # fmt: skip
        self.assertLessEqual(error, 0.006)

    def test_selected_tokens_are_those_of_a_sort(self):
        for by, heads_of_list in (("kv_head", 3), ("query_head", 1), ("query", 6)):
            for tree in TREES:
                with self.subTest(by=by, tree=tree):
                    spec = HEAD % (6, 2) + (
                        f"select {{ budget = 9; by = {by}; keep_first = 1; keep_last = 2; }} output = bf16 with lse; }}"
                    )
                    options = ("--pages", "scattered", "--seed", "4", "--chunk", "16")
                    self.select(spec, heads_of_list, 9, *options, tree=tree, keep_first=1, keep_last=2)

    def test_selection_is_by_what_masks_and_scores_make(self):
        spec = HEAD % (4, 2) + (
            "mask = tree && (kv_pos + head) % 3 != 0; score = 2.0 * tanh(s) - 0.01 * kv_pos; select { budget = 6; } }"
        )
        self.select(
            spec, 2, 6, sees=lambda at: (at.kv_pos + at.head) % 3 != 0,
            score=lambda s, at: 2 * math.tanh(s) - 0.01 * at.kv_pos,
        )  # fmt: skip

    def test_division_rounds_down(self):
        spec = HEAD % (2, 1) + (
            "mask = tree && floor_div(kv_pos - 9, 4) != -2 && floor_div(kv_pos, 3) != floor_div(q_pos, 3);"
            "score = s + 0.25 * floor(kv_pos / 5 - 2); output = bf16 with lse; }"
        )
        self.check(
            spec, sees=lambda at: (at.kv_pos - 9) // 4 != -2 and at.kv_pos // 3 != at.q_pos // 3,
            score=lambda s, at: s + 0.25 * math.floor(at.kv_pos / 5 - 2),
        )  # fmt: skip

    def test_last_step_of_a_workload(self):
        for partition in ("flatten", "greedy", "union"):
            with self.subTest(partition=partition):
                self.check(
                    PLAIN, "--steps", "9", "--seed", "5", "--partition", partition, "--pages", "scattered",
                    tree="few_shot:prompt=40,branches=3",
                )  # fmt: skip


if __name__ == "__main__":
    if len(sys.argv) > 1:
        DEFTC = sys.argv.pop(1)
    unittest.main()
