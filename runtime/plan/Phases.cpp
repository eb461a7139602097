#include "runtime/plan/Items.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

namespace deft::plan {

namespace {

/// A phase serves what its tile can hold, whatever the bounds of the schedule say.
std::size_t phaseOf(const config::Config &config, std::size_t widest, int rows) {
  std::size_t chosen = 0;
  while (chosen + 1 < config.phases.size() && rows <= config.phases[chosen].rowsAbove)
    ++chosen;
  return config.phases[chosen].tileQ >= rows ? chosen : widest;
}

} // namespace

void PhaseSorter::sort(const config::Config &config, int ratio, Plan &plan) {
  std::size_t widest = 0;
  for (std::size_t i = 0; i < config.phases.size(); ++i)
    if (config.phases[i].tileQ > config.phases[widest].tileQ)
      widest = i;
  int longest = 0;
  for (const abi::Item &item : plan.items)
    longest = std::max(longest, item.tokens);

  // One number orders all: the phase above what the item lacks to the longest one.
  const int lightBits = std::bit_width(static_cast<unsigned>(longest));
  plan.phases.assign(config.phases.size(), {});
  keys_.resize(plan.items.size());
  Key any = 0, all = ~Key{0}, last = 0;
  bool isSorted = true;
  for (std::size_t i = 0; i < plan.items.size(); ++i) {
    const abi::Item &item = plan.items[i];
    const std::size_t phase = phaseOf(config, widest, item.queryCount * ratio);
    ++plan.phases[phase].itemCount;
    const Key order = Key{phase} << lightBits | static_cast<Key>(longest - item.tokens);
    any |= order;
    all &= order;
    isSorted &= last <= order;
    last = order;
    keys_[i] = order << kIndexBits | i;
  }
  for (std::size_t i = 1; i < plan.phases.size(); ++i)
    plan.phases[i].itemBegin = plan.phases[i - 1].itemBegin + plan.phases[i - 1].itemCount;
  if (isSorted)
    return;
  items_.resize(plan.items.size());
  placed_.resize(plan.items.size());
  for (int shift = kIndexBits + std::countr_zero(any & ~all);;) { // tokens are often multiples of something
    const Key above = (any & ~all) >> (shift - kIndexBits) >> kDigitBits;
    if (above == 0) {
      placeByDigit(shift, plan.items);
      break;
    }
    sortByDigit(shift);
    shift += kDigitBits + std::countr_zero(above);
  }
  plan.items.swap(items_);
  for (Plan::Tail &tail : plan.tails)
    tail.item = placed_[static_cast<std::size_t>(tail.item)];
}

/// Where keys of each digit begin once they are sorted by it.
void PhaseSorter::countDigits(int shift) {
  begin_.fill(0);
  for (const Key key : keys_)
    ++begin_[digit(key, shift)];
  int sum = 0;
  for (int &begin : begin_)
    sum += std::exchange(begin, sum);
}

/// One stable pass of a radix sort.
void PhaseSorter::sortByDigit(int shift) {
  countDigits(shift);
  sorted_.resize(keys_.size());
  for (const Key key : keys_)
    sorted_[static_cast<std::size_t>(begin_[digit(key, shift)]++)] = key;
  keys_.swap(sorted_);
}

/// The last pass, which moves the items themselves.
void PhaseSorter::placeByDigit(int shift, const std::vector<abi::Item> &items) {
  constexpr Key kIndex = (Key{1} << kIndexBits) - 1;
  countDigits(shift);
  for (const Key key : keys_) {
    const auto from = static_cast<std::size_t>(key & kIndex);
    const int to = begin_[digit(key, shift)]++;
    items_[static_cast<std::size_t>(to)] = items[from];
    placed_[from] = to;
  }
}

} // namespace deft::plan
