#include "tools/deftc/common/ProgramInput.h"

#include "tests/unit/runtime/module_cache/TestFolder.h"

#include <gtest/gtest.h>

#include <chrono>
#include <sstream>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

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

TEST_F(ProgramInputTest, ASpecMayComeThroughAnOpenPipe) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const std::string name = "/dev/fd/" + std::to_string(ends[0]); // as `<(command)` is called
  std::thread writer([&] {
    const std::string text = "attention piped { query_heads = 8; kv_heads = 4; head_dim = 64; }\n";
    std::this_thread::sleep_for(std::chrono::milliseconds(50)); // which the reader waits for
    EXPECT_EQ(::write(ends[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
    ::close(ends[1]);
  });
  EXPECT_EQ(variantOf(name), "piped") << "whoever looks whether it is a package must not take its beginning";
  writer.join();
  ::close(ends[0]);
}

TEST_F(ProgramInputTest, APipeWithANameIsNotWaitedFor) {
  const std::string pipe = folder.path("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(variantOf(pipe), "cannot read `" + pipe + "`: it is a pipe, not a file");
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
