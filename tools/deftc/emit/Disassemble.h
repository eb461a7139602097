#pragma once

#include "compiler/support/Result.h"

#include <string>

namespace deft::cli {

/// Where nvdisasm is: in CUDA_HOME or CUDA_PATH, on the path, in /usr/local/cuda. Without one an error that
/// says how to get it.
support::Result<std::string> findDisassembler();

/// The machine code of a cubin as text, by that program.
support::Result<std::string> disassemble(const std::string &program, const std::string &cubin);

} // namespace deft::cli
