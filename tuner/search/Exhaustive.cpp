#include "tuner/search/Strategy.h"

#include <algorithm>
#include <array>

namespace deft::search {
namespace {

class ExhaustiveStrategy : public Strategy {
public:
  explicit ExhaustiveStrategy(const space::Space &space) : points_(space.points()) {}

  std::vector<space::Point> propose(int count) override {
    const std::size_t end = std::min(points_.size(), next_ + static_cast<std::size_t>(count));
    std::vector<space::Point> chosen(points_.begin() + static_cast<std::ptrdiff_t>(next_),
                                     points_.begin() + static_cast<std::ptrdiff_t>(end));
    next_ = end;
    return chosen;
  }
  void tell(const space::Point &, std::optional<double>) override {}
  std::optional<long long> left() const override { return static_cast<long long>(points_.size() - next_); }

private:
  std::vector<space::Point> points_;
  std::size_t next_ = 0;
};

struct StrategyWord {
  StrategyKind kind;
  const char *word;
};
constexpr std::array<StrategyWord, 3> kStrategies{{{StrategyKind::Exhaustive, "exhaustive"},
                                                   {StrategyKind::Random, "random"},
                                                   {StrategyKind::Guided, "guided"}}};

} // namespace

std::optional<StrategyKind> strategyFromName(std::string_view name) {
  for (const StrategyWord &strategy : kStrategies)
    if (name == strategy.word)
      return strategy.kind;
  return std::nullopt;
}

std::string strategyName(StrategyKind kind) {
  return std::find_if(kStrategies.begin(), kStrategies.end(),
                      [&](const StrategyWord &strategy) { return strategy.kind == kind; })
      ->word;
}

std::unique_ptr<Strategy> exhaustive(const space::Space &space) {
  return std::make_unique<ExhaustiveStrategy>(space);
}

std::unique_ptr<Strategy> makeStrategy(StrategyKind kind, const space::Space &space, Predictor &predictor,
                                       std::uint64_t seed) {
  switch (kind) {
  case StrategyKind::Exhaustive:
    return exhaustive(space);
  case StrategyKind::Random:
    return random(space, seed);
  case StrategyKind::Guided:
    break;
  }
  return guided(space, predictor);
}

} // namespace deft::search
