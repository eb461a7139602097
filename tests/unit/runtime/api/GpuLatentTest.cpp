#include "tests/unit/runtime/api/GpuFixture.h"

#include <gmock/gmock.h>

namespace deft {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr std::uint16_t kNan = 0x7fc0; // in bf16

/// Two branches of a prompt, over a latent cache of which all columns lie in one tensor, and its parts in two
/// others.
class GpuLatentTest : public testing::Test {
protected:
  static constexpr int kHeads = 4, kDim = 512, kRope = 64, kKey = kDim + kRope, kPage = 16, kPages = 8,
                       kQueries = 2;
  static constexpr int kTokens = kPages * kPage;
  static constexpr int kOddStride = kRope + 8; ///< of tokens, which kernels do not take

  GpuLatentTest() {
    fake_cuda::setVariant({.queryHeads = kHeads,
                           .kvHeads = 1,
                           .headDim = kDim,
                           .pageSize = kPage,
                           .isBf16 = true,
                           .scale = 0.05f,
                           .worthGroups = 0,
                           .lists = 0,
                           .latentDim = kKey});
    std::mt19937 random(2);
    std::normal_distribution<float> normal;
    for (int i = 0; i < kQueries * kHeads * kKey; ++i)
      q_.data()[i] = toBf16(normal(random));
    for (int token = 0; token < kTokens; ++token)
      for (int d = 0; d < kKey; ++d)
        (d < kDim ? latent_.data()[token * kDim + d] : rope_.data()[token * kRope + d - kDim]) =
            whole_.data()[token * kKey + d] = toBf16(normal(random));
    EXPECT_EQ(cuStreamCreate(&stream_, 1), 0);
    plan_.upload(stream_).value();
  }

  static Tree makeTree() {
    Tree tree;
    const int prompt = tree.addRoot(70, 0).value();
    for (int i = 0; i < kQueries; ++i)
      (void)tree.addQuery(tree.addChild(prompt, 5 + i, 80 + 16 * i).value()).value();
    return tree;
  }

  GpuInputs whole() { return {.q = q_.data(), .k = whole_.data(), .pageTable = table_.data()}; }
  GpuInputs parts() {
    return {.q = q_.data(),
            .k = latent_.data(),
            .pageTable = table_.data(),
            .cachePages = kPages,
            .kRope = rope_.data()};
  }

  Result<void> run(const GpuInputs &inputs) {
    std::fill_n(out_.data(), kQueries * kHeads * kDim, std::uint16_t{0xffff});
    return plan_.run(attention_, inputs, {.out = out_.data(), .lse = lse_.data()}, stream_);
  }
  std::string errorOf(const GpuInputs &inputs) {
    const auto ran = run(inputs);
    return ran ? "" : ran.error().message;
  }

  bool isRight() {
    for (int query = 0; query < kQueries; ++query)
      for (int head = 0; head < kHeads; ++head)
        if (!isRowRight(query, head))
          return false;
    return true;
  }
  bool isRowRight(int query, int head) {
    const int row = query * kHeads + head;
    std::vector<double> sum(kDim);
    double weights = 0;
    for (int i = 0; i < 75 + query; ++i) {
      const int location = i < 70 ? i : 80 + 16 * query + i - 70;
      const auto *token =
          whole_.data() +
          (table_[static_cast<std::size_t>(location / kPage)] * kPage + location % kPage) * kKey;
      double score = 0;
      for (int d = 0; d < kKey; ++d)
        score += static_cast<double>(fromBf16(q_.data()[row * kKey + d])) * fromBf16(token[d]);
      const double weight = std::exp(static_cast<double>(0.05f) * score);
      weights += weight;
      for (int d = 0; d < kDim; ++d)
        sum[static_cast<std::size_t>(d)] += weight * fromBf16(token[d]);
    }
    if (!(std::abs(lse_[static_cast<std::size_t>(row)] - std::log(weights)) < 1e-3))
      return false;
    for (int d = 0; d < kDim; ++d) {
      const double exact = sum[static_cast<std::size_t>(d)] / weights;
      if (!(std::abs(fromBf16(out_.data()[row * kDim + d]) - exact) < 0.01 + 0.01 * std::abs(exact)))
        return false;
    }
    return true;
  }

  Memory q_{kQueries * kHeads * kKey}, whole_{kTokens * kKey}, latent_{kTokens * kDim},
      rope_{kTokens * kOddStride}, out_{kQueries * kHeads * kDim};
  std::vector<float> lse_ = std::vector<float>(kQueries * kHeads);
  std::vector<int> table_ = {3, 1, 0, 2, 7, 5, 6, 4}; // memory of this GPU is the host's
  Tree tree_ = makeTree();
  Gpu gpu_ = Gpu::open(0).value();
  GpuAttention attention_ = GpuAttention::load(gpu_, loadPackage(DEFT_TEST_LATENT_PACKAGE).value()).value();
  GpuPlan plan_ = GpuPlan::make(attention_, tree_).value();
  void *stream_ = nullptr;
};

TEST_F(GpuLatentTest, ColumnsLieInOneTensorOrInTwo) {
  ASSERT_EQ(errorOf(whole()), "");
  EXPECT_TRUE(isRight());
  ASSERT_EQ(errorOf(parts()), "");
  EXPECT_TRUE(isRight());
  GpuInputs views = parts(); // of the one tensor
  views.k = whole_.data(), views.kRope = whole_.data() + kDim;
  views.strides = views.kRopeStrides = CacheStrides{.page = kPage * kKey, .token = kKey, .head = kKey};
  ASSERT_EQ(errorOf(views), "");
  EXPECT_TRUE(isRight());
}

TEST_F(GpuLatentTest, PartsThatDoNotFitAreNamed) {
  GpuInputs inputs = parts();
  inputs.kRope = rope_.data() + 1;
  EXPECT_EQ(errorOf(inputs), "k_rope does not begin at a multiple of 16 bytes");
  inputs = parts();
  inputs.kRopeStrides = CacheStrides{.page = kPage * kOddStride, .token = kOddStride, .head = kOddStride};
  EXPECT_EQ(errorOf(inputs), "the token stride of k_rope is 72 elements, not a multiple of 16");
  for (const std::int64_t token : {kRope / 2, kRope - 16}) {
    inputs.kRopeStrides = CacheStrides{.page = kPage * kRope, .token = token, .head = kRope};
    EXPECT_THAT(errorOf(inputs), HasSubstr("entries of page_size overlap: they span 64 elements and begin"));
  }
  inputs = parts();
  inputs.kRope = out_.data();
  EXPECT_THAT(errorOf(inputs), HasSubstr("out overlaps with k_rope"));
  fake_cuda::takeCalls();
  inputs = parts();
  inputs.k = nullptr;
  EXPECT_EQ(errorOf(inputs), "k is null");
  EXPECT_THAT(fake_cuda::takeCalls(), testing::IsEmpty());
}

TEST_F(GpuLatentTest, WhatIsNotFiniteIsFoundInEitherPart) {
  GpuInputs inputs = parts();
  inputs.settings.check_finite = 1;
  EXPECT_EQ(errorOf(inputs), "");
  const int slot = table_[5] * kPage + 2; // the third token of the first branch
  rope_.data()[slot * kRope + 7] = kNan;
  EXPECT_THAT(errorOf(inputs),
              StartsWith("query 0, head 0: K is NaN at element 519 of the token at kv_pos 72 of its path"));
  latent_.data()[slot * kDim + 7] = kNan;
  EXPECT_THAT(errorOf(inputs),
              StartsWith("query 0, head 0: K is NaN at element 7 of the token at kv_pos 72 of its path"));
}

} // namespace
} // namespace deft
