#pragma once

#include "runtime/plan/Planner.h"
#include "tuner/search/Strategy.h"

#include <string>
#include <unordered_map>

namespace deft::search {

/// The planner's cost model over the trees of a class: the geometric mean of their plans' costs. Stages and
/// warps matter to it only through the number of blocks that fit.
class PlanModel : public Predictor {
public:
  /// `units`: multiprocessors of a GPU, threads of a CPU. The space and the trees must outlive it.
  PlanModel(const space::Space &space, const plan::VariantFacts &facts,
            std::vector<const tree::KvTree *> trees, int units)
      : space_(space), facts_(facts.withoutPages()), trees_(std::move(trees)), units_(units) {}

  std::optional<double> microseconds(const space::Point &point) override;
  std::optional<double> microsecondsOf(const config::Config &config);

private:
  const space::Space &space_;
  plan::VariantFacts facts_;
  std::vector<const tree::KvTree *> trees_;
  int units_;
  plan::Planner planner_;
  plan::Plan plan_;
  plan::CostModel model_;
  std::unordered_map<std::string, std::optional<double>> known_;
};

} // namespace deft::search
