#include "tools/deftc/common/ConfigOptions.h"

#include "compiler/config/ConfigJson.h"
#include "tests/support/SetVariable.h"
#include "tests/unit/runtime/config_cache/ConfigTesting.h"
#include "tests/unit/runtime/module_cache/TestFolder.h"

#include <CLI/CLI.hpp>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <sstream>

namespace deft::cli {
namespace {

TEST(ConfigOptionsTest, AConfigIsToldByItsPhasesAndOrder) {
  config::Config config = config_cache::someConfig(512);
  EXPECT_EQ(configText(config), "node_chunk, chunk 512; wide 64 rows x 64 tokens, 2 stages, 4 warps; "
                                "narrow 16 rows x 64 tokens, 3 stages, 4 warps");
  config.chunkTokens = 0;
  config.order = config::Order::Alternate;
  EXPECT_EQ(configText(config).find("node_chunk, chunk unlimited, every other item from its leaves; wide "),
            0U)
      << configText(config);
  for (config::PhaseConfig &phase : config.phases)
    phase.family = config::Family::Cpu;
  EXPECT_EQ(phasesText(config), "items of at most 64 rows");
}

TEST(ConfigOptionsTest, DefaultsAreToldByRowsAndWhetherTheyDeal) {
  config::Config config = config_cache::someConfig();
  EXPECT_EQ(defaultName(config), "rows_64");
  config.order = config::Order::Mixed;
  EXPECT_EQ(defaultName(config), "rows_64") << "family sm80 deals nothing";
  config.phases[0].family = config::Family::Sm90;
  EXPECT_EQ(defaultName(config), "rows_64_dealt");
}

TEST(ConfigOptionsTest, AConfigThatTheUserGaveHasToBeUsable) {
  config_cache::Ruling ruling;
  EXPECT_TRUE(checkGiven(ruling));
  ruling.rejected.push_back(
      {config_cache::LoadedEntry{config_cache::someEntry(), config_cache::h200(), {}, "tuned.json"},
       "tuned.json", "old"});
  EXPECT_TRUE(checkGiven(ruling)) << "of many tuned ones others are taken";
  ruling.rejected.push_back({std::nullopt, "mine.json", "too many rows"});
  const auto refused = checkGiven(ruling);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, support::ErrorCode::Usage);
  EXPECT_EQ(refused.error().message, "`mine.json` cannot be used: too many rows");
}

TEST(ConfigOptionsTest, PlacesThatAreNotThereAreNone) {
  EXPECT_EQ(placesText({"", "/home/me", ""}), "override none; user /home/me; installed none");
  EXPECT_EQ(placesText({"a.json", "", "/usr/share"}), "override a.json; user none; installed /usr/share");
}

TEST(ConfigOptionsTest, AFileThatIsNoConfigIsRefusedWhereItIsNamed) {
  const module_cache::TestFolder folder;
  module_cache::writeText(folder.path("config.json"), config::toJson(config_cache::someConfig()).dump());
  module_cache::writeText(folder.path("broken.json"), "{");
  const auto parses = [](const std::string &path) {
    CLI::App app;
    std::string given;
    bool isUntuned = false;
    addConfigOption(app, given);
    addUntunedFlag(app, isUntuned);
    try {
      app.parse({path, "--config"});
    } catch (const CLI::ParseError &) {
      return false;
    }
    return true;
  };
  EXPECT_TRUE(parses(folder.path("config.json")));
  EXPECT_FALSE(parses(folder.path("broken.json")));

  std::ostringstream none;
  Context context{none, none, false, false, {}, false};
  const auto absent = readsConfigs(context, folder.path("none.json"));
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code, support::ErrorCode::Environment) << "as of each file that is missing";
  EXPECT_TRUE(readsConfigs(context, folder.path("config.json")));

  const auto ofVariable = [&](const std::string &name) {
    const test::SetVariable variable("DEFT_CONFIG_PATH", name.empty() ? name : folder.path(name));
    const auto read = readsConfigs(context, "");
    return read ? support::Error{} : read.error();
  };
  EXPECT_EQ(ofVariable("none.json").message, absent.error().message) << "what is named is named";
  EXPECT_EQ(ofVariable("none.json").hint, "DEFT_CONFIG_PATH names it");
  EXPECT_EQ(ofVariable("broken.json").code, support::ErrorCode::Usage);
  for (const char *name : {"", "config.json", "."})
    EXPECT_EQ(ofVariable(name).message, "") << name;
  const test::SetVariable broken("DEFT_CONFIG_PATH", folder.path("broken.json"));
  EXPECT_TRUE(readsConfigs(context, folder.path("config.json"))) << "which goes first";
}

} // namespace
} // namespace deft::cli
