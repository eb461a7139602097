/// Drafts over ranks: each rank's plan reads the part of each draft's path that its cache has.
#include "runtime/plan/HeldSlots.h"

#include "tests/unit/runtime/plan/DraftTesting.h"

#include <algorithm>
#include <limits>
#include <string>

namespace deft::plan {
namespace {

using tree::RankLayout;
using tree::Ranks;

constexpr int kMostGain = Planner::kMostGrowth;
/// Slots of one rank's cache are numbered apart from those of the others.
constexpr int kCacheSlots = 1 << 24;

struct Layout {
  RankLayout kind;
  int count, unit;
};

/// A step whose table is that of all ranks: interleaved, a page has `count` times the tokens of a rank's
/// page.
class RankStep {
public:
  RankStep(std::mt19937 &random, const Layout &layout, int requests, int mostDrafts)
      : layout_(layout), step_(random, requests, mostDrafts, layout.unit * (isByPage() ? 1 : layout.count)) {
    if (!isByPage())
      return;
    std::map<int, int> ofPage;               // those that nobody needs yet have no holder
    const bool areApart = random() % 2 == 0; // a request's drafts all lie on one rank
    for (int r = 0; r < requests; ++r) {
      const int end = step_.lengths[index(r)] + step_.drafts[index(r)] + static_cast<int>(random() % 90);
      for (int p = 0; p < std::min((end + step_.pageSize - 1) / step_.pageSize, step_.rowPages); ++p) {
        const bool isOwn = areApart && p >= step_.lengths[index(r)] / step_.pageSize;
        ofPage.emplace(step_.entries[entry(r, p)],
                       isOwn ? r % layout.count
                             : static_cast<int>(random() % static_cast<unsigned>(layout.count)));
      }
    }
    for (const int page : step_.entries)
      holders_.push_back(ofPage.contains(page) ? ofPage[page] : Ranks::kNobody);
  }

  const Step &step() const { return step_; }
  Ranks ranksOf(int rank) const {
    return Ranks::make(layout_.count, rank, layout_.kind, layout_.unit, holders_).value();
  }
  /// The holder and the slot of a token of a request.
  int holderOf(int request, int position) const {
    return isByPage() ? holders_[entry(request, position / step_.pageSize)]
                      : position % step_.pageSize / layout_.unit % layout_.count;
  }
  int slotOf(int request, int position) const {
    const int page = step_.entries[entry(request, position / step_.pageSize)], at = position % step_.pageSize;
    const int all = layout_.unit * layout_.count, local = step_.pageSize / layout_.count;
    return holderOf(request, position) * kCacheSlots +
           (isByPage() ? page * step_.pageSize + at
                       : page * local + at / all * layout_.unit + at % layout_.unit);
  }
  /// The slot of a place in a rank's own table.
  int slotIn(int rank, int location) const {
    const int size = isByPage() ? step_.pageSize : step_.pageSize / layout_.count;
    return rank * kCacheSlots + step_.entries[index(location / size)] * size + location % size;
  }
  /// As far as pages have a holder.
  int mostGainOf(int request) const {
    const int end = step_.lengths[index(request)] + step_.drafts[index(request)];
    int gain = 0;
    while (gain < kMostGain && (!isByPage() || holderOf(request, end + gain) != Ranks::kNobody))
      ++gain;
    return gain;
  }
  bool isByPage() const { return layout_.kind == RankLayout::ByPage; }

private:
  std::size_t entry(int request, int page) const { return index(request * step_.rowPages + page); }

  Layout layout_;
  Step step_;
  std::vector<int> holders_;
};

/// What queries see of all ranks, and the slots that are written.
struct Truth {
  Read read;
  std::set<int> written;

  Truth(const RankStep &of, const std::vector<int> &gains) {
    const Step &step = of.step();
    for (int r = 0; r < static_cast<int>(step.lengths.size()); ++r) {
      const int length = step.lengths[index(r)] + gains[index(r)];
      for (int t = 0; t < length + step.drafts[index(r)]; ++t)
        written.insert(of.slotOf(r, t));
      for (int i = 0; i < step.drafts[index(r)]; ++i) {
        auto &own = read.emplace_back();
        for (int t = 0; t < length; ++t)
          own.insert({t, of.slotOf(r, t)});
        for (int j = 0; j < step.drafts[index(r)]; ++j)
          if (test::doesSee(step.trees[index(r)], i, j))
            own.insert({length + test::depthOf(step.trees[index(r)], j), of.slotOf(r, length + j)});
      }
    }
  }
};

/// Slots only: joined tokens have no positions of their own.
Read withoutPositions(const Read &read) {
  Read slots(read.size());
  for (std::size_t q = 0; q < read.size(); ++q)
    for (const auto &[position, slot] : read[q])
      slots[q].insert({0, slot});
  return slots;
}

/// An item that has no token reads one for nobody, which is written if anything is in this cache.
int expectSparesAreWritten(const Plan &plan, const RankStep &of, int rank, const std::set<int> &written) {
  const auto first = written.lower_bound(rank * kCacheSlots);
  const bool hasAny = first != written.end() && *first < (rank + 1) * kCacheSlots;
  int spares = 0;
  for (const abi::Item &item : plan.items)
    for (int r = item.runBegin; r < item.runBegin + item.runCount; ++r)
      if (const abi::Run &run = plan.runs[index(r)]; run.queryBegin == run.queryEnd && hasAny) {
        ++spares;
        EXPECT_EQ(written.count(of.slotIn(rank, run.location)), 1u);
      }
  return spares;
}

class RankDraftsTest : public testing::TestWithParam<spec::Partition> {};

TEST_P(RankDraftsTest, RanksTogetherReadWhatEachDraftSees) {
  std::mt19937 random(17);
  int spares = 0, others = 0;
  for (int round = 0; round < 60; ++round) {
    const std::array<Layout, 6> layouts{{{RankLayout::Interleaved, 1 + round % 4, 1},
                                         {RankLayout::Interleaved, 2, 4},
                                         {RankLayout::ByPage, 1 + round % 4, 16},
                                         {RankLayout::Interleaved, 4, 16},
                                         {RankLayout::ByPage, 3, 4},
                                         {RankLayout::Interleaved, 3, 2}}};
    const Layout layout = layouts[index(round % 6)];
    const RankStep of(random, layout, 1 + static_cast<int>(random() % 6),
                      std::array{1, 8, 40, 256}[round % 4]);
    const Step &step = of.step();
    VariantFacts facts{.ratio = std::array{1, 4, 8}[random() % 3], .kvHeads = 2};
    facts.readsKvPos = random() % 2 == 0;
    const bool grows = random() % 3 > 0;
    const config::Config config = randomConfig(random, GetParam());
    std::vector<int> gains(step.lengths.size());
    for (int r = 0; r < static_cast<int>(gains.size()); ++r)
      gains[index(r)] = grows ? static_cast<int>(random() % static_cast<unsigned>(of.mostGainOf(r) + 1)) : 0;
    const Truth truth(of, gains);
    Read all(truth.read.size());
    for (int rank = 0; rank < layout.count; ++rank) {
      SCOPED_TRACE("round " + std::to_string(round) + ", rank " + std::to_string(rank) + " of " +
                   std::to_string(layout.count));
      sharing::Batch batch{sharing::PageSize(step.pageSize), /*checksEntries=*/true};
      batch.setRanks(of.ranksOf(rank));
      ASSERT_NO_FATAL_FAILURE(step.update(batch));
      if (batch.drafted().empty())
        continue;
      const HeldSlots slots =
          HeldSlots::of(batch.drafted(), {grows ? kMostGain : 0, batch.tree().ranks(), !facts.readsKvPos});
      Planner planner;
      Plan plan;
      planner.read(batch.tree(), facts, slots.standIns);
      const auto made = planner.makeOfRead(batch.tree(), facts, config, 16, plan);
      ASSERT_TRUE(made) << made.error().message;
      auto tables = makeRoomForDrafts(batch.drafted(), slots, plan);
      ASSERT_TRUE(tables);
      for (const abi::DraftRequest &request : tables->requests)
        EXPECT_EQ(request.mostGain, grows ? of.mostGainOf(request.request) : 0);
      for (const HeldSlots::OfRequest &request : slots.requests)
        others += request.areAny ? 0 : 1;
      Drafted drafted{std::move(*tables), {}};
      drafted.place(step, plan, gains);
      EXPECT_EQ(drafted.unserved, 0u);
      EXPECT_EQ(drafted.noTree, 0u);
      for (std::size_t i = 0; i < plan.items.size(); ++i) // within the item's room
        EXPECT_LE(plan.items[i].runBegin + plan.items[i].runCount, i + 1 < plan.items.size()
                                                                       ? plan.items[i + 1].runBegin
                                                                       : static_cast<int>(plan.runs.size()));
      const Read read = readBy(plan, [&](int location) { return of.slotIn(rank, location); });
      for (std::size_t q = 0; q < read.size(); ++q)
        all[q].insert(read[q].begin(), read[q].end());
      expectMerged(plan);
      spares += expectSparesAreWritten(plan, of, rank, truth.written);
    }
    if (facts.readsKvPos)
      ASSERT_EQ(all, truth.read) << "round " << round;
    else
      ASSERT_EQ(withoutPositions(all), withoutPositions(truth.read)) << "round " << round;
  }
  EXPECT_GT(spares, 0);
  EXPECT_GT(others, 0);
}

INSTANTIATE_TEST_SUITE_P(EveryPartition, RankDraftsTest, testing::ValuesIn(kAllPartitions),
                         partitionTestName);

TEST(HeldSlotsTest, WithoutRanksAllLieHere) {
  const tree::DraftedRequest request{
      .request = 3, .firstQuery = 0, .count = 5, .length = 40, .location = 140};
  const HeldSlots slots = HeldSlots::of(std::array{request}, {.mostGain = 16});
  ASSERT_EQ(slots.requests.size(), 1u);
  EXPECT_EQ(slots.requests[0].spread, abi::kWhole);
  EXPECT_EQ(slots.requests[0].location, 140);
  EXPECT_EQ(slots.requests[0].end, 145);
  EXPECT_TRUE(slots.words.empty());
  EXPECT_TRUE(slots.standIns.empty());
}

// Four drafts behind 13 tokens, in turns of 4: tokens 8 to 11 are rank 0's, 12 to 15 rank 1's.
TEST(HeldSlotsTest, ARankHasSomeOrNoneOfTheDrafts) {
  const tree::DraftedRequest request{.request = 0, .firstQuery = 0, .count = 4, .length = 13, .location = 13};
  const auto slotsOf = [&](int rank, int mostGain, bool mayJoin) {
    const Ranks ranks = Ranks::make(2, rank, RankLayout::Interleaved, 4).value();
    return HeldSlots::of(std::array{request}, {mostGain, &ranks, mayJoin});
  };
  const HeldSlots last = slotsOf(0, 0, false), first = slotsOf(1, 0, false);
  EXPECT_EQ(last.words, (std::vector<unsigned>{0b1000}));
  EXPECT_EQ(last.requests[0].location, 8);
  EXPECT_EQ(last.requests[0].end, 9);
  EXPECT_EQ(first.words, (std::vector<unsigned>{0b0111}));
  EXPECT_EQ(first.requests[0].location, 5);
  EXPECT_EQ(first.requests[0].end, 8);
  EXPECT_EQ(slotsOf(0, 40, false).requests[0].mostGainRuns, 5)
      << "3 to 6, 11 to 14, 19 to 22, 27 to 30, 35 to 38";
  EXPECT_EQ(slotsOf(0, 40, true).requests[0].mostGainRuns, 1);

  const Ranks third = Ranks::make(8, 6, RankLayout::Interleaved, 4).value();
  const HeldSlots none = HeldSlots::of(std::array{request}, {0, &third, false});
  EXPECT_FALSE(none.requests[0].areAny);
  EXPECT_EQ(none.standIns, (std::vector<std::uint8_t>{0, 0, 0, 0}));
}

} // namespace
} // namespace deft::plan
