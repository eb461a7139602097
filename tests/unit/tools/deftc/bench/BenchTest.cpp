#include "runtime/device/Driver.h"
#include "tests/support/RunDeftc.h"
#include "tools/deftc/bench/BenchTable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace deft::cli {
namespace {

using testing::HasSubstr;

RowRun madeUpRow() {
  RowRun run;
  run.row = {"tree_a", "levels:nodes=1,2", "h32_8", 10, 40, "A peer", 80};
  run.contiguous.chosen.items = 12;
  run.contiguous.chosen.partialSlots = 34;
  run.contiguous.chosen.planUs = 5.6;
  run.contiguous.chosen.partition = spec::Partition::Union;
  run.rooflineUs = 12.5;
  run.score = {"tree_a", 20, 18, 10, 10.1, 40, 36, 25, 1.3, 21, 0};
  return run;
}

TEST(BenchTest, ARowShowsItsTimesAndWhatTheyAreHeldAgainst) {
  KernelBenchFlags flags;
  EXPECT_EQ(
      rowHead(flags),
      "tree             cold us   floor  /floor    roof     peer  faster    raw warm us scatter   pg16  "
      "items partials  plan us  partition\n");
  EXPECT_EQ(rowLine(madeUpRow(), flags),
            "tree_a              20.0    10.0    2.00    12.5     40.0    2.00   1.80    18.0    1.25   1.05"
            "     12       34      5.6  union\n");
}

TEST(BenchTest, AQuickRowHasColdTimesOnly) {
  KernelBenchFlags flags;
  flags.quick = true;
  RowRun run = madeUpRow();
  run.score.peerUs = run.score.rawPeerUs = 0;
  EXPECT_EQ(rowHead(flags), "tree             cold us   floor  /floor    roof     peer  faster    raw  items "
                            "partials  plan us  partition\n");
  EXPECT_EQ(rowLine(run, flags), "tree_a              20.0    10.0    2.00    12.5        -       -      -   "
                                 "  12       34      5.6  union\n");
}

TEST(BenchTest, AWrongResultIsSaidInItsLine) {
  RowRun run = madeUpRow();
  run.pages16.emplace();
  run.pages16->check.error = 0.5;
  EXPECT_THAT(rowLine(run, {}), HasSubstr("WRONG: pages of 16: "));
}

TEST(BenchTest, TheSummaryNamesLossesAndTheWorstRow) {
  RowRun fast = madeUpRow(), slow = madeUpRow();
  slow.score.name = "tree_b";
  slow.score.coldUs = 50;
  const RowRun runs[] = {fast, slow};
  const std::string text = summaryText(bench::summarize(scoresOf(runs)));
  EXPECT_THAT(
      text,
      HasSubstr(
          "  1.26 times faster than the best recorded peer in the geometric mean of 2 rows, scaled to this "
          "machine (unscaled 1.14, slower on 1); slower on 1: tree_b; largest loss 25 % (tree_b)\n"));
  EXPECT_THAT(
      text,
      HasSubstr("  time over the floor: 3.16 in the geometric mean of 2 rows, at most 5.00 (tree_b); 2 rows "
                "beyond 1.7: tree_a, tree_b\n"));
  EXPECT_THAT(text, testing::Not(HasSubstr("exploration")));
}

TEST(BenchTest, CeilingsAreShownBesideTheirScale) {
  const auto *recorded = bench::recordedCeilings("NVIDIA H200");
  bench::MeasuredCeilings measured{3, {{1, 4.1, 3.6}, {8, 6.0, 0}}, {900, 950}};
  const std::string text = ceilingsText(bench::Yardstick(measured, recorded));
  EXPECT_THAT(text, HasSubstr("empty launch 3.0 us; matrix units 900 TFLOP/s f16, 950 bf16"));
  EXPECT_THAT(text, HasSubstr("\n  MiB        1      8\n  loads    4.1    6.0\n  bulk     3.6      -\n"));
  EXPECT_THAT(text, HasSubstr("recorded times are of this card, scaled to this machine: reads by 1.000"));
  EXPECT_THAT(text, HasSubstr("matrix products of the floor: 717 TFLOP/s f16, 870 bf16: "));
  EXPECT_EQ(ceilingsText(bench::Yardstick(std::nullopt, recorded)), "ceilings: as recorded\n");
}

TEST(BenchTest, TimesOfAnotherCardAreNotComparedWith) {
  bench::MeasuredCeilings measured{3, {{1, 4.1, 3.6}}, {944, 900}};
  const std::string text = ceilingsText(bench::Yardstick(measured, nullptr));
  EXPECT_THAT(text,
              HasSubstr("recorded times, of peers and floors, are of an NVIDIA H200, so nothing here is "
                        "compared with them\n"));
  EXPECT_THAT(text, testing::Not(HasSubstr("scaled")));
  RowRun run = madeUpRow();
  run.score.peerUs = run.score.rawPeerUs = run.score.recordedFloorUs = 0;
  const RowRun runs[] = {run};
  EXPECT_THAT(summaryText(bench::summarize(scoresOf(runs))), testing::Not(HasSubstr("peer")));
}

/// A package has none of the files that the examples name.
TEST(BenchTest, WhereTheSpecsOfRowsAreIsSaid) {
  const std::vector<std::vector<std::string>> calls = {
      {"bench"}, {"bench", "fasttree"}, {"bench", "all"}, {"bench", "deft"}};
  for (std::vector<std::string> call : calls) {
    call.emplace_back("--help");
    EXPECT_THAT(test::runDeftc(call).out,
                HasSubstr("are in the folder tests/bench of deftc's sources; no package has them"));
  }
  EXPECT_THAT(test::runDeftc({"bench", "flat"}).err,
              HasSubstr("tests/bench/kernel_rows.deft of deftc's sources, or a package"));
  const test::Outcome own = test::runDeftc({"bench", "own", "--workload", "few_shot"});
  EXPECT_EQ(own.code, kExitUsage);
  EXPECT_THAT(own.err, HasSubstr("give a spec, like llama3_8b, or a package"));
  EXPECT_THAT(test::runDeftc({"bench", "own", "--help"}).out, testing::Not(HasSubstr("tests/bench")));
}

TEST(BenchTest, TheSuitesNeedASpecAndAGpu) {
  for (const char *suite : {"fasttree", "deft", "flat", "other", "windows", "ragged", "variants", "all"})
    EXPECT_EQ(test::runDeftc({"bench", suite}).code, kExitUsage) << suite;
  if (device::Driver::load())
    GTEST_SKIP() << "there is a GPU";
  const test::Outcome outcome = test::runDeftc({"bench", "all", "llama3_8b"});
  EXPECT_EQ(outcome.code, kExitEnvironment);
  EXPECT_THAT(outcome.err, HasSubstr("error: "));
}

} // namespace
} // namespace deft::cli
