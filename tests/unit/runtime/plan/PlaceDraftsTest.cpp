#include "runtime/plan/PlaceDrafts.h"

#include "tests/support/DraftTrees.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace deft::plan {
namespace {

using testing::Each;
using testing::ElementsAre;

DraftPlaces placesOf(const test::DraftParents &parents) {
  std::mt19937 random(1);
  const int count = static_cast<int>(parents.size());
  return plan::placesOf(test::maskOf(parents, count + 3, random).data(), count, count + 3);
}

TEST(PlaceDraftsTest, DraftsStandDepthFirst) {
  const DraftPlaces places = placesOf({-1, 0, 4, 0, -1, 3, 4});
  EXPECT_THAT(places.draft, ElementsAre(0, 1, 3, 5, 4, 2, 6));
  EXPECT_THAT(places.size, ElementsAre(4, 1, 2, 1, 3, 1, 1));
  EXPECT_THAT(places.depth, ElementsAre(0, 1, 1, 2, 0, 1, 1));
  EXPECT_EQ(places.wrong, -1);
}

TEST(PlaceDraftsTest, AChainAndAStar) {
  const DraftPlaces chain = placesOf(test::draftChain(70));
  EXPECT_EQ(chain.draft[69], 69);
  EXPECT_EQ(chain.size[1], 69);
  EXPECT_EQ(chain.depth[69], 69);
  const DraftPlaces star = placesOf(test::draftStar(256));
  EXPECT_THAT(star.size, Each(1));
  EXPECT_THAT(star.depth, Each(0));
}

TEST(PlaceDraftsTest, RowsOfNoTreeAreSaid) {
  const auto wrongOf = [](std::vector<unsigned> rows) {
    const DraftPlaces places = plan::placesOf(rows.data(), static_cast<int>(rows.size()), 20);
    if (places.wrong >= 0) {
      EXPECT_THAT(places.size, Each(1));
    }
    return places.wrong;
  };
  EXPECT_EQ(wrongOf({0b001, 0b011, 0b111}), -1);
  EXPECT_EQ(wrongOf({0b001, 0b001, 0b111}), 2) << "1 does not see itself, and 2 sees more than its parent";
  EXPECT_EQ(wrongOf({0b001, 0b011, 0b110}), 2) << "1 sees 0, and 2 sees 1 alone";
  EXPECT_EQ(wrongOf({0b001, 0b010, 0b111}), 2) << "two parents";
  EXPECT_EQ(wrongOf({0b011, 0b011, 0b100}), 1) << "two that see each other";
  EXPECT_EQ(wrongOf({0}), 0);
  EXPECT_EQ(wrongOf({~0u}), -1) << "bits of drafts that there are not";
}

} // namespace
} // namespace deft::plan
