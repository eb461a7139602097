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

TEST(FamilyTest, EachHasAHeaderWithItsEntry) {
  for (const Family *family : families()) {
    const std::string name(family->name);
    std::ifstream header(std::filesystem::path(DEFT_TEMPLATES_FOLDER) / "deft" / ("attend_" + name + ".cuh"));
    std::stringstream text;
    text << header.rdbuf();
    EXPECT_NE(text.str().find("namespace deft::" + name), std::string::npos) << name;
    EXPECT_NE(text.str().find("attend("), std::string::npos) << name;
  }
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
  EXPECT_EQ(rowsThatHold({32, 1, 128}, {16, 32, 64}), (std::vector{32, 64}));
  EXPECT_EQ(rowsThatHold({71, 1, 128}, {16, 32, 64}), (std::vector{80}));
}

} // namespace
} // namespace deft::kernels
