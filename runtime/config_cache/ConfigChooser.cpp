#include "runtime/config_cache/ConfigChooser.h"

#include "compiler/kernels/Family.h"
#include <algorithm>

namespace deft::config_cache {

bool haveSameTiles(const config::Config &a, const config::Config &b) {
  const auto isSame = [](const config::PhaseConfig &x, const config::PhaseConfig &y) {
    return x.name == y.name && x.rowsAbove == y.rowsAbove && x.family == y.family && x.tileQ == y.tileQ &&
           x.tileKv == y.tileKv && x.stages == y.stages && x.warps == y.warps;
  };
  return std::equal(a.phases.begin(), a.phases.end(), b.phases.begin(), b.phases.end(), isSame);
}

bool haveSameKernels(const config::Config &a, const config::Config &b) {
  return haveSameTiles(a, b) && kernels::isDealt(a) == kernels::isDealt(b);
}

ConfigChooser::ConfigChooser(std::shared_ptr<const ConfigCache> cache,
                             std::shared_ptr<const spec::Variant> variant, const target::Target *target,
                             std::vector<config::Config> untuned, int units)
    : cache_(std::move(cache)), variant_(std::move(variant)),
      request_(requestFor(*variant_, {}, target, untuned.front())),
      untuned_(*variant_, target, units, std::move(untuned), cache_->prices()),
      classifier_(plan::Reach::ofDefaults(*variant_)) {
  request_.heuristic = untuned_.first(); // with the device's prices
  ruling_.signature = request_.signature;
  ruling_.chosen.config = request_.heuristic;
}

void ConfigChooser::setReach(const plan::Reach &reach) {
  untuned_.setReach(reach);
  classifier_ = TreeClassifier(reach);
  restart();
}

void ConfigChooser::pinKernels(const config::Config &config) {
  pinned_ = ruling_.chosen;
  pinned_->config = config;
}

const Ruling &ConfigChooser::choose(const tree::KvTree &tree) {
  return choose(tree, classifier_.measure(tree));
}

const Ruling &ConfigChooser::choose(const tree::KvTree &tree, const TreeFeatures &features) {
  return choose([&]() -> const tree::KvTree & { return tree; }, features);
}

const Ruling &ConfigChooser::choose(const std::function<const tree::KvTree &()> &treeOf,
                                    const TreeFeatures &features) {
  const TreeClass treeClass = follower_.follow(features);
  if (hasRuling_ && treeClass == ruling_.treeClass && isStillRight(features))
    return ruling_;
  request_.coordinates = features.coordinates();
  request_.treeClass = treeClass;
  request_.heuristic = untuned_.first();
  request_.heuristicWhy.clear();
  ruling_ = applyRules(*cache_, request_);
  hasRuling_ = true;
  ++changes_;
  if (ruling_.chosen.isUntuned() || (pinned_ && !haveSameTiles(ruling_.config(), pinned_->config)))
    ruleUntuned(treeOf);
  ruling_.next.clear();
  return ruling_;
}

/// Where the chosen entry is for some trees alone: whether the tree is one of them as it was before. One that
/// was has to go half as far again to be none of them: it may be going to and fro, but not to where the
/// config lost (Entry::within).
bool ConfigChooser::isStillRight(const TreeFeatures &features) const {
  const Candidate &chosen = ruling_.chosen;
  if (!chosen.from || chosen.from->entry.onlyFor.empty())
    return true;
  const double slack = chosen.isForOthers ? 1 : 1.5;
  return chosen.from->entry.isFor(features.coordinates(), slack) != chosen.isForOthers;
}

const Ruling &ConfigChooser::explain(const tree::KvTree &tree) {
  choose(tree);
  return ruleUntuned([&]() -> const tree::KvTree & { return tree; });
}

/// For the class of the last choice.
const Ruling &ConfigChooser::ruleUntuned(const std::function<const tree::KvTree &()> &treeOf) {
  request_.heuristic = untuned_.hasChoice() ? untuned_.choose(treeOf()) : untuned_.first();
  request_.heuristicWhy = untuned_.hasChoice() ? untuned_.why() : std::string();
  ruling_ = applyRules(*cache_, request_);
  if (!pinned_ || haveSameTiles(ruling_.config(), pinned_->config))
    return ruling_;
  const auto fits = std::find_if(ruling_.next.begin(), ruling_.next.end(), [&](const Candidate &candidate) {
    return haveSameTiles(candidate.config, pinned_->config);
  });
  ruling_.chosen = fits != ruling_.next.end() ? Candidate(*fits) : *pinned_;
  return ruling_;
}

} // namespace deft::config_cache
