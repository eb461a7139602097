#pragma once

#include "compiler/support/Result.h"

#include <ctime>
#include <string>
#include <vector>

/// The kernels on disk, for people who look at them and throw them away.
namespace deft::module_cache {

struct StoredKernel {
  std::string key;
  std::string what;       ///< the first line of its source: which attention, which phase
  int registers = 0;      ///< 0: its report cannot be read
  long long bytes = 0;    ///< of its files
  std::time_t stored = 0; ///< when it was put there
};

/// What looks like an entry in the folder of kernels, the youngest first. Checksums are not looked at:
/// CubinCache::find does that.
std::vector<StoredKernel> storedKernels(const std::string &folder);

/// Removes the entry, whatever is in it. A process that uses it has read it, or compiles it anew.
support::Result<void> removeKernel(const std::string &folder, const std::string &key);

} // namespace deft::module_cache
