#pragma once

#include "runtime/plan/Reach.h"
#include "tuner/session/Tune.h"

#include <vector>

namespace deft::session {

/// A class of trees with its samples; those that are searched on come first.
struct TreesOfClass {
  config_cache::TreeClass treeClass;
  std::vector<const Sample *> samples;
  int searched = 0; ///< the number of samples to search on; the others are held out
};

/// The samples, and similar trees for classes with few: see TuneOptions::addsSimilar. Held-out ones are near
/// and far in turn. Classes consider only tokens that the mask shows.
std::vector<Sample> withSimilar(const std::vector<Sample> &samples, const plan::Reach &reach, int mostTrees);

/// Classes in order, each with at most `mostTrees` trees to search on and twice as many held out; omits
/// classes without a sample to search on.
std::vector<TreesOfClass> groupSamples(const std::vector<Sample> &samples, const plan::Reach &reach,
                                       int mostTrees);

/// The trees of a session.
struct SessionTrees {
  std::vector<Sample> samples;       ///< the given ones, and similar ones
  std::vector<TreesOfClass> classes; ///< of samples
};
SessionTrees treesOf(const TuneInput &input, const TuneOptions &options);

/// Learns the time for making a class's inputs from earlier classes: large inputs take seconds, which must
/// not reduce the search's time.
class Openings {
public:
  /// `isShared`: the first class also makes the cache for most others, which then take no time.
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
