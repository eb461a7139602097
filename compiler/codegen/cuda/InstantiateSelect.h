#pragma once

#include "compiler/codegen/cuda/VariantSource.h"

#include <string>

namespace deft::codegen::cuda {

/// How the kernel that chooses lists is made.
struct SelectShape {
  int blocksOfList = 1; ///< 1; or 2, 4 or 8, which are then a cluster (sm_90 and later)
  int cachedKeys =
      0; ///< of a block's part of a path, in shared memory; a longer part is read again and again

  static constexpr int kThreads = 1024;
  int smemBytes() const { return 24992 + 4 * cachedKeys; }
};

/// deft_<variant>_select.
std::string selectEntry(const VariantSource &source);

/// The kernel that chooses lists, for a spec that selects. Deterministic, as all texts.
std::string instantiateSelect(const VariantSource &source, const SelectShape &shape);

} // namespace deft::codegen::cuda
