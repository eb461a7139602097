"""The link check finds each kind of broken link in a small tree made for it, and nothing in a good one."""

import tempfile
import unittest
from pathlib import Path

import check_links


class LinksTest(unittest.TestCase):
    def faults(self, files):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            for name, text in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            return list(check_links.Checker(root).faults())

    def test_a_good_tree_has_no_faults(self):
        self.assertEqual(self.faults({
            "README.md": "[a](docs/a.md#two-words) [b](docs) [c](https://example.com/none) [d](#top)\n# Top\n",
            "docs/a.md": "# Two words\n`src/` and `src/A.h`, not `1/2 of it`, <a id=\"mark\"></a>\n```\n[x](none.md)\n```\n",
            "src/A.h": "// see docs/a.md#mark and docs/a.md\n",
            "build/dev/copied.md": "[x](none.md)\n"}), [])

    def test_a_file_that_is_not_there(self):
        self.assertEqual(self.faults({"README.md": "[a](docs/a.md)\n", "src/A.h": "// docs/b.md#c\n"}),
                         ["README.md: docs/a.md is not there", "src/A.h: docs/b.md#c is not there"])

    def test_an_anchor_that_is_not_there(self):
        self.assertEqual(self.faults({"docs/a.md": "# One\n[x](#two)\n```\n# Two\n```\n", "src/A.cuh": "// docs/a.md#three\n"}),
                         ["docs/a.md: #two has no such anchor", "src/A.cuh: docs/a.md#three has no such anchor"])

    def test_a_path_of_code_in_a_document(self):
        self.assertEqual(self.faults({"docs/a.md": "`src/Gone.h`\n"}), ["docs/a.md: src/Gone.h is not there"])
        self.assertEqual(self.faults({"README.md": "`src/Gone.h`\n"}), [])

    def test_anchors_are_those_that_a_page_of_markdown_has(self):
        self.assertEqual(check_links.anchors_of("## What's `left`, then?\n"), {"whats-left-then"})


if __name__ == "__main__":
    unittest.main()
