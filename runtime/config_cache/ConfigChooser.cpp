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
  selection_.signature = request_.signature;
  selection_.chosen.config = request_.heuristic;
}

void ConfigChooser::setReach(const plan::Reach &reach) {
  untuned_.setReach(reach);
  classifier_ = TreeClassifier(reach);
  restart();
}

void ConfigChooser::pinKernels(const config::Config &config) {
  pinned_ = selection_.chosen;
  pinned_->config = config;
}

const Selection &ConfigChooser::choose(const tree::KvTree &tree) {
  return choose(tree, classifier_.measure(tree));
}

const Selection &ConfigChooser::choose(const tree::KvTree &tree, const TreeFeatures &features) {
  const TreeClass treeClass = follower_.follow(features);
  if (hasSelection_ && treeClass == selection_.treeClass && isStillRight(features))
    return selection_;
  request_.coordinates = features.coordinates();
  request_.treeClass = treeClass;
  request_.heuristic = untuned_.first();
  request_.heuristicWhy.clear();
  selection_ = select(*cache_, request_);
  hasSelection_ = true;
  ++changes_;
  if (selection_.chosen.isUntuned() || (pinned_ && !haveSameTiles(selection_.config(), pinned_->config)))
    selectUntuned(tree);
  selection_.next.clear();
  return selection_;
}

/// Where the chosen entry is for some trees alone: whether the tree is one of them as it was before. One that
/// was has to go half as far again to be none of them: it may be going to and fro, but not to where the
/// config lost (Entry::within).
bool ConfigChooser::isStillRight(const TreeFeatures &features) const {
  const Candidate &chosen = selection_.chosen;
  if (!chosen.from || chosen.from->entry.onlyFor.empty())
    return true;
  const double slack = chosen.isForOthers ? 1 : 1.5;
  return chosen.from->entry.isFor(features.coordinates(), slack) != chosen.isForOthers;
}

const Selection &ConfigChooser::explain(const tree::KvTree &tree) {
  choose(tree);
  return selectUntuned(tree);
}

/// For the class of the last choice.
const Selection &ConfigChooser::selectUntuned(const tree::KvTree &tree) {
  request_.heuristic = untuned_.choose(tree);
  request_.heuristicWhy = untuned_.why();
  selection_ = select(*cache_, request_);
  if (!pinned_ || haveSameTiles(selection_.config(), pinned_->config))
    return selection_;
  const auto fits =
      std::find_if(selection_.next.begin(), selection_.next.end(), [&](const Candidate &candidate) {
        return haveSameTiles(candidate.config, pinned_->config);
      });
  selection_.chosen = fits != selection_.next.end() ? Candidate(*fits) : *pinned_;
  return selection_;
}

} // namespace deft::config_cache
