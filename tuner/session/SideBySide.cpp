#include "tuner/session/SideBySide.h"

#include "runtime/plan/Planner.h"

#include <algorithm>

namespace deft::session {

using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

struct Contestant {
  std::unique_ptr<measure::Runner> runner;
  plan::Plan plan;
  std::vector<double> us; ///< of all runs
};

double estimate(std::vector<double> us, Estimator estimator) {
  std::sort(us.begin(), us.end());
  return estimator == Estimator::Fastest ? us.front() : us[us.size() / 2];
}

} // namespace

Result<std::vector<double>> SideBySide::measure(const std::string &treeClass, std::size_t tree,
                                                const std::vector<config::Config> &configs) {
  const auto trees = std::find_if(work_->classes.begin(), work_->classes.end(),
                                  [&](const measure::ClassTrees &of) { return of.name == treeClass; });
  if (trees == work_->classes.end() || tree >= trees->trees.size())
    return Error{ErrorCode::Usage, "no such tree of class " + treeClass + " is given", ""};
  const auto isNew = inputs_.open(*trees);
  if (!isNew)
    return isNew.error();
  isLoaded_ = isLoaded_ && !*isNew;
  if (!isLoaded_)
    if (auto loaded = machine_->load(inputs_.inputs()); !loaded)
      return loaded.error();
  isLoaded_ = true;

  const auto facts = measure::factsOf(*work_, machine_->key().kind);
  std::vector<Contestant> contestants;
  for (const config::Config &config : configs) {
    std::optional<package::KernelSet> kernels;
    if (options_.kernels) {
      auto made = options_.kernels(config);
      if (!made)
        return made.error();
      kernels.emplace(std::move(*made));
    }
    auto runner = machine_->open(kernels ? &*kernels : nullptr);
    if (!runner)
      return runner.error();
    auto plan = plan::makePlan(inputs_.trees()[tree], facts, config, (*runner)->blocks());
    if (!plan)
      return plan.error();
    contestants.push_back({std::move(*runner), std::move(*plan), {}});
  }

  for (int round = 0; round < options_.rounds; ++round)
    for (std::size_t i = 0; i < contestants.size(); ++i) {
      Contestant &contestant = contestants[(i + static_cast<std::size_t>(round)) % contestants.size()];
      const auto us = contestant.runner->time(contestant.plan, options_.repeats);
      if (!us)
        return us.error();
      contestant.us.insert(contestant.us.end(), us->begin(), us->end());
    }

  std::vector<double> result;
  result.reserve(contestants.size());
  for (const Contestant &contestant : contestants)
    result.push_back(estimate(contestant.us, options_.estimator));
  return result;
}

} // namespace deft::session
