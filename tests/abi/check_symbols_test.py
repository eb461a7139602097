"""The check of symbols finds each kind of fault, and nothing in a good library."""

import unittest

import check_symbols

MAP = """
# deft_in_a_comment;
DEFT_0.3 {
  global:
    deft_*;   # a word
  local:
    *;
};
DEFT_0.4 {
  global:
    deft_new;
} DEFT_0.3;
DEFT_PRIVATE { global: deftc_command_line; };
"""
LISTED = {"deft_new": "DEFT_0.4", "deft_old": "DEFT_0.3", "deft_tree_make": "DEFT_0.3"}
NM = """
0000000000000000 A DEFT_0.3
0000000000000000 A DEFT_0.4
0000000000001000 T deft_old@@DEFT_0.3
0000000000001000 T deft_tree_make@@DEFT_0.3
0000000000001000 T deft_new@@DEFT_0.4
0000000000001000 T deftc_command_line@@DEFT_PRIVATE
"""


class CheckSymbolsTest(unittest.TestCase):
    def faults(self, nm="", listed=None):
        return list(check_symbols.faults(listed or LISTED, check_symbols.shown_symbols((NM + nm).strip())))

    def test_map_is_read(self):
        self.assertEqual(check_symbols.listed_functions(MAP, set(LISTED)), LISTED)

    def test_good_library_has_no_faults(self):
        self.assertEqual(self.faults(), [])

    def test_declared_function_must_be_defined(self):
        self.assertIn("no program can call it", self.faults(listed={**LISTED, "deft_other": "DEFT_0.3"})[0])

    def test_shown_function_must_be_declared(self):
        self.assertIn("no function of <deft/deft.h>", self.faults("1 T deft_other@@DEFT_0.3")[0])

    def test_version_must_be_that_of_the_map(self):
        self.assertIn("of version DEFT_0.4", self.faults("1 T deft_old@@DEFT_0.4")[0])
        self.assertIn("of version None", self.faults("1 T deft_old")[0])

    def test_the_inside_must_be_hidden(self):
        for name in ("_ZN4mlir6OpTrait", "_ZN4llvm5Value", "_ZN4deft4TreeC1Ev", "_ZSt4cout", "helper"):
            self.assertIn("can be seen from outside", self.faults(f"1 u {name}@@DEFT_0.3")[0])

    def test_what_deftc_calls_is_private(self):
        for version in ("", "@@DEFT_0.3"):
            self.assertIn("can be seen from outside", self.faults(f"1 T deftc_command_line{version}")[0])
        self.assertIn("can be seen from outside", self.faults("1 T deft_other@@DEFT_PRIVATE")[0])

    def test_local_symbols_are_nobodys(self):
        self.assertEqual(self.faults("1 t _ZNSt6vectorIiE@@DEFT_0.3\n1 r _ZTSSt19_Sp@@DEFT_0.3"), [])

    def test_declarations_span_lines(self):
        self.assertEqual(
            check_symbols.DECLARED.findall("DEFT_C_API const char *\ndeft_a(void);\nDEFT_C_API int deft_b(\n  int deft_c);"),
            ["deft_a", "deft_b"],
        )


if __name__ == "__main__":
    unittest.main()
