#include "tuner/session/TuneClasses.h"

#include "tests/support/ScalarKernel.h"
#include "tests/unit/runtime/config_cache/ConfigTesting.h"
#include "tests/unit/tuner/session/StepTesting.h"

#include <gmock/gmock.h>

namespace deft::session {
namespace {

using config_cache::TreeClass;
using test::configOf;

TEST(TuneClassesTest, WhatAClassHasComeToIsInItsLastEvent) {
  const module_cache::TestFolder folder;
  Journal journal = test::newJournal(folder);
  const std::vector<TreesOfClass> classes{
      {TreeClass{1}, {}, 1}, {TreeClass{2}, {}, 1}, {TreeClass{3}, {}, 1}};
  const auto done = [&](int tokens, bool isCut) {
    journal.write({{"event", "done"}, {"class", TreeClass{tokens}.text()}, {"is_cut", isCut}});
  };
  done(2, true);
  done(3, true);
  done(3, false);
  EXPECT_THAT(standingsOf(journal, classes),
              testing::ElementsAre(Standing::New, Standing::Cut, Standing::Done));
}

/// A class, and one beside it that this session has tuned.
class RelatedToTest : public testing::Test {
protected:
  RelatedToTest() {
    neighbour_.treeClass = {15, 6, 3, 2, 0};
    neighbour_.isDone = true;
    neighbour_.entry.config = configOf(7);
    related_.emplace(config_cache::Places{}, config_cache::h200(), variant_, nullptr);
  }
  Related of(const target::Target *target, bool isFromRelated) const {
    return relatedTo(trees_, {neighbour_}, {untuned_, config::shippedPrices()[0], target, *related_},
                     isFromRelated);
  }

  const TreesOfClass trees_{{14, 6, 3, 2, 0}, {}, 1};
  ClassReport neighbour_;
  spec::Variant variant_ = test::ScalarKernel<4, 2, 16>::variant();
  std::vector<config::Config> untuned_{configOf(1), configOf(2)};
  std::optional<RelatedConfigs> related_;
};

TEST_F(RelatedToTest, WhatTreesGetUntunedIsTriedFirstAndNeighboursConfigsToo) {
  const Related related = of(nullptr, false);
  EXPECT_EQ(related.ofClass.size(), 2U);
  ASSERT_EQ(related.neighbours.size(), 1U);
  EXPECT_EQ(related.neighbours[0].chunkTokens, 7);
  EXPECT_FALSE(related.isKnown);
}

TEST_F(RelatedToTest, WhatOnlyLargeTreesAreWeighedWithIsNotTriedForAll) {
  config::Config large = configOf(3);
  large.phases.front().tileQ = 192;
  untuned_.push_back(large);
  EXPECT_EQ(of(nullptr, false).ofClass.size(), 2U);
}

TEST_F(RelatedToTest, OnAGpuOtherOrdersOfWhatIsKnownAreTriedToo) {
  const target::Target *hopper = target::findTarget("sm_90a");
  EXPECT_EQ(of(hopper, true).ofClass.size(), 2 * config::kAllOrders.size());
  EXPECT_EQ(of(hopper, false).ofClass.size(), 2U) << "a search finds them itself";
}

} // namespace
} // namespace deft::session
