#include "tuner/session/TimeShare.h"

#include <algorithm>
#include <numeric>

namespace deft::session {

std::vector<int> turnsOf(std::span<const Standing> classes) {
  std::vector<int> turns(classes.size());
  std::iota(turns.begin(), turns.end(), 0);
  std::stable_partition(turns.begin(), turns.end(),
                        [&](int i) { return classes[static_cast<std::size_t>(i)] == Standing::New; });
  return turns;
}

double shareOf(std::span<const WaitingClass> waiting, double restSeconds) {
  double openSeconds = 0;
  int sharers = 0;
  for (const WaitingClass &one : waiting)
    if (one.standing == waiting.front().standing) {
      openSeconds += one.openSeconds;
      ++sharers;
    }
  return std::max(restSeconds - openSeconds, 0.0) / sharers;
}

} // namespace deft::session
