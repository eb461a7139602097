"""The site's pages: links lead to pages, blocks of code stay as they are, and the reference has every public name."""

import ast
import re
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "docs/site"))

import reference  # noqa: E402
import stage  # noqa: E402


class PagesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = Path(cls.temporary.name) / "pages"
        cls.site = stage.Site(ROOT, cls.folder)
        cls.site.make()

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def test_no_link_of_a_document_is_broken(self):
        self.assertEqual(self.site.broken, [])

    def test_each_link_leads_to_a_page_or_a_file_of_the_site(self):
        for page in self.folder.rglob("*.md"):
            for _, target, _ in stage.LINK.findall(stage.FENCE.sub("", page.read_text(encoding="utf-8"))):
                if not re.match(r"[a-z]+:|#", target) and "source" not in page.parts:
                    with self.subTest(page=str(page.relative_to(self.folder)), link=target):
                        self.assertTrue((page.parent / target.partition("#")[0]).exists())

    def test_styles_of_the_site_are_a_file_of_it(self):
        [styles] = re.findall(r"^extra_css: \[(.*)\]$", (ROOT / "docs/site/mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)
        for name in styles.split(", "):
            self.assertTrue((self.folder / name).exists(), name)

    def test_of_modes_behind_a_language_only_names_of_files_are_shown(self):
        page = (self.folder / "docs/tutorial.md").read_text(encoding="utf-8")
        self.assertIn("```cpp title=\"host/host.cpp\"\n#include <deft/deft.hpp>", page)
        self.assertIn("```sh\ntools/quickstart", page)
        self.assertNotIn("file=", page)

    def test_what_is_below_an_item_of_a_numbered_list_is_indented_as_mkdocs_wants_it(self):
        self.assertEqual(stage.nested("1. one\n   more\n\n   ```cpp\n     x\n   ```\n\n   - a\n     b\n2. two\n\ntext\n   no item\n"),
                         "1. one\n    more\n\n    ```cpp\n      x\n    ```\n\n    - a\n      b\n\n2. two\n\ntext\n   no item\n")

    def test_every_exported_name_of_python_has_a_place(self):
        package = ROOT / "runtime/python/deft/__init__.py"
        page = (self.folder / "api/deft.md").read_text(encoding="utf-8")
        modules = {"lang"}
        for name in set(reference.exported(ast.parse(package.read_text(encoding="utf-8")))) - modules:
            with self.subTest(name):
                self.assertIn(f"\n## {name}\n", page)

    def test_every_class_and_struct_of_a_public_header_has_a_place(self):
        for path in (ROOT / "runtime/include/deft").glob("*.hpp"):
            header = reference.public_part(path.read_text(encoding="utf-8"))
            if "\nclass " not in header and "\nstruct " not in header:
                continue
            page = (self.folder / f"api/cpp-{path.stem}.md").read_text(encoding="utf-8")
            for name in re.findall(r"^(?:class|struct|enum class) (?:DEFT_API )?(\w+)(?: final)?(?: : [^{]*)? \{", header, re.MULTILINE):
                with self.subTest(header=path.name, name=name):
                    self.assertIn(f"\n## {name}\n", page)

    def test_every_function_of_the_c_abi_has_a_place(self):
        pages = "".join(path.read_text(encoding="utf-8") for path in (self.folder / "api").glob("c-*.md"))
        for path in (ROOT / "runtime/include/deft/c").glob("*.h"):
            for name in re.findall(r"\b(deft_\w+)\(", re.sub(r"//.*", "", path.read_text(encoding="utf-8"))):
                with self.subTest(name):
                    self.assertIn(name + "(", pages)


class ReferenceTest(unittest.TestCase):
    def test_bodies_and_what_is_inside_are_left_out(self):
        text = (
            "#include <a>\n/// One (of it).\nnamespace deft {\nnamespace detail {\n\ninline int f() { return 1; }\n\n} // namespace detail\n\n/// A.\nclass A {\npublic:\n"
            "  explicit A(int *of) : own_(of), more_{1} {}\n  int size() const { return f({1, 2}); } ///< of it\n"
            "  int zero = {};\n};\n}\n"
        )
        self.assertEqual(
            reference.public_part(text).strip(),
            "#include <a>\n/// One (of it).\nnamespace deft {\n\n/// A.\nclass A {\npublic:\n  explicit A(int *of);\n  int size() const; ///< of it\n  int zero = {};\n};\n}",
        )

    HEADER = "#pragma once\n/// About it all.\n\nnamespace deft {\n\n/// One.\nstruct One {\n  int a = 0; ///< a brace {\n};\n\n/// Two\n/// lines.\nint two(int a,\n        int b);\n\n} // namespace deft\n"

    def test_declarations_end_where_their_braces_and_lines_do(self):
        found = list(reference.declarations(self.HEADER))
        self.assertEqual([(comment, reference.name_of(code) if code else "") for comment, code in found],
                         [("About it all.", ""), ("One.", "One"), ("Two\nlines.", "two")])

    def test_private_members_are_left_out(self):
        code = "class A {\npublic:\n  int b();\n\nprivate:\n  int c_;\n};"
        self.assertNotIn("c_", reference.without_private(code))

    def test_long_signatures_have_a_line_for_each_argument(self):
        function = ast.parse("def f(self, " + ", ".join(f"argument_{i}: dict[str, int]" for i in range(5)) + ") -> int: ...").body[0]
        self.assertEqual(reference.signature(function, "f").splitlines()[1], "    argument_0: dict[str, int],")


if __name__ == "__main__":
    unittest.main()
