#pragma once

#include "compiler/config/Config.h"
#include "tuner/measure/Samples.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace deft::session {

/// How the times of several rounds are combined.
enum class Estimator {
  Median,  ///< of the rounds' ratios: for an exclusive device whose clock varies both ways
  Fastest, ///< for each tree, own and reference: for a shared machine, where others only add time
};

/// One candidate in a race.
struct Racer {
  struct Round { ///< logarithms of microseconds, for each tree
    std::vector<double> own, reference;
  };

  std::string id;
  std::vector<Round> rounds;
  bool isOut = false; ///< faulty or hopeless

  bool hasRun() const { return !rounds.empty(); }
  /// Mean over the trees of log(time / reference's time).
  double score(Estimator estimator) const;
  /// For each round, the mean over the trees of log(time / reference's time).
  std::vector<double> logRatios() const;
  /// Microseconds, as the geometric mean over the trees: its own, and the reference's.
  double ownUs(Estimator estimator) const;
  double referenceUs(Estimator estimator) const;
  /// For each round, the geometric mean over the trees of its own microseconds.
  std::vector<double> roundUs() const;
  /// The number of trees, and the results on some of them.
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

/// Makes one measurement: microseconds, or none if the candidate failed.
using MeasureOnce = std::function<std::optional<double>(const std::string &id, int tree, int round)>;
/// Called when a racer is dropped, with its time over the best one's.
using OnDrop = std::function<void(const Racer &, int round, double ratio)>;

/// Measures all racers once per round, tree by tree and next to the reference, so that changes of the
/// machine between rounds affect all equally. After each round, hopeless racers drop out. The order rotates
/// within rounds, so that no racer always follows the same other one; in every other round the reference
/// comes last. If `isStopped` returns true, it ends early with the complete rounds. False: the reference
/// failed.
bool race(Racer &reference, std::vector<Racer> &racers, const RaceOptions &options,
          const MeasureOnce &measure, const OnDrop &onDrop, const std::function<bool()> &isStopped);

/// Moves the first wanted racer to the front if it is less than `tie` behind the best and its score is below
/// `most`; both are logarithms.
void putFirst(std::vector<Racer> &racers, const std::function<bool(const Racer &)> &isWanted,
              Estimator estimator, double tie, double most);

} // namespace deft::session
