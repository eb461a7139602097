#include "runtime/plan/report/BlockTimes.h"

#include "tests/unit/runtime/plan/report/ReportTesting.h"

#include <numeric>
#include <set>

namespace deft::plan {
namespace {

PlanReport gpuReport() {
  return reportOf(test::levelTree({1, 3, 9}, {300, 100, 40}), {4, 2}, makeConfig(16, {16, 8}), 7);
}

TEST(BlockTimesTest, EveryUnitIsComputedOnce) {
  const PlanReport report = gpuReport();
  const BlockTimes times = blockTimes(report);
  ASSERT_EQ(times.unitBegin.size(), 8u);
  EXPECT_EQ(times.units.size(), report.plan.items.size() * 2);
  EXPECT_EQ(std::set<int>(times.units.begin(), times.units.end()).size(), times.units.size());
}

TEST(BlockTimesTest, TheBusiestBlockIsAsBusyAsTheModelsTotalSays) {
  const PlanReport report = gpuReport();
  const BlockTimes times = blockTimes(report);
  EXPECT_GT(report.cost.fullestUs, 0);
  EXPECT_NEAR(times.busiestUs(), report.cost.fullestUs, 1e-9 * report.cost.fullestUs);
  EXPECT_NEAR(std::accumulate(times.loadUs.begin(), times.loadUs.end(), 0.0) / 7, report.cost.blockUs,
              1e-9 * report.cost.blockUs);
}

TEST(BlockTimesTest, AGpusBlocksTakeUnitsInTurn) {
  const PlanReport report = reportOf(test::levelTree({1, 3, 9}, {300, 100, 40}));
  const BlockTimes times = blockTimes(report);
  for (std::size_t block = 0; block < 8; ++block)
    for (int u = times.unitBegin[block]; u < times.unitBegin[block + 1]; ++u)
      EXPECT_EQ(times.units[static_cast<std::size_t>(u)],
                static_cast<int>(block) + 8 * (u - times.unitBegin[block]));
}

TEST(BlockTimesTest, LaunchesFollowEachOther) {
  const BlockTimes times = blockTimes(gpuReport());
  ASSERT_EQ(times.launches.size(), 2u);
  EXPECT_EQ(times.launches[0].beginUs, 0);
  EXPECT_GT(times.launches[0].endUs, 0);
  EXPECT_EQ(times.launches[1].beginUs, times.launches[0].endUs);
}

TEST(BlockTimesTest, ThreadsTakeWhatIsNextAsTheBalanceDeals) {
  config::Config config = makeConfig(16);
  for (config::PhaseConfig &phase : config.phases)
    phase.family = config::Family::Cpu;
  const PlanReport report = reportOf(test::levelTree({1, 3, 9}, {300, 100, 40}), {4, 2}, config, 3);
  const BlockTimes times = blockTimes(report);
  EXPECT_EQ(times.units, report.balance.units);
  EXPECT_EQ(times.loadUs, report.balance.load);
  EXPECT_EQ(times.busiestUs(), report.balance.mostLoad);
}

TEST(BlockTimesTest, BlocksWithoutWorkAreIdle) {
  const BlockTimes times = blockTimes(reportOf(test::levelTree({1}, {20})));
  EXPECT_EQ(times.loadUs.size(), 8u);
  EXPECT_EQ(std::count(times.loadUs.begin(), times.loadUs.end(), 0.0), 6);
}

} // namespace
} // namespace deft::plan
