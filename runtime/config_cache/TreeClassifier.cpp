#include "runtime/config_cache/TreeClassifier.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace deft::config_cache {
namespace {

using Numbers = std::array<int, TreeClass::kDimensions>;

TreeClass fromNumbers(const Numbers &numbers) {
  return {numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]};
}

double log2Of(double value) { return value > 1 ? std::log2(value) : 0; }

/// What a token of a short node weighs; the sum of weights is exact.
constexpr int kWholeWeight = TreeFeatures::kShortNone - TreeFeatures::kShortAll;

int shortWeight(int tokens) { return std::clamp(TreeFeatures::kShortNone - tokens, 0, kWholeWeight); }

} // namespace

Coordinates TreeFeatures::coordinates() const {
  return {log2Of(static_cast<double>(tokens)), log2Of(queries), log2Of(sharing()), log2Of(levels),
          4 * shortShare()};
}

Coordinates TreeFeatures::place() const {
  Coordinates place = coordinates();
  for (double &number : place)
    number = std::round(1000 * number) / 1000;
  return place;
}

TreeFeatures featuresOf(const plan::TreeView &view) {
  TreeFeatures features;
  features.tokens = view.readTokens;
  features.queries = view.queryCount();
  features.levels = view.levels;
  features.pathTokens = view.pathTokens;
  // A node's segments stand together, each where the one before ends: the last one ends with what is seen.
  std::int64_t weighted = 0;
  const std::size_t count = view.segments.size();
  for (std::size_t s = 0; s < count; ++s) {
    const plan::Segment &segment = view.segments[s];
    const int seen = segment.begin + segment.tokens;
    const bool isLast = s + 1 == count || view.segments[s + 1].place != segment.place;
    weighted += isLast ? std::int64_t{seen} * shortWeight(seen) : 0;
  }
  features.shortTokens = static_cast<double>(weighted) / kWholeWeight;
  return features;
}

TreeFeatures featuresOf(const tree::BeamTree &beams) {
  TreeFeatures features;
  features.queries = beams.beams();
  features.pathTokens = std::accumulate(beams.lengths().begin(), beams.lengths().end(), std::int64_t{0});
  const std::span<const int> histories = beams.historyTokens();
  features.tokens = std::ssize(beams.stretches()) - std::ssize(histories); // each of one token
  std::int64_t weighted = features.tokens * shortWeight(1);
  for (const int tokens : histories) {
    features.tokens += tokens;
    weighted += std::int64_t{tokens} * shortWeight(tokens);
  }
  for (const int depth : beams.depths())
    features.levels = std::max(features.levels, depth);
  features.shortTokens = static_cast<double>(weighted) / kWholeWeight;
  return features;
}

TreeClass TreeClassifier::classify(const tree::KvTree &tree) { return classOf(measure(tree)); }

TreeClass classOf(const TreeFeatures &features) {
  const Coordinates at = features.coordinates();
  Numbers numbers;
  for (std::size_t i = 0; i < at.size(); ++i)
    numbers[i] = static_cast<int>(std::lround(at[i]));
  return fromNumbers(numbers);
}

TreeClass ClassFollower::follow(const TreeFeatures &features) {
  const Coordinates at = features.coordinates();
  const Numbers fresh = classOf(features).numbers();
  Numbers numbers = hasClass_ ? class_.numbers() : fresh;
  for (std::size_t i = 0; i < at.size(); ++i)
    if (std::abs(at[i] - numbers[i]) > 0.5 + kMargin)
      numbers[i] = fresh[i];
  class_ = fromNumbers(numbers);
  hasClass_ = true;
  return class_;
}

} // namespace deft::config_cache
