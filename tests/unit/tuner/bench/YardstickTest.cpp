#include "tuner/bench/Yardstick.h"

#include <gtest/gtest.h>

namespace deft::bench {
namespace {

const RecordedCeilings &h200() { return *recordedCeilings("NVIDIA H200"); }

/// The recorded machine, its reads slower by a factor.
MeasuredCeilings slowedBy(double factor) {
  MeasuredCeilings ceilings = h200().ceilings;
  for (ReadTime &read : ceilings.reads) {
    read.loadsUs *= factor;
    read.bulkUs *= factor;
  }
  ceilings.units = {900, 950};
  return ceilings;
}

TEST(YardstickTest, ReadsAreScaledByTheMeanOverSizes) {
  EXPECT_EQ(recordedCeilings("NVIDIA A100"), nullptr);
  EXPECT_NEAR(Yardstick(slowedBy(1), &h200()).readScale(), 1, 1e-12);
  EXPECT_NEAR(Yardstick(slowedBy(1.25), &h200()).readScale(), 1.25, 1e-12);
  EXPECT_EQ(Yardstick(std::nullopt, &h200()).readScale(), 1);
  EXPECT_EQ(Yardstick(slowedBy(1.25), nullptr).readScale(), 1);
}

TEST(YardstickTest, ASizeThatOneSideLacksDoesNotCount) {
  MeasuredCeilings ceilings = slowedBy(1.1);
  ceilings.reads[4].bulkUs = 1; // 32 MiB, where no bulk copy was recorded
  EXPECT_NEAR(Yardstick(ceilings, &h200()).readScale(), 1.1, 1e-12);
}

TEST(YardstickTest, ReadsTakeTheMeasuredTimeElseTheScaledRate) {
  const Yardstick yardstick(slowedBy(2), &h200());
  EXPECT_EQ(yardstick.readUs(1e9, 321), 321);
  EXPECT_NEAR(yardstick.readUs(4704e3, 0), 2 * (3.6 + 1), 1e-9);
  EXPECT_EQ(Yardstick(slowedBy(2), nullptr).readUs(1e9, 0), 0);
}

/// Of a card whose units do 900: 900 * 744 / 934 is what a library's product reaches of these.
TEST(YardstickTest, TheMatrixRateIsTheSameKindOfFigureOnEveryCard) {
  const MatrixRate units = h200().ceilings.units, product = h200().product;
  for (const RecordedCeilings *recorded : {&h200(), static_cast<const RecordedCeilings *>(nullptr)}) {
    const Yardstick yardstick(slowedBy(1), recorded);
    EXPECT_NEAR(yardstick.productTFlops(spec::DType::F16), 900 * product.f16 / units.f16, 1e-9);
    EXPECT_NEAR(yardstick.productTFlops(spec::DType::BF16), 950 * product.bf16 / units.bf16, 1e-9);
  }
  MeasuredCeilings same = slowedBy(1);
  same.units = units;
  EXPECT_NEAR(Yardstick(same, nullptr).productTFlops(spec::DType::F16), product.f16, 1e-9);
  EXPECT_EQ(Yardstick(std::nullopt, nullptr).productTFlops(spec::DType::F16), 0);
}

TEST(YardstickTest, AnotherCardHasNoRecordedTimes) {
  EXPECT_EQ(recordedCeilings("NVIDIA H100 80GB HBM3"), nullptr);
  EXPECT_EQ(recordedCeilings("NVIDIA GH200 480GB"), nullptr);
  EXPECT_EQ(recordedCeilings(recordedCard().model), &recordedCard());
}

TEST(YardstickTest, ProductsTakeTheRecordedRateOneLaunchIncluded) {
  const Yardstick recordedOnly(std::nullopt, &h200());
  EXPECT_NEAR(recordedOnly.productUs(744e6, spec::DType::F16), 2.8 + 1, 1e-9);
  EXPECT_NEAR(recordedOnly.productUs(794e6, spec::DType::BF16), 2.8 + 1, 1e-9);
  const Yardstick otherCard(slowedBy(1), nullptr);
  EXPECT_NEAR(otherCard.productUs(900e6 * 744 / 934, spec::DType::F16), 2.8 + 1, 1e-9);
}

TEST(YardstickTest, ProductsAreScaledByTheMatrixUnitsWhereTheirRateWasRecorded) {
  RecordedCeilings recorded = h200();
  recorded.ceilings.units = {};
  EXPECT_EQ(Yardstick(slowedBy(1), &recorded).productScale(spec::DType::F16), 1);
  recorded.ceilings.units = {990, 950};
  EXPECT_NEAR(Yardstick(slowedBy(1), &recorded).productScale(spec::DType::F16), 1.1, 1e-12);
  EXPECT_NEAR(Yardstick(slowedBy(1), &recorded).productScale(spec::DType::BF16), 1, 1e-12);
}

TEST(YardstickTest, TheFasterWayToReadCounts) {
  EXPECT_EQ((ReadTime{1, 4.1, 3.6}.bestUs()), 3.6);
  EXPECT_EQ((ReadTime{8, 6.0, 0}.bestUs()), 6.0);
  EXPECT_EQ((ReadTime{64, 18.5, 18.8}.bestUs()), 18.5);
}

} // namespace
} // namespace deft::bench
