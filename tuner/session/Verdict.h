#pragma once

#include "tuner/session/ClassTrees.h"
#include "tuner/session/Race.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace deft::session {

/// What a class gets, as one finalist's confirmation has it.
struct Verdict {
  config::Config config; ///< the finalist's, or the untuned one
  bool keepsUntuned = false;
  /// No other finalist has to be asked; else one may do better.
  bool isSettled = false;
  std::vector<std::size_t> trees; ///< of those that were searched on, the ones that the config is for
  /// Not empty: it is for trees like these alone, up to `within`.
  std::vector<config_cache::Coordinates> onlyFor;
  double within = config_cache::kLikeness;
  config_cache::Measurement measurement;
  double gain = 1, gainError = 0;
  std::optional<double> heldOutGain;
  std::string note;
};

/// Judges the finalists of one class by what they did against the untuned choice. A finalist that is clearly
/// faster wins, also on trees that nobody searched on. One that loses on some trees is for the searched ones
/// that it does not lose on and others like them alone, up to half way to those that it loses on, if none of
/// these is next to them, and one of them was given.
class ClassJudge {
public:
  ClassJudge(const TreesOfClass &trees, const config::Config &untuned, double untunedUs, Estimator estimator)
      : trees_(trees), untuned_(untuned), untunedUs_(untunedUs), estimator_(estimator) {}

  /// There is no finalist.
  Verdict nothingFaster() const;
  /// `raced` on the trees that were searched on. Where trees were held out, a finalist that passes has to
  /// prove itself on these, too.
  Verdict onSearched(const config::Config &finalist, const Racer &raced) const;
  /// `verdict` of onSearched(), not to keep the untuned choice; `raced` on the trees that were held out.
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

/// Confirms finalists in turn, until it is settled what the class gets; where that is the untuned choice,
/// those of `others` that are no finalists, which may be for some of its trees. A config for some trees is
/// kept where nothing is found for all. None: `mayTry` let not even the first one be confirmed.
std::optional<Verdict> firstSettled(const std::vector<std::string> &finalists,
                                    const std::vector<std::string> &others,
                                    const std::function<Verdict(const std::string &id, int attempt)> &confirm,
                                    const std::function<bool(int attempt)> &mayTry);

} // namespace deft::session
