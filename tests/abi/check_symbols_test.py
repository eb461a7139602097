"""The check of symbols finds each kind of fault, and nothing in a good library."""

import unittest

import check_symbols

MAP = """
# deft_in_a_comment;
DEFT_0.1 {
  global:
    deft_old;   # a word
    deft_tree_make;
  local:
    *;
};
DEFT_0.2 {
  global:
    deft_new;
} DEFT_0.1;
DEFT_PRIVATE { global: deft_command_line; };
DEFT_CXX_0.1 { global: _ZN4deft[0-9][A-Z]*;
};
"""
LISTED = {"deft_old": "DEFT_0.1", "deft_tree_make": "DEFT_0.1", "deft_new": "DEFT_0.2"}
NM = """
0000000000000000 A DEFT_0.1
0000000000000000 A DEFT_0.2
0000000000001000 T deft_old@@DEFT_0.1
0000000000001000 T deft_tree_make@@DEFT_0.1
0000000000001000 T deft_new@@DEFT_0.2
0000000000001000 T _ZN4deft4TreeC1Ev@@DEFT_CXX_0.1
0000000000001000 T deft_command_line@@DEFT_PRIVATE
0000000000001000 T _ZN4deft11hasCompilerEv@@DEFT_CXX_0.1
"""


class CheckSymbolsTest(unittest.TestCase):
    def faults(self, nm="", declared=frozenset(LISTED)):
        return list(check_symbols.faults(LISTED, set(declared), check_symbols.shown_symbols((NM + nm).strip())))

    def test_map_is_read(self):
        self.assertEqual(check_symbols.listed_functions(MAP), LISTED)

    def test_good_library_has_no_faults(self):
        self.assertEqual(self.faults(), [])

    def test_declared_function_must_be_listed(self):
        self.assertEqual(len(self.faults(declared={*LISTED, "deft_other"})), 1)
        self.assertIn("no program can call it", self.faults(declared={*LISTED, "deft_other"})[0])

    def test_listed_function_must_be_declared(self):
        self.assertIn("declared in no header", self.faults(declared={"deft_old", "deft_new"})[0])

    def test_listed_function_must_be_defined(self):
        found = list(check_symbols.faults(LISTED, set(LISTED), {}))
        self.assertEqual(len(found), 3)
        self.assertIn("not defined in the library", found[0])

    def test_version_must_be_that_of_the_map(self):
        self.assertIn("of version DEFT_0.2", self.faults("1 T deft_old@@DEFT_0.2")[0])
        self.assertIn("of version None", self.faults("1 T deft_old")[0])

    def test_the_inside_must_be_hidden(self):
        for name in ("_ZN4mlir6OpTrait", "_ZN4llvm5Value", "_ZN4deft3jit7ProgramE", "_ZSt4cout", "helper"):
            self.assertIn("can be seen from outside", self.faults(f"1 u {name}@@DEFT_CXX_0.1")[0])

    def test_what_deftc_calls_is_private(self):
        for version in ("", "@@DEFT_0.1"):
            self.assertIn("can be seen from outside", self.faults(f"1 T deft_command_line{version}")[0])
        self.assertIn("can be seen from outside", self.faults("1 T deft_other@@DEFT_PRIVATE")[0])

    def test_local_symbols_are_nobodys(self):
        self.assertEqual(self.faults("1 t _ZNSt6vectorIiE@@DEFT_0.1\n1 r _ZTSSt19_Sp@@DEFT_0.1"), [])

    def test_declarations_span_lines(self):
        self.assertEqual(
            check_symbols.DECLARED.findall("DEFT_C_API const char *\ndeft_a(void);\nDEFT_C_API int deft_b(\n  int deft_c);"),
            ["deft_a", "deft_b"],
        )


if __name__ == "__main__":
    unittest.main()
