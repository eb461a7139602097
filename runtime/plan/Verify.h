#pragma once

#include "runtime/plan/Planner.h"

namespace deft::plan {

struct VerifyOptions {
  bool checkPlaces = false; ///< also that no two nodes share slots (tree::checkPlaces)
};

/// Checks a plan against the tree it claims to cover, slowly and readably: every (query, token on its
/// path) is covered exactly once, in path order, at the right place; every output is written exactly
/// once, from exactly the partials that hold some of it; items fit their phases. Says the first thing
/// that is wrong.
support::Result<void> verify(const Plan &plan, const tree::KvTree &tree, const VariantFacts &facts,
                             const config::Config &config, const VerifyOptions &options = {});

} // namespace deft::plan
