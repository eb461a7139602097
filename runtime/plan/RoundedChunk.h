#pragma once

#include "runtime/plan/Items.h"
#include "runtime/tree/KvTree.h"

#include <algorithm>

namespace deft::plan {

/// A config's chunk, rounded as for items; 0 stays 0.
inline int roundedChunk(int chunkTokens) {
  const int tokens = std::min(chunkTokens, tree::KvTree::kMaxTokens);
  return (tokens + kChunkStep - 1) / kChunkStep * kChunkStep;
}

} // namespace deft::plan
