#pragma once

#include "runtime/exec/Inputs.h"
#include "runtime/exec/cpu/TokenBlocks.h"
#include "templates/deft/cpu_abi.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace deft::exec {

/// The rows of a block's tokens in the form that kernels read, for caches with scales in their rows
/// (LANGUAGE.md, rule A11): elements of q's dtype, already multiplied. Each row is made once for all query
/// rows that read the block.
class ScaledRows {
public:
  /// Allocates only if a step is larger than all before it.
  void prepare(const spec::Variant &variant, const abi::CpuKernel &kernel);

  /// Makes `call` read the block's tokens from here; it then needs no prefetching.
  void read(const spec::Variant &variant, const void *cache, const TokenBlock &block,
            abi::CpuAttendCall &call);

private:
  std::vector<std::uint16_t> rows_;
  std::vector<long long> offsets_;
};

} // namespace deft::exec
