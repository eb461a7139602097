#pragma once

#include "runtime/tree/KvTree.h"

namespace deft::tree {

/// A tree in a few numbers, for people and for classes of trees.
struct TreeSummary {
  int nodes = 0;
  int roots = 0;
  int levels = 0; ///< depth of the deepest node, counted from 1; 0: no nodes
  int queries = 0;
  long long tokens = 0;
  long long readTokens = 0; ///< tokens that some query sees, which must be read at least once
  long long pathTokens = 0; ///< sum over the queries' paths

  /// The average number of queries that see a visible token.
  double sharing() const { return readTokens > 0 ? static_cast<double>(pathTokens) / readTokens : 0; }
};

TreeSummary summarize(const KvTree &tree);

} // namespace deft::tree
