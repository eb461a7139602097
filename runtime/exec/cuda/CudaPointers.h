#pragma once

#include "templates/deft/abi.h"

namespace deft::exec {

class CudaParams;

/// What a run reads and writes: somebody else's memory of the device.
struct CudaPointers {
  const void *q = nullptr; ///< as abi::AttendArgs; 16-byte alignment, as k and v
  const void *k = nullptr;
  const void *v = nullptr;
  const int *pageTable = nullptr;
  int pages = 0; ///< the page table's entries, or those that the plan's runs may name
  abi::CacheLayout cache{};
  void *out = nullptr;
  float *lse = nullptr; ///< null: not wanted
  const CudaParams *params = nullptr;
  int cachePages = 0; ///< of the cache; for a plan that checks pages
};

} // namespace deft::exec
