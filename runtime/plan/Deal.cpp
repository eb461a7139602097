#include "runtime/plan/Deal.h"

#include <algorithm>
#include <cstddef>
#include <functional>

namespace deft::plan {

std::array<int, kDealtWarps + 1> dealtBegins(std::span<const abi::Run> runs) {
  std::array<int, kDealtWarps + 1> begins{};
  for (std::size_t w = 0; w < kDealtWarps; ++w)
    begins[w] = runs[w].dealtBegin;
  begins.back() = static_cast<int>(runs.size());
  return begins;
}

void countDealt(abi::Item &item, std::span<const abi::Run> runs) {
  const auto begins = dealtBegins(runs);
  const auto firstToken = [&](std::size_t w) {
    return w < kDealtWarps ? runs[static_cast<std::size_t>(begins[w])].begin : item.tokens;
  };
  item.commonTokens = firstToken(0);
  int most = 0;
  for (std::size_t w = 0; w < kDealtWarps; ++w)
    most = std::max(most, firstToken(w + 1) - firstToken(w));
  item.dealtTiles = (most + kGroupTokens - 1) / kGroupTokens;
}

bool isDealtRight(const abi::Item &item, std::span<const abi::Run> runs) {
  if (runs.size() < kDealtWarps)
    return false;
  const auto begins = dealtBegins(runs);
  if (begins.front() <= 0 ||
      std::adjacent_find(begins.begin(), begins.end(), std::greater_equal<>()) != begins.end())
    return false;
  abi::Item counted = item;
  countDealt(counted, runs);
  return counted.commonTokens == item.commonTokens && counted.dealtTiles == item.dealtTiles &&
         item.dealtTiles <= 2 * kMostDealtTiles && item.commonTokens / kTileTokens <= 2 * kMostDealtTiles;
}

} // namespace deft::plan
