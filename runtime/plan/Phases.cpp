#include "runtime/plan/Items.h"

#include <algorithm>
#include <array>

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
  int lightBits = 0;
  while (longest >> lightBits)
    ++lightBits;
  plan.phases.assign(config.phases.size(), {});
  keys_.resize(plan.items.size());
  std::uint64_t any = 0, all = ~std::uint64_t{0};
  for (std::size_t i = 0; i < plan.items.size(); ++i) {
    const abi::Item &item = plan.items[i];
    const std::size_t phase = phaseOf(config, widest, item.queryCount * ratio);
    ++plan.phases[phase].itemCount;
    keys_[i] = {phase << lightBits | static_cast<std::uint64_t>(longest - item.tokens), static_cast<int>(i)};
    any |= keys_[i].order;
    all &= keys_[i].order;
  }
  for (std::size_t i = 1; i < plan.phases.size(); ++i)
    plan.phases[i].itemBegin = plan.phases[i - 1].itemBegin + plan.phases[i - 1].itemCount;
  const std::uint64_t differing = keys_.empty() ? 0 : any & ~all;
  for (int shift = 0; differing >> shift; shift += kDigitBits)
    if (differing >> shift & (kDigits - 1))
      sortByDigit(shift);

  items_.resize(plan.items.size());
  placed_.resize(plan.items.size());
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    items_[i] = plan.items[static_cast<std::size_t>(keys_[i].item)];
    placed_[static_cast<std::size_t>(keys_[i].item)] = static_cast<int>(i);
  }
  plan.items.swap(items_);
  for (Plan::Tail &tail : plan.tails)
    tail.item = placed_[static_cast<std::size_t>(tail.item)];
}

/// One stable pass of a radix sort.
void PhaseSorter::sortByDigit(int shift) {
  std::array<int, kDigits> begin{};
  for (const Key &key : keys_)
    ++begin[key.order >> shift & (kDigits - 1)];
  int sum = 0;
  for (int &digit : begin) {
    const int count = digit;
    digit = sum;
    sum += count;
  }
  sorted_.resize(keys_.size());
  for (const Key &key : keys_)
    sorted_[static_cast<std::size_t>(begin[key.order >> shift & (kDigits - 1)]++)] = key;
  keys_.swap(sorted_);
}

} // namespace deft::plan
