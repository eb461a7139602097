// K and V of dims and types of their own, and V in K's memory, also as no spec says it: several KV heads that
// hold their values, q, K and V of three types.
#include "compiler/driver/Compilation.h"
#include "compiler/kernels/DefaultConfig.h"
#include "runtime/exec/Half.h"
#include "tests/support/Forest.h"
#include "tests/unit/runtime/exec/cpu/CompiledProblem.h"

namespace deft::exec {
namespace {

using spec::DType;

spec::Variant variantOf(const spec::Tensors &tensors, const spec::CacheSpec &cache) {
  spec::Variant variant;
  variant.name = "unlike";
  variant.queryHeads = 4;
  variant.kvHeads = 2;
  variant.tensors = tensors;
  variant.cache = cache;
  variant.scale = 0.125;
  variant.withLse = true;
  return variant;
}

void expectAllRight(const spec::Tensors &tensors) {
  const support::SourceManager sources;
  for (const spec::CacheSpec &cache :
       {spec::CacheSpec{4, spec::PageOrder::Nhd}, spec::CacheSpec{16, spec::PageOrder::Hnd},
        spec::CacheSpec{0, spec::PageOrder::Nhd}}) {
    const spec::Variant variant = variantOf(tensors, cache);
    SCOPED_TRACE(spec::dimText(tensors) + ", " + spec::dtypeText(tensors) + ", page " +
                 std::to_string(cache.pageSize));
    auto compilation = driver::Compilation::create(variant, sources);
    ASSERT_TRUE(compilation.ok()) << compilation.error().message;
    const auto kernel = compilation->jitCpuKernel();
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    EXPECT_TRUE(kernels::defaultConfig(variant, nullptr)) << "a CPU has a config for it";
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      SCOPED_TRACE("seed " + std::to_string(seed));
      expectRight(*kernel, variant,
                  makeProblem(variant, test::randomForest(seed, {16, 80, 8}), seed % 2 ? 0 : 32, seed));
    }
  }
}

TEST(UnlikeTensorsTest, ValuesHaveADimOfTheirOwn) {
  const auto bf16 = [](int dim) { return spec::TensorType{DType::BF16, dim}; };
  expectAllRight({bf16(96), bf16(96), bf16(64), bf16(64)});
  expectAllRight({bf16(32), bf16(32), bf16(80), bf16(80)});
}

TEST(UnlikeTensorsTest, ValuesLieInKeys) {
  for (const DType dtype : {DType::BF16, DType::F16}) {
    const spec::TensorType key{dtype, 144}, value{dtype, 128};
    expectAllRight({key, key, value, value, /*valueInKey=*/true});
    expectAllRight({value, value, value, value, /*valueInKey=*/true});
  }
}

TEST(UnlikeTensorsTest, EachHasATypeOfItsOwn) {
  expectAllRight({{DType::BF16, 64}, {DType::F16, 64}, {DType::BF16, 32}, {DType::F16, 32}});
  expectAllRight({{DType::F16, 64}, {DType::F16, 64}, {DType::BF16, 64}, {DType::BF16, 64}});
}

TEST(UnlikeTensorsTest, CachesAreOf8BitFloats) {
  for (const DType cache : {DType::F8E4M3, DType::F8E5M2})
    for (const DType dtype : {DType::BF16, DType::F16})
      for (const int dim : {16, 80, 128}) {
        const spec::TensorType wide{dtype, dim}, narrow{cache, dim};
        expectAllRight({wide, narrow, narrow, wide});
      }
  expectAllRight({{DType::BF16, 96}, {DType::F8E4M3, 96}, {DType::BF16, 64}, {DType::BF16, 64}});
  const spec::TensorType key{DType::F8E4M3, 144}, value{DType::F8E4M3, 128};
  expectAllRight({{DType::BF16, 144}, key, value, {DType::BF16, 128}, /*valueInKey=*/true});
}

// Rule A11.
TEST(UnlikeTensorsTest, RowsHaveScalesInThem) {
  for (const auto &[query, cache, scaleColumns] :
       {std::tuple(DType::BF16, DType::F8E4M3, 32), std::tuple(DType::F16, DType::F8E5M2, 16)}) {
    const spec::Tensors tensors{{query, 160},        {cache, 160}, {cache, 128}, {query, 128},
                                /*valueInKey=*/true, scaleColumns};
    ASSERT_EQ(spec::faultOf(tensors), std::nullopt);
    expectAllRight(tensors);
  }
}

// Rule A12.
TEST(UnlikeTensorsTest, ProductsAreOfBytes) {
  for (const DType dtype : {DType::BF16, DType::F16})
    for (const int dim : {16, 96, 128}) {
      const spec::TensorType wide{dtype, dim}, narrow{DType::F8E4M3, dim};
      spec::Tensors tensors{wide, narrow, narrow, wide};
      tensors.byteProducts = true;
      expectAllRight(tensors);
    }
  spec::Tensors tensors{{DType::BF16, 96}, {DType::F8E4M3, 96}, {DType::F8E4M3, 64}, {DType::F16, 64}};
  tensors.byteProducts = true;
  expectAllRight(tensors);
}

/// One row of q and one token each; what is expected is computed here, in float64.
TEST(UnlikeTensorsTest, ARowOfBytesIsTakenOverItsScale) {
  const int dim = 16;
  const spec::TensorType wide{DType::F16, dim}, narrow{DType::F8E4M3, dim};
  spec::Tensors tensors{wide, narrow, narrow, wide};
  tensors.byteProducts = true;
  spec::Variant variant = variantOf(tensors, {0, spec::PageOrder::Nhd});
  variant.queryHeads = variant.kvHeads = 1;
  variant.scale = 1;
  const support::SourceManager sources;
  auto compilation = driver::Compilation::create(variant, sources);
  ASSERT_TRUE(compilation.ok()) << compilation.error().message;
  const auto kernel = compilation->jitCpuKernel();
  ASSERT_TRUE(kernel.ok()) << kernel.error().message;
  tree::KvTree tree;
  const auto root = tree.addNode(-1, 1);
  ASSERT_TRUE(root.ok());
  ASSERT_TRUE(tree.addQuery(*root).ok());
  Problem problem = makeProblem(variant, std::move(tree), 0, 1);
  // Of a row whose largest is 480 the scale is 2, over which 464 is the middle of 224 and 240: the even one.
  const struct {
    float largest, element, counts;
  } rows[] = {{448, 27, 28},
              {448, 25, 24},
              {480, 452, 448},
              {480, 464, 448},
              {480, 466, 480},
              {1, 0x1p-13f, 0x1p-13f},
              {0.5f, 0.0001f, 13 * 0x1p-17f}};
  for (const auto &[largest, element, counts] : rows) {
    for (int d = 0; d < dim; ++d)
      problem.inputs.q[static_cast<std::size_t>(d)] = f16FromFloat(d == 0 ? largest : d == 1 ? element : 0);
    for (std::size_t at = 0; at < 2 * problem.inputs.k.size(); ++at) // of each token the element of q alone
      setBitsAt(problem.inputs.k.data(), static_cast<long long>(at), DType::F8E4M3,
                fp8FromFloat(at % dim == 1 ? 1 : 0, kE4m3));
    EXPECT_EQ(run(*kernel, variant, problem, 1).lse.front(), counts) << element << " of " << largest;
  }
}

} // namespace
} // namespace deft::exec
