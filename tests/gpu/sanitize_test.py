"""What compute-sanitizer writes is understood: which reports are of a kind, which are known to be false, what is missing."""

import unittest

import sanitize


def race(kernel, first, *others):
    """A report of racecheck: accesses as `Read 6110 join.cuh:41`, without a file where kernels know no lines."""

    def place(access):
        kind, offset, *line = access.split()
        return f"{kind} access at {kernel}+0x{offset}" + (f" in {line[0]}" if line else "")

    lines = [f"========= Error: Race reported between {place(first)}"]
    lines += [f"=========     and {place(other)} [274432 hazards]" for other in others]
    return "\n".join(lines + ["========= ", ""])


ROOMS = race("deft_d80_r9_plain_tiles", "Read 6110 join.cuh:41", "Write 68e0 join.cuh:122")
RING = race("deft_d80_r9_plain_tiles", "Write 9340 cp_async.cuh:11", "Read c70 ldmatrix.cuh:9", "Read cb0 ldmatrix.cuh:9")
INLINED = race("deft::ptx::ldmatrix4(unsigned int (&)[4], unsigned int)", "Write 9fd0 cp_async.cuh:11", "Read d30 ldmatrix.cuh:9")
TEMPLATE = race("void deft::sm90::Consumer<Config>::leavePiece<(bool)1>(int) const", "Write 3f20 producer.cuh:113",
                "Read 2b60 consumer.cuh:166")
UNINITIALIZED = """========= Uninitialized __global__ memory read of size 16 bytes
=========     at deft_{0}_merge+0xed0
=========     by thread ({1},0,0) in block (8,0,0)
=========     Address 0x7f1b0b800a{1}0
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: cuLaunchKernelEx [0x39fc2f] in libcuda.so.1
========= 
"""
CLEAN = """========= COMPUTE-SANITIZER
10 cases on NVIDIA H200, 0 wrong; seed 1, 10 of 10 variants and configs
========= ERROR SUMMARY: 0 errors
"""


class SanitizeTest(unittest.TestCase):
    def why(self, run, text):
        (entry,) = sanitize.summarised(run, text)
        return entry["known_false"]

    def test_reports_of_a_kind_stand_once_with_their_kernels(self):
        text = UNINITIALIZED.format("d80", 2) + UNINITIALIZED.format("d80", 3) + UNINITIALIZED.format("d64", 2)
        (entry,) = sanitize.summarised("initcheck", text)
        self.assertEqual((entry["count"], entry["kernels"]), (3, ["deft_d64_merge", "deft_d80_merge"]))
        self.assertNotIn("Host Frame", entry["report"])
        self.assertIsNone(entry["known_false"])

    def test_races_of_other_lines_are_of_another_kind(self):
        other = race("deft_d112_r1_plain_tiles", "Read 6550 join.cuh:41", "Write 6fa0 join.cuh:122")
        (entry,) = sanitize.summarised("racecheck sm90", ROOMS + other)
        self.assertEqual((entry["count"], entry["hazards"], len(entry["kernels"])), (2, 2 * 274432, 2))
        self.assertEqual(len(sanitize.summarised("racecheck sm90", ROOMS + ROOMS.replace(":122", ":121"))), 2)

    def test_only_what_was_looked_into_is_known(self):
        self.assertIn("bar.arrive", self.why("racecheck sm90 2", ROOMS))
        self.assertIn("__syncwarp", self.why("racecheck sm90", RING))
        self.assertIn("__syncwarp", self.why("racecheck sm90", INLINED))
        self.assertIn("__syncwarp", self.why("racecheck sm90", TEMPLATE))
        self.assertIsNone(self.why("racecheck sm90", TEMPLATE.replace("deft::", "other::")))
        self.assertIsNone(self.why("racecheck sm80", ROOMS))
        self.assertIsNone(self.why("racecheck sm90", race("deft_x_tiles", "Read 6110", "Write 68e0")))
        self.assertIsNone(self.why("racecheck sm90", ROOMS.replace("deft_", "other_")))
        mixed = race("deft_x_tiles", "Read 10 join.cuh:41", "Write 20 producer.cuh:90")
        self.assertIsNone(self.why("racecheck sm90", mixed))
        written_twice = race("deft_x_tiles", "Write 10 producer.cuh:90", "Write 20 join.cuh:122")
        self.assertIsNone(self.why("racecheck sm90", written_twice))

    def test_what_was_left_out_is_noticed(self):
        self.assertIsNone(sanitize.left_out(CLEAN))
        self.assertIsNone(sanitize.left_out("========= RACECHECK SUMMARY: 3 hazards displayed (2 errors, 1 warning)\n"))
        for text in ("========= RACECHECK SUMMARY: 40 hazards displayed (73 errors, 1 warning)\n",
                     "========= ERROR SUMMARY: 9 errors\n========= ERROR SUMMARY: 8 errors were not printed. Use --print-limit",
                     "========= ERROR SUMMARY: 9 errors\n",
                     "========= Warning: Maximum number of hazards reached. Environment variable X can be used\n"):
            self.assertIsNotNone(sanitize.left_out(text), text)

    def test_clean_is_what_ended_and_said_so(self):
        def result(text, code=0):
            cases = [line for line in text.splitlines() if " cases on " in line]
            return {"cases": cases[-1] if cases else None, "summary": ["x"] if "SUMMARY" in text else [], "exit_code": code,
                    "reports": sanitize.summarised("racecheck sm90", text), "left_out": sanitize.left_out(text)}

        self.assertTrue(sanitize.is_clean(result(CLEAN)))
        self.assertTrue(sanitize.is_clean(result(ROOMS + CLEAN)))
        self.assertFalse(sanitize.is_clean(result(ROOMS.replace("join", "other") + CLEAN)))
        self.assertFalse(sanitize.is_clean(result(CLEAN.replace("0 wrong", "1 wrong"))))
        self.assertFalse(sanitize.is_clean(result(CLEAN, code=-1)))
        self.assertFalse(sanitize.is_clean(result(CLEAN.replace("SUMMARY", ""))))

    def test_a_part_without_a_case_is_no_failure_unless_all_of_a_tool_are(self):
        def result(run, cases, code=0):
            return {"run": run, "cases": f"{cases} cases on X, 0 wrong", "summary": ["x"], "exit_code": code, "reports": [], "left_out": None}

        tested, empty = result("racecheck sm90 1", 2), result("racecheck sm90 2", 0, code=1)
        self.assertTrue(sanitize.all_are_clean([result("memcheck", 4), tested, empty]))
        self.assertFalse(sanitize.all_are_clean([result("memcheck", 4), empty]))
        self.assertFalse(sanitize.all_are_clean([tested, {**tested, "exit_code": 1}]))
        self.assertFalse(sanitize.all_are_clean([]))
        self.assertIn("no case", sanitize.describe(empty))

    def test_a_run_that_takes_too_long_is_ended_with_its_children(self):
        text, code = sanitize.run_and_stop(["sh", "-c", "echo begun; sleep 60 & sleep 60"], 0.5)
        self.assertEqual((text, code), ("begun\n", -1))


if __name__ == "__main__":
    unittest.main()
