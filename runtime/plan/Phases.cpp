#include "runtime/plan/Items.h"

#include <algorithm>
#include <array>
#include <bit>

namespace deft::plan {

namespace {

/// A phase serves what its tile can hold, whatever the bounds of the schedule say.
std::size_t phaseOf(const config::Config &config, std::size_t widest, int rows) {
  std::size_t chosen = 0;
  while (chosen + 1 < config.phases.size() && rows <= config.phases[chosen].rowsAbove)
    ++chosen;
  return config.phases[chosen].tileQ >= rows ? chosen : widest;
}

constexpr int kDigitBits = 8;
constexpr std::uint64_t kDigits = 1 << kDigitBits;

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
  Key differing = any & ~all;
  for (int shift = kIndexBits; differing != 0;) {
    const int skipped = std::countr_zero(differing); // tokens are often multiples of something
    shift += skipped;
    differing >>= skipped;
    sortByDigit(shift);
    shift += kDigitBits;
    differing >>= kDigitBits;
  }

  items_.resize(plan.items.size());
  placed_.resize(plan.items.size());
  constexpr Key kIndex = (Key{1} << kIndexBits) - 1;
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    const auto from = static_cast<std::size_t>(keys_[i] & kIndex);
    items_[i] = plan.items[from];
    placed_[from] = static_cast<int>(i);
  }
  plan.items.swap(items_);
  for (Plan::Tail &tail : plan.tails)
    tail.item = placed_[static_cast<std::size_t>(tail.item)];
}

/// One stable pass of a radix sort.
void PhaseSorter::sortByDigit(int shift) {
  std::array<int, kDigits> begin{};
  for (const Key key : keys_)
    ++begin[key >> shift & (kDigits - 1)];
  int sum = 0;
  for (int &digit : begin) {
    const int count = digit;
    digit = sum;
    sum += count;
  }
  sorted_.resize(keys_.size());
  for (const Key key : keys_)
    sorted_[static_cast<std::size_t>(begin[key >> shift & (kDigits - 1)]++)] = key;
  keys_.swap(sorted_);
}

} // namespace deft::plan
