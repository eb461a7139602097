#include "compiler/kernels/Family.h"
#include "compiler/config/ConfigJson.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace deft::kernels {
namespace {

TEST(FamilyTest, EachStandsUnderItsIdAndTheNameOfConfigFiles) {
  const Families all = families();
  for (std::size_t i = 0; i < all.size(); ++i)
    EXPECT_EQ(all[i]->name, config::familyName(static_cast<config::Family>(i)));
  EXPECT_EQ(familyOf({.name = "tiles", .family = config::Family::Sm90}).name, "sm90");
}

TEST(FamilyTest, EachOfAGpuHasAHeaderWithItsEntry) {
  for (const Family *family : families()) {
    if (family->device == config::DeviceKind::Cpu)
      continue;
    const std::string name(family->name);
    std::ifstream header(std::filesystem::path(DEFT_TEMPLATES_FOLDER) / "deft" / ("attend_" + name + ".cuh"));
    std::stringstream text;
    text << header.rdbuf();
    EXPECT_NE(text.str().find("namespace deft::" + name), std::string::npos) << name;
    EXPECT_NE(text.str().find("attend("), std::string::npos) << name;
  }
}

TEST(FamilyTest, EachRunsWhereItsInstructionsAre) {
  using All = std::vector<const Family *>;
  EXPECT_EQ(familiesOn(target::findTarget("sm_80")), (All{&sm80, &sm80_latent}));
  EXPECT_EQ(familiesOn(target::findTarget("sm_90a")), (All{&sm80, &sm90, &sm80_latent, &sm90_latent}));
  EXPECT_EQ(familiesOn(nullptr), (All{&cpu}));
  EXPECT_EQ(namesOf(familiesOn(target::findTarget("sm_90a"))),
            "family sm80 or sm90 or sm80_latent or sm90_latent");
  EXPECT_EQ(namesOf({}), "");
  for (const target::Target &target : target::targets())
    EXPECT_EQ(&familyOfSchedules(&target), &sm80) << target.arch;
  EXPECT_EQ(&familyOfSchedules(nullptr), &cpu);
}

TEST(FamilyTest, EachReadsValuesWhereItsCachesHaveThem) {
  spec::Tensors apart = spec::Tensors::alike(128), inKeys = apart;
  inKeys.valueInKey = true;
  for (const Family *family : {&sm80, &sm90})
    EXPECT_TRUE(readsValuesOf(*family, apart) && !readsValuesOf(*family, inKeys)) << family->name;
  for (const Family *family : {&sm80_latent, &sm90_latent})
    EXPECT_TRUE(!readsValuesOf(*family, apart) && readsValuesOf(*family, inKeys)) << family->name;
  EXPECT_TRUE(readsValuesOf(cpu, apart) && readsValuesOf(cpu, inKeys));
}

TEST(FamilyTest, OfACpuTheRowsAloneCount) {
  config::Config config;
  EXPECT_FALSE(countsRowsAlone(config));
  config.phases = {{.name = "tiles", .family = config::Family::Cpu}};
  EXPECT_TRUE(countsRowsAlone(config));
  config.phases.push_back({.name = "tiles", .family = config::Family::Sm80});
  EXPECT_FALSE(countsRowsAlone(config));
}

TEST(FamilyTest, PlansOfOrderMixedAreDealtWhereAKernelCan) {
  config::Config config;
  config.phases = {{.name = "wide", .family = config::Family::Sm80},
                   {.name = "tiles", .family = config::Family::Sm90}};
  EXPECT_FALSE(isDealt(config));
  config.order = config::Order::Mixed;
  EXPECT_TRUE(isDealt(config));
  EXPECT_FALSE(isDealt(config.phases[0], config.order));
  EXPECT_TRUE(readsByTensorMap(config));
  config.phases.pop_back();
  EXPECT_FALSE(isDealt(config));
  EXPECT_FALSE(readsByTensorMap(config));
}

TEST(FamilyTest, RowsOfTilesHoldAQuery) {
  EXPECT_EQ(rowsThatHold({32, 1, spec::Tensors::alike(128)}, {16, 32, 64}), (std::vector{32, 64}));
  EXPECT_EQ(rowsThatHold({71, 1, spec::Tensors::alike(128)}, {16, 32, 64}), (std::vector{80}));
}

} // namespace
} // namespace deft::kernels
