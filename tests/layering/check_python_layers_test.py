"""The check of the Python package's layers finds each kind of fault in a small package made for it, and nothing in a good one."""

import tempfile
import unittest
from pathlib import Path

import check_python_layers


class PythonLayersTest(unittest.TestCase):
    def faults(self, files):
        with tempfile.TemporaryDirectory() as folder:
            package = Path(folder, "deft")
            for name, text in files.items():
                (package / name).parent.mkdir(parents=True, exist_ok=True)
                (package / name).write_text(text)
            return list(check_python_layers.violations(package))

    def fault(self, files):
        found = self.faults(files)
        self.assertEqual(len(found), 1, found)
        return found[0]

    def test_a_good_package_has_no_faults(self):
        good = {
            "__init__.py": "from ._tree import Tree\n",
            "_errors.py": "import os\nfrom . import _abi\n",
            "_tree.py": "from ctypes import byref\nfrom ._errors import Error\n",
            "hf/__init__.py": "from ._decoder import TreeDecoder\n",
            "hf/_decoder.py": "import torch\nfrom deft import __version__\nfrom .._tree import Tree\nfrom ._cache import Cache\n",
            "hf/_cache.py": "import deft._errors\nfrom .._adapters.dtypes import NAMES\n",
            "_adapters/dtypes.py": "from .. import __version__\n",
        }
        self.assertEqual(self.faults(good), [])

    def test_an_import_from_above_is_refused(self):
        self.assertEqual(
            self.fault({"_errors.py": "\nfrom ._tree import Tree\n", "_tree.py": ""}),
            "_errors:2: _tree stands above _errors, which may not import _tree",
        )

    def test_imports_for_types_and_within_functions_count(self):
        for text in (
            "if TYPE_CHECKING:\n    from ._attention import Attention\n",
            "def f():\n    from ._attention import Attention\n",
            "def f():\n    import deft._attention\n",
            "from . import _attention\n",
            "from deft import _attention\n",
        ):
            self.assertIn("_attention stands above _tree", self.fault({"_tree.py": text, "_attention.py": ""}))

    def test_the_package_itself_is_above_its_modules(self):
        for text in ("from . import __version__\n", "import deft\n", "from deft import Tree\n"):
            self.assertIn("__init__ stands above _tree", self.fault({"_tree.py": text, "__init__.py": ""}))

    def test_modules_side_by_side_do_not_know_each_other(self):
        self.assertIn("hf stands beside vllm", self.fault({"vllm/a.py": "from ..hf.b import c\n", "hf/b.py": ""}))

    def test_a_circle_within_a_folder_is_told_once(self):
        files = {"hf/a.py": "from .b import x\n", "hf/b.py": "def f():\n    from . import c\n", "hf/c.py": "from .a import y\n"}
        self.assertEqual(self.fault(files), "hf.a: a circle of imports, hf.a -> hf.b -> hf.c -> hf.a")

    def test_a_module_without_a_layer_is_named(self):
        self.assertIn("belongs to no layer", self.fault({"_extra.py": ""}))


if __name__ == "__main__":
    unittest.main()
