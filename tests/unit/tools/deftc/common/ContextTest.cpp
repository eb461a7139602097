#include "tools/deftc/common/Context.h"

#include "tests/support/RunDeftc.h"
#include "tests/unit/runtime/module_cache/TestFolder.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace deft::cli {
namespace {

using module_cache::TestFolder;
using support::ErrorCode;

test::Outcome run(const std::vector<std::string> &arguments) { return test::runDeftc(arguments); }

struct Streams {
  std::ostringstream out, err;
  Context context{out, err, false, false, {}, false};
};

TEST(ContextTest, AnErrorIsALineAndItsHintAnother) {
  Streams plain, coloured;
  coloured.context.errColour = true;
  for (Streams *streams : {&plain, &coloured})
    EXPECT_EQ(reportError(streams->context, {ErrorCode::Usage, "no such thing", "try another"}), kExitUsage);
  EXPECT_EQ(plain.err.str(), "error: no such thing\n  = hint: try another\n");
  EXPECT_EQ(coloured.err.str(), "\033[1;31merror: \033[0mno such thing\n  = hint: try another\n");
  Streams told;
  EXPECT_EQ(reportError(told.context, {ErrorCode::Diagnostics, "", "unused"}), kExitDiagnostics);
  EXPECT_EQ(told.err.str(), "") << "it has been reported already";
  Streams internal;
  EXPECT_EQ(reportError(internal.context, {ErrorCode::Internal, "out of luck", ""}), kExitInternal);
  EXPECT_EQ(internal.err.str(), "internal error: out of luck\n");
}

TEST(ContextTest, WhatATerminalObeysIsNotToldFromStrangers) {
  Streams streams;
  EXPECT_EQ(reportError(streams.context,
                        {ErrorCode::Diagnostics, "key `a\033[31m\r\x7f`", "n\u00e4her\b, or\n`other`"}),
            kExitDiagnostics);
  EXPECT_EQ(streams.err.str(), "error: key `a?[31m??`\n  = hint: n\u00e4her?, or\n`other`\n");
}

TEST(ContextTest, ADashIsTheOutputAndAnyOtherNameAFile) {
  const TestFolder folder;
  Streams streams;
  for (const char *const path : {"", "-"})
    EXPECT_EQ(writeOutput(streams.context, path, "text\n"), kExitOk);
  EXPECT_EQ(writeOutput(streams.context, folder.path("file"), std::string_view("a\0b", 3)), kExitOk);
  EXPECT_EQ(streams.out.str(), "text\ntext\n");
  EXPECT_EQ(module_cache::readText(folder.path("file")), std::string("a\0b", 3));
  EXPECT_EQ(streams.err.str(), "");
}

TEST(ContextTest, WhatIsReadIsNotWrittenOver) {
  const TestFolder folder;
  module_cache::writeText(folder.path("in"), "before");
  Streams streams;
  ASSERT_TRUE(streams.context.files.reads(folder.path("in")));
  EXPECT_FALSE(checkOutput(streams.context, folder.path("in")));
  EXPECT_EQ(writeOutput(streams.context, folder.path("in"), "after"), kExitUsage);
  EXPECT_EQ(module_cache::readText(folder.path("in")), "before");
}

TEST(ContextTest, OutputsAreCheckedBeforeTheWork) {
  const TestFolder folder;
  Streams streams;
  EXPECT_TRUE(checkOutput(streams.context, ""));
  EXPECT_TRUE(checkOutput(streams.context, "-"));
  EXPECT_TRUE(checkOutput(streams.context, folder.path("new")));
  EXPECT_FALSE(checkOutput(streams.context, folder.path("no/such/folder")));
  EXPECT_TRUE(module_cache::namesIn(folder.path()).empty()) << "nothing is written by asking";
}

TEST(ContextTest, CommandsCheckTheirOutputFirst) {
  for (const std::vector<std::string> &command :
       std::vector<std::vector<std::string>>{{"emit", "nowhere.deft", "--as", "json"},
                                             {"plan", "nowhere.deft", "--tree", "nowhere.json"},
                                             {"workloads", "nowhere"},
                                             {"report", "nowhere.jsonl"}}) {
    std::vector<std::string> arguments = command;
    arguments.insert(arguments.end(), {"-o", "/no/such/folder/file"});
    const auto outcome = run(arguments);
    EXPECT_EQ(outcome.code, kExitEnvironment) << command.front();
    EXPECT_EQ(outcome.err.find("error: cannot write `/no/such/folder/file`: "), 0U) << outcome.err;
  }
}

TEST(ContextTest, AFullDiskIsAnErrorWhateverIsAskedFor) {
  for (const char *asked : {"--help", "--version", "specs"}) {
    std::ofstream full("/dev/full");
    std::ostringstream err;
    Context context{full, err, false, false, {}, false};
    const char *arguments[] = {"deftc", asked};
    EXPECT_EQ(runDeftc(2, arguments, context), kExitEnvironment) << asked;
    EXPECT_EQ(err.str(), "error: cannot write the output\n") << asked;
  }
}

TEST(ContextTest, OutputThatCannotBeWrittenIsAnErrorOfTheEnvironment) {
  std::ostringstream err;
  std::ostream broken(nullptr);
  Context context{broken, err, false, false, {}, false};
  const char *argv[] = {"deftc", "specs"};
  EXPECT_EQ(runDeftc(2, argv, context), kExitEnvironment);
  for (const char *const option : {"--help", "--version"}) {
    const char *const alone[] = {"deftc", option};
    err.str("");
    EXPECT_EQ(runDeftc(2, alone, context), kExitEnvironment) << option;
    EXPECT_EQ(err.str(), "error: cannot write the output\n");
  }
  for (const char *const command :
       {"check", "emit", "build", "run", "plan", "bench", "tune", "report", "cache", "classify", "explain",
        "devices", "specs", "workloads", "doctor"}) {
    const char *const help[] = {"deftc", command, "--help"};
    EXPECT_EQ(runDeftc(3, help, context), kExitEnvironment) << command;
  }
  EXPECT_EQ(run({"specs", "llama3_8b", "-o", "/no/such/folder/file"}).code, kExitEnvironment);
}

TEST(ContextTest, ErrorCodesHaveTheirExitCodes) {
  EXPECT_EQ(exitCodeFor(support::ErrorCode::Diagnostics), 1);
  EXPECT_EQ(exitCodeFor(support::ErrorCode::Usage), 2);
  EXPECT_EQ(exitCodeFor(support::ErrorCode::Environment), 3);
  EXPECT_EQ(exitCodeFor(support::ErrorCode::Internal), 70);
}

} // namespace
} // namespace deft::cli
