#include "tuner/search/Strategy.h"

#include <random>
#include <set>

namespace deft::search {
namespace {

/// Draws points instead of shuffling: a space may have millions of them.
class RandomStrategy : public Strategy {
public:
  RandomStrategy(const space::Space &space, std::uint64_t seed) : space_(space), engine_(seed) {}

  std::vector<space::Point> propose(int count) override {
    constexpr int kMostMisses = 10'000; // in a row: almost all points have been drawn or are illegal
    std::vector<space::Point> chosen;
    for (int misses = 0; static_cast<int>(chosen.size()) < count && misses < kMostMisses;) {
      space::Point point{below(static_cast<int>(space_.shapes().size())), {}};
      for (const space::Axis &axis : space_.axes(point.shape))
        point.at.push_back(below(static_cast<int>(axis.values.size())));
      if (space_.broken(point) || !seen_.insert(point).second) {
        ++misses;
        continue;
      }
      misses = 0;
      chosen.push_back(std::move(point));
    }
    return chosen;
  }
  void tell(const space::Point &point, std::optional<double>) override { seen_.insert(point); }

private:
  int below(int end) { return static_cast<int>(engine_() % static_cast<std::uint64_t>(end)); }

  const space::Space &space_;
  std::mt19937_64 engine_;
  std::set<space::Point> seen_;
};

} // namespace

std::unique_ptr<Strategy> random(const space::Space &space, std::uint64_t seed) {
  return std::make_unique<RandomStrategy>(space, seed);
}

} // namespace deft::search
