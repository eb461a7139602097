#pragma once

#include "compiler/support/Result.h"
#include "runtime/capture/Step.h"
#include "runtime/tree/CachePlacement.h"

#include <vector>

/// The tree of a captured step, and where it lies.
namespace deft::capture {

/// The nodes as a tree file numbers them, dead ones left out; queries keep their order.
support::Result<tree::KvTree> inFileOrder(const tree::KvTree &tree);

/// The tree that the step computed: with the tokens that requests gained on the device, and each draft as a
/// node of one token in the place of the stand-ins that the host planned. An error where no tree says it.
support::Result<tree::KvTree> treeOf(const Step &step);

/// A cache for the tree, as small as can be.
struct StepPlace {
  tree::CachePlacement cache;
  bool isAsCaptured = false; ///< pages are in the captured order; else in that of the nodes
  int pagesAdded = 0;        ///< of tokens for which the captured table has no page
};

/// Gives the tree places in it. Entries that the tree does not name are left out of the page table, and pages
/// that it does not name out of the pool; what is left keeps its order.
support::Result<StepPlace> placeStep(const Step &step, tree::KvTree &tree);

/// The entries of a page table that the tree's tokens lie in, in rising order.
std::vector<int> entriesOf(const tree::KvTree &tree, int pageSize);

/// Stretches of a page table, of these entries; a negative page is none and left out.
std::vector<PageStretch> stretchesOf(const std::vector<int> &entries, const std::vector<int> &pages);

} // namespace deft::capture
