#include "tests/support/VariantBuilder.h"
#include "tests/unit/compiler/codegen/cpu/KernelHarness.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace deft::test {

constexpr float kInf = std::numeric_limits<float>::infinity();

/// Two heads, head_dim 16: slot s holds out = s + 1 + head and the given lse.
struct Partials {
  explicit Partials(std::vector<float> lsePerSlot) {
    for (std::size_t slot = 0; slot < lsePerSlot.size(); ++slot)
      for (int head = 0; head < 2; ++head) {
        lse.push_back(lsePerSlot[slot] + 0.25f * static_cast<float>(head));
        const bool empty = std::isinf(lse.back());
        out.insert(out.end(), 16, empty ? 0.0f : static_cast<float>(slot + 1 + head));
      }
  }
  std::vector<float> out, lse;
};

struct Merged {
  std::vector<double> out = std::vector<double>(32);
  std::vector<float> lse = std::vector<float>(2, 99.0f);
};

static Merged merge(const abi::CpuKernel &kernel, const Partials &partials, const std::vector<int> &slots,
                    const abi::ParamSlot *params = nullptr) {
  Merged merged;
  std::vector<std::uint16_t> bits(32);
  const abi::CpuMergeCall call{partials.out.data(),
                               partials.lse.data(),
                               slots.data(),
                               bits.data(),
                               merged.lse.data(),
                               static_cast<int>(slots.size()),
                               2,
                               params,
                               0,
                               0,
                               0,
                               0};
  kernel.merge(&call);
  for (std::size_t i = 0; i < bits.size(); ++i)
    merged.out[i] = valueOf(spec::DType::F16, bits[i]);
  return merged;
}

class MergeTest : public testing::Test {
protected:
  void SetUp() override {
    kernel_ = jitKernel(plainVariant(16, spec::DType::F16));
    ASSERT_TRUE(kernel_);
  }
  Kernel kernel_;
};

TEST_F(MergeTest, WeighsPartialsByTheirLse) {
  const Merged merged = merge(*kernel_, Partials({1.0f, 3.0f, 2.0f}), {2, 0});
  for (int head = 0; head < 2; ++head) {
    const double a = std::exp(2.0), b = std::exp(1.0);
    EXPECT_NEAR(merged.out[head * 16 + 5], (a * (3 + head) + b * (1 + head)) / (a + b), 2e-3);
    EXPECT_NEAR(merged.lse[head], std::log(a + b) + 0.25 * head, 1e-6);
  }
}

TEST_F(MergeTest, EmptyPartialsCountNothingWhereverTheyStand) {
  for (const std::vector<int> &slots : {std::vector<int>{0, 1}, {1, 0}, {0, 1, 0}}) {
    const Merged merged = merge(*kernel_, Partials({-kInf, 3.0f}), slots);
    EXPECT_EQ(merged.out[0], 2);
    EXPECT_FLOAT_EQ(merged.lse[0], 3.0f);
  }
}

TEST_F(MergeTest, NothingButEmptyPartialsIsEmpty) {
  for (const std::vector<int> &slots : {std::vector<int>{}, {0}, {0, 0}}) {
    const Merged merged = merge(*kernel_, Partials({-kInf}), slots);
    EXPECT_EQ(merged.out, std::vector<double>(32, 0.0));
    EXPECT_EQ(merged.lse, std::vector<float>(2, -kInf));
  }
}

TEST_F(MergeTest, ExtremeLseNeitherOverflowsNorVanishes) {
  const Merged far = merge(*kernel_, Partials({-4000.0f, 5000.0f}), {0, 1});
  EXPECT_EQ(far.out[0], 2);
  EXPECT_FLOAT_EQ(far.lse[0], 5000.0f);
  const Merged low = merge(*kernel_, Partials({-4000.0f}), {0});
  EXPECT_EQ(low.out[0], 1);
  EXPECT_FLOAT_EQ(low.lse[0], -4000.0f);
}

TEST(SinkMergeTest, SinksJoinOnceAfterAllPartials) {
  VariantBuilder builder(2, 1, 16);
  builder.variant.tensors = spec::Tensors::alike(16, spec::DType::F16);
  builder.variant.withLse = true;
  const int logits = builder.param("logits", spec::ScalarType::F32, spec::Param::Shape::PerQueryHead);
  builder.variant.sink = builder.readParam(logits);
  Kernel kernel = jitKernel(builder.variant);
  ASSERT_TRUE(kernel);
  const float sinks[] = {2.5f, -kInf};
  abi::ParamSlot slot{};
  slot.f32Array = sinks;
  const Merged merged = merge(*kernel, Partials({1.0f, 3.0f}), {1, 0}, &slot);
  const double a = std::exp(3.0), b = std::exp(1.0), sink = std::exp(2.5);
  EXPECT_NEAR(merged.out[3], (a * 2 + b) / (a + b + sink), 2e-3);
  EXPECT_NEAR(merged.lse[0], std::log(a + b + sink), 1e-6);
  EXPECT_NEAR(merged.out[16 + 3], (a * 3 + b * 2) / (a + b), 2e-3) << "a sink of -inf is none";
  EXPECT_NEAR(merged.lse[1], std::log(a + b) + 0.25, 1e-6);

  const Merged empty = merge(*kernel, Partials({-kInf}), {0}, &slot);
  EXPECT_EQ(empty.out, std::vector<double>(32, 0.0));
  EXPECT_FLOAT_EQ(empty.lse[0], 2.5f);
  EXPECT_EQ(empty.lse[1], -kInf);
}

TEST(SigmoidMergeTest, AddsPlainSums) {
  spec::Variant variant = plainVariant(16, spec::DType::F16);
  variant.normalize = spec::Normalize::Sigmoid;
  variant.withLse = false;
  Kernel kernel = jitKernel(variant);
  ASSERT_TRUE(kernel);
  Partials partials({0.0f, 0.0f, 0.0f});
  const int slots[] = {0, 2};
  std::vector<std::uint16_t> bits(32);
  const abi::CpuMergeCall call{
      partials.out.data(), nullptr, slots, bits.data(), nullptr, 2, 2, nullptr, 0, 0, 0, 0};
  kernel->merge(&call);
  EXPECT_EQ(valueOf(spec::DType::F16, bits[0]), 4);
  EXPECT_EQ(valueOf(spec::DType::F16, bits[16]), 6);
}

} // namespace deft::test
