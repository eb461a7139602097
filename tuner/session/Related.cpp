#include "tuner/session/Related.h"

#include "tuner/space/Space.h"

#include <algorithm>
#include <tuple>

namespace deft::session {

using config_cache::Entry;

namespace {

constexpr std::size_t kMostOfClass = 3, kMostNeighbours = 3;
/// Variants up to this distance differ only in type and pages.
constexpr double kSameHooks = 0.99;

void addDistinct(const config::Config &config, std::size_t most, std::vector<config::Config> &configs) {
  const auto isSame = [&](const config::Config &other) {
    return space::configId(other) == space::configId(config);
  };
  if (configs.size() < most && std::none_of(configs.begin(), configs.end(), isSame))
    configs.push_back(config);
}

} // namespace

RelatedConfigs::RelatedConfigs(const config_cache::Places &places, const config_cache::DeviceKey &device,
                               const spec::Variant &variant, const target::Target *target)
    : cache_(config_cache::ConfigCache::load(places, device)) {
  const auto signature = config_cache::VariantSignature::of(variant);
  const auto isLegal = config_cache::legalityFor(variant, target);
  for (const config_cache::LoadedEntry &loaded : cache_.entries())
    if (const auto distance = config_cache::distance(loaded.entry.signature, signature);
        distance && isLegal(loaded.entry.config))
      known_.push_back({&loaded.entry, *distance, loaded.entry.isFresh(device.kind)});
  std::stable_sort(known_.begin(), known_.end(), [](const KnownEntry &a, const KnownEntry &b) {
    return std::tuple(!a.isFresh, a.distance) < std::tuple(!b.isFresh, b.distance);
  });
}

Related RelatedConfigs::of(const config_cache::TreeClass &treeClass,
                           const std::vector<ClassReport> &session) const {
  Related related;
  for (const ClassReport &other : session)
    if (other.isDone && !other.entry.keepsDefault && config_cache::areNeighbours(other.treeClass, treeClass))
      addDistinct(other.entry.config, kMostNeighbours, related.neighbours);
  for (const KnownEntry &known : known_) {
    const Entry &entry = *known.entry;
    const bool isOfClass = entry.treeClass == treeClass;
    related.isKnown |= isOfClass && known.distance <= kSameHooks;
    if (entry.keepsDefault || !config_cache::areNeighbours(entry.treeClass, treeClass))
      continue;
    if (isOfClass)
      addDistinct(entry.config, kMostOfClass, related.ofClass);
    else
      addDistinct(entry.config, kMostNeighbours, related.neighbours);
  }
  return related;
}

} // namespace deft::session
