// What shells and man are told: made of the parser, and read by the shells themselves where they are
// installed.
#include "tests/support/RunDeftc.h"
#include "tests/unit/runtime/module_cache/TestFolder.h"
#include "tools/deftc/common/Commands.h"
#include "tools/deftc/shell/Conventions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>

namespace deft::cli {
namespace {

using testing::HasSubstr;

std::string made(const std::string &kind) {
  const test::Outcome outcome = test::runDeftc({"completions", kind});
  EXPECT_EQ(outcome.code, kExitOk) << outcome.err;
  return outcome.out;
}

std::string outputOf(const std::string &command) {
  std::string text;
  FILE *pipe = ::popen(command.c_str(), "r");
  std::array<char, 4096> buffer;
  for (std::size_t count; pipe && (count = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
    text.append(buffer.data(), count);
  if (pipe)
    ::pclose(pipe);
  return text;
}

/// What bash offers for the last of the words.
std::string completed(const std::string &words, int at) {
  const module_cache::TestFolder folder;
  const std::string file = folder.path("deft-completions.bash");
  module_cache::writeText(file, made("bash"));
  return outputOf("bash -c 'source " + file + "; COMP_WORDS=(" + words +
                  "); COMP_CWORD=" + std::to_string(at) + "; _deftc; echo \"${COMPREPLY[@]}\"'");
}

TEST(CompletionsTest, BashOffersCommandsOptionsAndValues) {
  EXPECT_EQ(completed("deftc ex", 1), "explain\n");
  EXPECT_EQ(completed("deftc cache sh", 2), "show\n");
  EXPECT_EQ(completed("deftc run --rep", 2), "--repeat\n");
  EXPECT_EQ(completed("deftc run --tr", 2), "--tree\n"); // one of a group
  EXPECT_EQ(completed("deftc run llama3_8b --backend cp", 4), "cpu\n");
}

TEST(CompletionsTest, BashOffersSpecsAndWorkloadsThatShip) {
  EXPECT_EQ(completed("deftc run llama3_8b_sp", 2), "llama3_8b_sparse\n");
  EXPECT_EQ(completed("deftc bench own llama3_8b_sp", 3), "llama3_8b_sparse\n");
  EXPECT_EQ(completed("deftc specs librar", 2), "library\n");
  EXPECT_EQ(completed("deftc workloads few_", 2), "few_shot\n");
  for (const char *command :
       {"run llama3_8b", "plan llama3_8b", "compare llama3_8b", "tune llama3_8b", "classify",
        "explain llama3_8b", "bench own llama3_8b", "cache renew llama3_8b", "cache regret llama3_8b"}) {
    const std::string words = std::string("deftc ") + command + " --workload few_";
    EXPECT_EQ(completed(words, static_cast<int>(std::count(words.begin(), words.end(), ' '))), "few_shot\n")
        << command;
  }
}

TEST(CompletionsTest, BashOffersFilesBesideSpecsWhereBothGo) {
  const std::string here = completed("deftc run /de", 2), both = completed("deftc build l", 2);
  EXPECT_THAT(here, HasSubstr("/dev"));
  EXPECT_THAT(both, HasSubstr("llama3_8b"));
  EXPECT_THAT(both, testing::Not(HasSubstr("library"))) << "it has no attention";
  EXPECT_EQ(completed("deftc specs /de", 2), "\n");
}

TEST(CompletionsTest, BashOffersKindsThatEmitExplains) {
  EXPECT_EQ(completed("deftc emit llama3_8b --as js", 4), "json\n");
}

TEST(CompletionsTest, TheOthersHaveTheNames) {
  EXPECT_THAT(made("zsh"), HasSubstr("\"specs:shipped spec:("));
  EXPECT_THAT(made("zsh"), testing::ContainsRegex("--workload\\[[^]]*\\]:value:\\([^)]*few_shot"));
  EXPECT_THAT(made("fish"), testing::ContainsRegex("from run' -a '[^']*llama3_8b"));
  EXPECT_THAT(made("fish"), testing::ContainsRegex("from run' -l workload -d '[^']*' -x -a '[^']*few_shot"));
}

TEST(CompletionsTest, EveryCommandIsInEachOfThem) {
  for (const char *kind : {"bash", "zsh", "fish", "man"})
    for (const char *command : {
#define DEFT_COMMAND_NAME(ID, NAME) #NAME,
             DEFT_COMMANDS(DEFT_COMMAND_NAME)
#undef DEFT_COMMAND_NAME
         })
      EXPECT_THAT(made(kind), HasSubstr(command)) << kind;
}

TEST(ConventionsTest, ThePageOfTheCommandLineHasTheSameTables) {
  std::ostringstream read;
  read << std::ifstream(DEFT_COMMAND_LINE_PAGE).rdbuf();
  std::string page = read.str();
  ASSERT_FALSE(page.empty());
  std::erase(page, '`');
  const auto holds = [&](const auto &conventions) {
    std::string rows;
    for (const Convention &one : conventions)
      rows += std::string("| ") + one.name + " | " + one.meaning + " |\n";
    EXPECT_THAT(page, HasSubstr("|---|---|\n" + rows + "\n"));
  };
  holds(kExitCodes);
  holds(kEnvironment);
}

TEST(CompletionsTest, AnUnknownShellIsNamed) {
  const test::Outcome outcome = test::runDeftc({"completions", "fsh"});
  EXPECT_EQ(outcome.code, kExitUsage);
  EXPECT_THAT(outcome.err, HasSubstr("KIND cannot be `fsh`\n  = hint: did you mean `zsh`?"));
}

} // namespace
} // namespace deft::cli
