#pragma once

#include "runtime/exec/Inputs.h"

namespace deft::exec {

class CudaParams;

/// The device memory that a run reads and writes. It belongs to the caller.
struct CudaPointers {
  const void *q = nullptr; ///< as in abi::AttendArgs; PointerRules.h checks these
  const void *k = nullptr;
  const void *v = nullptr; ///< latent cache: K's columns behind V's; null: these follow V's columns in k
  const int *pageTable = nullptr;
  int pages = 0; ///< entries of the page table, or those that the plan's runs may name
  CacheLayouts cache{};
  long long qStride = 0;   ///< elements between consecutive queries; 0: packed
  long long outStride = 0; ///< likewise
  void *out = nullptr;
  float *lse = nullptr; ///< null: not wanted
  const CudaParams *params = nullptr;
  /// For a sparse run with lists of the caller: abi::ListCheckArgs::lists. Null: the plan has the lists.
  const int *lists = nullptr;
  int cachePages = 0; ///< pages of the cache (contiguous: tokens); 0: unknown
};

} // namespace deft::exec
