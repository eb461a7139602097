#include "tools/deftc/compare/CompareRace.h"

#include "tools/deftc/common/Progress.h"
#include "tuner/measure/Samples.h"

#include <algorithm>
#include <chrono>

namespace deft::cli {

using Clock = std::chrono::steady_clock;

namespace {

constexpr int kMostRounds = 15, kFewestRounds = 3;
constexpr double kEnoughSeconds = 20; ///< where nobody says how many rounds
constexpr int kRepeats = 3;           ///< of a racer in a round

} // namespace

support::Result<int> race(Context &context, std::span<CompareRacer> racers, int rounds,
                          const std::string &what) {
  Progress progress(context, what);
  exec::Outputs outputs;
  const auto start = Clock::now();
  const bool isOpen = rounds == 0;
  if (isOpen)
    rounds = kMostRounds;
  const auto count = std::ssize(racers);
  for (int round = 0; round < rounds; ++round) {
    for (long long i = 0; i < count; ++i) {
      progress.at(round * count + i, rounds * count);
      CompareRacer &racer = racers[static_cast<std::size_t>(round % 2 == 0 ? i : count - 1 - i)];
      if (!racer.isRunnable())
        continue;
      const auto times = racer.backend->run(racer.plan, outputs, kRepeats);
      if (!times)
        return times.error();
      racer.us.push_back(times->medianUs);
    }
    if (round == 0 && isOpen) {
      const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
      rounds =
          static_cast<int>(std::clamp(kEnoughSeconds / std::max(seconds, 1e-3),
                                      static_cast<double>(kFewestRounds), static_cast<double>(kMostRounds)));
    }
  }
  for (CompareRacer &racer : racers)
    if (racer.isRunnable()) {
      racer.row.medianUs = measure::median(racer.us);
      racer.row.leastUs = *std::min_element(racer.us.begin(), racer.us.end());
      racer.row.mostUs = *std::max_element(racer.us.begin(), racer.us.end());
    }
  return rounds;
}

} // namespace deft::cli
