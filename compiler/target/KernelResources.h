#pragma once

#include <string>

namespace deft::target {

/// The resources of a kernel, as ptxas reports them.
struct KernelResources {
  std::string entry;
  int registers = 0;       ///< of a thread
  int stackBytes = 0;      ///< of a thread: local arrays and spills
  int spillStoreBytes = 0; ///< of a thread
  int spillLoadBytes = 0;
  int staticSharedBytes = 0;

  bool spills() const { return spillStoreBytes > 0 || spillLoadBytes > 0; }
};

} // namespace deft::target
