#include "runtime/nvrtc/ResourceReport.h"

#include <gtest/gtest.h>

namespace deft::nvrtc {
namespace {

TEST(ResourceReportTest, ReadsEachEntry) {
  const auto kernels = parseResources(
      "ptxas info    : 144 bytes gmem\n"
      "ptxas info    : Compiling entry function 'one' for 'sm_90a'\n"
      "ptxas info    : Function properties for one\n"
      "ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 168 registers, used 1 barriers\n"
      "ptxas info    : Compiling entry function 'two' for 'sm_90a'\n"
      "ptxas info    : Function properties for two\n"
      "    96 bytes stack frame, 112 bytes spill stores, 116 bytes spill loads\n"
      "ptxas info    : Used 255 registers, used 1 barriers, 1024 bytes smem, 8 bytes cmem[2]\n");
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(kernels[0].entry, "one");
  EXPECT_EQ(kernels[0].registers, 168);
  EXPECT_FALSE(kernels[0].spills());
  EXPECT_EQ(kernels[1].entry, "two");
  EXPECT_EQ(kernels[1].stackBytes, 96);
  EXPECT_EQ(kernels[1].spillStoreBytes, 112);
  EXPECT_EQ(kernels[1].spillLoadBytes, 116);
  EXPECT_EQ(kernels[1].staticSharedBytes, 1024);
  EXPECT_TRUE(kernels[1].spills());
}

TEST(ResourceReportTest, IncompleteReportsAreLeftOut) {
  EXPECT_TRUE(parseResources("").empty());
  EXPECT_TRUE(parseResources("ptxas info    : Compiling entry function 'one' for 'sm_80'\n").empty());
  // Without the frame line nothing is known of spills, so the entry does not count as free of them.
  EXPECT_TRUE(parseResources("ptxas info    : Compiling entry function 'one' for 'sm_80'\n"
                             "ptxas info    : Used 20 registers\n")
                  .empty());
  EXPECT_TRUE(parseResources("ptxas info    : Used 20 registers\n").empty());
}

} // namespace
} // namespace deft::nvrtc
