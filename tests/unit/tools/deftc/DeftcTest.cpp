/// What all commands have in common: help, usage, the version.

#include "tools/deftc/common/Commands.h"

#include "tests/support/RunDeftc.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <stdexcept>

namespace deft::cli {
namespace {

using test::Outcome;
using testing::HasSubstr;
using testing::StartsWith;

test::Outcome run(const std::vector<std::string> &arguments) { return test::runDeftc(arguments); }

TEST(DeftcTest, EveryCommandHasHelpWithAnExample) {
  std::string all = run({"--help"}).out;
  for (const char *command : {
#define DEFT_COMMAND_NAME(ID, NAME) #NAME,
           DEFT_COMMANDS(DEFT_COMMAND_NAME)
#undef DEFT_COMMAND_NAME
       }) {
    EXPECT_THAT(all, HasSubstr(command));
    Outcome help = run({command, "--help"});
    EXPECT_EQ(help.code, kExitOk);
    EXPECT_THAT(help.out, testing::ContainsRegex(std::string("Examples?:\n  deftc ") + command));
    EXPECT_EQ(help.err, "");
  }
}

TEST(DeftcTest, VersionGoesToTheOutput) {
  Outcome version = run({"--version"});
  EXPECT_EQ(version.code, kExitOk);
  EXPECT_THAT(version.out, StartsWith("deftc "));
}

TEST(DeftcTest, WrongUsageIsTwoAndWritesNothingToTheOutput) {
  for (std::vector<std::string> arguments : {std::vector<std::string>{},
                                             {"chek"},
                                             {"check"},
                                             {"check", "--nonsense", "x"},
                                             {"emit", "llama3_8b"},
                                             {"emit", "llama3_8b", "--as", "jsn"},
                                             {"specs", "llama"},
                                             {"emit", "gemma2_9b", "--as", "json"}}) {
    Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, kExitUsage) << testing::PrintToString(arguments);
    EXPECT_EQ(outcome.out, "");
    EXPECT_NE(outcome.err, "");
  }
}

TEST(DeftcTest, QuietMayStandBeforeAndBehindTheCommand) {
  EXPECT_EQ(run({"-q", "specs"}).code, kExitOk);
  EXPECT_EQ(run({"specs", "--quiet"}).code, kExitOk);
  EXPECT_EQ(run({"specs", "-q"}).code, kExitOk);
}

TEST(DeftcTest, TheVersionHasAShortName) { EXPECT_EQ(run({"-V"}).out, run({"--version"}).out); }

TEST(DeftcTest, HelpIsAlsoACommand) {
  EXPECT_EQ(run({"help"}).out, run({"--help"}).out);
  EXPECT_EQ(run({"help", "cache", "show"}).out, run({"cache", "show", "--help"}).out);
  EXPECT_THAT(run({"help", "cache", "show"}).out, HasSubstr("--family"));
}

TEST(DeftcTest, AnExceptionIsAnInternalErrorAndNoCrash) {
  struct Throwing : std::streambuf {
    int_type overflow(int_type) override { throw std::runtime_error("out of luck"); }
  } buffer;
  std::ostringstream err;
  std::ostream broken(&buffer);
  broken.exceptions(std::ios::badbit); // lets the exception through
  Context context{broken, err, false, false, {}, false};
  const char *argv[] = {"deftc", "specs"};
  EXPECT_EQ(runDeftc(2, argv, context), kExitInternal);
  EXPECT_THAT(err.str(), StartsWith("internal error: out of luck\n"));
  EXPECT_THAT(err.str(), HasSubstr("bug in deftc"));
}

} // namespace
} // namespace deft::cli
