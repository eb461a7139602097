#include "tuner/session/Race.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace deft::session {
namespace {

/// How far behind the best a racer may be after `rounds` rounds: one disturbed round must not drop a good
/// one, and later rounds are more reliable.
double mostBehind(int rounds) { return rounds <= 1 ? 0.35 : rounds == 2 ? 0.12 : 0.05; }

double meanOf(const std::vector<double> &values) {
  return std::accumulate(values.begin(), values.end(), 0.0) /
         static_cast<double>(std::max<std::size_t>(values.size(), 1));
}

/// The geometric mean over the trees of one row in the rounds, as a logarithm.
double logOf(const std::vector<Racer::Round> &rounds, std::vector<double> Racer::Round::*row,
             Estimator estimator) {
  std::vector<double> values;
  if (estimator == Estimator::Median) {
    for (const Racer::Round &round : rounds)
      values.push_back(meanOf(round.*row));
    return measure::median(values);
  }
  for (std::size_t tree = 0; !rounds.empty() && tree < (rounds.front().*row).size(); ++tree) {
    double least = (rounds.front().*row)[tree];
    for (const Racer::Round &round : rounds)
      least = std::min(least, (round.*row)[tree]);
    values.push_back(least);
  }
  return meanOf(values);
}

} // namespace

std::vector<double> Racer::logRatios() const {
  std::vector<double> ratios;
  ratios.reserve(rounds.size());
  for (const Round &round : rounds)
    ratios.push_back(meanOf(round.own) - meanOf(round.reference));
  return ratios;
}

double Racer::score(Estimator estimator) const {
  return estimator == Estimator::Median
             ? measure::median(logRatios())
             : logOf(rounds, &Round::own, estimator) - logOf(rounds, &Round::reference, estimator);
}

double Racer::ownUs(Estimator estimator) const { return std::exp(logOf(rounds, &Round::own, estimator)); }
double Racer::referenceUs(Estimator estimator) const {
  return std::exp(logOf(rounds, &Round::reference, estimator));
}

std::vector<double> Racer::roundUs() const {
  std::vector<double> us;
  us.reserve(rounds.size());
  for (const Round &round : rounds)
    us.push_back(std::exp(meanOf(round.own)));
  return us;
}

Racer Racer::on(const std::vector<std::size_t> &some) const {
  Racer racer{id, {}, isOut};
  for (const Round &round : rounds) {
    Round &part = racer.rounds.emplace_back();
    for (const std::size_t tree : some) {
      part.own.push_back(round.own[tree]);
      part.reference.push_back(round.reference[tree]);
    }
  }
  return racer;
}

bool race(Racer &reference, std::vector<Racer> &racers, const RaceOptions &options,
          const MeasureOnce &measure, const OnDrop &onDrop, const std::function<bool()> &isStopped) {
  std::vector<Racer *> all{&reference};
  for (Racer &racer : racers)
    all.push_back(&racer);
  for (int i = 0; i < options.rounds; ++i) {
    const int round = options.firstRound + i;
    std::vector<std::vector<double>> logUs(all.size());
    for (int tree = options.treeBegin; tree < options.treeEnd; ++tree)
      for (std::size_t k = 0; k < all.size(); ++k) {
        // The racers rotate, with the reference before or after them.
        std::size_t at = round % 2 == 0 ? k : (k + 1) % all.size();
        if (at > 0)
          at = 1 + (at - 1 + static_cast<std::size_t>(round)) % racers.size();
        Racer &racer = *all[at];
        if (racer.isOut)
          continue;
        if (isStopped())
          return true;
        if (const std::optional<double> us = measure(racer.id, tree, round))
          logUs[at].push_back(std::log(*us));
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
      all[k]->rounds.push_back({logUs[k], logUs[0]});
      best = std::min(best, all[k]->score(options.estimator));
    }
    if (!options.dropsHopeless || i + 1 == options.rounds)
      continue;
    for (Racer &racer : racers)
      if (!racer.isOut && racer.score(options.estimator) > best + mostBehind(i + 1)) {
        racer.isOut = true;
        onDrop(racer, round, std::exp(racer.score(options.estimator) - best));
      }
    if (std::all_of(racers.begin(), racers.end(), [](const Racer &racer) { return racer.isOut; }))
      break;
  }
  return true;
}

void putFirst(std::vector<Racer> &racers, const std::function<bool(const Racer &)> &isWanted,
              Estimator estimator, double tie, double most) {
  if (racers.empty())
    return;
  double best = racers.front().score(estimator);
  for (const Racer &racer : racers)
    best = std::min(best, racer.score(estimator));
  const auto wanted = std::find_if(racers.begin(), racers.end(), [&](const Racer &racer) {
    return racer.score(estimator) < std::min(best + tie, most) && isWanted(racer);
  });
  if (wanted != racers.end())
    std::rotate(racers.begin(), wanted, wanted + 1);
}

} // namespace deft::session
