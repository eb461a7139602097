#pragma once

#include "runtime/api/Call.h"
#include "runtime/api/Tree.h"
#include "runtime/tree/ExpandedNodes.h"

#include <deft/c/expanded.h>

#include <memory>
#include <vector>

namespace deft::api {

/// How two plans share a tree; both have the same one.
struct Division {
  std::vector<tree::ExpandedNode> given, chosen;
  deft_expanded_choice choice = DEFT_EXPANDED_BY_PRICE;
  std::shared_ptr<TreeStamp> stamp; ///< of the tree
  std::uint64_t structure = 0;      ///< generation of its structure

  bool isOf(const deft_tree &tree) const {
    return stamp == tree.stamp && structure == tree.tree().structureGeneration();
  }
  /// An error where the tree has changed by more than leaves that grew, or a chosen node has grown.
  Result<void> check(const deft_tree &tree) const;
};

} // namespace deft::api
