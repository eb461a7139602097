#pragma once

#include "runtime/api/Call.h"
#include "runtime/api/Tree.h"
#include "runtime/tree/ExpandedNodes.h"

#include <deft/c/expanded.h>

#include <memory>
#include <vector>

namespace deft::api {

/// How two plans of the same tree share it.
struct Division {
  std::vector<tree::ExpandedNode> given, chosen;
  deft_expanded_choice choice = DEFT_EXPANDED_BY_PRICE;
  std::shared_ptr<TreeStamp> stamp; ///< of the tree
  std::uint64_t structure = 0;      ///< generation of the tree's structure

  bool isOf(const deft_tree &tree) const {
    return stamp == tree.stamp && structure == tree.tree().structureGeneration();
  }
  /// An error if the tree has changed other than by growing leaves, or if a chosen node has grown.
  Result<void> check(const deft_tree &tree) const;
};

} // namespace deft::api
