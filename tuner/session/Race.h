#pragma once

#include "compiler/config/Config.h"
#include "tuner/measure/Samples.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace deft::session {

/// What the times of several rounds come to.
enum class Estimator {
  Median,  ///< of the rounds' ratios: a device that is alone and whose clock moves both ways
  Fastest, ///< of each tree, own and reference's: a machine on which others run, who only add
};

/// One candidate in a race.
struct Racer {
  struct Round { ///< logarithms of microseconds, of each tree
    std::vector<double> own, reference;
  };

  std::string id;
  std::vector<Round> rounds;
  bool isOut = false; ///< faulty, or hopeless

  bool hasRun() const { return !rounds.empty(); }
  /// Mean over the trees of log(time / reference's time).
  double score(Estimator estimator) const;
  /// Of each round, the mean over the trees of log(time / reference's time).
  std::vector<double> logRatios() const;
  /// Microseconds, the geometric mean over the trees: own, and the reference's.
  double ownUs(Estimator estimator) const;
  double referenceUs(Estimator estimator) const;
  /// Of each round, the geometric mean over the trees of its own microseconds.
  std::vector<double> roundUs() const;
  /// How many trees it ran on, and what it did on some of them alone.
  std::size_t trees() const { return rounds.empty() ? 0 : rounds.front().own.size(); }
  Racer on(const std::vector<std::size_t> &some) const;
};

struct RaceOptions {
  int treeBegin = 0, treeEnd = 1;
  int firstRound = 0;
  int rounds = 5;
  bool dropsHopeless = true;
  Estimator estimator = Estimator::Median;
};

/// How a race asks for one measurement: microseconds, or none where the candidate failed.
using MeasureOnce = std::function<std::optional<double>(const std::string &id, int tree, int round)>;
/// Told of a racer that is given up: its time over the best one's.
using OnDrop = std::function<void(const Racer &, int round, double ratio)>;

/// Measures all racers once a round, tree by tree and beside the reference, so that what changes in the
/// machine from round to round meets all alike. From round to round the hopeless leave. The order within a
/// round turns, so that nobody always comes after the same other; in every other round the reference is the
/// last. Ends early, with the whole rounds that there are, when `isStopped` says so. False: the reference
/// failed.
bool race(Racer &reference, std::vector<Racer> &racers, const RaceOptions &options,
          const MeasureOnce &measure, const OnDrop &onDrop, const std::function<bool()> &isStopped);

/// The first racer that is wanted comes before all others where it is less than `tie` behind the best and its
/// score is below `most`, both logarithms.
void putFirst(std::vector<Racer> &racers, const std::function<bool(const Racer &)> &isWanted,
              Estimator estimator, double tie, double most);

} // namespace deft::session
