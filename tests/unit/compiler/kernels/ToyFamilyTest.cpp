#include "compiler/codegen/cuda/Instantiate.h"
#include "compiler/kernels/DefaultConfig.h"
#include "compiler/kernels/Legality.h"
#include "compiler/kernels/Occupancy.h"
#include "compiler/kernels/SharedMemory.h"
#include "runtime/plan/Planner.h"
#include "tests/support/Forest.h"
#include "tuner/space/MakeSpace.h"

#include <gtest/gtest.h>

/// A family that stands in no program's list: what docs/add-a-family.md describes, and that every room which
/// asks a family works by the value alone.
namespace deft::kernels {
namespace {

constexpr PhaseRule kToyRules[] = {
    {"toy rows", [](const PhaseSite &site) { return site.phase.tileQ % 48 == 0; },
     [](const PhaseSite &site) {
       return "tile_q is " + std::to_string(site.phase.tileQ) + "; family toy takes multiples of 48";
     },
     [](const PhaseSite &) -> std::string { return "use 48"; }},
};

const auto kToyId = static_cast<config::Family>(families().size()); ///< behind those of the program

const PhaseConfig kToyPhase{"tiles", -1, kToyId, 48, 32, 2, 6};

const Family kToy{
    .name = "toy",
    .device = config::DeviceKind::Gpu,
    .mma = target::Mma::Sync,
    .rules = kToyRules,
    .countsRowsAlone = false,
    .smemBytes = [](const KernelShape &shape,
                    const PhaseConfig &phase) { return 10 * shape.tensors.k.dim * phase.stages; },
    .registers = [](const PhaseSite &) { return 40; },
    .blocksAtOnce = "deft::toy::kBlocks",
    .canDeal = true,
    .mostWaves = 3,
    .readsByTensorMap = true,
    .whyNotInvariant = "which is a toy",
    .paddedRows = [](const PhaseConfig &, int rows) { return (rows + 23) / 24 * 24; },
    .tileCost = [](const PhaseConfig &, int paddedRows, const config::CostCoefficients &) -> TileCost {
      return {.gflops = paddedRows > 24 ? 1000.0 : 500.0, .stepShare = 3, .itemShare = 5};
    },
    .groupRows = 24,
    .defaults = [](const KernelShape &, const target::Target *) -> std::vector<DefaultKernel> {
      return {{kToyPhase}, {kToyPhase, config::Order::Mixed}};
    },
    .scheduled = nullptr,
    .tuned = [](const KernelShape &) -> std::vector<TunedPhases> {
      return {{"toy", {{kToyPhase, {}, {48, 64, 96}, {}, {2, 3}, {}}}}};
    },
    .tunedOfSchedule = nullptr,
    .mostTunedRows = 0,
    .oddness = nullptr,
};

const std::vector<const Family *> &withToy() {
  static const std::vector<const Family *> all = [] {
    const Families known = families();
    std::vector<const Family *> list(known.begin(), known.end());
    list.push_back(&kToy);
    return list;
  }();
  return all;
}

const KernelShape kShape{32, 8, spec::Tensors::alike(128)};

spec::Variant variant() {
  spec::Variant made;
  made.name = "v";
  made.queryHeads = 32;
  made.kvHeads = 8;
  made.tensors = spec::Tensors::alike(128);
  return made;
}

const target::Target *ampere() { return target::findTarget("sm_80"); }

TEST(ToyFamilyTest, IsLegalByItsOwnRulesAndThoseOfAll) {
  EXPECT_TRUE(checkPhase(kShape, kToyPhase, ampere(), withToy())); // none of sm90's rules or sm80's: 6 warps
  PhaseConfig phase = kToyPhase;
  phase.tileQ = 64;
  const auto ofRows = checkPhase(kShape, phase, ampere(), withToy());
  ASSERT_FALSE(ofRows);
  EXPECT_EQ(ofRows.error().message, "phase `tiles`: tile_q is 64; family toy takes multiples of 48");
  EXPECT_EQ(ofRows.error().hint, "use 48");
  phase = kToyPhase;
  phase.stages = 9;
  EXPECT_EQ(checkPhase(kShape, phase, ampere(), withToy()).error().message,
            "phase `tiles`: stages is 9, not between 2 and 8");
  phase.stages = 8;
  const auto ofBytes = checkPhase({2, 2, spec::Tensors::alike(4096)}, phase, ampere(), withToy());
  ASSERT_FALSE(ofBytes);
  EXPECT_EQ(ofBytes.error().message,
            "phase `tiles`: it needs 327680 bytes of shared memory; sm_80 allows 166912");
}

TEST(ToyFamilyTest, SharesAMultiprocessorByItsBytesAndRegisters) {
  EXPECT_EQ(smemBytes(kShape, kToyPhase, withToy()), 2560);
  // 65536 registers for blocks of 192 threads with 40 each.
  EXPECT_EQ(blocksPerSm(kShape, kToyPhase, ampere(), withToy()), 8);
  config::Config config;
  config.phases = {kToyPhase};
  EXPECT_EQ(estimateBlocks(kShape, config, ampere(), 100, withToy()), 800);
}

TEST(ToyFamilyTest, IsLaunchedInItsWaves) {
  EXPECT_EQ(mostBlocks(kToyPhase, 800, withToy()), 2400);
  EXPECT_EQ(mostBlocks({.name = "tiles", .family = config::Family::Sm90}, 800, withToy()), 800);
}

TEST(ToyFamilyTest, SaysWhyNoInvariantPlanUsesItAndWhatWouldDo) {
  config::Config config;
  config.partition = spec::Partition::Node;
  config.chunkTokens = 64;
  config.phases = {kToyPhase};
  const tree::KvTree tree = test::levelTree({1, 3}, {100, 40});
  const plan::VariantFacts facts = plan::VariantFacts::of(variant());
  plan::Planner planner({.isInvariant = true, .families = withToy()});
  plan::Plan plan;
  const auto refused = planner.make(tree, facts, config, 8, plan);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "an invariant plan cannot use family toy, which is a toy");
  EXPECT_EQ(refused.error().hint, "use a phase of family sm80");
  config.phases[0].family = config::Family::Sm80;
  EXPECT_TRUE(planner.make(tree, facts, config, 8, plan));
}

TEST(ToyFamilyTest, PlansDealTokensAsItsKernelsTakeThem) {
  config::Config config;
  config.phases = {kToyPhase};
  config.phases[0].tileQ = 64;
  config.order = config::Order::Mixed;
  const tree::KvTree tree = test::levelTree({1, 4}, {128, 40});
  const plan::VariantFacts facts{.ratio = 16}; // rows of a warp
  plan::Planner planner({.families = withToy()});
  plan::Plan plan;
  ASSERT_TRUE(planner.make(tree, facts, config, 1, plan));
  EXPECT_GT(plan::summarize(plan, facts).dealtItems, 0);
  config.phases[0].family = config::Family::Sm80; // which cannot deal
  ASSERT_TRUE(planner.make(tree, facts, config, 1, plan));
  EXPECT_EQ(plan::summarize(plan, facts).dealtItems, 0);
}

TEST(ToyFamilyTest, IsWhatTreesChooseFromAsTheNewest) {
  const auto configs = defaultConfigs(variant(), ampere(), withToy());
  ASSERT_TRUE(configs) << configs.error().message;
  ASSERT_EQ(configs->size(), 2u);
  EXPECT_EQ((*configs)[0].phases[0].family, kToyId);
  EXPECT_EQ((*configs)[0].partition, spec::Partition::Auto);
  EXPECT_FALSE(isDealt((*configs)[0], withToy()));
  EXPECT_TRUE(isDealt((*configs)[1], withToy()));
  EXPECT_TRUE(readsByTensorMap((*configs)[0], withToy()));
}

TEST(ToyFamilyTest, IsPricedByItsRowsAndTiles) {
  config::Config config;
  config.phases = {kToyPhase};
  config.cost.stepUs = 2;
  config.cost.itemUs = 7;
  plan::VariantFacts facts;
  facts.ratio = 4;
  plan::CostModel model;
  model.set(facts, config, config.cost, 1, withToy());
  const auto usOf = [](int rows, double gflops) { // two products of 128 columns with 32 tokens
    return 3 * 2 + 4e-9 * 128 * rows * 32 / gflops * 1e6;
  };
  EXPECT_DOUBLE_EQ(model.stepUs(1), usOf(24, 500));
  EXPECT_DOUBLE_EQ(model.stepUs(6), usOf(24, 500));
  EXPECT_DOUBLE_EQ(model.stepUs(7), usOf(48, 1000));
  EXPECT_DOUBLE_EQ(model.itemUs(), 35);
}

TEST(ToyFamilyTest, IsTriedByTheTunerWhereItIsLegal) {
  const auto space = space::makeSpace(variant(), {ampere(), {}, withToy()});
  ASSERT_TRUE(space) << space.error().message;
  ASSERT_EQ(space->shapes().front().name, "toy");
  // Two of three widths are legal, each with two depths.
  EXPECT_EQ(space->kernelsOf(0).size(), 4u);
  for (const space::Point &point : space->kernelsOf(0))
    EXPECT_EQ(space->configOf(point).phases[0].tileQ % 48, 0);
}

TEST(ToyFamilyTest, ItsKernelIncludesItsHeaderAndSaysItsBounds) {
  codegen::cuda::VariantSource source;
  source.name = "v";
  source.queryHeads = 32;
  source.kvHeads = 8;
  source.tensors = spec::Tensors::alike(128);
  const std::string text =
      codegen::cuda::instantiateAttend(source, kToyPhase, config::Order::Mixed, withToy());
  for (const char *line : {"#include \"deft/attend_toy.cuh\"\n", "  static constexpr bool kIsDealt = true;\n",
                           "static_assert(deft::toy::smemBytes<Config>() == 2560, ",
                           "__launch_bounds__(32 * Config::kWarps, deft::toy::kBlocks)\n",
                           "  deft::toy::attend<Config, Variant>("})
    EXPECT_NE(text.find(line), std::string::npos) << line << "\nis not in\n" << text;
}

} // namespace
} // namespace deft::kernels
