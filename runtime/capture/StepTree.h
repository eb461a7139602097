#pragma once

#include "compiler/support/Result.h"
#include "runtime/capture/Step.h"
#include "runtime/tree/CachePlacement.h"

#include <vector>

/// The tree of a captured step, and its place in a cache.
namespace deft::capture {

/// The tree with nodes numbered as in a tree file, without dead ones; queries keep their order.
support::Result<tree::KvTree> inFileOrder(const tree::KvTree &tree);

/// The tree that the step computed: with the tokens that requests gained on the device, and with one node for
/// each draft instead of the stand-ins that the host planned. An error if no tree fits.
support::Result<tree::KvTree> treeOf(const Step &step);

/// The smallest cache for the tree.
struct StepPlace {
  tree::CachePlacement cache;
  bool isAsCaptured = false; ///< pages are in the captured order; otherwise in the order of the nodes
  int pagesAdded = 0;        ///< for tokens without a page in the captured table
};

/// Gives the tree places in it. Removes entries that the tree does not name from the page table, and pages
/// that it does not name from the pool; the others keep their order.
support::Result<StepPlace> placeStep(const Step &step, tree::KvTree &tree);

/// The page table entries of the tree's tokens, in ascending order.
std::vector<int> entriesOf(const tree::KvTree &tree, int pageSize);

/// The stretches of these entries of a page table; negative pages are left out.
std::vector<PageStretch> stretchesOf(const std::vector<int> &entries, const std::vector<int> &pages);

} // namespace deft::capture
