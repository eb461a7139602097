#pragma once

#include "runtime/tree/KvTree.h"
#include "tests/gpu/random/Random.h"

#include <string>

namespace deft::gpu_test {

struct CaseTree {
  std::string kind;
  tree::KvTree tree;
};

/// A tree of the kind that is `index`'s turn: forests of any shape, deep chains, wide fans, one or many,
/// shared prompts, causal stretches, token trees of up to `mostQueries` queries, nodes that end about a
/// page's or a tile's end, the edge list.
CaseTree randomTree(Random &random, int index, int pageSize, int mostQueries);

} // namespace deft::gpu_test
