#pragma once

#include "tuner/space/Space.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Which candidates are worth the time that measuring them takes.
namespace deft::search {

/// What a candidate would take, before it is measured.
class Predictor {
public:
  virtual ~Predictor() = default;
  /// Above 0. Only ratios between points matter. None: the point cannot be planned.
  virtual std::optional<double> microseconds(const space::Point &point) = 0;
};

/// Proposes points and takes what was measured of them. The same results in the same order give the same
/// proposals: a session that is resumed goes the way that it went.
class Strategy {
public:
  virtual ~Strategy() = default;

  /// Up to `count` points, each once in the strategy's life, those most worth measuring first. None: nothing
  /// is left that promises anything.
  virtual std::vector<space::Point> propose(int count) = 0;

  /// The outcome of any point, proposed or not. No time: it cannot be used.
  virtual void tell(const space::Point &point, std::optional<double> microseconds) = 0;

  /// How many are left at most, where that is known: for a line of progress.
  virtual std::optional<long long> left() const { return std::nullopt; }
};

enum class StrategyKind { Exhaustive, Random, Guided };
std::optional<StrategyKind> strategyFromName(std::string_view name);
std::string strategyName(StrategyKind kind);

/// All points, in the order of the axes.
std::unique_ptr<Strategy> exhaustive(const space::Space &space);
/// All points in a random order.
std::unique_ptr<Strategy> random(const space::Space &space, std::uint64_t seed);
/// What the predictor ranks first, corrected by what has been measured (Surrogate), and the neighbours of the
/// best. Space and predictor must outlive it.
std::unique_ptr<Strategy> guided(const space::Space &space, Predictor &predictor);

std::unique_ptr<Strategy> makeStrategy(StrategyKind kind, const space::Space &space, Predictor &predictor,
                                       std::uint64_t seed);

} // namespace deft::search
