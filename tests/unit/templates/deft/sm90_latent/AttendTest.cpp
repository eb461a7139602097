#include "tests/device/AttendCase.h"
#include "tests/device/GivenLists.h"

#include "deft/attend_sm90_latent.cuh"
#include "tests/device/DeviceConfig.h"

#include <gtest/gtest.h>

namespace deft::sm90_latent {
namespace {

using test::draw;

/// Heads in so many groups, and V of so many columns.
template <class E, int kHeadGroups, int kHeadsOfGroup, int kPage, int kColumns = 256>
struct Latent : test::DeviceConfig {
  using Query = E;
  using Key = E;
  using Value = E;
  using Output = E;
  static constexpr bool kIsLatent = true;
  static constexpr int kQueryHeads = kHeadGroups * kHeadsOfGroup, kKvHeads = kHeadGroups,
                       kRatio = kHeadsOfGroup;
  static constexpr int kKeyDim = kColumns + 64, kValueDim = kColumns, kPageSize = kPage;
  static constexpr int kTileQ = 64, kTileKv = 64, kStages = 2, kWarps = 12;
};

/// Of bytes.
template <class Config, class Stored> struct OfBytes : Config {
  using Key = Stored;
  using Value = Stored;
  static constexpr int kWarps = 16;
};
/// And of bytes with a scale for so many columns in each row.
template <class Config, int kEach> struct Scaled : OfBytes<Config, e4m3> {
  static constexpr int kScaleColumns = kEach;
};

/// Items of all numbers of rows, by fewer blocks than there are units.
template <class Config, class Variant = test::PlainVariant>
void attendAll(unsigned seed, const typename Variant::Params &params = {}) {
  test::AttendCase<Config, Variant> launch(seed, params);
  std::mt19937 &random = launch.random();
  constexpr int kMost = Config::kTileQ / Config::kRatio;
  for (int i = 0, items = draw(random, 1, 3); i < items; ++i)
    launch.add(test::randomItem(random, {.queries = draw(random, 1, kMost),
                                         .runs = draw(random, 1, 12),
                                         .mostTokens = draw(random, 1, 160),
                                         .places = launch.places()}));
  if (draw(random, 0, 2) == 0)
    launch.addEnd();
  if (draw(random, 0, 2) > 0)
    launch.giveMaps();
  launch.check(3, smemBytes<Config>(), [](const abi::AttendArgs &args, const auto &given) {
    sm90_latent::attend<Config, Variant>(args, given);
  });
}

TEST(Sm90LatentAttendTest, RowsOfSeveralRequestsAreAttended) {
  for (unsigned seed = 0; seed < 6; ++seed) {
    attendAll<Latent<bf16, 1, 16, 64>>(seed);
    attendAll<Latent<f16, 1, 5, 1>>(seed);
    attendAll<Latent<bf16, 1, 1, 16>>(seed);
    attendAll<Latent<f16, 1, 12, 0>>(seed);
    attendAll<Latent<bf16, 1, 20, 32>>(seed);
  }
}

TEST(Sm90LatentAttendTest, HeadsComeInGroups) {
  for (unsigned seed = 0; seed < 3; ++seed) {
    attendAll<Latent<bf16, 2, 64, 64>>(seed);
    attendAll<Latent<f16, 2, 48, 16>>(seed);
  }
}

TEST(Sm90LatentAttendTest, AllColumnsAreAttended) {
  attendAll<Latent<bf16, 1, 16, 64, 512>>(0);
  attendAll<Latent<f16, 1, 64, 1, 384>>(1);
  attendAll<Latent<bf16, 2, 8, 16, 512>>(2);
}

TEST(Sm90LatentAttendTest, HooksAreCalled) {
  for (unsigned seed = 0; seed < 4; ++seed) {
    attendAll<Latent<bf16, 1, 16, 64>, test::WindowVariant>(seed, {40 + 70 * static_cast<int>(seed)});
    attendAll<Latent<f16, 2, 4, 1>, test::CappedVariant>(seed);
    attendAll<Latent<f16, 1, 8, 16>, test::SlopedVariant>(seed);
    attendAll<Latent<f16, 2, 8, 0>, test::HookVariant>(seed);
    attendAll<Latent<bf16, 1, 16, 32>, test::SigmoidVariant>(seed);
    attendAll<Latent<f16, 2, 4, 64>, test::SunkVariant>(seed);
    attendAll<Latent<f16, 2, 4, 16>, test::GatedVariant>(seed);
    attendAll<Latent<bf16, 1, 3, 16>, test::WeighedValuesVariant>(seed);
  }
}

TEST(Sm90LatentAttendTest, BytesAreConverted) {
  for (unsigned seed = 0; seed < 4; ++seed) {
    attendAll<OfBytes<Latent<bf16, 1, 16, 64>, e4m3>>(seed);
    attendAll<OfBytes<Latent<f16, 1, 5, 1>, e4m3>>(seed);
    attendAll<OfBytes<Latent<bf16, 2, 24, 16>, e5m2>>(seed);
    attendAll<OfBytes<Latent<f16, 1, 12, 0>, e5m2>>(seed);
  }
  attendAll<OfBytes<Latent<bf16, 1, 16, 64, 512>, e4m3>>(0);
  attendAll<OfBytes<Latent<f16, 1, 8, 16, 384>, e4m3>>(1);
  attendAll<OfBytes<Latent<bf16, 2, 64, 32, 512>, e4m3>>(2);
  attendAll<OfBytes<Latent<f16, 1, 64, 1, 512>, e5m2>>(3);
}

TEST(Sm90LatentAttendTest, RowsHaveScales) {
  attendAll<Scaled<Latent<bf16, 1, 16, 64, 512>, 128>>(0);
  attendAll<Scaled<Latent<bf16, 2, 64, 64, 512>, 128>>(1);
  attendAll<Scaled<Latent<bf16, 1, 1, 1, 512>, 64>>(2);
  attendAll<Scaled<Latent<f16, 1, 16, 32, 512>, 128>>(4);
  attendAll<Scaled<Latent<bf16, 1, 64, 16, 512>, 128>, test::WindowVariant>(5, {300});
  for (unsigned seed = 0; seed < 3; ++seed) {
    attendAll<Scaled<Latent<bf16, 1, 16, 16>, 64>>(seed);
    attendAll<Scaled<Latent<f16, 1, 5, 64>, 32>>(seed);
    attendAll<Scaled<Latent<f16, 1, 12, 0>, 16>>(seed);
    attendAll<Scaled<Latent<bf16, 1, 8, 7>, 64>, test::WindowVariant>(seed, {60});
    attendAll<Scaled<Latent<bf16, 1, 3, 32>, 64>, test::WeighedValuesVariant>(seed);
  }
  attendAll<Scaled<Latent<f16, 1, 6, 16, 384>, 96>>(3);
}

/// References of weights follow, of both warpgroups.
TEST(Sm90LatentAttendTest, LargeScoresAreWeighed) {
  for (unsigned seed = 0; seed < 6; ++seed) {
    attendAll<Latent<f16, 1, 8, 64>, test::SteepVariant>(seed);
    attendAll<Latent<bf16, 1, 16, 1>, test::SteepVariant>(seed);
  }
}

/// Of at most 16 rows.
template <class Config> struct Few : Config {
  static constexpr int kTileQ = 16, kStages = sizeof(typename Config::Key) == 1 ? 4 : 2, kWarps = 12;
  static constexpr bool kKeepsBytes = true;
};

TEST(Sm90LatentAttendTest, FewRowsAreAttended) {
  for (unsigned seed = 0; seed < 8; ++seed) {
    attendAll<Few<Latent<bf16, 1, 16, 64>>>(seed);
    attendAll<Few<Latent<f16, 1, 5, 1>>>(seed);
    attendAll<Few<Latent<bf16, 1, 1, 16>>>(seed);
    attendAll<Few<Latent<f16, 1, 12, 0>>>(seed);
    attendAll<Few<Latent<bf16, 2, 8, 32>>>(seed);
  }
  attendAll<Few<Latent<bf16, 1, 16, 64, 512>>>(0);
  attendAll<Few<Latent<f16, 1, 8, 1, 384>>>(1);
  attendAll<Few<Latent<bf16, 2, 8, 16, 512>>>(2);
}

TEST(Sm90LatentAttendTest, FewRowsHaveHooks) {
  for (unsigned seed = 0; seed < 4; ++seed) {
    attendAll<Few<Latent<bf16, 1, 16, 64>>, test::WindowVariant>(seed, {40 + 70 * static_cast<int>(seed)});
    attendAll<Few<Latent<f16, 2, 4, 1>>, test::CappedVariant>(seed);
    attendAll<Few<Latent<f16, 1, 8, 16>>, test::SlopedVariant>(seed);
    attendAll<Few<Latent<f16, 2, 8, 0>>, test::HookVariant>(seed);
    attendAll<Few<Latent<bf16, 1, 16, 32>>, test::SigmoidVariant>(seed);
    attendAll<Few<Latent<f16, 2, 4, 64>>, test::SunkVariant>(seed);
    attendAll<Few<Latent<f16, 2, 4, 16>>, test::GatedVariant>(seed);
    attendAll<Few<Latent<bf16, 1, 3, 16>>, test::WeighedValuesVariant>(seed);
  }
}

TEST(Sm90LatentAttendTest, FewRowsHaveLargeScores) {
  for (unsigned seed = 0; seed < 6; ++seed) {
    attendAll<Few<Latent<f16, 1, 8, 64>>, test::SteepVariant>(seed);
    attendAll<Few<Latent<bf16, 1, 16, 1>>, test::SteepVariant>(seed);
  }
}

TEST(Sm90LatentAttendTest, FewRowsKeepBytes) {
  for (unsigned seed = 0; seed < 6; ++seed) {
    attendAll<Few<OfBytes<Latent<bf16, 1, 16, 64>, e4m3>>>(seed);
    attendAll<Few<OfBytes<Latent<f16, 1, 5, 1>, e4m3>>>(seed);
    attendAll<Few<OfBytes<Latent<bf16, 2, 8, 16>, e5m2>>>(seed);
    attendAll<Few<OfBytes<Latent<f16, 1, 12, 0>, e5m2>>>(seed);
  }
  attendAll<Few<OfBytes<Latent<bf16, 1, 16, 64, 512>, e4m3>>>(0);
  attendAll<Few<OfBytes<Latent<f16, 1, 8, 16, 384>, e4m3>>>(1);
  for (unsigned seed = 0; seed < 3; ++seed) {
    attendAll<Few<OfBytes<Latent<bf16, 1, 16, 32>, e4m3>>, test::SigmoidVariant>(seed);
    attendAll<Few<OfBytes<Latent<bf16, 2, 4, 64>, e4m3>>, test::SunkVariant>(seed);
    attendAll<Few<OfBytes<Latent<bf16, 1, 16, 1>, e4m3>>, test::SteepVariant>(seed);
  }
}

/// Scales that differ by up to a factor of 1,024, so that the unit of sums grows within a unit's tiles.
template <class Config> struct Unlike : Config {
  static constexpr bool kHasUnlikeScales = true;
};

TEST(Sm90LatentAttendTest, ScalesOfFewRowsMayDiffer) {
  for (unsigned seed = 0; seed < 6; ++seed) {
    attendAll<Few<Unlike<Scaled<Latent<bf16, 1, 16, 16>, 64>>>>(seed);
    attendAll<Few<Unlike<Scaled<Latent<f16, 1, 5, 1>, 64>>>>(seed);
    attendAll<Few<Unlike<Scaled<Latent<bf16, 1, 8, 7>, 64>>>, test::WindowVariant>(seed, {60});
    attendAll<Few<Unlike<Scaled<Latent<bf16, 1, 16, 32>, 64>>>, test::SigmoidVariant>(seed);
  }
}

TEST(Sm90LatentAttendTest, FewRowsMultiplyScales) {
  attendAll<Few<Scaled<Latent<bf16, 1, 16, 64, 512>, 128>>>(0);
  attendAll<Few<Scaled<Latent<f16, 1, 16, 32, 512>, 128>>>(1);
  attendAll<Few<Scaled<Latent<bf16, 2, 8, 64, 512>, 128>>>(2);
  attendAll<Few<Scaled<Latent<bf16, 1, 16, 16, 512>, 128>>, test::WindowVariant>(3, {300});
  for (unsigned seed = 0; seed < 6; ++seed) {
    attendAll<Few<Scaled<Latent<bf16, 1, 16, 16>, 64>>>(seed);
    attendAll<Few<Scaled<Latent<f16, 1, 5, 64>, 64>>>(seed);
    attendAll<Few<Scaled<Latent<bf16, 1, 8, 7>, 64>>, test::WindowVariant>(seed, {60});
    attendAll<Few<Scaled<Latent<bf16, 1, 3, 32>, 64>>, test::WeighedValuesVariant>(seed);
    attendAll<Few<Scaled<Latent<bf16, 1, 16, 32>, 64>>, test::SigmoidVariant>(seed);
    attendAll<Few<Scaled<Latent<f16, 2, 4, 16>, 64>>, test::GatedVariant>(seed);
    attendAll<Few<Scaled<Latent<bf16, 1, 16, 1>, 64>>, test::SteepVariant>(seed);
  }
}

template <class Base, class Variant = test::PlainVariant>
void attendLists(unsigned seed, const typename Variant::Params &params = {}) {
  using Config = test::Given<Base>;
  test::AttendCase<Config, Variant> launch(seed, params);
  test::addItemsOfLists(launch, 200);
  if (draw(launch.random(), 0, 2) > 0)
    launch.giveMaps();
  launch.check(3, smemBytes<Config>(), [](const abi::AttendArgs &args, const auto &given) {
    sm90_latent::attend<Config, Variant>(args, given);
  });
}
TEST(Sm90LatentAttendTest, GivenListsAreAttended) {
  for (unsigned seed = 0; seed < 8; ++seed) {
    attendLists<Latent<bf16, 1, 16, 64>>(seed);
    attendLists<Latent<f16, 1, 1, 1>>(seed);
    attendLists<Latent<bf16, 1, 5, 7>>(seed);
    attendLists<Latent<f16, 1, 12, 0>>(seed);
    attendLists<Latent<bf16, 2, 64, 32>>(seed);
  }
  attendLists<Latent<bf16, 1, 16, 64, 512>>(0);
  attendLists<Latent<bf16, 2, 64, 64, 512>>(1);
}

TEST(Sm90LatentAttendTest, GivenListsGoWithHooks) {
  for (unsigned seed = 0; seed < 4; ++seed) {
    attendLists<Latent<f16, 2, 4, 64>, test::SunkVariant>(seed);
    attendLists<Latent<f16, 2, 4, 16>, test::GatedVariant>(seed);
    attendLists<Latent<f16, 2, 4, 1>, test::CappedVariant>(seed);
    attendLists<Latent<bf16, 1, 16, 32>, test::SigmoidVariant>(seed);
    attendLists<Latent<f16, 1, 8, 64>, test::SteepVariant>(seed);
  }
}

TEST(Sm90LatentAttendTest, GivenListsGoWithFewRows) {
  for (unsigned seed = 0; seed < 4; ++seed) {
    attendLists<Few<Latent<bf16, 1, 16, 64>>>(seed);
    attendLists<Few<Latent<f16, 1, 5, 1>>>(seed);
    attendLists<Few<Latent<f16, 2, 4, 16>>, test::GatedVariant>(seed);
  }
}

TEST(Sm90LatentAttendTest, GivenListsAreOfBytes) {
  for (unsigned seed = 0; seed < 4; ++seed) {
    attendLists<OfBytes<Latent<bf16, 1, 16, 64>, e4m3>>(seed);
    attendLists<OfBytes<Latent<f16, 1, 12, 0>, e5m2>>(seed);
    attendLists<Scaled<Latent<bf16, 1, 5, 7>, 64>>(seed);
    attendLists<Scaled<Latent<f16, 2, 24, 1>, 32>>(seed);
  }
  attendLists<Scaled<Latent<bf16, 1, 16, 64, 512>, 128>>(0);
  attendLists<Scaled<Latent<bf16, 2, 64, 64, 512>, 128>>(1);
  for (unsigned seed = 0; seed < 4; ++seed) {
    attendLists<Few<OfBytes<Latent<bf16, 1, 16, 64>, e4m3>>>(seed);
    attendLists<Few<Scaled<Latent<bf16, 1, 5, 7>, 64>>>(seed);
  }
  attendLists<Few<Scaled<Latent<bf16, 1, 16, 64, 512>, 128>>>(2);
}

} // namespace
} // namespace deft::sm90_latent
