#pragma once

#include "runtime/plan/Planner.h"
#include "runtime/tree/KvTree.h"
#include "tests/gpu/random/Random.h"

namespace deft::gpu_test {

/// Plans the tree as it was before its leaves got some of their tokens, those that queries read and others,
/// and lets the plan follow in steps to what the tree is. Gives the steps that it followed in place.
support::Result<int> planThroughHistory(Random &random, const tree::KvTree &tree,
                                        const plan::VariantFacts &facts, const config::Config &config,
                                        int blocks, plan::Plan &plan);

} // namespace deft::gpu_test
