#include "tools/deftc/common/ProgramInput.h"

#include "tests/unit/runtime/module_cache/TestFolder.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <sys/stat.h>
#include <thread>

namespace deft::cli {
namespace {

class ProgramInputTest : public testing::Test {
protected:
  std::string variantOf(const std::string &path, const std::string &name = "") {
    const auto program = openProgram(context, path, name);
    return program ? program->variant().name : program.error().message;
  }

  module_cache::TestFolder folder;
  std::ostringstream out, err;
  Context context{out, err, false, false, {}, false};
};

TEST_F(ProgramInputTest, ASpecAShippedOneAndAPackageAreTaken) {
  module_cache::writeText(folder.path("my.deft"),
                          "attention a { query_heads = 8; kv_heads = 4; head_dim = 64; }\n"
                          "attention b : a { kv_heads = 2; }\n");
  EXPECT_EQ(variantOf(folder.path("my.deft") + "#b"), "b");
  EXPECT_EQ(variantOf(folder.path("my.deft"), "a"), "a");
  EXPECT_EQ(variantOf(folder.path("my.deft")), "`" + folder.path("my.deft") + "` defines 2 attentions");
  EXPECT_EQ(variantOf("llama3_8b"), "llama3_8b");
  EXPECT_EQ(variantOf(DEFT_TEST_PACKAGE), "host_program");
  EXPECT_FALSE(context.files.writes(DEFT_TEST_PACKAGE)) << "it has been read";
}

TEST_F(ProgramInputTest, ASpecMayComeThroughAPipe) {
  const std::string pipe = folder.path("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::thread writer(
      [&] { std::ofstream(pipe) << "attention piped { query_heads = 8; kv_heads = 4; head_dim = 64; }\n"; });
  EXPECT_EQ(variantOf(pipe), "piped") << "whoever looks whether it is a package must not take its beginning";
  writer.join();
}

TEST_F(ProgramInputTest, FilesOfParametersAreRead) {
  ASSERT_TRUE(readsParams(context, {"cap=30", "slopes=" + folder.path("s.npy"), "odd"}));
  EXPECT_FALSE(context.files.writes(folder.path("s.npy")));
  EXPECT_TRUE(context.files.writes("30"));
  ASSERT_TRUE(context.files.writes(folder.path("out.npy")));
  EXPECT_FALSE(readsParams(context, {"slopes=" + folder.path("out.npy")}));
}

} // namespace
} // namespace deft::cli
