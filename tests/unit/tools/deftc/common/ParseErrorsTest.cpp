#include "tools/deftc/common/ParseErrors.h"

#include "tests/support/RunDeftc.h"

#include <CLI/CLI.hpp>
#include <gtest/gtest.h>

#include <functional>

namespace deft::cli {
namespace {

test::Outcome run(const std::vector<std::string> &arguments) { return test::runDeftc(arguments); }

/// What a command `prog sub` with some options finds wrong in arguments.
support::Error errorOf(const std::function<void(CLI::App &)> &addOptions,
                       std::vector<std::string> arguments) {
  CLI::App app("", "prog");
  addOptions(*app.add_subcommand("sub"));
  arguments.insert(arguments.begin(), "sub");
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError &error) {
    return usageError(app, error);
  }
  return {support::ErrorCode::Internal, "nothing is wrong", ""};
}

TEST(ParseErrorsTest, WhatIsMissingIsNamedWithItsCommand) {
  const auto oneOfTwo = [](CLI::App &sub) {
    auto *const group = sub.add_option_group("");
    group->add_option("--tree");
    group->add_option("--workload");
    group->require_option(1);
  };
  const auto none = errorOf(oneOfTwo, {});
  EXPECT_EQ(none.code, support::ErrorCode::Usage);
  EXPECT_EQ(none.message, "`prog sub` needs one of --tree, --workload");
  EXPECT_EQ(none.hint, "see `prog sub --help`");
  EXPECT_EQ(errorOf(oneOfTwo, {"--tree", "a", "--workload", "b"}).message,
            "`prog sub` needs one of --tree, --workload, and 2 were given");
  EXPECT_EQ(errorOf([](CLI::App &sub) { sub.add_option("--spec")->required(); }, {}).message,
            "`prog sub` needs --spec");
}

TEST(ParseErrorsTest, AValueThatIsNotListedHasTheNearestOneAsAHint) {
  const auto listed = [](CLI::App &sub) { sub.add_option("--as")->check(CLI::IsMember({"json", "text"})); };
  const auto near = errorOf(listed, {"--as", "jsn"}), far = errorOf(listed, {"--as", "picture"});
  EXPECT_EQ(near.message, "--as cannot be `jsn`");
  EXPECT_EQ(near.hint, "did you mean `json`?");
  EXPECT_EQ(far.message, "--as cannot be `picture`");
  EXPECT_EQ(far.hint, "it is one of json, text");
}

TEST(ParseErrorsTest, WhatIsTooMuchIsNamed) {
  EXPECT_EQ(errorOf([](CLI::App &) {}, {"a: b"}).message, "`prog sub` takes no `b`");
  EXPECT_EQ(errorOf([](CLI::App &) {}, {"word"}).message, "`prog sub` takes no `word`");
}

TEST(ParseErrorsTest, WhatTheParserFindsWrongIsAnErrorLikeAnyOther) {
  const std::string seeRun = "\n  = hint: see `deftc run --help`\n";
  EXPECT_EQ(run({"check"}).err, "error: `deftc check` needs SPEC\n  = hint: see `deftc check --help`\n");
  EXPECT_EQ(run({"cache"}).err, "error: `deftc cache` needs a command\n  = hint: see `deftc cache --help`\n");
  EXPECT_EQ(run({"run", "llama3_8b"}).err,
            "error: `deftc run` needs one of --tree, --workload, --inputs" + seeRun);
  EXPECT_EQ(run({"specs", "a", "b"}).err,
            "error: `deftc specs` takes no `b`\n  = hint: see `deftc specs --help`\n");
  EXPECT_EQ(run({"run", "llama3_8b", "--backend", "cdua", "--workload", "few_shot"}).err,
            "error: --backend cannot be `cdua`\n  = hint: did you mean `cuda`?\n");
  EXPECT_EQ(run({"run", "llama3_8b", "--backend", "gpu", "--workload", "few_shot"}).err,
            "error: --backend cannot be `gpu`\n  = hint: did you mean `cuda`?\n");
  EXPECT_EQ(run({"tune", "llama3_8b"}).err,
            "error: `deftc tune` needs at least one of --workload, --tree, --calibrate, --sparse"
            "\n  = hint: see `deftc tune --help`\n");
}

} // namespace
} // namespace deft::cli
