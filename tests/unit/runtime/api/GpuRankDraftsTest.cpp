// Drafts over ranks on GPUs. `libcuda.so.1` is the tests' driver, whose memory is the host's.
#include "tests/support/DriverCalls.h"
#include "tests/support/FakeCuda.h"
#include "tests/unit/runtime/api/RankedDrafts.h"

#include <gmock/gmock.h>

#include <optional>

namespace deft {
namespace {

using test::RankedDrafts;
using testing::HasSubstr;

constexpr int kHeads = RankedDrafts::kQueryHeads, kDim = RankedDrafts::kHeadDim;
std::size_t index(int i) { return RankedDrafts::index(i); }

/// A rank's plan in a graph, and what the graph reads and writes.
struct Rank {
  PagedBatch batch;
  std::optional<GpuPlan> plan = {};
  RankedDrafts::Cache cache = {};
  std::vector<std::uint16_t> out = {};
  std::vector<float> lse = {};
  void *executable = nullptr;
};

class GpuRankDraftsTest : public testing::Test {
protected:
  GpuRankDraftsTest() {
    fake_cuda::setVariant({kHeads, RankedDrafts::kKvHeads, kDim, RankedDrafts::kPageSize, true, 0.25f});
    EXPECT_EQ(cuStreamCreate(&stream_, 1), 0);
  }

  /// Null: this machine cannot compile the kernel.
  std::unique_ptr<Rank> rankOf(RankedDrafts &of, int number, const GpuPlanOptions &options) {
    auto rank = std::make_unique<Rank>(Rank{PagedBatch::make({.pageSize = RankedDrafts::kPageSize}).value()});
    setRanks(rank->batch, of.ranks(number)).value();
    rank->batch.update(of.requests()).value();
    auto made = rank->batch.plan(attention_, options);
    if (!made && made.error().code == ErrorCode::Environment)
      return nullptr;
    rank->plan.emplace(std::move(made).value());
    rank->cache = of.cacheOf(number, of.lengths());
    rank->out.assign(index(of.queries() * kHeads * kDim), 0);
    rank->lse.assign(index(of.queries() * kHeads), NAN);
    return rank;
  }

  void capture(RankedDrafts &of, Rank &rank, const std::vector<int> *lengths) {
    rank.plan->reserve({.queries = 200, .items = 120, .runs = 4000, .partials = 1500}).value();
    rank.plan->upload(stream_).value();
    void *graph = nullptr;
    ASSERT_EQ(cuStreamBeginCapture_v2(stream_, 1), 0);
    ASSERT_TRUE(rank.plan->draft(of.mask(lengths), stream_));
    const auto ran = rank.plan->run(attention_,
                                    {.q = of.q().data(),
                                     .k = rank.cache.k.data(),
                                     .v = rank.cache.v.data(),
                                     .pageTable = of.entries().data()},
                                    {.out = rank.out.data(), .lse = rank.lse.data()}, stream_);
    ASSERT_TRUE(ran) << ran.error().text();
    ASSERT_EQ(cuStreamEndCapture(stream_, &graph), 0);
    ASSERT_EQ(cuGraphInstantiateWithFlags(&rank.executable, graph, 0), 0);
  }

  /// Replays each rank's graph and merges in float64.
  void expectRight(const RankedDrafts &of, std::vector<std::unique_ptr<Rank>> &ranks,
                   const std::vector<int> &lengths) {
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      const RankedDrafts::Cache now = of.cacheOf(static_cast<int>(r), lengths);
      std::copy(now.k.begin(), now.k.end(), ranks[r]->cache.k.begin());
      std::copy(now.v.begin(), now.v.end(), ranks[r]->cache.v.begin());
      ASSERT_EQ(cuGraphLaunch(ranks[r]->executable, stream_), 0);
      const auto checked = ranks[r]->plan->checkReplays();
      ASSERT_TRUE(checked) << checked.error().text();
    }
    std::vector<double> out(ranks[0]->out.size()), lse(ranks[0]->lse.size());
    for (std::size_t row = 0; row < lse.size(); ++row) {
      double all = 0;
      for (const auto &rank : ranks)
        all += std::exp(double{rank->lse[row]});
      lse[row] = std::log(all);
      for (const auto &rank : ranks) // an empty part's data is ignored
        if (const double weight = std::exp(double{rank->lse[row]}) / all; weight > 0)
          for (std::size_t d = 0; d < kDim; ++d)
            out[row * kDim + d] += weight * RankedDrafts::wide(rank->out[row * kDim + d]);
    }
    of.expectRight(out, lse, lengths);
  }

  std::mt19937 random_{31};
  Gpu gpu_ = Gpu::open(0).value();
  GpuAttention attention_ = GpuAttention::load(gpu_, loadPackage(DEFT_TEST_GPU_PACKAGE).value()).value();
  void *stream_ = nullptr;
};

TEST_F(GpuRankDraftsTest, GraphsFollowTreesAndLengthsThatOnlyTheDeviceHas) {
  unsigned seed = 0;
  for (const RankedDrafts::Layout &layout : RankedDrafts::layouts()) {
    SCOPED_TRACE(layout.name());
    RankedDrafts of(
        layout, {test::draftTree(40, 6, 5, random_), test::draftChain(4), {}, test::draftChain(1)}, ++seed);
    std::vector<int> onGpu = of.lengths();
    std::vector<std::unique_ptr<Rank>> ranks;
    for (int number = 0; number < layout.count; ++number) {
      ranks.push_back(rankOf(of, number, {.followsLengths = true}));
      if (!ranks.back())
        GTEST_SKIP() << "the kernel that places drafts cannot be compiled here";
      ASSERT_NO_FATAL_FAILURE(capture(of, *ranks.back(), &onGpu));
    }
    for (int step = 0; step < 9; ++step) {
      of.redraw();
      for (std::size_t r = 0; r < onGpu.size(); ++r)
        onGpu[r] = of.lengths()[r] + static_cast<int>(random_() % 17);
      if (step % 3 == 2) { // the host hears of the lengths
        of.lengths() = onGpu;
        for (auto &rank : ranks) {
          rank->batch.grow(of.table(), of.lengths()).value();
          rank->plan->advance(rank->batch.tree()).value();
          rank->plan->upload(stream_).value();
        }
      }
      ASSERT_NO_FATAL_FAILURE(expectRight(of, ranks, onGpu)) << "step " << step;
    }
    onGpu[1] = of.lengths()[1] + 65;
    ASSERT_EQ(cuGraphLaunch(ranks[0]->executable, stream_), 0);
    const auto noticed = ranks[0]->plan->checkReplays();
    ASSERT_FALSE(noticed);
    EXPECT_THAT(noticed.error().message, HasSubstr("request 1 had"));
  }
}

// Room for drafts over ranks is there from the first such plan on, and a graph keeps it.
TEST_F(GpuRankDraftsTest, AGraphOfOneRankLayoutServesLaterSteps) {
  RankedDrafts of({.count = 2, .unit = 4}, {test::draftChain(3), test::draftStar(5)}, 3);
  std::vector<std::unique_ptr<Rank>> ranks;
  for (int number = 0; number < 2; ++number) {
    ranks.push_back(rankOf(of, number, {}));
    if (!ranks.back())
      GTEST_SKIP() << "the kernel that places drafts cannot be compiled here";
    const auto early = ranks.back()->plan->draft(of.mask(&of.lengths()), stream_);
    ASSERT_FALSE(early);
    ASSERT_NO_FATAL_FAILURE(capture(of, *ranks.back(), nullptr));
  }
  for (int step = 0; step < 20; ++step) {
    of.redraw();
    for (int &length : of.lengths())
      length += static_cast<int>(random_() % 4);
    for (auto &rank : ranks) {
      rank->batch.grow(of.table(), of.lengths()).value();
      rank->plan->advance(rank->batch.tree()).value();
      rank->plan->upload(stream_).value();
    }
    ASSERT_NO_FATAL_FAILURE(expectRight(of, ranks, of.lengths())) << "step " << step;
  }
}

} // namespace
} // namespace deft
