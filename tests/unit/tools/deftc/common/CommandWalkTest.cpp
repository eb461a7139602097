#include "tools/deftc/common/CommandWalk.h"

#include <CLI/CLI.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace deft::cli {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class CommandWalkTest : public testing::Test {
protected:
  CommandWalkTest() {
    CLI::App *const cache = app.add_subcommand("cache");
    cache->add_subcommand("show")->add_option("--family", "")->check(CLI::IsMember({"tree", "star"}));
    cache->add_subcommand("clear");
    CLI::App *const run = app.add_subcommand("run");
    run->add_flag("-q,--quiet");
    CLI::App *const group = run->add_option_group("input");
    group->add_option("--tree");
    group->add_option("SPEC");
  }

  const WalkedCommand &at(const std::string &path) {
    for (const WalkedCommand &command : commands_ = walkCommands(app))
      if (command.path == path)
        return command;
    ADD_FAILURE() << "no " << path;
    return commands_.front();
  }

  CLI::App app{"", "prog"};

private:
  std::vector<WalkedCommand> commands_;
};

TEST_F(CommandWalkTest, CommandsStandBeforeThoseBelowThem) {
  std::vector<std::string> paths;
  for (const WalkedCommand &command : walkCommands(app))
    paths.push_back(command.path);
  EXPECT_THAT(paths, ElementsAre("prog", "prog cache", "prog cache show", "prog cache clear", "prog run"));
  EXPECT_THAT(at("prog").subcommands(), ElementsAre("cache", "run"));
  EXPECT_THAT(at("prog cache").subcommands(), ElementsAre("show", "clear"));
  EXPECT_THAT(at("prog run").subcommands(), IsEmpty()) << "a group of options is no command";
}

TEST_F(CommandWalkTest, OptionsOfGroupsAreTheCommands) {
  EXPECT_THAT(at("prog run").options(), ElementsAre("--help", "-h", "--quiet", "-q", "--tree"));
  EXPECT_EQ(at("prog run").allOptions().size(), 4U) << "what has a place and no dashes is one, too";
  EXPECT_THAT(at("prog cache").options(), ElementsAre("--help", "-h"));
}

TEST_F(CommandWalkTest, ListedValuesAreThoseThatAreChecked) {
  EXPECT_THAT(listedValues(*at("prog cache show").app->get_option("--family")), ElementsAre("tree", "star"));
  EXPECT_THAT(listedValues(*at("prog run").app->get_option("--quiet")), IsEmpty());
}

TEST_F(CommandWalkTest, NamesThatShipAreOfferedByTheTypeOfAnOption) {
  CLI::Option *const option = app.add_option("--of");
  const auto offered = [option](const char *type) { return offeredNames(*option->type_name(type)); };
  EXPECT_THAT(offered("TEXT").names, IsEmpty());
  EXPECT_THAT(offered(kWorkloadName).names, testing::Contains("few_shot"));
  EXPECT_THAT(offered(kSpecName).names, testing::IsSupersetOf({"llama3_8b", "library"}));
  EXPECT_FALSE(offered(kSpecName).areFilesToo);
  EXPECT_THAT(offered(kSpecOrFile).names,
              testing::AllOf(testing::Contains("llama3_8b"), testing::Not(testing::Contains("library"))));
  EXPECT_TRUE(offered(kSpecOrFile).areFilesToo);
}

TEST_F(CommandWalkTest, TheFirstLineIsAllOfAShortText) {
  EXPECT_EQ(firstLine("one\ntwo\n"), "one");
  EXPECT_EQ(firstLine("one"), "one");
  EXPECT_EQ(firstLine("\ntwo"), "");
}

} // namespace
} // namespace deft::cli
