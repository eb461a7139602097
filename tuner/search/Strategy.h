#pragma once

#include "tuner/space/Space.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Decides which candidates are worth measuring.
namespace deft::search {

/// Predicts the time of a candidate before it is measured.
class Predictor {
public:
  virtual ~Predictor() = default;
  /// Above 0. Only ratios between points matter. None: the point has no plan.
  virtual std::optional<double> microseconds(const space::Point &point) = 0;
};

/// Proposes points and receives their measurements. The same results in the same order give the same
/// proposals: a resumed session repeats its course.
class Strategy {
public:
  virtual ~Strategy() = default;

  /// Up to `count` points, the most promising first; no point is proposed twice. None: no promising point is
  /// left.
  virtual std::vector<space::Point> propose(int count) = 0;

  /// The outcome of any point, proposed or not. No time: it is unusable.
  virtual void tell(const space::Point &point, std::optional<double> microseconds) = 0;

  /// The largest number of points left, if known: for a progress line.
  virtual std::optional<long long> left() const { return std::nullopt; }
};

enum class StrategyKind { Exhaustive, Random, Guided };
std::optional<StrategyKind> strategyFromName(std::string_view name);
std::string strategyName(StrategyKind kind);

/// All points, in the order of the axes.
std::unique_ptr<Strategy> exhaustive(const space::Space &space);
/// All points in a random order.
std::unique_ptr<Strategy> random(const space::Space &space, std::uint64_t seed);
/// The predictor's ranking, corrected by measurements (Surrogate), and the neighbours of the best. Space and
/// predictor must outlive it.
std::unique_ptr<Strategy> guided(const space::Space &space, Predictor &predictor);

std::unique_ptr<Strategy> makeStrategy(StrategyKind kind, const space::Space &space, Predictor &predictor,
                                       std::uint64_t seed);

} // namespace deft::search
