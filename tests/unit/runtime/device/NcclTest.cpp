#include "runtime/device/Nccl.h"

#include "tests/support/SetVariable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace deft::device {
namespace {

TEST(NcclTest, AMissingLibraryIsNamedWithWhatToInstall) {
  const auto nccl = Nccl::load("libthere_is_no_such_nccl.so");
  ASSERT_FALSE(nccl);
  EXPECT_EQ(nccl.error().code, support::ErrorCode::Environment);
  EXPECT_EQ(nccl.error().message, "no NCCL: `libthere_is_no_such_nccl.so` cannot be loaded");
  EXPECT_THAT(nccl.error().hint,
              testing::AllOf(testing::HasSubstr("2.14 or later"), testing::HasSubstr("libnccl2"),
                             testing::HasSubstr("nvidia-nccl-cu13")));
}

TEST(NcclTest, AnOldLibraryIsNamedWithItsVersion) {
  const auto lacking = Nccl::load("libm.so.6");
  ASSERT_FALSE(lacking);
  EXPECT_THAT(lacking.error().message, testing::HasSubstr("too old: it lacks `nccl"));
  const test::SetVariable version("DEFT_FAKE_NCCL_VERSION", "21212");
  const auto old = Nccl::load(DEFT_FAKE_NCCL);
  ASSERT_FALSE(old);
  EXPECT_EQ(old.error().message, "NCCL 2.12.12 is too old");
}

TEST(NcclTest, EachIdIsANewOne) {
  const auto nccl = Nccl::load(DEFT_FAKE_NCCL);
  ASSERT_TRUE(nccl) << nccl.error().message;
  EXPECT_EQ((*nccl)->version(), "2.28.9");
  EXPECT_NE(std::string((*nccl)->makeId().value().bytes), (*nccl)->makeId().value().bytes);
}

} // namespace
} // namespace deft::device
