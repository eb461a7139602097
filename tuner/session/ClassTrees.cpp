#include "tuner/session/ClassTrees.h"

#include "runtime/config_cache/TreeClassifier.h"

#include <algorithm>
#include <map>

namespace deft::session {

using config_cache::TreeClass;

std::vector<TreesOfClass> groupSamples(const std::vector<Sample> &samples, int mostTrees) {
  std::map<TreeClass, std::vector<const Sample *>> searched, heldOut;
  config_cache::TreeClassifier classifier;
  for (const Sample &sample : samples)
    (sample.isHeldOut ? heldOut : searched)[classifier.classify(sample.tree)].push_back(&sample);
  std::vector<TreesOfClass> classes;
  // Evenly out of many, the first and the last included.
  const auto some = [&](const std::vector<const Sample *> &all, std::vector<const Sample *> &to) {
    const std::size_t count = std::min(all.size(), static_cast<std::size_t>(std::max(mostTrees, 1)));
    for (std::size_t i = 0; i < count; ++i)
      to.push_back(all[count > 1 ? i * (all.size() - 1) / (count - 1) : all.size() / 2]);
  };
  for (const auto &[treeClass, own] : searched) {
    TreesOfClass one{treeClass, {}, 0};
    some(own, one.samples);
    one.searched = static_cast<int>(one.samples.size());
    if (const auto found = heldOut.find(treeClass); found != heldOut.end())
      some(found->second, one.samples);
    classes.push_back(std::move(one));
  }
  return classes;
}

void Openings::learn(const TreesOfClass &own, double seconds) {
  constexpr double kLeast = 64e6; // below, it is not the bytes that take the time
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
