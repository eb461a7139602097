#include "runtime/config_cache/VariantLegality.h"

#include "tests/support/VariantBuilder.h"
#include "tests/unit/runtime/config_cache/ConfigTesting.h"

#include <gtest/gtest.h>

namespace deft::config_cache {
namespace {

spec::TuneList list(std::vector<int> values) { return {std::move(values), true, {}}; }

spec::ScheduleSpec twoPhases() {
  spec::ScheduleSpec schedule;
  spec::PhaseSpec wide, narrow;
  wide.name = "wide";
  wide.rowsAbove = 16;
  wide.tileQ = list({64, 128});
  narrow.name = "narrow";
  narrow.stages = list({3});
  schedule.phases = {wide, narrow};
  return schedule;
}

std::string scheduleError(const spec::ScheduleSpec &schedule, const config::Config &config) {
  const auto checked = checkSchedule(schedule, config);
  return checked ? "" : checked.error().message;
}

TEST(VariantLegalityTest, AScheduleLimitsWhatItNamesAndNothingElse) {
  EXPECT_EQ(scheduleError({}, someConfig()), "");
  EXPECT_EQ(scheduleError(twoPhases(), someConfig()), "");
  spec::ScheduleSpec schedule;
  schedule.partitions = {spec::Partition::Node, spec::Partition::Flatten};
  EXPECT_EQ(scheduleError(schedule, someConfig()), "the schedule does not list partition `node_chunk`");
  schedule.partitions = {spec::Partition::Auto};
  EXPECT_EQ(scheduleError(schedule, someConfig()), "");
  schedule.chunk = list({128, 512});
  EXPECT_EQ(scheduleError(schedule, someConfig(256)), "the schedule does not list chunk 256");
  EXPECT_EQ(scheduleError(schedule, someConfig(512)), "");
}

TEST(VariantLegalityTest, PhasesOfAScheduleAreHeldInNumberNameAndTiles) {
  config::Config config = someConfig();
  config.phases[0].tileQ = 32;
  EXPECT_EQ(scheduleError(twoPhases(), config), "the schedule of phase `wide` does not list tile_q 32");
  config = someConfig();
  config.phases[1].stages = 2;
  EXPECT_EQ(scheduleError(twoPhases(), config), "the schedule of phase `narrow` does not list stages 2");
  config = someConfig();
  config.phases[0].rowsAbove = 32;
  EXPECT_NE(scheduleError(twoPhases(), config), "");
  config.phases.erase(config.phases.begin());
  EXPECT_EQ(scheduleError(twoPhases(), config), "the schedule has 2 phases, the config 1");
}

TEST(VariantLegalityTest, AGpuAsksItsTargetAndTheSchedule) {
  spec::Variant variant = test::VariantBuilder(32, 8, 128).variant;
  const target::Target *ampere = target::findTarget("sm_80");
  EXPECT_TRUE(legalityFor(variant, ampere)(someConfig()));
  config::Config config = someConfig();
  config.phases = {{"tiles", -1, config::Family::Sm90, 128, 64, 4, 12}};
  EXPECT_FALSE(legalityFor(variant, ampere)(config));
  EXPECT_TRUE(legalityFor(variant, target::findTarget("sm_90a"))(config));
  variant.schedule = twoPhases();
  EXPECT_FALSE(legalityFor(variant, target::findTarget("sm_90a"))(config));
}

TEST(LegalityTest, ACpuAsksItsFamilyAndTheSchedule) {
  spec::Variant variant = test::VariantBuilder(32, 8, 128).variant;
  config::Config config = someConfig();
  EXPECT_FALSE(legalityFor(variant, nullptr)(config)); // of a GPU
  for (config::PhaseConfig &phase : config.phases)
    phase.family = config::Family::Cpu;
  EXPECT_TRUE(legalityFor(variant, nullptr)(config));
  EXPECT_FALSE(legalityFor(variant, target::findTarget("sm_80"))(config));
  variant.schedule = twoPhases();
  EXPECT_TRUE(legalityFor(variant, nullptr)(config));
  config.phases[0].tileQ = 32;
  EXPECT_FALSE(legalityFor(variant, nullptr)(config));
}

} // namespace
} // namespace deft::config_cache
