"""The layering check finds each kind of fault in a small tree made for it, and nothing in a good one."""

import tempfile
import unittest
from pathlib import Path

import check_layering

HEADER = "#pragma once\n"


class LayeringTest(unittest.TestCase):
    def faults(self, files):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            for name, text in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            return list(check_layering.violations(root))

    def fault(self, path, text):
        """The single fault of a tree of one file, without its position."""
        found = self.faults({path: text})
        self.assertEqual(len(found), 1, found)
        self.assertTrue(found[0].startswith(path + ":"), found[0])
        return found[0].split(": ", 1)[1]

    def test_good_tree_has_no_faults(self):
        self.assertEqual(
            self.faults(
                {
                    "templates/deft/attend.cuh": HEADER + '#include "deft/abi.h"\n',
                    "compiler/spec/Sema.cpp": '#include "compiler/spec/Sema.h"\n#include "compiler/support/Result.h"\n#include <vector>\n',
                    "compiler/codegen/cuda/hooks/E.cpp": '#include "mlir/IR/Builders.h"\n#include "compiler/codegen/cuda/V.h"\n',
                    "compiler/dialect/Deft.cpp": '#include "mlir/IR/Builders.h"\n#include "compiler/spec/Variant.h"\n',
                    "compiler/driver/Compilation.cpp": '#include "mlir/IR/Builders.h"\n#include "compiler/codegen/cpu/Jit.h"\n',
                    "runtime/include/deft/jit.hpp": HEADER + "#include <string>\n#include <stdint.h>\n#include <deft/tree.hpp>\n",
                    "runtime/exec/cpu/Run.cpp": '#include "runtime/plan/Plan.h"\n#include "templates/deft/abi.h"\n#include <nlohmann/json.hpp>\n',
                    "runtime/nvrtc/Nvrtc.cpp": "#include <nvrtc.h>\n",
                    "tools/deftc/Emit.cpp": '#include "compiler/driver/Compilation.h"\n#include <CLI/CLI.hpp>\n',
                }
            ),
            [],
        )

    def test_lower_layer_is_refused(self):
        self.assertEqual(
            self.fault("compiler/spec/Sema.cpp", '\n#include "compiler/config/Config.h"\n'),
            "compiler/spec stands above compiler/config, so it may not include compiler/config/Config.h",
        )

    def test_position_is_the_line_of_the_include(self):
        found = self.faults({"runtime/tree/KvTree.h": HEADER + '\n#include "runtime/plan/Plan.h"\n'})
        self.assertTrue(found[0].startswith("runtime/tree/KvTree.h:3: "), found)

    def test_codegen_folders_do_not_include_later_ones(self):
        self.assertIn("stands above", self.fault("compiler/codegen/cuda/E.cpp", '#include "compiler/codegen/cpu/E.h"\n'))

    def test_subfolder_of_exec_is_exec(self):
        self.assertIn("stands above", self.fault("runtime/exec/cpu/E.cpp", '#include "runtime/reference/Oracle.h"\n'))

    def test_folders_of_the_command_line_have_an_order(self):
        self.assertEqual(
            self.fault("tools/deftc/plan/P.cpp", '#include "tools/deftc/run/RunBackend.h"\n'),
            "tools/deftc/plan stands above tools/deftc/run, so it may not include tools/deftc/run/RunBackend.h",
        )
        self.assertIn("stands above tools/deftc,", self.fault("tools/deftc/common/C.cpp", '#include "tools/deftc/CommandLine.h"\n'))
        good = '#include "tools/deftc/common/Context.h"\n#include "tools/deftc/run/RunBackend.h"\n'
        self.assertEqual(self.faults({"tools/deftc/compare/C.cpp": good, "tools/deftc/ShowCommand.cpp": good}), [])

    def test_mlir_stays_in_its_half(self):
        for path in ("compiler/package/P.cpp", "compiler/codegen/cuda/P.cpp", "runtime/plan/P.cpp", "tools/deftc/P.cpp"):
            for header in ("mlir/IR/Builders.h", "llvm/ADT/STLExtras.h"):
                self.assertIn("may include LLVM and MLIR", self.fault(path, f"#include <{header}>\n"))

    def test_driver_headers_show_no_mlir(self):
        self.assertIn("show no MLIR", self.fault("compiler/driver/C.h", HEADER + '#include "mlir/IR/Builders.h"\n'))

    def test_mlir_half_is_reached_through_the_driver(self):
        self.assertIn(
            "reached through compiler/driver", self.fault("tools/deftc/E.cpp", '#include "compiler/dialect/Deft.h"\n')
        )

    def test_the_library_is_made_without_the_classes_of_cpp(self):
        self.assertIn("headers over it", self.fault("runtime/api/T.cpp", "#include <deft/tree.hpp>\n"))
        self.assertEqual(self.faults({"runtime/api/T.cpp": '#include "runtime/api/Made.h"\n#include <deft/c/tree.h>\n'}), [])

    def test_runtime_builds_without_the_compiler(self):
        self.assertIn(
            "must build without the compiler",
            self.fault("runtime/exec/E.cpp", '#include "compiler/driver/Compilation.h"\n'),
        )

    def test_public_headers_are_standard_only(self):
        for header in ("nlohmann/json.hpp", "cuda.h", "llvm/IR/Module.h", "sys/stat.h"):
            self.assertIn(
                "standard headers only", self.fault("runtime/include/deft/d.hpp", HEADER + f"#include <{header}>\n")
            )

    def test_public_header_may_not_include_the_implementation(self):
        self.assertIn(
            "stands above", self.fault("runtime/include/deft/d.hpp", HEADER + '#include "runtime/plan/Plan.h"\n')
        )

    def test_cuda_headers_stay_in_device_and_nvrtc(self):
        for header in ("cuda.h", "cuda_runtime.h", "nvrtc.h", "cuda/std/array"):
            self.assertIn("CUDA's headers", self.fault("runtime/exec/E.cpp", f"#include <{header}>\n"))

    def test_templates_include_nothing_from_outside(self):
        for header in ("cuda_bf16.h", "cstdint", "compiler/config/Config.h"):
            self.assertIn("nothing from outside", self.fault("templates/deft/t.cuh", HEADER + f'#include "{header}"\n'))

    def test_host_program_knows_public_headers_only(self):
        folder = "tests/host_program/project/"
        self.assertEqual(self.faults({folder + "a.cpp": '#include "mine.h"\n#include <deft/deft.hpp>\n'}), [])
        self.assertIn("public headers only", self.fault(folder + "a.cpp", '#include "runtime/plan/Plan.h"\n'))

    def test_relative_include_is_refused(self):
        self.assertIn("from the repository root", self.fault("compiler/spec/A.cpp", '#include "Sema.h"\n'))

    def test_unknown_folder_is_refused(self):
        self.assertIn("belongs to no layer", self.fault("runtime/extra/A.cpp", "\n"))

    def test_header_guard(self):
        self.assertIn("#pragma once", self.fault("compiler/spec/A.h", "\n"))

    def test_using_namespace_in_header(self):
        self.assertIn("using namespace", self.fault("compiler/spec/A.h", HEADER + "using namespace std;\n"))

    def test_long_file_needs_a_reason(self):
        self.assertIn("501 lines", self.fault("compiler/spec/A.cpp", "\n" * 501))


if __name__ == "__main__":
    unittest.main()
