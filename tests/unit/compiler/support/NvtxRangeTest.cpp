#include "compiler/support/NvtxRange.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <unistd.h>

using namespace deft::support;

namespace {

/// What tests/support/NvtxListener.cpp, which NVTX loads in place of a profiler, was told.
std::string heard() {
  std::ifstream file(std::getenv("DEFT_NVTX_HEARD"));
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

class NvtxRangeTest : public ::testing::Test {
protected:
  void SetUp() override {
    if (!hasNvtx())
      GTEST_SKIP() << "this build was made without NVTX's headers";
    ASSERT_NE(std::getenv("DEFT_NVTX_HEARD"), nullptr)
        << "run by ctest, which sets where the listener writes";
    ::unlink(std::getenv("DEFT_NVTX_HEARD"));
  }
  ~NvtxRangeTest() override { setNvtx(false); }
};

TEST_F(NvtxRangeTest, OffThereAreNone) {
  setNvtx(false);
  EXPECT_FALSE(isNvtxOn());
  {
    const NvtxRange range("nobody asked");
  }
  EXPECT_EQ(heard(), "");
}

TEST_F(NvtxRangeTest, OnTheyNestInOurDomain) {
  setNvtx(true);
  EXPECT_TRUE(isNvtxOn());
  {
    const NvtxRange outer("outer");
    const NvtxRange inner("inner");
  }
  EXPECT_EQ(heard(), "push deft outer\npush deft inner\npop deft\npop deft\n");
}

TEST_F(NvtxRangeTest, ARangeThatBeganIsEndedWhateverHappensMeanwhile) {
  setNvtx(true);
  {
    const NvtxRange range("began");
    setNvtx(false);
    const NvtxRange late("not asked for");
  }
  EXPECT_EQ(heard(), "push deft began\npop deft\n");
}

} // namespace
