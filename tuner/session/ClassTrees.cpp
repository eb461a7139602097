#include "tuner/session/ClassTrees.h"

#include "runtime/config_cache/TreeClassifier.h"
#include "runtime/exec/ParamRanges.h"
#include "tuner/workload/Similar.h"

#include <algorithm>
#include <map>

namespace deft::session {

using config_cache::TreeClass;

namespace {

/// The number of held-out trees for each searched one: only a winner is measured on them, and users meet
/// every loss that they do not reveal.
constexpr int kHeldOut = 2;

} // namespace

std::vector<Sample> withSimilar(const std::vector<Sample> &samples, const plan::Reach &reach, int mostTrees) {
  struct Own {
    std::vector<const Sample *> searched;
    int heldOut = 0;
  };
  std::map<TreeClass, Own> classes;
  config_cache::TreeClassifier classifier(reach);
  for (const Sample &sample : samples) {
    Own &own = classes[classifier.classify(sample.tree)];
    if (sample.isHeldOut)
      ++own.heldOut;
    else
      own.searched.push_back(&sample);
  }
  std::vector<Sample> all = samples;
  for (const auto &[treeClass, own] : classes) {
    const std::uint64_t count = own.searched.size();
    int toSearch = count == 1 && mostTrees > 1 ? 1 : 0, toHold = kHeldOut * mostTrees - own.heldOut;
    constexpr std::uint64_t kMostTries = 60; // some similar trees belong to another class
    constexpr std::uint64_t kFirst = 2;      // seed 1
    for (std::uint64_t i = kFirst; count > 0 && i < kMostTries && toSearch + std::max(toHold, 0) > 0; ++i) {
      const std::uint64_t seed = workload::mixedSeed(i);
      if (toSearch > 0 && seed >= workload::kFarSeeds)
        continue;
      const Sample &like = *own.searched[i / 2 % count];
      Sample sample{like.name, like.seed, workload::similarTree(like.tree, seed), toSearch == 0, seed};
      if (!(classifier.classify(sample.tree) == treeClass))
        continue;
      all.push_back(std::move(sample));
      --(toSearch > 0 ? toSearch : toHold);
    }
  }
  return all;
}

std::vector<TreesOfClass> groupSamples(const std::vector<Sample> &samples, const plan::Reach &reach,
                                       int mostTrees) {
  std::map<TreeClass, std::vector<const Sample *>> searched, heldOut;
  config_cache::TreeClassifier classifier(reach);
  for (const Sample &sample : samples)
    (sample.isHeldOut ? heldOut : searched)[classifier.classify(sample.tree)].push_back(&sample);
  std::vector<TreesOfClass> classes;
  // Evenly spaced, including the first and the last.
  const auto some = [](const std::vector<const Sample *> &all, int most, std::vector<const Sample *> &to) {
    const std::size_t count = std::min(all.size(), static_cast<std::size_t>(std::max(most, 1)));
    for (std::size_t i = 0; i < count; ++i)
      to.push_back(all[count > 1 ? i * (all.size() - 1) / (count - 1) : all.size() / 2]);
  };
  for (const auto &[treeClass, own] : searched) {
    TreesOfClass one{treeClass, {}, 0};
    some(own, mostTrees, one.samples);
    one.searched = static_cast<int>(one.samples.size());
    if (const auto found = heldOut.find(treeClass); found != heldOut.end())
      some(found->second, kHeldOut * mostTrees, one.samples);
    classes.push_back(std::move(one));
  }
  return classes;
}

SessionTrees treesOf(const TuneInput &input, const TuneOptions &options) {
  const plan::Reach reach = exec::reachOf(input.variant, input.params);
  const bool isOfNamesAlone = !options.recordFolder.empty(); // a recording names its trees
  SessionTrees trees;
  trees.samples = options.addsSimilar && !isOfNamesAlone
                      ? withSimilar(input.samples, reach, options.mostTrees)
                      : input.samples;
  trees.classes = groupSamples(trees.samples, reach, options.mostTrees);
  return trees;
}

void Openings::learn(const TreesOfClass &own, double seconds) {
  constexpr double kLeast = 64e6; // below this, the bytes do not dominate the time
  if (seconds <= 0 || bytesOf(own) < kLeast)
    return;
  seconds_ += seconds;
  bytes_ += bytesOf(own);
}

double Openings::bytesOf(const TreesOfClass &own) const {
  double tokens = 0;
  for (const Sample *sample : own.samples)
    tokens = std::max(tokens, static_cast<double>(sample->tree.tokens()));
  return tokens * tokenBytes_;
}

} // namespace deft::session
