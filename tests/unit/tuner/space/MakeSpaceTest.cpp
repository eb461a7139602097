#include "tuner/space/MakeSpace.h"

#include "compiler/kernels/Legality.h"
#include "runtime/plan/Auto.h"
#include "tests/support/LatentTensors.h"
#include "tests/unit/tuner/space/SpaceTesting.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace deft::space {
namespace {

std::string errorOf(const std::vector<std::string> &overrides) {
  std::vector<AxisOverride> changes;
  for (const std::string &text : overrides)
    changes.push_back(*parseOverride(text));
  const auto space = makeSpace(llama(), {&hopper(), config::CostCoefficients()}, changes);
  return space ? "made" : space.error().message + " | " + space.error().hint;
}

TEST(MakeSpaceTest, AQueryOfManyRowsFitsTheWideBlocksAlone) {
  spec::Variant variant = llama();
  variant.queryHeads = 71;
  variant.kvHeads = 1;
  const auto isMade = [&](const char *shape) {
    return makeSpace(variant, {&hopper(), config::CostCoefficients()}, {*parseOverride(shape)}).ok();
  };
  EXPECT_TRUE(isMade("shape=sm90"));
  EXPECT_FALSE(isMade("shape=sm90_light"));
  variant.queryHeads = 64;
  EXPECT_TRUE(isMade("shape=sm90_light"));
}

TEST(MakeSpaceTest, AScheduleHoldsTheSpaceToItsLists) {
  spec::Variant variant = llama();
  spec::ScheduleSpec schedule;
  schedule.partitions = {spec::Partition::Union, spec::Partition::Query};
  schedule.chunk = spec::TuneList{{256, 512}, true, {}};
  spec::PhaseSpec wide, narrow;
  wide.name = "wide";
  wide.rowsAbove = 16;
  wide.tileQ = spec::TuneList{{64}, false, {}};
  wide.tileKv = spec::TuneList{{64}, false, {}};
  wide.stages = spec::TuneList{{2, 3}, true, {}};
  wide.warps = spec::TuneList{{4}, false, {}};
  narrow = wide;
  narrow.name = "narrow";
  narrow.rowsAbove.reset();
  narrow.tileQ = spec::TuneList{{16}, false, {}};
  schedule.phases = {wide, narrow};
  variant.schedule = schedule;
  // Partitions, chunks, orders, and the stages of each phase; other prices matter to neither partition.
  EXPECT_EQ(make(variant, &hopper()).size().legal, 2 * 2 * 3 * 2 * 2);
  // A CPU has no rings and one order: of the phases, only rows matter.
  const Space cpu = make(variant, nullptr);
  EXPECT_EQ(cpu.size().legal, 2 * 2);
  EXPECT_EQ(cpu.configOf(cpu.points().front()).phases.size(), 2U);
}

TEST(MakeSpaceTest, OverridesReplaceValuesAndNameWhatIsWrong) {
  const Space space =
      make(llama(), nullptr, {"partition=greedy", "chunk_tokens=512,0", "prices=machine", "tile_q=64"});
  ASSERT_EQ(space.points().size(), 2U);
  EXPECT_EQ(space.configOf(space.points()[0]).chunkTokens, 0); // in order, whatever order was given
  EXPECT_EQ(space.configOf(space.points()[1]).chunkTokens, 512);
  EXPECT_EQ(errorOf({"tiles=1"}).substr(0, 39), "no axis `tiles` | the space has chunk_t");
  EXPECT_EQ(errorOf({"partition=unoin"}), "no partition `unoin` | did you mean `union`?");
  EXPECT_EQ(errorOf({"chunk_tokens=many"}), "`many` is not a number for chunk_tokens | ");
  EXPECT_EQ(errorOf({"chunk_tokens=-5"}), "chunk_tokens = -5 is not between 0 and 16777216 | ");
  EXPECT_EQ(errorOf({"chunk_tokens=0,16777217"}), "chunk_tokens = 16777217 is not between 0 and 16777216 | ");
  EXPECT_EQ(errorOf({"tile_q=0"}), "tile_q = 0 is not between 1 and 1024 | ");
  EXPECT_EQ(errorOf({"tile_kv=2147483632"}), "tile_kv = 2147483632 is not between 1 and 1024 | ");
  EXPECT_EQ(errorOf({"stages=-1"}), "stages = -1 is not between 1 and 8 | ");
  EXPECT_EQ(errorOf({"warps=33"}), "warps = 33 is not between 1 and 32 | ");
  EXPECT_EQ(errorOf({"rows_above=-2"}), "rows_above = -2 is not between 0 and 16777216 | ");
  EXPECT_EQ(errorOf({"shape=sm91"}), "no shape `sm91` | did you mean `sm90`?");
  EXPECT_EQ(parseOverride("chunk").error().message, "`chunk` is no axis with its values");
  EXPECT_EQ(parseOverride("chunk=").error().message, "`chunk=` is no axis with its values");
}

TEST(MakeSpaceTest, AnOverrideIsANameAndValues) {
  const auto change = parseOverride("wide.tile_q=64,128");
  ASSERT_TRUE(change);
  EXPECT_EQ(change->name, "wide.tile_q");
  EXPECT_EQ(change->values, (std::vector<std::string>{"64", "128"}));
  EXPECT_EQ(parseOverride("a=b=c")->values, std::vector<std::string>{"b=c"});
  EXPECT_EQ(parseOverride("a=,b")->values, (std::vector<std::string>{"", "b"}));
  EXPECT_FALSE(parseOverride("=1"));
  EXPECT_FALSE(parseOverride(""));
}

TEST(MakeSpaceTest, ANameWithoutAPhaseMeansAllOfThem) {
  const auto tileQs = [](const Space &space) {
    std::vector<std::vector<int>> values;
    for (const SpaceShape &shape : space.shapes())
      for (const Axis &axis : shape.axes)
        if (axis.knob == Knob::TileQ)
          values.push_back(axis.values);
    return values;
  };
  const Space both = make(llama(), &hopper(), {"shape=sm80+sm80", "tile_q=64,32"});
  EXPECT_EQ(tileQs(both), (std::vector<std::vector<int>>{{32, 64}, {32, 64}}));
  const Space one = make(llama(), &hopper(), {"shape=sm80+sm80", "narrow.tile_q=16"});
  ASSERT_EQ(tileQs(one).size(), 2U);
  EXPECT_GT(tileQs(one)[0].size(), 1U);
  EXPECT_EQ(tileQs(one)[1], std::vector{16});
}

/// Newer families first, each shape with a first phase that can be compiled.
TEST(MakeSpaceTest, ShapesAreThoseOfTheMachine) {
  const auto names = [](const Space &space) {
    std::vector<std::string> names;
    for (const SpaceShape &shape : space.shapes())
      names.push_back(shape.name);
    return names;
  };
  const std::vector<std::string> ofHopper = names(make(llama(), &hopper()));
  EXPECT_EQ(ofHopper.front(), "sm90");
  EXPECT_NE(std::find(ofHopper.begin(), ofHopper.end(), "sm80"), ofHopper.end());
  for (const std::string &name : names(make(llama(), target::findTarget("sm_80"))))
    EXPECT_EQ(name.substr(0, 4), "sm80");
  spec::Variant wide = llama();
  wide.tensors = spec::Tensors::alike(256);
  for (const std::string &name : names(make(wide, &hopper())))
    EXPECT_NE(name, "sm90_light") << "two of them do not fit a multiprocessor";
  using Names = std::vector<std::string>;
  spec::Variant latent = llama(16, 1);
  latent.tensors = test::latentTensors();
  EXPECT_EQ(names(make(latent, &hopper())),
            (Names{"sm90_latent", "sm90_latent_few", "sm80_latent", "sm80_latent+sm80_latent"}));
  EXPECT_EQ(names(make(latent, target::findTarget("sm_80"))),
            (Names{"sm80_latent", "sm80_latent+sm80_latent"}));
}

TEST(MakeSpaceTest, PlansAxesAreThoseOfTheMachine) {
  const auto knobs = [](const Space &space) {
    std::vector<Knob> knobs;
    for (int axis = 0; axis < space.planAxisCount(); ++axis)
      knobs.push_back(space.axes(0)[static_cast<std::size_t>(axis)].knob);
    return knobs;
  };
  EXPECT_EQ(knobs(make(llama(), nullptr)), (std::vector{Knob::Partition, Knob::Chunk, Knob::Cost}));
  EXPECT_EQ(knobs(make(llama(), &hopper())),
            (std::vector{Knob::Partition, Knob::Chunk, Knob::Cost, Knob::Order}));
  // Every partition that `auto` compares is there, and `auto` itself, since what it takes depends on the
  // tree.
  const Axis partitions = make(llama(), nullptr).axes(0)[0];
  EXPECT_EQ(partitions.values.size(), std::size(plan::kAutoPartitions) + 1);
  EXPECT_EQ(partitions.values.front(), static_cast<int>(spec::Partition::Auto));
}

} // namespace
} // namespace deft::space
