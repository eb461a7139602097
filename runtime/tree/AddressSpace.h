#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace deft::tree {

/// Addresses 0 to a limit, handed out in intervals. A new interval comes from the smallest hole that holds
/// it, so that the end of the used addresses stays low.
class AddressSpace {
public:
  explicit AddressSpace(std::int64_t limit);

  std::optional<std::int64_t> take(std::int64_t count);

  /// Whether [begin, begin + count) was free; then it is taken.
  bool takeAt(std::int64_t begin, std::int64_t count);

  /// Takes back [begin, begin + count), which must be taken.
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
