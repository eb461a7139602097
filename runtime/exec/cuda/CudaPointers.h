#pragma once

#include "runtime/exec/Inputs.h"

namespace deft::exec {

class CudaParams;

/// What a run reads and writes: somebody else's memory of the device.
struct CudaPointers {
  const void *q = nullptr; ///< as abi::AttendArgs; what is asked of it and of the others: PointerRules.h
  const void *k = nullptr;
  const void *v = nullptr; ///< of a latent cache: K's columns behind V's; null: they lie behind these in k
  const int *pageTable = nullptr;
  int pages = 0; ///< the page table's entries, or those that the plan's runs may name
  CacheLayouts cache{};
  long long qStride = 0;   ///< from a query to the next, in elements; 0: packed
  long long outStride = 0; ///< likewise
  void *out = nullptr;
  float *lse = nullptr; ///< null: not wanted
  const CudaParams *params = nullptr;
  /// Of a sparse run whose lists are a caller's: abi::ListCheckArgs::lists. Null: the plan has them.
  const int *lists = nullptr;
  int cachePages = 0; ///< of the cache, of a contiguous one tokens; 0: not known
};

} // namespace deft::exec
