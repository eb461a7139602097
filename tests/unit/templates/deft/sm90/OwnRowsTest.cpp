#include "tests/device/AttendCase.h"

#include "deft/attend_sm90.cuh"
#include "tests/device/DeviceConfig.h"
#include "tests/device/TokenValues.h"

#include <gtest/gtest.h>

namespace deft::sm90 {
namespace {

using test::draw;

template <class E, int kDim, int kPage, int kStagesOf = 4> struct Tall : test::TallConfig {
  using Query = E;
  using Key = E;
  using Value = E;
  using Output = E;
  static constexpr int kKeyDim = kDim, kValueDim = kDim, kPageSize = kPage, kStages = kStagesOf;
};
template <class Base> struct Dealt : Base {
  static constexpr bool kIsDealt = true;
};
template <class Base> struct OfSixteenHeads : Base {
  static constexpr int kQueryHeads = 32, kRatio = 16;
};
template <class Base> struct GivingWorth : Base {
  static constexpr int kWorthGroups = 2;
};

/// Items of one, two and three warpgroups' rows, whose units follow each other in any order. Those of few
/// tokens let warpgroups without rows run ahead as far as they can.
template <class Config, class Variant = test::PlainVariant>
void attendAll(unsigned seed, const typename Variant::Params &params = {}) {
  test::AttendCase<Config, Variant> launch(seed, params);
  std::mt19937 &random = launch.random();
  for (int i = 0, items = draw(random, 2, 6); i < items; ++i) {
    if (kReadsDealt<Config> && draw(random, 0, 2) == 0) {
      launch.add(test::randomDealtItem(random, launch.places(), 4));
      continue;
    }
    const int groups = draw(random, 1, 3);
    launch.add(
        test::randomItem(random, {.queries = draw(random, (groups - 1) * kPieceRows / Config::kRatio + 1,
                                                  groups * kPieceRows / Config::kRatio),
                                  .runs = draw(random, 1, 12),
                                  .mostTokens = draw(random, 0, 1) == 0 ? 4 : draw(random, 1, 160),
                                  .places = launch.places()}));
  }
  if (draw(random, 0, 2) == 0)
    launch.addEnd();
  if (draw(random, 0, 2) > 0)
    launch.giveMaps();
  launch.check(3, smemBytes<Config>(), [](const abi::AttendArgs &args, const auto &given) {
    sm90::attend<Config, Variant>(args, given);
  });
}

TEST(OwnRowsTest, EachWarpgroupAttendsToItsOwnRows) {
  for (unsigned seed = 0; seed < 6; ++seed) {
    attendAll<Tall<f16, 128, 1>>(seed);
    attendAll<Tall<bf16, 128, 16, 3>>(seed);
    attendAll<OfSixteenHeads<Tall<bf16, 128, 0>>>(seed);
    attendAll<Tall<f16, 64, 64, 2>>(seed); // queries are in registers
    attendAll<Tall<f16, 80, 0>>(seed);
  }
}

TEST(OwnRowsTest, ItGoesWithWhatSpecsAndPlansSay) {
  for (unsigned seed = 0; seed < 3; ++seed) {
    attendAll<Tall<f16, 128, 1>, test::WindowVariant>(seed, {300});
    attendAll<Tall<f16, 128, 0>, test::CappedVariant>(seed);
    attendAll<Tall<bf16, 128, 16>, test::SlopedVariant>(seed);
    attendAll<Tall<bf16, 128, 1>, test::SunkVariant>(seed);
    attendAll<Tall<f16, 64, 16>, test::GatedVariant>(seed);
    attendAll<Dealt<Tall<f16, 128, 16>>>(seed);
    attendAll<GivingWorth<Tall<f16, 128, 0>>>(seed);
    const test::Documents arrays(seed);
    attendAll<test::OfTokens<Tall<bf16, 128, 16>>, test::TokensVariant>(seed, arrays.params());
  }
}

} // namespace
} // namespace deft::sm90
