#include "runtime/exec/cuda/CudaFiniteCheck.h"

#include "tests/unit/runtime/exec/cuda/FakeGpu.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

namespace deft::exec {
namespace {

constexpr std::uint16_t kNan = 0x7fc0; // in bf16

/// A run over three branches of a prompt, on pages in no order, that has been waited for by nobody.
class CudaFiniteCheckTest : public testing::Test {
protected:
  CudaFiniteCheckTest() {
    auto onDevice = gpu_.makeDevicePlan({});
    plan_ = gpu_.makePlan(step_.tree);
    EXPECT_TRUE(onDevice->write(plan_) && onDevice->upload(stream_));
    EXPECT_TRUE(onDevice->run(*gpu_.kernels, pointers_, stream_));
  }

  /// The element of K, or of V, of a node's token for a KV head.
  std::uint16_t &cacheAt(const void *memory, const abi::CacheLayout &layout, int node, int token,
                         int kvHead) {
    const int location = step_.tree.nodes()[static_cast<std::size_t>(node)].location + token;
    const long long at =
        elementOf(layout, pointers_.pageTable, gpu_.variant.cache.pageSize, location, kvHead);
    return static_cast<std::uint16_t *>(const_cast<void *>(memory))[at];
  }

  /// The error's message, empty where all is finite.
  std::string found() {
    const auto checked = checkFinite(*gpu_.device, gpu_.variant, plan_, {}, pointers_, stream_);
    return checked ? "" : checked.error().message;
  }

  FakeGpu gpu_;
  cu::Stream stream_ = makeStream(gpu_);
  FakeStep step_{gpu_, test::levelTree({1, 3}, {100, 20}), 3};
  CudaPointers pointers_ = step_.pointers();
  plan::Plan plan_;
};

TEST_F(CudaFiniteCheckTest, ARunThatIsFiniteIsNoErrorAndIsLeftAsItIs) {
  EXPECT_EQ(found(), "");
  EXPECT_TRUE(step_.isRight());
}

TEST_F(CudaFiniteCheckTest, KeysAndValuesAreFoundOnTheirPages) {
  cacheAt(pointers_.v, pointers_.cache.v, 2, 7, 1) = kNan; // of query 1 alone; heads 3 to 5 read it
  const std::string place = std::to_string(step_.tree.nodes()[2].location + 7);
  EXPECT_EQ(found(),
            "query 1, head 3: V is NaN at element 0 of the token at kv_pos 107 of its path, location " +
                place);
  cacheAt(pointers_.k, pointers_.cache.k, 0, 99, 0) = kNan;
  EXPECT_EQ(found(),
            "query 0, head 0: K is NaN at element 0 of the token at kv_pos 99 of its path, location " +
                std::to_string(step_.tree.nodes()[0].location + 99));
}

TEST_F(CudaFiniteCheckTest, RowsAreFound) {
  static_cast<std::uint16_t *>(pointers_.out)[(2 * 6 + 5) * 16 + 3] = kNan;
  EXPECT_EQ(found(), "query 2, head 5: out is NaN at element 3, and q, K and V are finite");
  pointers_.lse[2 * 6 + 4] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(found(), "query 2, head 4: lse is NaN, and q, K and V are finite");
  pointers_.lse = nullptr; // and then nobody has asked for it
  EXPECT_EQ(found(), "query 2, head 5: out is NaN at element 3, and q, K and V are finite");
}

TEST_F(CudaFiniteCheckTest, PagesThatThePlanDoesNotReadAreNotCopied) {
  const auto copied = [&] {
    (void)fake_cuda::takeCalls();
    EXPECT_EQ(found(), "");
    return countCalls()["cuMemcpyDtoHAsync"];
  };
  const int pages =
      static_cast<int>((100 + 3 * 20 + 3 * 15) / gpu_.variant.cache.pageSize); // at most so many
  EXPECT_LE(copied(), 4 + 2 * (pages + 4)) << "q, out, lse, the table, and each page of K and V";
}

TEST_F(CudaFiniteCheckTest, ColumnsOfALatentCacheMayLieInTwoTensors) {
  constexpr int kDim = 16, kRope = 8;
  const spec::TensorType key{spec::DType::BF16, kDim + kRope}, value{spec::DType::BF16, kDim};
  gpu_.variant.kvHeads = 1;
  gpu_.variant.tensors = {key, key, value, value, true};
  const long long slots = gpu_.variant.cache.pageSize,
                  pages = 1 + *std::max_element(pointers_.pageTable, pointers_.pageTable + pointers_.pages);
  const auto halves = [](long long count) {
    return std::vector<std::uint16_t>(static_cast<std::size_t>(count));
  };
  // Tokens of the latent columns lie apart, those of the rotary ones side by side.
  auto q = halves(3LL * 6 * key.dim), latent = halves(pages * slots * 2 * kDim),
       rope = halves(pages * slots * kRope), out = halves(3LL * 6 * kDim);
  pointers_.q = q.data(), pointers_.k = latent.data(), pointers_.v = rope.data(), pointers_.out = out.data();
  pointers_.cache = {{slots * 2 * kDim, 2 * kDim, kDim}, {slots * kRope, kRope, kRope}};
  EXPECT_EQ(found(), "");
  cacheAt(pointers_.k, pointers_.cache.k, 2, 7, 0) = kNan;
  const auto placeOf = [&](int node, int token) {
    return std::to_string(step_.tree.nodes()[static_cast<std::size_t>(node)].location + token);
  };
  EXPECT_EQ(found(),
            "query 1, head 0: K is NaN at element 0 of the token at kv_pos 107 of its path, location " +
                placeOf(2, 7));
  (&cacheAt(pointers_.v, pointers_.cache.v, 1, 19, 0))[3] = kNan;
  EXPECT_EQ(found(),
            "query 0, head 0: K is NaN at element 19 of the token at kv_pos 119 of its path, location " +
                placeOf(1, 19));
}

} // namespace
} // namespace deft::exec
