#include "runtime/config_cache/TreeClassifier.h"

#include <algorithm>
#include <cmath>

namespace deft::config_cache {
namespace {

using Numbers = std::array<int, TreeClass::kDimensions>;

TreeClass fromNumbers(const Numbers &numbers) {
  return {numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]};
}

double log2Of(double value) { return value > 1 ? std::log2(value) : 0; }

double shortWeight(int tokens) {
  constexpr double kRange = TreeFeatures::kShortNone - TreeFeatures::kShortAll;
  return std::clamp((TreeFeatures::kShortNone - tokens) / kRange, 0.0, 1.0);
}

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
  features.pathTokens = view.queryCount();
  for (const int position : view.queryPos)
    features.pathTokens += position;
  // A node's segments stand together.
  const plan::Segment *const end = view.segments.data() + view.segments.size();
  for (const plan::Segment *next = view.segments.data(); next != end;) {
    const int place = next->place;
    int seen = 0;
    for (; next != end && next->place == place; ++next)
      seen += next->tokens;
    features.shortTokens += seen * shortWeight(seen);
  }
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
