#pragma once

#include "compiler/support/Result.h"

#include <ctime>
#include <string>
#include <vector>

/// Lists and removes kernels on disk, for people.
namespace deft::module_cache {

struct StoredKernel {
  std::string key;
  std::string what;       ///< the first line of its source: the attention and the phase
  int registers = 0;      ///< 0: its report is unreadable
  long long bytes = 0;    ///< of its files
  std::time_t stored = 0; ///< the time when it was stored
};

/// Everything in the folder that looks like an entry, the youngest first. This does not verify checksums;
/// CubinCache::find does.
std::vector<StoredKernel> storedKernels(const std::string &folder);

/// Removes the entry with all its files. Processes that use it have read it already, or compile it again.
support::Result<void> removeKernel(const std::string &folder, const std::string &key);

} // namespace deft::module_cache
