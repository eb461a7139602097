#pragma once

#include "compiler/support/Result.h"

#include <string>

namespace deft::cli {

/// The machine code of a cubin as text, by nvdisasm of the CUDA toolkit: of CUDA_HOME or CUDA_PATH, of the
/// path, of /usr/local/cuda.
support::Result<std::string> disassemble(const std::string &cubin);

} // namespace deft::cli
