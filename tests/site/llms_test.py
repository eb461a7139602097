"""llms.txt: every page of the site's order with a title and a link that leads somewhere, and the documents in one text."""

import re
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "docs/site"))

import llms  # noqa: E402
import stage  # noqa: E402

CONFIG = "site_name: x\nnav:\n  - Begin: [index.md, folder/a.md]\n  - One: api/index.md\n"
PAGES = {"index.md": "# It\n\n![A picture](x.svg)\n\nIt makes **kernels** of [specs](a.md) like `a.b`. More words.\n", "folder/a.md": "# A `page`\n\n| a | b |\n",
         "api/index.md": "# API\n\n**Calls.** There are some of C and of C++.\n"}


class LlmsTest(unittest.TestCase):
    def test_pages_are_listed_with_a_sentence_by_section(self):
        self.assertEqual(llms.listing(PAGES.__getitem__, CONFIG).splitlines(), [
            "# It", "", "> It makes kernels of specs like a.b. More words.", "",
            "## Begin", "", "- [It](index.html): It makes kernels of specs like a.b.", "- [A page](folder/a.html)", "",
            "## One", "", "- [API](api/index.html): Calls. There are some of C and of C++."])

    def test_the_full_text_has_what_users_read(self):
        text = llms.full(PAGES.__getitem__, CONFIG)
        self.assertTrue(text.startswith("<!-- index.md -->\n\n# It\n"))
        self.assertIn("<!-- folder/a.md -->", text)
        self.assertNotIn("# API", text)

    def test_blocks_of_code_are_no_sentences(self):
        self.assertEqual(llms.summary_of("# T\n\n```sh\nrun it. Now\n```\n\nThis page tells how to run it. And more.\n"), "This page tells how to run it.")
        self.assertEqual(llms.summary_of("# T\n\n## Next\n\nThis page tells how to run it.\n"), "")

    def test_the_sites_own_has_every_page_of_its_order_and_no_broken_link(self):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name) / "pages"
            stage.Site(ROOT, folder).make()
            text = (folder / "llms.txt").read_text(encoding="utf-8")
            links = re.findall(r"^- \[(.+?)\]\((\S+)\.html\)", text, re.MULTILINE)
            self.assertGreater(len(links), 30)
            for title, page in links:
                with self.subTest(page):
                    self.assertTrue(title)
                    self.assertTrue((folder / f"{page}.md").exists())
            full = (folder / "llms-full.txt").read_text(encoding="utf-8")
            for heading in ("# The command line", "# The language of specs", "# The C API"):
                self.assertIn(f"\n{heading}\n", full)


if __name__ == "__main__":
    unittest.main()
