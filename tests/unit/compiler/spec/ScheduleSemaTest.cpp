#include "tests/unit/compiler/spec/SpecTesting.h"

#include <gmock/gmock.h>

namespace deft::spec::testing {
namespace {

ScheduleSpec schedule(const std::string &items) {
  Compiled compiled = compile(attention("schedule { " + items + " }"));
  EXPECT_EQ(compiled.findings, "");
  return compiled.variants.empty() ? ScheduleSpec() : *compiled.only().schedule;
}

// Rule S1.
TEST(ScheduleSemaTest, TuneListsKeepTheirOrder) {
  ScheduleSpec s = schedule("partition = tune(union, node, auto); chunk = tune(256, 64);");
  EXPECT_EQ(s.partitions, (std::vector<Partition>{Partition::Union, Partition::Node, Partition::Auto}));
  EXPECT_TRUE(s.chunk->tunable);
  EXPECT_EQ(s.chunk->values, (std::vector<int>{256, 64}));
  s = schedule("partition = node_chunk; chunk = 64;");
  EXPECT_EQ(s.partitions, std::vector<Partition>{Partition::NodeChunk});
  EXPECT_FALSE(s.chunk->tunable);
}

TEST(ScheduleSemaTest, EveryPartitionHasAName) {
  for (const std::string &name : partitionNames())
    EXPECT_STREQ(toString(schedule("partition = " + name + ";").partitions.at(0)), name.c_str());
}

// Rules S2, S3.
TEST(ScheduleSemaTest, PhasesInOrder) {
  ScheduleSpec s =
      schedule("phase wide when rows > 64 { tile_q = tune(64, 128); tile_kv = 64; stages = 3; warps = 8; }"
               "phase mid when rows > 2 * 8 { } phase narrow otherwise { tile_q = 16; }");
  ASSERT_EQ(s.phases.size(), 3u);
  EXPECT_EQ(s.phases[0].name, "wide");
  EXPECT_EQ(s.phases[0].rowsAbove, 64);
  EXPECT_EQ(s.phases[0].tileQ->values, (std::vector<int>{64, 128}));
  EXPECT_EQ(s.phases[0].warps->values, std::vector<int>{8});
  EXPECT_EQ(s.phases[1].rowsAbove, 16);
  EXPECT_FALSE(s.phases[1].tileQ);
  EXPECT_FALSE(s.phases[2].rowsAbove);
}

// Rule S2.
TEST(ScheduleSemaTest, NumbersHaveALeastAndAMost) {
  const auto findings = [](const std::string &keys) {
    return compile(attention("schedule { phase all otherwise { " + keys + " } }")).findings;
  };
  EXPECT_EQ(findings("tile_q = 16; tile_kv = 1024; stages = 2; warps = 32;"), "");
  EXPECT_EQ(findings("stages = 8; warps = 1;"), "");
  EXPECT_THAT(findings("stages = 1;"), ::testing::HasSubstr("stages = 1 is below 2"));
  EXPECT_THAT(findings("stages = 9;"), ::testing::HasSubstr("stages = 9 is above the limit of 8"));
  EXPECT_THAT(findings("tile_q = 0;"), ::testing::HasSubstr("tile_q = 0 is below 16"));
  EXPECT_THAT(findings("tile_q = 24;"), ::testing::HasSubstr("tile_q = 24 is not a multiple of 16"));
  EXPECT_THAT(findings("warps = 33;"), ::testing::HasSubstr("warps = 33 is above the limit of 32"));
}

TEST(ScheduleSemaTest, AnEmptyScheduleIsASchedule) {
  EXPECT_TRUE(schedule("").phases.empty());
  EXPECT_FALSE(schedule("").chunk);
}

} // namespace
} // namespace deft::spec::testing
