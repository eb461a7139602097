#include "runtime/sharing/IndexMap.h"

#include <algorithm>
#include <cassert>

namespace deft::sharing {

namespace {

constexpr std::size_t kLeastEntries = 16;

} // namespace

int IndexMap::find(std::uint64_t key) const { return entries_.empty() ? -1 : entries_[placeOf(key)].value; }

void IndexMap::set(std::uint64_t key, int value) {
  assert(value >= 0);
  if (2 * (size_ + 1) > entries_.size())
    widen();
  Entry &entry = entries_[placeOf(key)];
  size_ += entry.value < 0;
  entry = {key, value};
}

void IndexMap::erase(std::uint64_t key) {
  std::size_t hole = placeOf(key);
  assert(entries_[hole].value >= 0);
  --size_;
  // What stands behind the hole moves into it, unless its search begins behind the hole.
  for (std::size_t at = next(hole); entries_[at].value >= 0; at = next(at)) {
    const std::size_t mask = entries_.size() - 1;
    const std::size_t fromHome = (at - home(entries_[at].key)) & mask, fromHole = (at - hole) & mask;
    if (fromHome < fromHole)
      continue;
    entries_[hole] = entries_[at];
    hole = at;
  }
  entries_[hole].value = -1;
}

void IndexMap::clear() {
  std::fill(entries_.begin(), entries_.end(), Entry());
  size_ = 0;
}

std::size_t IndexMap::placeOf(std::uint64_t key) const {
  std::size_t at = home(key);
  while (entries_[at].value >= 0 && entries_[at].key != key)
    at = next(at);
  return at;
}

void IndexMap::widen() {
  std::vector<Entry> old(std::max(kLeastEntries, 2 * entries_.size()));
  old.swap(entries_);
  for (shift_ = 64; std::size_t{1} << (64 - shift_) < entries_.size();)
    --shift_;
  for (const Entry &entry : old)
    if (entry.value >= 0)
      entries_[placeOf(entry.key)] = entry;
}

} // namespace deft::sharing
