#pragma once

#include "runtime/exec/Inputs.h"
#include "runtime/exec/cpu/TokenBlocks.h"
#include "templates/deft/cpu_abi.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace deft::exec {

/// The rows of a block's tokens as kernels take them, where the cache has scales in them (LANGUAGE.md, rule
/// A11): elements of q's dtype, multiplied, row after row. Made once for all rows of queries that read the
/// block.
class ScaledRows {
public:
  /// Allocates only where a step is larger than all before.
  void prepare(const spec::Variant &variant, const abi::CpuKernel &kernel);

  /// Lets `call` read the block's tokens here; nothing is left to fetch ahead.
  void read(const spec::Variant &variant, const void *cache, const TokenBlock &block,
            abi::CpuAttendCall &call);

private:
  std::vector<std::uint16_t> rows_;
  std::vector<long long> offsets_;
};

} // namespace deft::exec
