#include "tools/deftc/common/Gpus.h"

#include "tests/support/FakeCuda.h"

#include <gtest/gtest.h>

namespace deft::cli {
namespace {

TEST(GpusTest, EachHasTheKernelsOfTheNewestArchitectureThatRunsThere) {
  const auto driver = device::Driver::load(DEFT_FAKE_CUDA);
  ASSERT_TRUE(driver);
  const auto gpus = findGpus(**driver);
  ASSERT_TRUE(gpus) << gpus.error().message;
  ASSERT_EQ(gpus->size(), 3U);
  for (int ordinal = 0; ordinal < 3; ++ordinal)
    EXPECT_EQ((*gpus)[static_cast<std::size_t>(ordinal)].facts.ordinal, ordinal);
  EXPECT_EQ((*gpus)[0].target, target::findTarget("sm_90a"));
  EXPECT_EQ((*gpus)[1].target, target::findTarget("sm_80"));
  EXPECT_EQ((*gpus)[2].target, nullptr) << "7.5 is listed all the same";
}

} // namespace
} // namespace deft::cli
