#include "tools/deftc/run/Memory.h"

#include "tools/deftc/common/Numbers.h"

#include <algorithm>
#include <fstream>

namespace deft::cli {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::infinity();

double availableOnMachine() {
  std::ifstream file("/proc/meminfo");
  std::string key, unit;
  for (double kibibytes = 0; file >> key >> kibibytes; std::getline(file, unit))
    if (key == "MemAvailable:")
      return kibibytes * 1024;
  return kUnknown;
}

/// What the process's container may have; "max", which is no number, is not known.
double limitOfGroup() {
  std::ifstream file("/sys/fs/cgroup/memory.max");
  double bytes = 0;
  return file >> bytes ? bytes : kUnknown;
}

} // namespace

double freeMemoryBytes() { return std::min(availableOnMachine(), limitOfGroup()); }

support::Result<void> checkMemory(const std::string &what, double bytes, double freeBytes) {
  if (bytes <= freeBytes)
    return {};
  return support::Error{support::ErrorCode::Environment,
                        what + " take " + bytesOf(bytes) + ", " + bytesOf(freeBytes) +
                            " of this machine's memory are free",
                        "a tree of fewer tokens or queries, or a spec of fewer heads, needs less"};
}

} // namespace deft::cli
