#include "compiler/support/NearestName.h"

#include <algorithm>

namespace deft::support {
namespace {

// Longer names are machine made, and the work is quadratic.
constexpr std::size_t kMaxLength = 64;

std::size_t editDistance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> cost(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i)
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        cost[i][j] = i + j;
        continue;
      }
      std::size_t best = std::min(cost[i - 1][j], cost[i][j - 1]) + 1;
      best = std::min(best, cost[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        best = std::min(best, cost[i - 2][j - 2] + 1);
      cost[i][j] = best;
    }
  return cost[a.size()][b.size()];
}

} // namespace

std::string nearestName(std::string_view name, const std::vector<std::string> &candidates) {
  std::string best;
  std::size_t bestDistance = 0;
  if (name.size() > kMaxLength)
    return best;
  for (const std::string &candidate : candidates) {
    if (candidate == name || candidate.empty() || candidate.size() > kMaxLength)
      continue;
    std::size_t limit = std::max<std::size_t>(1, std::max(name.size(), candidate.size()) / 3);
    std::size_t distance = editDistance(name, candidate);
    // A name of one or two letters is an edit away from every other one.
    if (distance > limit || distance >= std::min(name.size(), candidate.size()))
      continue;
    if (best.empty() || distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

std::string didYouMean(std::string_view name, const std::vector<std::string> &candidates) {
  std::string near = nearestName(name, candidates);
  return near.empty() ? near : "did you mean `" + near + "`?";
}

} // namespace deft::support
