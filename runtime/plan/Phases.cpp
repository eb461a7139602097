#include "runtime/plan/Items.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

namespace deft::plan {

void PhaseSorter::findPhases(const config::Config &config, int ratio) {
  phaseOf_.resize(static_cast<std::size_t>(config::mostRows(config) / ratio) + 1);
  for (std::size_t queries = 0; queries < phaseOf_.size(); ++queries)
    phaseOf_[queries] = static_cast<int>(config::phaseFor(config, static_cast<int>(queries) * ratio));
}

void PhaseSorter::sort(const config::Config &config, int ratio, int longest, Plan &plan) {
  plan.phases.assign(config.phases.size(), {});
  if (plan.items.empty())
    return;
  findPhases(config, ratio);
  // One number sorts items: the phase, above the difference of the item's length to the longest one.
  const int lightBits = std::bit_width(static_cast<unsigned>(longest));
  const std::size_t count = plan.items.size();
  keys_.resize(count);
  Key any = 0, all = ~Key{0}, last = 0;
  bool isSorted = true;
  for (std::size_t i = 0; i < count; ++i) {
    const abi::Item &item = plan.items[i];
    const int phase = phaseOf_[static_cast<std::size_t>(item.queryCount)];
    const Key order = static_cast<Key>(phase) << lightBits | static_cast<Key>(longest - item.tokens);
    any |= order;
    all &= order;
    isSorted &= last <= order;
    last = order;
    keys_[i] = order << kIndexBits | i;
  }
  if (!isSorted)
    sortItems(any ^ all, plan);
  int begin = 0;
  for (std::size_t i = 0; i < plan.phases.size(); ++i) {
    const auto end =
        std::partition_point(plan.items.begin() + begin, plan.items.end(), [&](const abi::Item &item) {
          return phaseOf_[static_cast<std::size_t>(item.queryCount)] == static_cast<int>(i);
        });
    const int count = static_cast<int>(end - plan.items.begin()) - begin;
    plan.phases[i] = {begin, count};
    begin += count;
  }
}

/// Sorts by the bits in which keys differ, with as few digits as possible and no wider than needed, since
/// each pass also walks the table of its digit.
void PhaseSorter::sortItems(Key differ, Plan &plan) {
  const int low = std::countr_zero(differ), bits = std::bit_width(differ) - low;
  const int passes = (bits + kDigitBits - 1) / kDigitBits, width = (bits + passes - 1) / passes;
  int shift = kIndexBits + low;
  for (int pass = 1; pass < passes; ++pass, shift += width)
    sortByDigit(shift, width);
  placeByDigit(shift, width, plan);
}

/// Counts where the keys of each digit begin after sorting by it.
void PhaseSorter::countDigits(int shift, int width) {
  const Key mask = (Key{1} << width) - 1;
  std::fill_n(begin_.begin(), mask + 1, 0);
  std::fill_n(odd_.begin(), mask + 1, 0);
  // Neighbours often have the same digit: with two tables, one count need not wait for the previous one.
  const std::size_t pairs = keys_.size() / 2 * 2;
  for (std::size_t i = 0; i < pairs; i += 2) {
    ++begin_[keys_[i] >> shift & mask];
    ++odd_[keys_[i + 1] >> shift & mask];
  }
  if (pairs < keys_.size())
    ++begin_[keys_.back() >> shift & mask];
  int sum = 0;
  for (Key digit = 0; digit <= mask; ++digit)
    sum += std::exchange(begin_[digit], sum) + odd_[digit];
}

/// One stable pass of a radix sort.
void PhaseSorter::sortByDigit(int shift, int width) {
  const Key mask = (Key{1} << width) - 1;
  countDigits(shift, width);
  sorted_.resize(keys_.size());
  for (const Key key : keys_)
    sorted_[static_cast<std::size_t>(begin_[key >> shift & mask]++)] = key;
  keys_.swap(sorted_);
}

/// The last pass also moves the items.
void PhaseSorter::placeByDigit(int shift, int width, Plan &plan) {
  constexpr Key kIndex = (Key{1} << kIndexBits) - 1;
  const Key mask = (Key{1} << width) - 1;
  countDigits(shift, width);
  items_.reserve(plan.items.capacity()); // they change places, and the next cut needs as much room
  items_.resize(keys_.size());
  placed_.resize(keys_.size());
  const abi::Item *const items = plan.items.data();
  abi::Item *const sorted = items_.data();
  int *const placed = placed_.data();
  for (const Key key : keys_) {
    const Key from = key & kIndex;
    const int to = begin_[key >> shift & mask]++;
    sorted[to] = items[from];
    placed[from] = to;
  }
  plan.items.swap(items_);
  for (Plan::Tail &tail : plan.tails)
    tail.item = placed[tail.item];
}

} // namespace deft::plan
