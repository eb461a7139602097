#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace deft::test {

/// The arguments of one call of all hooks of a variant.
struct HookCall {
  float s = 0;
  int qPos = 0, kvPos = 0, head = 0, kvHead = 0, depth = 0, query = 0;
  int tile[11] = {}; ///< as the region `tile` takes them
};

struct HookResult {
  float score = 0;
  bool mask = true, any = true, all = true;
  float byForm = 0; ///< the score put together of its form; the score itself where it has none
};

/// A hook text, the parameters to bind and the calls to make.
struct HookCase {
  std::string hooks;
  bool hasMask = false, hasScore = false;
  std::vector<std::vector<std::uint32_t>> params; ///< bits of each one's elements
  std::vector<bool> isArray;
  std::vector<HookCall> calls;
};

/// Compiles hook texts as host C++, with CUDA's words defined away, runs them in a process of their own, and
/// returns the results of all cases in their order. Empty when the compiler refuses; its words go to stderr.
std::vector<std::vector<HookResult>> runHooks(const std::vector<HookCase> &cases);

} // namespace deft::test
