#pragma once

#include "runtime/plan/Planner.h"

namespace deft::plan {

struct VerifyOptions {
  bool checkPlaces = false; ///< also checks that no two nodes share slots (tree::checkPlaces)
};

/// Checks a plan against its tree, slowly and readably: items cover every (query, token on its path)
/// exactly once, in path order and at the right place; every output is written exactly once, from
/// exactly the partials that hold its tokens; items fit their phases. The error describes the first
/// fault.
support::Result<void> verify(const Plan &plan, const tree::KvTree &tree, const VariantFacts &facts,
                             const config::Config &config, const VerifyOptions &options = {});

} // namespace deft::plan
