#include "runtime/config_cache/EntryMap.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>

namespace deft::config_cache {

EntryMap::EntryMap(DeviceKey::Kind kind) : kind_(kind), latest_(timestamp(std::chrono::hours(24))) {}

const std::string &EntryMap::dateOf(const Entry &entry) const {
  static const std::string none;
  return entry.provenance.date <= latest_ ? entry.provenance.date : none;
}

bool EntryMap::isBetter(const Entry &b, const Entry &a) const {
  if (isFresh(a) != isFresh(b))
    return isFresh(b);
  if (a.isComplete != b.isComplete)
    return b.isComplete;
  if (dateOf(a) != dateOf(b))
    return dateOf(b) > dateOf(a);
  if (a.measurement.tunedUs != b.measurement.tunedUs)
    return b.measurement.tunedUs < a.measurement.tunedUs;
  return toJson(b).dump() < toJson(a).dump();
}

/// What a whole search found with today's kernels is worth more than what came first in too little time.
bool EntryMap::staysFor(const Entry &old, const Entry &measured) const {
  return old.isComplete && !measured.isComplete && isFresh(old);
}

void EntryMap::add(Entry entry) {
  const auto [at, isNew] = byKey_.try_emplace(keyOf(entry));
  Slot &slot = at->second;
  if (isNew || isBetter(entry, slot.entry))
    slot.entry = std::move(entry);
  ++slot.times;
}

void EntryMap::put(const Entry &entry, Conflict conflict, WriteReport &report) {
  const auto [at, isNew] = byKey_.try_emplace(keyOf(entry), Slot{entry, 1});
  Entry &old = at->second.entry;
  if (isNew) {
    ++report.added;
  } else if (toJson(old) == toJson(entry) || (conflict == Conflict::Merge && !isBetter(entry, old))) {
    ++report.unchanged;
  } else if (conflict == Conflict::Replace && staysFor(old, entry)) {
    ++report.unchanged;
    ++report.kept;
  } else {
    old = entry;
    ++report.replaced;
  }
}

std::vector<Entry> EntryMap::take() {
  std::vector<Entry> entries;
  entries.reserve(byKey_.size());
  for (auto &[key, slot] : byKey_)
    entries.push_back(std::move(slot.entry));
  byKey_.clear();
  return entries;
}

void addKept(std::vector<std::string> &kept, const std::vector<std::string> &more) {
  kept.insert(kept.end(), more.begin(), more.end());
  std::sort(kept.begin(), kept.end());
  kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
}

} // namespace deft::config_cache
