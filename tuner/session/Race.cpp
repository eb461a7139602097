#include "tuner/session/Race.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace deft::session {
namespace {

/// How much slower than the best a racer may be after so many rounds to stay: one disturbed round must not
/// throw out a good one, and later rounds tell more.
double mostBehind(int rounds) { return rounds <= 1 ? 0.35 : rounds == 2 ? 0.12 : 0.05; }

} // namespace

bool race(Racer &reference, std::vector<Racer> &racers, const RaceOptions &options,
          const MeasureOnce &measure, const OnDrop &onDrop, const std::function<bool()> &isStopped) {
  const double share = 1.0 / (options.treeEnd - options.treeBegin);
  std::vector<Racer *> all{&reference};
  for (Racer &racer : racers)
    all.push_back(&racer);
  for (int i = 0; i < options.rounds; ++i) {
    const int round = options.firstRound + i;
    std::vector<double> logUs(all.size(), 0);
    for (int tree = options.treeBegin; tree < options.treeEnd; ++tree)
      for (std::size_t k = 0; k < all.size(); ++k) {
        // The racers' turn, with the reference before them or behind.
        std::size_t at = round % 2 == 0 ? k : (k + 1) % all.size();
        if (at > 0)
          at = 1 + (at - 1 + static_cast<std::size_t>(round)) % racers.size();
        Racer &racer = *all[at];
        if (racer.isOut)
          continue;
        if (isStopped())
          return true;
        if (const std::optional<double> us = measure(racer.id, tree, round))
          logUs[at] += share * std::log(*us);
        else if (isStopped())
          return true;
        else if (at == 0)
          return false;
        else
          racer.isOut = true;
      }
    double best = 0; // the reference's
    for (std::size_t k = 0; k < all.size(); ++k) {
      if (all[k]->isOut)
        continue;
      all[k]->logUs.push_back(logUs[k]);
      all[k]->logRatios.push_back(logUs[k] - logUs[0]);
      best = std::min(best, all[k]->score());
    }
    if (!options.dropsHopeless || i + 1 == options.rounds)
      continue;
    for (Racer &racer : racers)
      if (!racer.isOut && racer.score() > best + mostBehind(i + 1)) {
        racer.isOut = true;
        onDrop(racer, round, std::exp(racer.score() - best));
      }
    if (std::all_of(racers.begin(), racers.end(), [](const Racer &racer) { return racer.isOut; }))
      break;
  }
  return true;
}

} // namespace deft::session
