#include "runtime/tree/AddressSpace.h"

#include <iterator>

namespace deft::tree {

AddressSpace::AddressSpace(std::int64_t limit) {
  addHole(0, limit);
  free_ = limit;
}

void AddressSpace::addHole(std::int64_t begin, std::int64_t end) {
  if (begin >= end)
    return;
  holes_.emplace(begin, end);
  bySize_.emplace(end - begin, begin);
}

void AddressSpace::removeHole(std::map<std::int64_t, std::int64_t>::iterator hole) {
  bySize_.erase({hole->second - hole->first, hole->first});
  holes_.erase(hole);
}

std::optional<std::int64_t> AddressSpace::take(std::int64_t count) {
  const auto fits = bySize_.lower_bound({count, 0});
  if (fits == bySize_.end())
    return std::nullopt;
  const std::int64_t begin = fits->second;
  takeAt(begin, count);
  return begin;
}

bool AddressSpace::takeAt(std::int64_t begin, std::int64_t count) {
  auto hole = holes_.upper_bound(begin);
  if (hole == holes_.begin())
    return false;
  --hole;
  const auto [holeBegin, holeEnd] = *hole;
  if (begin + count > holeEnd)
    return false;
  removeHole(hole);
  addHole(holeBegin, begin);
  addHole(begin + count, holeEnd);
  free_ -= count;
  return true;
}

void AddressSpace::give(std::int64_t begin, std::int64_t count) {
  if (count == 0)
    return;
  std::int64_t end = begin + count;
  const auto after = holes_.lower_bound(begin);
  if (after != holes_.end() && after->first == end) {
    end = after->second;
    removeHole(after);
  }
  const auto next = holes_.lower_bound(begin);
  if (next != holes_.begin()) {
    const auto before = std::prev(next);
    if (before->second == begin) {
      begin = before->first;
      removeHole(before);
    }
  }
  addHole(begin, end);
  free_ += count;
}

} // namespace deft::tree
