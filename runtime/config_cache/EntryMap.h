#pragma once

#include "runtime/config_cache/ConfigFile.h"

#include <map>
#include <string>
#include <vector>

namespace deft::config_cache {

/// Entries by key, each key once. Time grows with the number of entries, for any keys.
class EntryMap {
public:
  explicit EntryMap(DeviceKey::Kind kind);

  /// For each key the better entry stays: fresher kernels, a complete search, a later date, a shorter time.
  /// This is a total order up to equal texts, so files merge to the same bytes in any order. A date further
  /// in the future than clocks differ is ignored, because it would win forever.
  void add(Entry entry);
  /// Replaces an existing entry if the rule for conflicts says so.
  void put(const Entry &entry, Conflict conflict, WriteReport &report);

  /// Calls back for each key that was added more than once, with the number of times.
  template <typename Callback> void eachRepeated(Callback callback) const {
    for (const auto &[key, slot] : byKey_)
      if (slot.times > 1)
        callback(key, slot.times);
  }
  /// Returns all entries, sorted by key, and leaves the map empty.
  std::vector<Entry> take();

private:
  struct Slot {
    Entry entry;
    int times = 0;
  };

  bool isFresh(const Entry &entry) const { return entry.isFresh(kind_); }
  const std::string &dateOf(const Entry &entry) const;
  bool isBetter(const Entry &b, const Entry &a) const;
  bool staysFor(const Entry &old, const Entry &measured) const;

  DeviceKey::Kind kind_;
  std::string latest_; ///< the latest date that counts
  std::map<std::string, Slot> byKey_;
};

/// Adds to the kept entries of files (ConfigFile::kept): without repeats, sorted.
void addKept(std::vector<std::string> &kept, const std::vector<std::string> &more);

} // namespace deft::config_cache
