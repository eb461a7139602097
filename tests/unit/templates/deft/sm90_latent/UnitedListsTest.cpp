#include "tests/device/AttendCase.h"

#include "deft/attend_sm90_latent.cuh"
#include "deft/sm90_latent/united_lists.cuh"
#include "tests/device/DeviceConfig.h"

#include <gtest/gtest.h>

namespace deft::sm90_latent {
namespace {

using test::draw;

/// Unions of lists that are handed over, of queries with so many heads.
template <class E, int kHeads, int kPage, int kColumns = 256> struct United : test::DeviceConfig {
  using Query = E;
  using Key = E;
  using Value = E;
  using Output = E;
  static constexpr bool kIsLatent = true, kListsAreGiven = true, kReadsUnions = true;
  static constexpr int kQueryHeads = kHeads, kKvHeads = 1, kRatio = kHeads, kLists = 1;
  static constexpr int kKeyDim = kColumns + 64, kValueDim = kColumns, kPageSize = kPage;
  static constexpr int kTileQ = 64, kTileKv = 64, kStages = 2, kWarps = 12;
};
template <class Config> struct OfBytes : Config {
  using Key = e4m3;
  using Value = e4m3;
  static constexpr int kScaleColumns = 64, kWarps = 16;
};

template <class Config, class Variant = test::PlainVariant>
void attendUnions(unsigned seed, const typename Variant::Params &params = {}) {
  test::AttendCase<Config, Variant> launch(seed, params);
  std::mt19937 &random = launch.random();
  constexpr int kMost = std::min(Config::kTileQ / Config::kRatio, abi::kMostGivenUnited);
  for (int items = draw(random, 1, 3); items > 0; --items)
    launch.add(test::randomItem(random, {.queries = draw(random, 1, kMost),
                                         .runs = draw(random, 1, 8),
                                         .mostTokens = draw(random, 1, 160),
                                         .places = launch.places()}));
  if (draw(random, 0, 2) == 0)
    launch.addEnd();
  launch.check(3, smemBytes<Config>(), [](const abi::AttendArgs &args, const auto &given) {
    sm90_latent::attend<Config, Variant>(args, given);
  });
}

TEST(Sm90LatentUnitedListsTest, UnionsAreAttended) {
  for (unsigned seed = 0; seed < 6; ++seed) {
    attendUnions<United<bf16, 16, 64>>(seed);
    attendUnions<United<f16, 5, 1>>(seed);
    attendUnions<United<f16, 1, 16>>(seed); // 16 queries
    attendUnions<United<bf16, 8, 0>>(seed);
    attendUnions<United<bf16, 32, 7>>(seed);
  }
  attendUnions<United<bf16, 16, 64, 512>>(0);
}

TEST(Sm90LatentUnitedListsTest, UnionsGoWithHooks) {
  for (unsigned seed = 0; seed < 4; ++seed) {
    attendUnions<United<f16, 4, 64>, test::SunkVariant>(seed);
    attendUnions<United<f16, 12, 16>, test::GatedVariant>(seed);
    attendUnions<United<f16, 4, 1>, test::CappedVariant>(seed);
    attendUnions<United<bf16, 16, 32>, test::SigmoidVariant>(seed);
    attendUnions<United<bf16, 8, 64>, test::SteepVariant>(seed);
  }
}

TEST(Sm90LatentUnitedListsTest, UnionsAreOfBytes) {
  for (unsigned seed = 0; seed < 4; ++seed) {
    attendUnions<OfBytes<United<bf16, 16, 64>>>(seed);
    attendUnions<OfBytes<United<f16, 4, 1>>>(seed);
  }
}

} // namespace
} // namespace deft::sm90_latent
