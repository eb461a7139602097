#pragma once

#include "compiler/support/Result.h"

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace deft::session {

/// A part of a session: some of its classes, which one process tunes while other processes tune the rest.
///
/// Shards divide classes, not candidates: the races, the final and the confirmation of a class compare times
/// of one process, and a guided search depends on its own measurements.
struct Shard {
  int index = 0; ///< from 0
  int count = 1;

  bool operator==(const Shard &) const = default;
  std::string text() const { return std::to_string(index) + "/" + std::to_string(count); }

  /// Whether this shard has the class at this place in the session's order. Classes are ordered by size, so
  /// each shard has small and large ones.
  bool owns(std::size_t classIndex) const {
    return classIndex % static_cast<std::size_t>(count) == static_cast<std::size_t>(index);
  }
};

/// The most shards of a session.
inline constexpr int kMostShards = 100'000;

/// "2/8".
support::Result<Shard> parseShard(std::string_view text);
/// An error if there is no such shard.
support::Result<void> checkShard(const Shard &shard);
/// From a journal's `session` event; none: a whole session. An error if deftc did not write it.
support::Result<std::optional<Shard>> shardOf(const nlohmann::json &event);

/// The classes that the shard owns, in order; without a shard all.
template <typename Class>
std::vector<Class> ownClasses(const std::vector<Class> &all, const std::optional<Shard> &shard) {
  std::vector<Class> own;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (!shard || shard->owns(i))
      own.push_back(all[i]);
  return own;
}

} // namespace deft::session
