#include "runtime/plan/Spread.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace deft::plan {

namespace {

std::size_t index(int i) { return static_cast<std::size_t>(i); }

} // namespace

bool hasLastingBlocks(const config::Config &config, kernels::Families families) {
  if (config.phases.size() != 1)
    return false;
  const kernels::Family &family = kernels::familyOf(config.phases.front(), families);
  return family.device == config::DeviceKind::Gpu && family.mostWaves == 1;
}

/// Blocks between two multiples of the largest common divisor of heads and blocks get the same items, so
/// loads are counted for each such group. Places whose items begin at the same group form a column. The most
/// expensive item that is left goes to the column whose groups have the least work, of those with a place
/// left.
void ItemSpread::place(std::span<const double> us, int kvHeads, int blocks) {
  const int common = std::gcd(kvHeads, blocks), columns = blocks / common, width = kvHeads / common;
  const int count = static_cast<int>(us.size());
  byPrice_.resize(us.size());
  std::iota(byPrice_.begin(), byPrice_.end(), 0);
  std::sort(byPrice_.begin(), byPrice_.end(), [&](int a, int b) { // std::stable_sort would allocate
    return us[index(a)] != us[index(b)] ? us[index(a)] > us[index(b)] : a < b;
  });
  order_.resize(us.size());
  loads_.assign(index(columns), 0);
  places_.resize(index(columns));
  heap_.clear();
  for (int place = 0; place < std::min(columns, count); ++place) {
    const int column = static_cast<int>(static_cast<long long>(place) * width % columns);
    places_[index(column)] = place;
    heap_.push_back({0, column});
  }
  const auto isLater = [](const Column &a, const Column &b) {
    return a.us != b.us ? a.us > b.us : a.group > b.group;
  };
  std::make_heap(heap_.begin(), heap_.end(), isLater);
  for (auto item = byPrice_.begin(); item != byPrice_.end();) {
    std::pop_heap(heap_.begin(), heap_.end(), isLater);
    Column &column = heap_.back();
    // Columns that share a group with one that got an item have more work than when they were last seen.
    const double known = std::exchange(column.us, 0);
    for (int i = column.group; i < column.group + width; ++i)
      column.us = std::max(column.us, loads_[index(i % columns)]);
    if (column.us == known) {
      int &place = places_[index(column.group)];
      order_[index(place)] = *item;
      place += columns;
      for (int i = column.group; i < column.group + width; ++i)
        loads_[index(i % columns)] += us[index(*item)];
      column.us += us[index(*item)];
      ++item;
      if (place >= count) {
        heap_.pop_back();
        continue;
      }
    }
    std::push_heap(heap_.begin(), heap_.end(), isLater);
  }
}

double ItemSpread::find(std::span<const double> us, int kvHeads, int blocks) {
  order_.clear();
  if (us.empty())
    return 0;
  const double asTheyAre = busiestUs(us, kvHeads, blocks, loads_);
  if (static_cast<long long>(us.size()) * kvHeads <= blocks || kvHeads >= blocks)
    return asTheyAre; // in every order a block has one unit, or blocks have parts of all items
  const double mean = std::accumulate(us.begin(), us.end(), 0.0) * kvHeads / blocks; // no order has less
  const double most = (1 - kLeastSaved) * asTheyAre;
  if (mean > most)
    return asTheyAre;
  place(us, kvHeads, blocks);
  if (const double placed = *std::max_element(loads_.begin(), loads_.end()); placed <= most)
    return placed;
  order_.clear();
  return asTheyAre;
}

double ItemSpread::find(const CostModel &model, int kvHeads, int blocks, const Plan &plan) {
  order_.clear();
  if (plan.phases.size() != 1)
    return 0;
  prices_.resize(plan.items.size());
  for (std::size_t i = 0; i < plan.items.size(); ++i)
    prices_[i] = model.unitUs(plan, plan.items[i]);
  return find(prices_, kvHeads, blocks);
}

void ItemSpread::apply(Plan &plan) {
  if (order_.empty())
    return;
  items_.resize(plan.items.size());
  placed_.resize(plan.items.size());
  for (std::size_t i = 0; i < order_.size(); ++i) {
    items_[i] = plan.items[static_cast<std::size_t>(order_[i])];
    placed_[static_cast<std::size_t>(order_[i])] = static_cast<int>(i);
  }
  plan.items.swap(items_);
  for (Plan::Tail &tail : plan.tails)
    tail.item = placed_[static_cast<std::size_t>(tail.item)];
  plan.phases.front().isSpread = true;
}

} // namespace deft::plan
