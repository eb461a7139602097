#include "tuner/session/SideBySide.h"

#include "runtime/plan/Planner.h"

#include <algorithm>
#include <cmath>

namespace deft::session {

using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

struct Contestant {
  std::unique_ptr<measure::Runner> runner;
  std::vector<plan::Plan> plans;             ///< one a tree
  std::vector<std::vector<double>> usOfTree; ///< all runs
};

double estimate(std::vector<double> us, Estimator estimator) {
  std::sort(us.begin(), us.end());
  return estimator == Estimator::Fastest ? us.front() : us[us.size() / 2];
}

} // namespace

bool SideBySide::hasTreesOf(const config_cache::TreeClass &treeClass) const {
  const std::string name = treeClass.text();
  return std::any_of(work_->classes.begin(), work_->classes.end(),
                     [&](const measure::ClassTrees &trees) { return trees.name == name; });
}

Result<std::vector<double>> SideBySide::measure(const config_cache::Entry &entry,
                                                const std::vector<config::Config> &configs) {
  const std::string name = entry.treeClass.text();
  const auto trees = std::find_if(work_->classes.begin(), work_->classes.end(),
                                  [&](const measure::ClassTrees &of) { return of.name == name; });
  if (trees == work_->classes.end())
    return Error{ErrorCode::Usage, "no tree of class " + name + " is given", ""};
  const auto isNew = inputs_.open(*trees);
  if (!isNew)
    return isNew.error();
  isLoaded_ = isLoaded_ && !*isNew;
  if (!isLoaded_)
    if (auto loaded = machine_->load(inputs_.inputs()); !loaded)
      return loaded.error();
  isLoaded_ = true;

  const auto facts = plan::VariantFacts::of(work_->variant, machine_->key().isCpu());
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
    Contestant contestant{std::move(*runner), {}, {}};
    for (const tree::KvTree &tree : inputs_.trees()) {
      auto plan = plan::makePlan(tree, facts, config, contestant.runner->blocks());
      if (!plan)
        return plan.error();
      contestant.plans.push_back(std::move(*plan));
    }
    contestant.usOfTree.resize(inputs_.trees().size());
    contestants.push_back(std::move(contestant));
  }

  for (int round = 0; round < options_.rounds; ++round)
    for (std::size_t tree = 0; tree < inputs_.trees().size(); ++tree)
      for (std::size_t i = 0; i < contestants.size(); ++i) {
        Contestant &contestant = contestants[(i + static_cast<std::size_t>(round)) % contestants.size()];
        const auto us = contestant.runner->time(contestant.plans[tree], options_.repeats);
        if (!us)
          return us.error();
        contestant.usOfTree[tree].insert(contestant.usOfTree[tree].end(), us->begin(), us->end());
      }

  std::vector<double> result;
  for (const Contestant &contestant : contestants) {
    double logSum = 0;
    for (const std::vector<double> &us : contestant.usOfTree)
      logSum += std::log(estimate(us, options_.estimator));
    result.push_back(std::exp(logSum / static_cast<double>(contestant.usOfTree.size())));
  }
  return result;
}

} // namespace deft::session
