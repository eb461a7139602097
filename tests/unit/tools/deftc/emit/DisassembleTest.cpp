#include "tools/deftc/emit/Disassemble.h"

#include "tests/support/SetVariable.h"
#include "tests/unit/runtime/module_cache/TestFolder.h"

#include <gtest/gtest.h>

namespace deft::cli {
namespace {

namespace fs = std::filesystem;

class DisassembleTest : public testing::Test {
protected:
  /// A toolkit whose nvdisasm is this script.
  std::string toolkit(const std::string &name, const std::string &script) const {
    fs::create_directories(folder.path(name + "/bin"));
    const std::string program = folder.path(name + "/bin/nvdisasm");
    module_cache::writeText(program, "#!/bin/sh\n" + script);
    fs::permissions(program, fs::perms::owner_all);
    return folder.path(name);
  }

  /// By the program that is found, as emit calls it.
  static support::Result<std::string> disassembled(const std::string &cubin) {
    const auto program = findDisassembler();
    return program ? disassemble(*program, cubin) : program.error();
  }

  module_cache::TestFolder folder;
  test::SetVariable path{"CUDA_PATH", std::nullopt};
};

TEST_F(DisassembleTest, TheToolkitReadsTheCubinAsItIs) {
  const test::SetVariable home("CUDA_HOME", toolkit("cuda", "cat \"$1\""));
  std::string cubin("\x7f"
                    "ELF\0\n",
                    6);
  cubin += std::string(200'000, 'x'); // more than a pipe holds
  const auto text = disassembled(cubin);
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_EQ(*text, cubin);
}

TEST_F(DisassembleTest, ATemporaryFileIsGoneAfterwards) {
  const test::SetVariable home("CUDA_HOME", toolkit("cuda", "printf %s \"$1\""));
  const auto file = disassembled("cubin");
  ASSERT_TRUE(file);
  EXPECT_NE(file->find("deftc-"), std::string::npos);
  EXPECT_FALSE(fs::exists(*file));
}

TEST_F(DisassembleTest, TheFirstToolkitThatIsNamedIsTaken) {
  const test::SetVariable home("CUDA_HOME", toolkit("one", "echo one"));
  const test::SetVariable second("CUDA_PATH", toolkit("two", "echo two"));
  EXPECT_EQ(*disassembled("cubin"), "one\n");
  fs::remove(folder.path("one/bin/nvdisasm"));
  EXPECT_EQ(*disassembled("cubin"), "two\n");
}

TEST_F(DisassembleTest, WithoutOneThePackageThatBringsItIsNamed) {
  if (fs::exists("/usr/local/cuda/bin/nvdisasm"))
    GTEST_SKIP() << "there is a toolkit in its usual place";
  const test::SetVariable home("CUDA_HOME", std::nullopt), programs("PATH", folder.path("empty"));
  const auto text = disassembled("cubin");
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().code, support::ErrorCode::Environment);
  EXPECT_EQ(text.error().message, "nvdisasm was not found");
  EXPECT_NE(text.error().hint.find("`pip install nvidia-cuda-nvdisasm`"), std::string::npos)
      << text.error().hint;
}

TEST_F(DisassembleTest, ACubinThatItCannotReadIsAnError) {
  const std::string folderOfIt = toolkit("cuda", "echo half; exit 3");
  const test::SetVariable home("CUDA_HOME", folderOfIt);
  const auto text = disassembled("cubin");
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().code, support::ErrorCode::Environment);
  EXPECT_EQ(text.error().message, "`" + folderOfIt + "/bin/nvdisasm` could not read the cubin");
}

} // namespace
} // namespace deft::cli
