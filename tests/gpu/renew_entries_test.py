"""Checks renew_entries.py, without a GPU or a compiler."""

import json
import struct
import unittest

import renew_entries

HEADERS = {"deft/attend_a.cuh": '#include "deft/a/x.cuh" // what it is of\nint a;\n', "deft/a/x.cuh": "int  x ;\n",
           "deft/merge.cuh": "int m;\n", "deft/unused.cuh": "int u;\n"}


def elf(sections):
    """A 64-bit file of these sections, (name, info, bytes) each."""
    names = b"\0" + b"".join(name.encode() + b"\0" for name, _, _ in sections) + b".names\0"
    body, headers, at = b"", [], 0x40
    for name, info, data in [*sections, (".names", 0, names)]:
        headers.append(struct.pack("<IIQQQQIIQQ", names.index(name.encode() + b"\0"), 1, 0, 0, at, len(data), 0, info, 0, 0))
        body += data
        at += len(data)
    head = bytearray(0x40)
    struct.pack_into("<Q", head, 0x28, at)
    struct.pack_into("<HH", head, 0x3C, len(headers), len(headers) - 1)
    return bytes(head) + body + b"".join(headers)


class RenewEntriesTest(unittest.TestCase):
    def test_the_hash_is_of_code_that_kernels_reach(self):
        was = renew_entries.kernel_hash(HEADERS)
        self.assertEqual(len(was), 16)
        for name, text, is_same in (("deft/a/x.cuh", "int x; // a comment\n", True), ("deft/unused.cuh", "", True),
                                    ("deft/a/x.cuh", "int y;\n", False), ("deft/merge.cuh", "", False)):
            self.assertEqual(renew_entries.kernel_hash({**HEADERS, name: text}) == was, is_same, name)

    def test_sparse_layers_are_of_one_family(self):
        headers = {**HEADERS, "deft/attend_b.cuh": "int b;\n"}
        self.assertNotEqual(renew_entries.kernel_hash(headers), renew_entries.kernel_hash(HEADERS))
        self.assertEqual(renew_entries.kernel_hash(headers, "a"), renew_entries.kernel_hash(HEADERS, "a"))

    def test_a_sparse_kernel_has_the_tile_of_its_entry(self):
        text = ("  static constexpr int kTileKv = 64;\n  static constexpr int kStages = 2;\n"
                "  static constexpr int kWarps = 4;\nstatic_assert(deft::sm80::smemBytes<Config>() == 9, \"no\");\nx\n")
        entry = {"budget": 1024, "tile_kv": 32, "stages": 3, "warps": 2}
        self.assertEqual(renew_entries.with_tile(text, entry),
                         "  static constexpr int kTileKv = 32;\n  static constexpr int kStages = 3;\n"
                         "  static constexpr int kWarps = 2;\nx\n")
        with self.assertRaises(AssertionError):
            renew_entries.with_tile("int kTileKv;", entry)

    def test_a_signature_says_its_spec(self):
        spec = renew_entries.spec_of("q32-kv8-d128-bf16-p16nhd-plain")
        for part in ("query_heads = 32;", "kv_heads = 8;", "head_dim = 128;", "dtype = bf16;", "paged(page_size = 16)"):
            self.assertIn(part, spec)
        self.assertIsNone(renew_entries.spec_of("q32-kv8-d128-bf16-p16nhd-0a1b2c3d"), "hooks that a hash stands for")

    def test_code_constants_and_registers_are_compared(self):
        def runs(code=b"12", registers=168, symbols=b"x", constants=b"34", addresses=b"0"):
            return renew_entries.what_runs(elf([(".text.k", registers << 24, code), (".nv.constant0.k", 0, constants),
                                                (".symtab", 0, symbols), (".nv.constant4", 0, addresses)]))
        self.assertEqual(runs(), runs(symbols=b"other names"))
        self.assertEqual(runs(), runs(addresses=b"00"), "one more constexpr member")
        self.assertNotEqual(runs(), runs(constants=b"35"))
        self.assertNotEqual(runs(), runs(code=b"13"))
        self.assertNotEqual(runs(), runs(registers=160))

    def test_times_are_the_same_within_limits(self):
        def is_same(*ratios, mean=1.0):
            return renew_entries.takes_the_same_time({"mean_ratio": mean, "rows": [{"ratio": ratio} for ratio in ratios]})
        self.assertTrue(is_same(0.99, 1.015))
        self.assertFalse(is_same(0.99, 1.03))
        self.assertFalse(is_same(0.99, 1.01, mean=1.008))
        self.assertFalse(is_same())

    def test_an_entry_of_the_same_time_says_so(self):
        noted = [renew_entries.noted({"provenance": {"note": note}}, "a.json", "2026-11-28")["provenance"]["note"]
                 for note in ("", "tuned before")]
        self.assertEqual(noted, ["renewed on 2026-11-28 for other machine code of the same time, a.json",
                                 "tuned before; renewed on 2026-11-28 for other machine code of the same time, a.json"])

    def test_only_what_was_proven_is_renewed(self):
        for hashes, named in ((None, ("old", "other", "old")), (["old", "other"], (0, 1, 0))):
            file = {"entries": [{"provenance": {"kernel_hash": name}, "class": at} for at, name in enumerate(named)]}
            if hashes:
                file["kernel_hashes"] = hashes
            self.assertEqual([renew_entries.hash_of(entry, file) for entry in file["entries"]], ["old", "other", "old"])
            made = json.loads(renew_entries.renewed(file, {"old": "new"}, file["entries"][2:]))
            self.assertEqual(made["kernel_hashes"], ["old", "other", "new"])
            self.assertEqual([entry["provenance"]["kernel_hash"] for entry in made["entries"]], [0, 1, 2])


if __name__ == "__main__":
    unittest.main()
