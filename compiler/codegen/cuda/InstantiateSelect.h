#pragma once

#include "compiler/codegen/cuda/VariantSource.h"
#include "compiler/target/Target.h"

#include <string>

namespace deft::codegen::cuda {

/// How the kernel that chooses lists is made.
struct SelectShape {
  int blocksOfList = 1; ///< 1; or 2, 4 or 8, which are then a cluster (sm_90 and later)
  int cachedKeys =
      0; ///< of a block's part of a path, in shared memory; a longer part is read again and again

  static constexpr int kThreads = 1024;
  int smemBytes() const { return kOtherBytes + 4 * cachedKeys; }

  /// What runs on an architecture: as many keys as a block's shared memory holds, and clusters of two where
  /// there are clusters. On an H200 one block takes 1.5 to 3 times as long, and four are faster for up to a
  /// dozen lists only, but twice as slow for 64 (tests/gpu/records/h200-select.json).
  static SelectShape of(const target::Target &target);

private:
  static constexpr int kOtherBytes = 24992; ///< histograms and counts
};

/// How the kernel that makes unions of lists is made.
struct UniteShape {
  int blocksOfList = 1; ///< as SelectShape's
  int smemBytes = 4 * (kWindow + 32 + 32 + 2);

  static constexpr int kThreads = 1024;
  static constexpr int kWindow = 8192;  ///< positions at a time
  static constexpr int kPlaces = 24576; ///< for slots, of lists that a caller hands over

  static UniteShape of(const VariantSource &source, const target::Target &target);
};

/// deft_<variant>_select, and deft_<variant>_unite of those with VariantSource::unites.
std::string selectEntry(const VariantSource &source);
std::string uniteEntry(const VariantSource &source);

/// The kernel that chooses lists, for a spec that selects. Deterministic, as all texts.
std::string instantiateSelect(const VariantSource &source, const SelectShape &shape);
/// The kernel that makes unions of them.
std::string instantiateUnite(const VariantSource &source, const UniteShape &shape);

} // namespace deft::codegen::cuda
