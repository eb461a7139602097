#pragma once

#include "runtime/plan/Reach.h"
#include "tuner/session/Tune.h"

#include <vector>

namespace deft::session {

/// A class of trees: which samples it has, those that are searched on first.
struct TreesOfClass {
  config_cache::TreeClass treeClass;
  std::vector<const Sample *> samples;
  int searched = 0; ///< so many of them; the rest is held out
};

/// The samples, and trees like them for classes that have few: see TuneOptions::addsSimilar. Held out are
/// near ones and far ones in turn. Classes are of what the mask shows.
std::vector<Sample> withSimilar(const std::vector<Sample> &samples, const plan::Reach &reach, int mostTrees);

/// Classes in their order, at most so many trees of each searched on and twice as many held out; a class
/// without a sample to search on is left out.
std::vector<TreesOfClass> groupSamples(const std::vector<Sample> &samples, const plan::Reach &reach,
                                       int mostTrees);

/// The trees of a session.
struct SessionTrees {
  std::vector<Sample> samples;       ///< those given, and others like them
  std::vector<TreesOfClass> classes; ///< of samples
};
SessionTrees treesOf(const TuneInput &input, const TuneOptions &options);

/// What making a class's inputs takes, learnt from those that were made: large ones take seconds, which are
/// not to be missed by the search.
class Openings {
public:
  /// `isShared`: the first class makes the cache of most others, too, and they are expected to take no time.
  Openings(const spec::Variant &variant, bool isShared)
      : tokenBytes_(static_cast<double>(variant.kvHeads) * variant.tensors.cacheBytes()),
        isShared_(isShared) {}

  void learn(const TreesOfClass &own, double seconds);
  double expected(const TreesOfClass &own) const { return isShared_ ? 0 : bytesOf(own) * seconds_ / bytes_; }

private:
  double bytesOf(const TreesOfClass &own) const;

  double tokenBytes_;
  bool isShared_;
  double seconds_ = 0.5, bytes_ = 1e9; ///< a first guess
};

} // namespace deft::session
