#include "tools/deftc/common/Arguments.h"

#include "runtime/exec/cpu/Processors.h"
#include "tests/support/RunDeftc.h"

#include <CLI/CLI.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>

namespace deft::cli {
namespace {

using testing::HasSubstr;

test::Outcome run(const std::vector<std::string> &arguments) { return test::runDeftc(arguments); }

/// What a validator says of a text; empty: nothing.
std::string said(const CLI::Validator &validator, const std::string &text) { return validator(text); }

TEST(ArgumentsTest, NumbersAreWholeTextsWithinTheirLimits) {
  EXPECT_EQ(said(atLeast(1), "1"), "");
  EXPECT_EQ(said(atLeast(0), "2147483647"), "");
  EXPECT_EQ(said(atLeast(0), "2147483648"), "`2147483648` is more than 2147483647");
  EXPECT_EQ(said(atLeast(0), ""), "`` is not a whole number of at least 0");
  EXPECT_EQ(said(between(2, 4), "4"), "");
  for (const char *const text : {"1", "5", "3x", " 3", "+3", "0x3", ""})
    EXPECT_EQ(said(between(2, 4), text), "`" + std::string(text) + "` is not a whole number from 2 to 4");
  EXPECT_EQ(said(notNegative(), "0.25"), "");
  for (const char *const text : {"-0.25", "nan", "one", "1e400"})
    EXPECT_NE(said(notNegative(), text), "") << text;
  EXPECT_EQ(said(threads(), std::to_string(exec::kMostThreads)), "");
  for (const std::string &text : {std::string("0"), std::to_string(exec::kMostThreads + 1)})
    EXPECT_NE(said(threads(), text), "") << text;
}

/// A word is what a shell makes one argument of again.
TEST(ArgumentsTest, AShellReadsWordsBack) {
  EXPECT_EQ(shellWord("few_shot:branches=20,step=100"), "few_shot:branches=20,step=100");
  for (const std::string &argument :
       {std::string("plain"), std::string(), std::string("two words"), std::string("it's"), std::string("'"),
        std::string("$HOME `id` \\ \"*\""), std::string("a\nb"), std::string("~"), std::string("!;&|<>()")}) {
    std::string read;
    FILE *const pipe = ::popen(("printf %s. " + shellWord(argument)).c_str(), "r");
    ASSERT_NE(pipe, nullptr);
    std::array<char, 256> buffer;
    for (std::size_t count; (count = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
      read.append(buffer.data(), count);
    ::pclose(pipe);
    EXPECT_EQ(read, argument + ".");
  }
}

TEST(ArgumentsTest, HelpOfACommandIsItsOption) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(withHelpLast({"help", "cache", "show"}), (Words{"cache", "show", "--help"}));
  EXPECT_EQ(withHelpLast({"help"}), Words{"--help"});
  EXPECT_EQ(withHelpLast({"run", "help"}), (Words{"run", "help"}));
  EXPECT_EQ(withHelpLast({}), Words());
}

TEST(ArgumentsTest, NamesBehindTwoDashesAreNobodysOptions) {
  CLI::App app("", "prog");
  app.require_subcommand(1);
  CLI::App *const command = app.add_subcommand("show");
  command->add_option("--family");
  command->add_option_group("input")->add_option("--tree");
  EXPECT_TRUE(checkNames(app, {"show", "--family=x", "word", "-5"}));
  EXPECT_TRUE(checkNames(app, {"show", "--", "--famly"}));
  const auto wrong = checkNames(app, {"show", "--famly=x"});
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().message, "`prog show` has no option `--famly`");
  EXPECT_EQ(wrong.error().hint, "did you mean `--family`?");
  EXPECT_TRUE(checkNames(app, {"show", "--tree"}));
  EXPECT_EQ(checkNames(app, {"show", "--tre"}).error().hint, "did you mean `--tree`?") << "of a group";
  EXPECT_EQ(checkNames(app, {"zzz"}).error().hint, "`prog --help` lists them");
}

TEST(ArgumentsTest, WhatThereIsNotIsNamed) {
  EXPECT_THAT(run({"chek"}).err, HasSubstr("`deftc` has no command `chek`\n  = hint: did you mean `check`?"));
  EXPECT_THAT(run({"cache", "lst", "--help"}).err, HasSubstr("`deftc cache` has no command `lst`"));
  EXPECT_THAT(run({"run", "--stps=3"}).err,
              HasSubstr("`deftc run` has no option `--stps`\n  = hint: did you mean `--steps`?"));
  for (const char *number : {"0", "-1", "abc", "2.5"})
    EXPECT_THAT(run({"run", "llama3_8b", "--steps", number}).err,
                HasSubstr(std::string("--steps: `") + number + "` is not a whole number of at least 1"));
}

TEST(ArgumentsTest, WhatIsGoneOnWithLaterDoesNotGoToTheOutput) {
  for (const std::vector<std::string> &command : std::vector<std::vector<std::string>>{
           {"tune", "llama3_8b", "--workload", "few_shot", "--journal", "-"},
           {"tune", "llama3_8b", "--workload", "few_shot", "--config-file", "-"},
           {"cache", "renew", "llama3_8b", "-o", "-"}}) {
    const auto outcome = run(command);
    EXPECT_EQ(outcome.code, kExitUsage);
    EXPECT_THAT(outcome.err, HasSubstr("`-` is standard output, but this needs a file"));
  }
}

TEST(ArgumentsTest, ASeedHas64Bits) {
  const auto seeded = [](const char *seed) {
    return run({"workloads", "few_shot", "--seed", seed, "-o", "-"});
  };
  EXPECT_EQ(seeded("18446744073709551615").code, kExitOk);
  for (const char *seed : {"-1", "18446744073709551616", "one"})
    EXPECT_THAT(seeded(seed).err, HasSubstr("is not a whole number of 64 bits"));
  EXPECT_THAT(run({"plan", "llama3_8b", "--workload", "few_shot", "--chunk", "99999999999"}).err,
              HasSubstr("`99999999999` is more than 2147483647"));
  EXPECT_THAT(run({"emit", "llama3_8b#", "--as", "json"}).err, HasSubstr("names no attention after its #"));
}

} // namespace
} // namespace deft::cli
