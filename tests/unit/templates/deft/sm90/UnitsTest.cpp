#include "tests/device/Words.h"

#include "deft/sm90/units.cuh"
#include "tests/device/DeviceConfig.h"

#include <gtest/gtest.h>

#include <set>

namespace deft::sm90 {
namespace {

struct DealtConfig : test::LightConfig {
  static constexpr int kKeyDim = 128, kValueDim = 128, kKvHeads = 3;
  static constexpr bool kIsDealt = true;
};
struct PlainConfig : DealtConfig {
  static constexpr bool kIsDealt = false;
};

/// The blocks of a launch have each item for each head once, in the order that was asked for.
template <class Config> void walk(int items, unsigned blocks, bool byHead, bool isByHead) {
  abi::AttendArgs args{};
  args.itemCount = items;
  args.byHead = byHead ? 1 : 0;
  std::set<std::pair<int, int>> seen;
  for (unsigned block = 0; block < blocks; ++block)
    EXPECT_EQ(test::runBlock({.threads = 1, .block = block, .blocks = blocks},
                             [&] {
                               const Units<Config> units(args);
                               EXPECT_EQ(units.isEmptyOneLast(), !isByHead);
                               for (int unit = static_cast<int>(blockIdx.x); unit < units.count();
                                    unit = units.next(unit)) {
                                 EXPECT_TRUE(seen.emplace(units.item(unit), units.kvHead(unit)).second);
                                 EXPECT_EQ(unit, isByHead ? units.kvHead(unit) * items + units.item(unit)
                                                          : units.item(unit) * 3 + units.kvHead(unit));
                               }
                             }),
              "");
  EXPECT_EQ(seen.size(), static_cast<std::size_t>(items * 3));
  EXPECT_EQ(seen.rbegin()->first, items - 1);
}

TEST(UnitsTest, EachItemHasEachHeadOnce) {
  for (int items : {1, 7, 40})
    for (unsigned blocks : {1u, 3u, 132u}) {
      walk<DealtConfig>(items, blocks, true, true);
      walk<DealtConfig>(items, blocks, false, false);
      walk<PlainConfig>(items, blocks, true, false); // kernels that do not deal do not ask
    }
}

} // namespace
} // namespace deft::sm90
