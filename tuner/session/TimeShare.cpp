#include "tuner/session/TimeShare.h"

#include <algorithm>

namespace deft::session {

double shareOf(std::span<const Waiting> waiting, double restSeconds) {
  double openSeconds = 0;
  int sharers = 0;
  for (const Waiting &one : waiting)
    if (one.stands == waiting.front().stands) {
      openSeconds += one.openSeconds;
      ++sharers;
    }
  return std::max(restSeconds - openSeconds, 0.0) / sharers;
}

} // namespace deft::session
