#include "runtime/peers/Segment.h"

#include <gtest/gtest.h>

#include <unistd.h>

namespace deft::peers {
namespace {

std::string freshName() {
  static int count = 0;
  return "/deft.segment_test." + std::to_string(getpid()) + "." + std::to_string(count++);
}

TEST(SegmentTest, IsSharedByName) {
  const std::string name = freshName();
  Segment made = Segment::make(name, 4096).value();
  ASSERT_TRUE(made);
  EXPECT_EQ(made.memory()[100], std::byte{0});
  Segment opened = Segment::open(name, 4096).value();
  ASSERT_TRUE(opened);
  made.memory()[100] = std::byte{7};
  EXPECT_EQ(opened.memory()[100], std::byte{7});
  EXPECT_FALSE(Segment::make(name, 4096).value()) << "there is one";
  EXPECT_FALSE(Segment::open(name, 8192).value()) << "it is smaller";
  made.forgetName();
  EXPECT_FALSE(Segment::open(name, 4096).value());
  EXPECT_EQ(opened.memory()[100], std::byte{7}) << "who has it keeps it";
}

TEST(SegmentTest, TheNameGoesWithItsMaker) {
  const std::string name = freshName();
  {
    Segment made = Segment::make(name, 64).value();
  }
  EXPECT_FALSE(Segment::open(name, 64).value());
}

TEST(SegmentTest, MoreThanTheMachineHasIsAnError) {
  const auto made = Segment::make(freshName(), std::size_t{1} << 46);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, support::ErrorCode::Environment);
  EXPECT_NE(made.error().message.find("no 70368744177664 bytes for shared memory"), std::string::npos)
      << made.error().message;
}

} // namespace
} // namespace deft::peers
