#pragma once

#include "compiler/codegen/cuda/VariantSource.h"
#include "compiler/target/Target.h"

#include <string>

namespace deft::codegen::cuda {

/// The shape of the kernel that chooses lists.
struct SelectShape {
  int blocksOfList = 1; ///< 1, or a cluster of 2, 4 or 8 (sm_90 and later)
  int cachedKeys =
      0; ///< of a block's part of a path, in shared memory; a longer part is read again and again
  int blocksAtOnce = 1; ///< of a multiprocessor, if their keys fit

  static constexpr int kThreads = 1024;
  int smemBytes() const { return kOtherBytes + 4 * cachedKeys; }

  /// The shape for an architecture: as many keys as shared memory holds, and clusters of two if it has
  /// clusters. On an H200 one block takes 1.5 to 3 times as long; four are faster only for up to a dozen
  /// lists, and half as fast for 64 (tests/gpu/records/h200-select.json). Launches for short paths ask for
  /// less memory, so that two blocks share a multiprocessor.
  static SelectShape of(const target::Target &target);

private:
  static constexpr int kOtherBytes = 20896; ///< histograms and counts
};

/// The shape of the kernel that makes unions of lists.
struct UniteShape {
  int blocksOfList = 1; ///< as SelectShape's
  int smemBytes = 4 * (kWindow + 32 + 32 + 2);

  static constexpr int kThreads = 1024;
  static constexpr int kWindow = 8192;  ///< positions at a time
  static constexpr int kPlaces = 24576; ///< for slots, of lists that a caller hands over

  static UniteShape of(const VariantSource &source, const target::Target &target);
};

/// deft_<variant>_select, and deft_<variant>_unite for variants with VariantSource::unites.
std::string selectEntry(const VariantSource &source);
std::string uniteEntry(const VariantSource &source);

/// The kernel that chooses lists, for a spec that selects. Deterministic, like all kernel texts.
std::string instantiateSelect(const VariantSource &source, const SelectShape &shape);
/// The kernel that makes unions of lists.
std::string instantiateUnite(const VariantSource &source, const UniteShape &shape);

} // namespace deft::codegen::cuda
