#include "tools/deftc/common/SpecInput.h"

#include "compiler/spec/Limits.h"
#include "tests/unit/runtime/module_cache/TestFolder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace deft::cli {
namespace {

using module_cache::TestFolder;
using module_cache::writeText;
using testing::HasSubstr;

const std::string kAttention = "attention a { query_heads = 8; kv_heads = 4; head_dim = 64; }\n";

class SpecInputTest : public testing::Test {
protected:
  std::string write(const std::string &name, const std::string &text) {
    writeText(folder.path(name), text);
    return folder.path(name);
  }
  /// The message of what loadSpec says; "loaded": nothing.
  std::string load(const std::string &path) {
    const auto loaded = loadSpec(context, path);
    return loaded ? "loaded" : loaded.error().message;
  }

  TestFolder folder;
  std::ostringstream out, err;
  Context context{out, err, false, false, {}, false};
};

TEST_F(SpecInputTest, WhatIsPipedInIsReadUpToTheLimit) {
  std::istringstream small(kAttention),
      large(kAttention + std::string(spec::kMaxFileBytes - kAttention.size(), '\n')),
      tooLarge(std::string(spec::kMaxFileBytes + 1, '\n'));
  for (std::istream *in : {static_cast<std::istream *>(&small), static_cast<std::istream *>(&large)}) {
    context.in = in;
    context.isInputRead = false;
    const auto loaded = loadSpec(context, "-");
    ASSERT_TRUE(loaded) << loaded.error().message;
    EXPECT_EQ((*loaded)->variants.at(0).name, "a");
    EXPECT_EQ((*loaded)->path, "<stdin>");
  }
  context.in = &tooLarge;
  context.isInputRead = false;
  EXPECT_EQ(load("-"), "the input has more than 1048576 bytes, the limit of a spec");
}

TEST_F(SpecInputTest, WhatIsPipedInIsThereOnce) {
  std::istringstream in(kAttention);
  context.in = &in;
  EXPECT_EQ(load("-"), "loaded");
  EXPECT_EQ(load("-"), "`-` is standard input, which can be read only once");
}

TEST_F(SpecInputTest, DiagnosticsAreToldWhereTheyAreFoundAndNotAgain) {
  EXPECT_EQ(load(write("bad.deft", "attention a { heads = 8; }\n")), "");
  EXPECT_THAT(err.str(), HasSubstr("bad.deft:1:15: error: "));
  EXPECT_EQ(load(write("functions.deft", "mask near() = kv_pos > 3;\n")),
            "`" + folder.path("functions.deft") + "` defines no attention");
  EXPECT_TRUE(loadSpecFile(context, folder.path("functions.deft")));
}

TEST_F(SpecInputTest, AllFilesOfASpecAreRead) {
  write("part.deft", "mask near() = kv_pos > 3;\n");
  const std::string path = write("my.deft", "import \"part.deft\";\n" + kAttention);
  ASSERT_EQ(load(path), "loaded") << err.str();
  EXPECT_FALSE(context.files.writes(path));
  EXPECT_FALSE(context.files.writes(folder.path("part.deft")));
  EXPECT_TRUE(context.files.writes(folder.path("out")));
}

TEST_F(SpecInputTest, AnOutputIsNoSpec) {
  const std::string path = write("my.deft", kAttention);
  ASSERT_TRUE(context.files.writes(path));
  EXPECT_NE(load(path), "loaded");
}

TEST_F(SpecInputTest, ANameBehindTheLastCrossIsAnAttentions) {
  const auto split = [](std::string path, std::string name) {
    const auto done = splitName(path, name);
    return done ? path + " " + name : done.error().message;
  };
  EXPECT_EQ(split("my.deft#wide", ""), "my.deft wide");
  EXPECT_EQ(split("my.deft#wide", "wide"), "my.deft wide");
  EXPECT_EQ(split("my.deft", "wide"), "my.deft wide");
  EXPECT_EQ(split("a#b.deft#c", ""), "a#b.deft c");
  EXPECT_EQ(split("my.deft#", ""), "`my.deft#` names no attention after its #");
  EXPECT_EQ(split("my.deft#wide", "narrow"), "`my.deft#wide` names one attention, --variant narrow another");
  const std::string file = write("odd#name", kAttention);
  EXPECT_EQ(split(file, ""), file + " ") << "a file of that name is there";
}

} // namespace
} // namespace deft::cli
