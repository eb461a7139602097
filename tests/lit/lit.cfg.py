# Tests of text: what deft-opt and deftc print, checked by FileCheck beside the input.
import os

import lit.formats

config.name = "deft"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".deft", ".test"]
config.excludes = ["Inputs"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.deft_binary_dir, "tests", "lit")

tools = [config.llvm_tools_dir] + [os.path.join(config.deft_binary_dir, "tools", tool) for tool in ("deft-opt", "deftc")]
config.environment["PATH"] = os.pathsep.join(tools + [config.environment["PATH"]])
