#include "tests/unit/runtime/api/PlainBeams.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>

namespace deft {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr int kPage = 16;

BeamTree makeBeams(int mostBeams = 0) {
  return BeamTree::make({.pageSize = kPage, .mostBeams = mostBeams}).value();
}

/// Beams with random parents, whose every path is known by itself: each reads its own tokens, wherever pages
/// were used again.
TEST(BeamTreeTest, BeamsAttendAsAPlainDecoderDoes) {
  const Attention attention = loadPackage(DEFT_TEST_PACKAGE).value();
  const Runtime runtime = Runtime::create({.threads = 2}).value();
  for (const auto &[mostBeams, history, steps, pages, spread] :
       {std::tuple(1, 1, 20, 20, 1), std::tuple(7, 40, 30, 30, 7), std::tuple(300, 33, 8, 100, 4),
        std::tuple(5000, 70, 4, 1300, 600)}) {
    SCOPED_TRACE(std::to_string(mostBeams) + " beams");
    std::mt19937 random(static_cast<unsigned>(mostBeams));
    const int historyPages = (history + kPage - 1) / kPage;
    PlainBeams plain(random, history, (historyPages + pages) * kPage);
    BeamTree beams = makeBeams();
    beams.start(history, static_cast<std::size_t>(pages)).value();
    std::optional<Plan> plan;
    std::set<int> usedPages;
    int newPages = 0;
    for (int step = 0; step < steps; ++step) {
      const int before = plain.count();
      std::vector<int> parents(static_cast<std::size_t>(mostBeams - (step % 3 == 2 ? mostBeams / 4 : 0)));
      for (int &parent : parents)
        parent = static_cast<int>(random() % static_cast<unsigned>(std::min(before, spread)));
      if (!plan) {
        ASSERT_EQ(beams.advance(parents).value(), Advanced::Nothing);
        plan = Plan::make(attention, beams.tree()).value();
      } else {
        Plan *plans[] = {&*plan};
        ASSERT_EQ(beams.advance(parents, {.plans = plans}).value(), Advanced::Remade);
      }
      ASSERT_TRUE(plan->isCurrent());
      const BeamStep now = beams.step();
      plain.advance(random, parents, now.slots);
      for (std::size_t beam = 0; beam < parents.size(); ++beam)
        ASSERT_EQ(now.positions[beam], std::ssize(plain.tokens(beam)) - 1);
      usedPages.insert(now.newPages.begin(), now.newPages.end());
      newPages += static_cast<int>(now.newPages.size());

      std::vector<std::uint16_t> q = PlainBeams::drawn(random, plain.count() * PlainBeams::kRowOfQ);
      std::vector<std::uint16_t> out(q.size());
      std::vector<float> lse(q.size() / PlainBeams::kHeadDim);
      const auto ran = runtime.run(
          attention, *plan,
          {.q = q.data(), .k = plain.k.data(), .v = plain.v.data(), .pageTable = beams.pageTable()},
          {.out = out.data(), .lse = lse.data()});
      ASSERT_TRUE(ran) << ran.error().text();
      ASSERT_EQ(plain.firstWrong(q, out, lse), -1) << "step " << step;
    }
    if (mostBeams > kPage) { // fewer have a page a step, of which some token stays
      EXPECT_LT(std::ssize(usedPages), newPages);
    }
  }
}

TEST(BeamTreeTest, PagesOfBeamsThatEndAreGivenBackInTheSameStep) {
  BeamTree beams = makeBeams();
  const std::vector<int> entries{7, 3}, pages{20, 11, 12, 13, 14};
  const Stretch history{0, 20};
  beams.start({.stretches = {&history, 1}, .entries = entries, .pages = pages}).value();
  EXPECT_EQ(beams.freePages(), 5);
  EXPECT_THAT(beams.step().slots, ElementsAre(-1));
  EXPECT_THAT(beams.step().positions, ElementsAre(19));
  EXPECT_THAT(beams.pageTable(), ElementsAre(7, 3, 20, 11, 12, 13, 14));

  beams.advance(std::vector<int>(48, 0)).value(); // three pages
  EXPECT_THAT(beams.step().newPages, ElementsAre(20, 11, 12));
  EXPECT_THAT(beams.step().freedPages, IsEmpty());
  EXPECT_EQ(beams.step().slots[17], 11 * kPage + 1);
  std::vector<int> parents(16);
  std::iota(parents.begin(), parents.end(), 32); // those of the third page go on
  beams.advance(parents).value();
  EXPECT_THAT(beams.step().newPages, ElementsAre(11)); // one of those that became free
  EXPECT_THAT(beams.step().freedPages, ElementsAre(20));
  EXPECT_EQ(beams.freePages(), 3);

  // The cache's owner takes what is free, and gives other pages later.
  EXPECT_THAT(beams.takePages(2).value(), UnorderedElementsAre(13, 14));
  EXPECT_EQ(beams.freePages(), 1);
  EXPECT_THAT(beams.pageTable(), ElementsAre(7, 3, 20, 11, 12, -1, -1));
  const Result<Advanced> failed = beams.advance(std::vector<int>(32, 0));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::Diagnostics);
  EXPECT_THAT(failed.error().message, HasSubstr("2 pages of 16 tokens needed, 1 of"));
  const std::vector<int> more{40, 13, 41};
  beams.addPages(more).value();
  EXPECT_THAT(beams.pageTable(), UnorderedElementsAre(7, 3, 20, 11, 12, 40, 13, 41));
  beams.advance(std::vector<int>(32, 0)).value();
  EXPECT_EQ(beams.freePages(), 2);
  EXPECT_EQ(beams.step().positions[31], 22);
}

TEST(BeamTreeTest, SearchesBeginAnewAndAreApart) {
  const Attention attention = loadPackage(DEFT_TEST_PACKAGE).value();
  BeamTree beams = makeBeams();
  beams.start(5, 4).value();
  Plan plan = Plan::make(attention, beams.tree()).value();
  const std::vector<Stretch> stretches{{0, 16}, {35, 2}, {16, 8}};
  const std::vector<int> indptr{0, 2, 3};
  beams.start({.stretches = stretches, .indptr = indptr, .pageCount = 4}).value();
  EXPECT_FALSE(plan.isCurrent());
  EXPECT_THAT(beams.step().positions, ElementsAre(17, 7));
  beams.advance(std::vector{1, 0, 1}).value();
  EXPECT_THAT(beams.step().positions, ElementsAre(8, 18, 8));
  EXPECT_THAT(beams.step().newPages, ElementsAre(3)); // behind the pages of the histories
  EXPECT_EQ(plan.advance(beams.tree()).value(), Advanced::Remade);
  EXPECT_EQ(plan.queryCount(), 3);
  EXPECT_EQ(beams.tree().pathTokens(1), 19);
  EXPECT_EQ(beams.tree().tokens(), 29);
  EXPECT_THAT(plan.picture(beams.tree()).value(), HasSubstr("<svg"));
}

TEST(BeamTreeTest, WhatCannotBeIsNamed) {
  const auto makeError = [](const BeamTreeOptions &options) {
    return BeamTree::make(options).error().message;
  };
  EXPECT_EQ(makeError({.pageSize = 0}), "BeamTreeOptions::pageSize is 0, not between 1 and 1048576");
  EXPECT_EQ(makeError({.mostBeams = -1}), "BeamTreeOptions::mostBeams is -1, not between 0 and 16777216");

  BeamTree beams = makeBeams(4);
  const auto startError = [&](const BeamHistories &histories) { return beams.start(histories).error(); };
  const Stretch history{0, 20}, none{0, 0};
  const std::vector<int> entries{7, 3}, short_{7}, holed{7, -1}, falling{0, 2, 1}, twice{9, 9}, two{9, 8},
      used{3};
  const std::span<const Stretch> one(&history, 1);
  EXPECT_EQ(startError({.stretches = one, .entries = entries, .pageCount = 2}).message,
            "BeamHistories::pages is null, and the histories' entries are given");
  EXPECT_EQ(startError({.stretches = one, .entries = short_}).message,
            "BeamHistories::entries has 1 pages, and history 0 ends in page 1");
  EXPECT_EQ(startError({.stretches = one, .entries = holed}).message,
            "BeamHistories::entries has -1 at 1, and history 0 has tokens there");
  EXPECT_EQ(startError({.stretches = one, .indptr = falling}).message,
            "BeamHistories::indptr does not rise from 0 to the number of stretches, 1");
  EXPECT_EQ(startError({.stretches = {&none, 1}}).message,
            "BeamHistories::stretches are wrong: history 0 has 0 tokens at location 0");
  EXPECT_EQ(startError({}).message, "BeamHistories::stretches are wrong: history 0 has no token");
  EXPECT_EQ(startError({.stretches = one, .entries = entries, .pages = twice}).message,
            "BeamHistories::pages has page 9 at 1, which the beams have already");
  EXPECT_EQ(startError({.stretches = one, .entries = entries, .pages = used}).message,
            "BeamHistories::pages has page 3 at 0, which the beams have already");
  const Error tooMany = startError({.stretches = one, .pageCount = 1 << 28});
  EXPECT_EQ(tooMany.field, "BeamHistories::pageCount");

  beams.start({.stretches = one, .entries = entries, .pages = two}).value();
  const auto advanceError = [&](const std::vector<int> &parents) { return beams.advance(parents).error(); };
  EXPECT_EQ(advanceError({0, 1}).message, "parents are wrong: beam 1 goes on from beam 1 of 1");
  EXPECT_EQ(advanceError({-1}).field, "parents");
  EXPECT_EQ(advanceError({0, 0, 0, 0, 0}).message, "parents has 5 beams, there are at most 4");
  EXPECT_EQ(advanceError({0, 0, 0, 0, 0}).code, ErrorCode::Usage);
  EXPECT_EQ(beams.addPages(used).error().message, "pages has page 3 at 0, which the beams have already");
  EXPECT_EQ(beams.freePages(), 2);
  EXPECT_THAT(beams.step().positions, ElementsAre(19)); // nothing has changed

  BeamTree others = BeamTree::make({.pageSize = 32}).value();
  others.start(5, 4).value();
  const Attention attention = loadPackage(DEFT_TEST_PACKAGE).value();
  const Error foreign = Plan::make(attention, others.tree()).error();
  EXPECT_EQ(foreign.field, "tree");
  EXPECT_THAT(foreign.message, HasSubstr("beams in pages of 32 tokens, and `"));
  Plan plan = Plan::make(attention, beams.tree()).value();
  EXPECT_EQ(plan.advance(others.tree()).error().field, "tree");
  Plan *plans[] = {&plan};
  EXPECT_EQ(others.advance(std::vector{0}, {.plans = plans}).error().field, "tree");
  EXPECT_THAT(others.step().positions, ElementsAre(5)); // the step is taken all the same
}

} // namespace
} // namespace deft
