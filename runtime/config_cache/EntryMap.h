#pragma once

#include "runtime/config_cache/ConfigFile.h"

#include <map>
#include <string>
#include <vector>

namespace deft::config_cache {

/// Entries by key, each key once, in time that grows with how many there are, whatever keys they have.
class EntryMap {
public:
  explicit EntryMap(DeviceKey::Kind kind);

  /// Of each key the better one: fresher kernels, a whole search, a later date, a shorter time. A total order
  /// up to equal texts, so that files merge to the same bytes in whatever order they come. A date that is not
  /// yet, by more than clocks differ, is none: it would win for good.
  void add(Entry entry);
  /// The entry takes the place of one that is there, by the conflict's rule.
  void put(const Entry &entry, Conflict conflict, WriteReport &report);

  /// Calls back with the key of each that was added more than once, and how often.
  template <typename Callback> void eachRepeated(Callback callback) const {
    for (const auto &[key, slot] : byKey_)
      if (slot.times > 1)
        callback(key, slot.times);
  }
  /// Gives all entries away, by key: the map is empty then.
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
  std::string latest_; ///< date that counts
  std::map<std::string, Slot> byKey_;
};

/// Adds to the kept entries of files (ConfigFile::kept): each once, sorted.
void addKept(std::vector<std::string> &kept, const std::vector<std::string> &more);

} // namespace deft::config_cache
