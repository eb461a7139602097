#pragma once

#include "tuner/session/ClassTrees.h"
#include "tuner/session/Race.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace deft::session {

/// A class's config, by one finalist's confirmation.
struct Verdict {
  config::Config config; ///< the finalist's, or the untuned one
  bool keepsUntuned = false;
  /// No other finalist needs to be tried; if false, another may do better.
  bool isSettled = false;
  std::vector<std::size_t> trees; ///< of the searched ones, those that the config is for
  /// Not empty: it is only for trees like these, up to `within`.
  std::vector<config_cache::Coordinates> onlyFor;
  double within = config_cache::kLikeness;
  config_cache::Measurement measurement;
  double gain = 1, gainError = 0;
  std::optional<double> heldOutGain;
  std::string note;
};

/// Judges the finalists of one class by their times against the untuned choice. A clearly faster finalist
/// wins, also on held-out trees. One that loses on some trees serves only the searched trees on which it does
/// not lose, and similar ones, up to half the distance to those where it loses. That requires that none of
/// these is a direct neighbour, and that one of the trees was given.
class ClassJudge {
public:
  ClassJudge(const TreesOfClass &trees, const config::Config &untuned, double untunedUs, Estimator estimator)
      : trees_(trees), untuned_(untuned), untunedUs_(untunedUs), estimator_(estimator) {}

  /// For a class without finalists.
  Verdict nothingFaster() const;
  /// `raced`: on the searched trees. If trees are held out, a finalist that passes must be tested on these as
  /// well.
  Verdict onSearched(const config::Config &finalist, const Racer &raced) const;
  /// `verdict`: from onSearched(), not the untuned choice; `raced`: on the held-out trees.
  Verdict onHeldOut(Verdict verdict, const Racer &raced) const;

private:
  Verdict keepUntuned(Verdict verdict, const std::string &why) const;
  Verdict settled(Verdict verdict) const;
  bool narrow(Verdict &verdict, const std::vector<std::size_t> &slower) const;
  bool isClearlyFaster(const Racer &racer) const;
  std::vector<config_cache::Coordinates> placesOf(const std::vector<std::size_t> &trees) const;
  config_cache::Measurement measurementOf(const Racer &racer) const;

  const TreesOfClass &trees_;
  const config::Config &untuned_;
  double untunedUs_;
  Estimator estimator_;
};

/// Confirms finalists in turn, until the class's config is settled. If that is the untuned choice, it tries
/// the `others` that are no finalists, which may suit some trees. A config for some trees is kept if none is
/// found for all. None: `mayTry` prevented even the first confirmation.
std::optional<Verdict> firstSettled(const std::vector<std::string> &finalists,
                                    const std::vector<std::string> &others,
                                    const std::function<Verdict(const std::string &id, int attempt)> &confirm,
                                    const std::function<bool(int attempt)> &mayTry);

} // namespace deft::session
