#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace deft::tree {

/// Hands out intervals of the addresses from 0 to a limit. A new interval comes from the smallest hole that
/// fits, so that the end of the used addresses stays low.
class AddressSpace {
public:
  explicit AddressSpace(std::int64_t limit);

  std::optional<std::int64_t> take(std::int64_t count);

  /// Takes [begin, begin + count) if it is free; returns whether it was.
  bool takeAt(std::int64_t begin, std::int64_t count);

  /// Gives back [begin, begin + count), which must be taken.
  void give(std::int64_t begin, std::int64_t count);

  std::int64_t free() const { return free_; }
  std::int64_t largestHole() const { return bySize_.empty() ? 0 : bySize_.rbegin()->first; }

private:
  void addHole(std::int64_t begin, std::int64_t end);
  void removeHole(std::map<std::int64_t, std::int64_t>::iterator hole);

  std::map<std::int64_t, std::int64_t> holes_;             ///< begin -> end
  std::set<std::pair<std::int64_t, std::int64_t>> bySize_; ///< (count, begin)
  std::int64_t free_ = 0;
};

} // namespace deft::tree
