#include "tools/deftc/emit/Emitters.h"

#include "tests/support/RunDeftc.h"

#include <CLI/CLI.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace deft::cli {
namespace {

class EmittersTest : public testing::Test {
protected:
  EmittersTest() {
    addFrontEndEmitters(app, table);
#ifdef DEFT_HAS_COMPILER
    addCudaEmitters(app, table);
    addCompilerEmitters(app, table);
#endif
  }

  CLI::App app;
  EmitterTable table;
};

TEST_F(EmittersTest, EachKindHasANameOfItsOwnAndIsInTheHelp) {
  const std::string help = test::runDeftc({"emit", "--help"}).out;
  std::set<std::string> names;
  for (const EmitKind &kind : table.kinds) {
    names.insert(kind.name);
    EXPECT_THAT(help, testing::HasSubstr(kind.name));
    EXPECT_FALSE(kind.what.empty() || kind.what.ends_with('.')) << kind.name;
  }
  EXPECT_EQ(names.size(), table.kinds.size());
  EXPECT_TRUE(names.contains("ast") && names.contains("json"));
}

/// A file's kinds need no variant; what is no text is kept from terminals.
TEST_F(EmittersTest, KindsSayWhatTheyShow) {
  for (const EmitKind &kind : table.kinds) {
    EXPECT_EQ(kind.wholeFile, kind.name == "ast") << kind.name;
    EXPECT_EQ(kind.binary, kind.name == "cubin") << kind.name;
    if (!kind.binary)
      continue;
    const test::Outcome outcome =
        test::runDeftc({"emit", "llama3_8b", "--as", kind.name}, {.hasColour = false, .isOutput = true});
    EXPECT_EQ(outcome.code, kExitUsage);
    EXPECT_EQ(outcome.out, "");
  }
}

TEST_F(EmittersTest, AKindThatThereIsNotHasTheNearestAsAHint) {
  const test::Outcome outcome = test::runDeftc({"emit", "llama3_8b", "--as", "jsno"});
  EXPECT_EQ(outcome.code, kExitUsage);
  EXPECT_THAT(outcome.err, testing::HasSubstr("unknown kind `jsno`\n  = hint: did you mean `json`?"));
}

} // namespace
} // namespace deft::cli
