#pragma once

#include "compiler/config/DevicePrices.h"
#include "runtime/plan/report/PlanReport.h"
#include "tests/unit/runtime/plan/PlanTesting.h"

namespace deft::plan {

/// Of a GPU with so many blocks, two KV heads and four query heads each.
inline PlanReport reportOf(const tree::KvTree &tree, const VariantFacts &facts = {4, 2},
                           config::Config config = makeConfig(64), int blocks = 8) {
  auto report = reportPlan(tree, facts, config, config::nearestPrices(config::someGpu()).kernels, blocks);
  EXPECT_TRUE(report) << report.error().message;
  return std::move(*report);
}

/// Hides all but the last 8 positions: kv_pos >= q_pos - 7.
inline VariantFacts windowFacts() {
  VariantFacts facts{4, 2};
  spec::VisibleBounds::Bound window;
  window.at.qPos = 1;
  window.at.rest.constant = -7;
  facts.reach = Reach::of({{{.from = {window}, .until = {}, .conditions = {}}}}, {});
  return facts;
}

} // namespace deft::plan
