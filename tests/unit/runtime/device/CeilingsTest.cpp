#include "runtime/device/Ceilings.h"

#include <gtest/gtest.h>

namespace deft::device {
namespace {

TEST(CeilingsTest, KnownByTheNameInTheDevicesName) {
  ASSERT_NE(ceilingsOf("NVIDIA H200"), nullptr);
  EXPECT_EQ(ceilingsOf("NVIDIA H200")->model, "NVIDIA H200");
  EXPECT_EQ(ceilingsOf("NVIDIA GH200 480GB"), nullptr); // another card
  EXPECT_EQ(ceilingsOf("NVIDIA GeForce RTX 4090"), nullptr);
}

TEST(CeilingsTest, TheFloorIsTheLargerOfReadingAndComputing) {
  const Ceilings &h200 = *ceilingsOf("NVIDIA H200");
  EXPECT_NEAR(floorUs(h200, spec::DType::F16, 1142e6, 14.6e9), 248.1, 3); // bound by the read
  EXPECT_NEAR(floorUs(h200, spec::DType::F16, 142.6e6, 34.9e9), 49.7, 1); // bound by the flops
  EXPECT_LT(floorUs(h200, spec::DType::BF16, 142.6e6, 34.9e9), 49);       // bf16 is faster
}

} // namespace
} // namespace deft::device
