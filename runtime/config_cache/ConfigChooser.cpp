#include "runtime/config_cache/ConfigChooser.h"

#include <algorithm>

namespace deft::config_cache {

bool haveSameKernels(const config::Config &a, const config::Config &b) {
  const auto isSame = [](const config::PhaseConfig &x, const config::PhaseConfig &y) {
    return x.name == y.name && x.rowsAbove == y.rowsAbove && x.family == y.family && x.tileQ == y.tileQ &&
           x.tileKv == y.tileKv && x.stages == y.stages && x.warps == y.warps;
  };
  return std::equal(a.phases.begin(), a.phases.end(), b.phases.begin(), b.phases.end(), isSame);
}

ConfigChooser::ConfigChooser(std::shared_ptr<const ConfigCache> cache,
                             std::shared_ptr<const spec::Variant> variant, const target::Target *target,
                             config::Config untuned)
    : cache_(std::move(cache)), variant_(std::move(variant)),
      request_(requestFor(*variant_, {}, target, std::move(untuned))) {}

const Selection &ConfigChooser::choose(const tree::KvTree &tree) {
  const TreeClass treeClass = follower_.follow(classifier_.measure(tree));
  if (hasSelection_ && treeClass == selection_.treeClass)
    return selection_;
  request_.treeClass = treeClass;
  Selection fresh = select(*cache_, request_);
  if (hasSelection_ && isPinned_ && !haveSameKernels(fresh.config(), selection_.config())) {
    const auto fits = std::find_if(fresh.next.begin(), fresh.next.end(), [&](const Candidate &candidate) {
      return haveSameKernels(candidate.config, selection_.config());
    });
    fresh.chosen = fits != fresh.next.end() ? *fits : selection_.chosen;
  }
  selection_ = std::move(fresh);
  hasSelection_ = true;
  return selection_;
}

} // namespace deft::config_cache
