#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace deft::nvrtc {

/// What a kernel takes of the machine, as ptxas reports it.
struct KernelResources {
  std::string entry;
  int registers = 0;        ///< of a thread
  int stackBytes = 0;       ///< of a thread: local arrays and spills
  int spillStoreBytes = 0;  ///< of a thread
  int spillLoadBytes = 0;
  int staticSharedBytes = 0;

  bool spills() const { return spillStoreBytes > 0 || spillLoadBytes > 0; }
};

/// Reads the log of a compilation with `--ptxas-options=-v`; one value an entry, in the log's order.
/// A cubin itself tells registers and stack but not whether the stack holds spills, so the log is the
/// better witness. Entries whose lines are not understood are left out, never guessed.
std::vector<KernelResources> parseResources(std::string_view log);

} // namespace deft::nvrtc
