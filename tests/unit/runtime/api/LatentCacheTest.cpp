// Latent caches and K and V of dims of their own, as a program sees them: specs are compiled, so this is of
// the full build.
#include "tests/unit/runtime/api/c/TestHandles.h"

#include <deft/deft.hpp>

#include <gmock/gmock.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

namespace deft {
namespace {

using testing::Each;
using testing::HasSubstr;

constexpr std::uint16_t kOne = 0x3f80, kTwo = 0x4000; // in bf16
constexpr int kTokens = 52, kPages = 4, kPage = 16, kKey = 80, kValue = 64;

constexpr const char *kLatent =
    "attention a { query_heads = 4; kv_cache = latent(dim = 64, rope = 16); scale = 0.25; "
    "output = bf16 with lse; }";
constexpr const char *kApart = "attention a { query_heads = 4; kv_heads = 2; key_dim = 80; value_dim = 64; }";

/// A prompt and two branches, in 4 pages. K is 1 in its first 64 elements and 2 behind; q is 0 unless it is
/// filled.
class LatentCacheTest : public testing::Test {
protected:
  void makeCache(int stride) {
    k.assign(static_cast<std::size_t>(kPages) * kPage * stride, kTwo);
    for (std::size_t token = 0; token < static_cast<std::size_t>(kPages) * kPage; ++token)
      std::fill_n(k.begin() + static_cast<std::ptrdiff_t>(token * static_cast<std::size_t>(stride)), kValue,
                  kOne);
  }

  deft_tensor tensor(void *data, deft_dtype dtype, const std::vector<int64_t> &shape,
                     const std::vector<int64_t> *strides = nullptr) {
    deft_tensor made = c_test::sized<deft_tensor>();
    made.data = data;
    made.shape = shape.data();
    made.strides = strides ? strides->data() : nullptr;
    made.dtype = dtype;
    made.ndim = static_cast<int32_t>(shape.size());
    return made;
  }

  deft_status run(const std::vector<int64_t> &cache, const std::vector<int64_t> *strides = nullptr,
                  const deft_tensor *rope = nullptr) {
    deft_tensor qTensor = tensor(q.data(), DEFT_BF16, rowsOfQ),
                kTensor = tensor(k.data(), DEFT_BF16, cache, strides),
                table = tensor(pages.data(), DEFT_I32, entries),
                outTensor = tensor(out.data(), DEFT_BF16, rowsOfOut),
                lseTensor = tensor(lse.data(), DEFT_F32, heads);
    auto inputs = c_test::sized<deft_inputs>();
    inputs.q = &qTensor;
    inputs.k = &kTensor;
    inputs.page_table = &table;
    inputs.k_rope = rope;
    auto outputs = c_test::sized<deft_outputs>();
    outputs.out = &outTensor;
    outputs.lse = &lseTensor;
    std::fill(out.begin(), out.end(), 0);
    return deft_runtime_run(runtime.get(), attention.get(), plan.get(), &inputs, &outputs);
  }

  c_test::AttentionHandle attention =
      c_test::made<c_test::AttentionHandle>(deft_attention_compile, kLatent, nullptr);
  c_test::RuntimeHandle runtime = c_test::made<c_test::RuntimeHandle>(deft_runtime_make, nullptr);
  c_test::TreeHandle tree = c_test::twoBranches(40, 6);
  c_test::PlanHandle plan =
      c_test::made<c_test::PlanHandle>(deft_plan_make, attention.get(), tree.get(), nullptr);
  std::vector<std::uint16_t> q = std::vector<std::uint16_t>(2 * 4 * kKey), k,
                             out = std::vector<std::uint16_t>(2 * 4 * kValue);
  std::vector<float> lse = std::vector<float>(2 * 4);
  std::vector<std::int32_t> pages = {3, 1, 0, 2};
  const std::vector<int64_t> rowsOfQ = {2, 4, kKey}, rowsOfOut = {2, 4, kValue}, heads = {2, 4},
                             entries = {kPages};
};

TEST_F(LatentCacheTest, FactsSayThatKeysHoldValues) {
  auto facts = c_test::sized<deft_attention_facts>();
  ASSERT_EQ(deft_attention_get_facts(attention.get(), &facts), DEFT_OK);
  EXPECT_EQ(facts.kv_heads, 1);
  EXPECT_EQ(facts.key_dim, kKey);
  EXPECT_EQ(facts.value_dim, kValue);
  EXPECT_EQ(facts.value_in_key, 1);
  EXPECT_EQ(facts.page_size, kPage);
  EXPECT_EQ(facts.token_stride, kKey);
  EXPECT_EQ(facts.page_stride, kPage * kKey);
}

TEST_F(LatentCacheTest, ACacheIsKAloneWithHeadsOrWithout) {
  makeCache(kKey);
  for (const std::vector<int64_t> &cache :
       {std::vector<int64_t>{kPages, kPage, kKey}, std::vector<int64_t>{kPages, kPage, 1, kKey}}) {
    ASSERT_EQ(run(cache), DEFT_OK) << deft_error_text();
    EXPECT_THAT(out, Each(kOne));
    EXPECT_THAT(lse, Each(testing::FloatNear(std::log(46.0F), 1e-4F))); // all scores are 0
  }
  std::fill(q.begin(), q.end(), kOne); // 64 * 1 + 16 * 2, times the scale
  ASSERT_EQ(run({kPages, kPage, kKey}), DEFT_OK) << deft_error_text();
  EXPECT_THAT(out, Each(kOne));
  EXPECT_THAT(lse, Each(testing::FloatNear(24 + std::log(46.0F), 1e-3F)));
}

TEST_F(LatentCacheTest, TokensMayLieApart) {
  makeCache(96);
  const std::vector<int64_t> strides = {kPage * 96, 96, 1};
  ASSERT_EQ(run({kPages, kPage, kKey}, &strides), DEFT_OK) << deft_error_text();
  EXPECT_THAT(out, Each(kOne));
}

TEST_F(LatentCacheTest, TokensThatOverlapAreNamed) {
  makeCache(kKey);
  const std::vector<int64_t> packed = {kPages, kPage, kKey}, withHeads = {kPages, kPage, 1, kKey};
  const auto expect = [&](const std::vector<int64_t> &of, const std::vector<int64_t> &strides,
                          const char *text) {
    EXPECT_EQ(run(of, &strides), DEFT_USAGE);
    EXPECT_THAT(deft_error_text(), HasSubstr(text));
  };
  expect(
      packed, {kPage * kKey, 72, 1},
      "k has strides [1280, 72, 1], entries of page_size overlap: they span 80 elements and begin 72 apart\n"
      "  = hint: only a stride of 0, which repeats an entry, lets entries share memory");
  expect(withHeads, {kPage * kKey, 72, kKey, 1},
         "k has strides [1280, 72, 80, 1], entries of page_size overlap");
  expect(
      packed, {kPage * kKey - 16, kKey, 1},
      "k has strides [1264, 80, 1], entries of pages overlap: they span 1280 elements and begin 1264 apart");
  EXPECT_THAT(out, Each(0)) << "nothing ran";
  const std::vector<int64_t> pagesInside = {kKey, kPages * kKey, 1}, onePage = {0, kKey, 1};
  EXPECT_EQ(run(packed, &pagesInside), DEFT_OK) << deft_error_text();
  EXPECT_EQ(run(packed, &onePage), DEFT_OK) << deft_error_text();
  EXPECT_THAT(out, Each(kOne));
}

TEST_F(LatentCacheTest, PartsWhoseTokensOverlapAreNamed) {
  makeCache(kKey);
  const std::vector<int64_t> first = {kPages, kPage, kValue}, behind = {kPages, kPage, kKey - kValue},
                             strides = {kPage * kKey, kKey, 1}, overlapping = {kPage * kKey, 8, 1};
  const deft_tensor rope = tensor(k.data() + kValue, DEFT_BF16, behind, &overlapping);
  EXPECT_EQ(run(first, &strides, &rope), DEFT_USAGE);
  EXPECT_THAT(deft_error_text(),
              HasSubstr("k_rope has strides [1280, 8, 1], entries of page_size overlap: they "
                        "span 16 elements and begin 8 apart"));
  EXPECT_EQ(run(first, &overlapping, &rope), DEFT_USAGE);
  EXPECT_THAT(deft_error_text(), HasSubstr("k has strides [1280, 8, 1], entries of page_size overlap: they "
                                           "span 64 elements and begin 8 apart"));
}

TEST_F(LatentCacheTest, ACacheOfOtherShapeIsNamed) {
  makeCache(kKey);
  for (const auto &[shape, text] :
       {std::pair(std::vector<int64_t>{kPages, kPage, kValue},
                  "k is [4, 16, 64], it must be [pages, page_size, key_dim] = [any, 16, 80]"),
        std::pair(std::vector<int64_t>{kPages, 32, kKey},
                  "k is [4, 32, 80], it must be [pages, page_size, key_dim] = [any, 16, 80]"),
        std::pair(std::vector<int64_t>{64, kKey},
                  "k has 2 dimensions, it must be [pages, page_size, key_dim] = [any, 16, 80]"),
        std::pair(
            std::vector<int64_t>{kPages, kPage, 2, kKey},
            "k is [4, 16, 2, 80], it must be [pages, page_size, kv_heads, key_dim] = [any, 16, 1, 80]")}) {
    EXPECT_EQ(run(shape), DEFT_USAGE);
    EXPECT_THAT(deft_error_text(), HasSubstr(text));
  }
}

TEST_F(LatentCacheTest, ColumnsOfOneTensorMayComeInTwoParts) {
  makeCache(96);
  std::fill(q.begin(), q.end(), kOne);
  for (const bool hasHeads : {false, true}) {
    const auto of = [&](int64_t dim) {
      return hasHeads ? std::vector<int64_t>{kPages, kPage, 1, dim}
                      : std::vector<int64_t>{kPages, kPage, dim};
    };
    const std::vector<int64_t> strides = hasHeads ? std::vector<int64_t>{kPage * 96, 96, 96, 1}
                                                  : std::vector<int64_t>{kPage * 96, 96, 1},
                               ofRope = of(kKey - kValue);
    const deft_tensor rope = tensor(k.data() + kValue, DEFT_BF16, ofRope, &strides);
    ASSERT_EQ(run(of(kValue), &strides, &rope), DEFT_OK) << deft_error_text();
    EXPECT_THAT(out, Each(kOne));
    EXPECT_THAT(lse, Each(testing::FloatNear(24 + std::log(46.0F), 1e-3F)));
  }
}

TEST_F(LatentCacheTest, ProcessorsReadColumnsFromOneTensor) {
  makeCache(kKey);
  const std::vector<int64_t> first = {kPages, kPage, kValue}, behind = {kPages, kPage, kKey - kValue},
                             strides = {kPage * kKey, kKey, 1};
  std::vector<std::uint16_t> other(std::size_t{kPages} * kPage * (kKey - kValue), kTwo);
  for (const deft_tensor &rope :
       {tensor(other.data(), DEFT_BF16, behind), tensor(k.data() + kValue + 1, DEFT_BF16, behind, &strides),
        tensor(k.data() + kValue, DEFT_BF16, behind)}) {
    EXPECT_EQ(run(first, &strides, &rope), DEFT_USAGE);
    EXPECT_THAT(deft_error_text(), HasSubstr("k_rope does not follow k in memory, and processors read"));
  }
}

TEST_F(LatentCacheTest, PartsThatDoNotFitAreNamed) {
  makeCache(kKey);
  const std::vector<int64_t> all = {kPages, kPage, kKey}, first = {kPages, kPage, kValue},
                             behind = {kPages, kPage, kKey - kValue}, strides = {kPage * kKey, kKey, 1};
  auto *const at = k.data() + kValue;
  const auto expect = [&](const std::vector<int64_t> &of, const deft_tensor &rope, const char *text) {
    EXPECT_EQ(run(of, &strides, &rope), DEFT_USAGE);
    EXPECT_THAT(deft_error_text(), HasSubstr(text));
  };
  expect(all, tensor(at, DEFT_BF16, behind, &strides),
         "k has all 80 columns of a token, and k_rope is given");
  expect({kPages, kPage, 48}, tensor(at, DEFT_BF16, behind, &strides),
         "k is [4, 16, 48], it must be [pages, page_size, dim] = [any, 16, 64]");
  expect(first, tensor(at, DEFT_BF16, first, &strides),
         "k_rope is [4, 16, 64], it must be [pages, page_size, rope] = [any, 16, 16]");
  expect(first, tensor(at, DEFT_F16, behind, &strides), "k_rope is float16, `a` takes bfloat16");
  const std::vector<int64_t> fewer = {kPages - 1, kPage, kKey - kValue};
  expect(first, tensor(at, DEFT_BF16, fewer, &strides), "k_rope is [3, 16, 16], and k has 4 pages");
  const std::vector<int64_t> apart = {kPage * kKey, kKey, 2};
  expect(first, tensor(at, DEFT_BF16, behind, &apart),
         "k_rope has strides [1280, 80, 2], the last must be 1");
  expect(first, tensor(out.data(), DEFT_BF16, behind),
         "k_rope does not follow k in memory, and processors read a token's columns from one tensor");
}

TEST(LatentRunTest, PartsAreOfLatentCachesAlone) {
  const auto attention = c_test::made<c_test::AttentionHandle>(deft_attention_compile, kApart, nullptr);
  const auto runtime = c_test::made<c_test::RuntimeHandle>(deft_runtime_make, nullptr);
  const c_test::TreeHandle tree = c_test::twoBranches(40, 6);
  const auto plan = c_test::made<c_test::PlanHandle>(deft_plan_make, attention.get(), tree.get(), nullptr);
  const std::vector<std::uint16_t> memory(2 * 4 * kKey);
  const std::vector<int64_t> rowsOfQ = {2, 4, kKey}, rowsOfOut = {2, 4, kValue};
  auto q = c_test::sized<deft_tensor>();
  q.data = const_cast<std::uint16_t *>(memory.data());
  q.shape = rowsOfQ.data();
  q.dtype = DEFT_BF16;
  q.ndim = 3;
  deft_tensor out = q;
  out.shape = rowsOfOut.data();
  auto inputs = c_test::sized<deft_inputs>();
  inputs.q = inputs.k = inputs.v = inputs.k_rope = &q;
  auto outputs = c_test::sized<deft_outputs>();
  outputs.out = &out;
  EXPECT_EQ(deft_runtime_run(runtime.get(), attention.get(), plan.get(), &inputs, &outputs), DEFT_USAGE);
  EXPECT_STREQ(deft_error_text(), "k_rope is given, and the cache of `a` is not latent");
}

TEST(LatentRunTest, ProgramsOfCppGiveNoV) {
  const Attention attention = compileSpec(kLatent).value();
  EXPECT_TRUE(attention.valueInKey());
  EXPECT_EQ(attention.k(), (TensorType{DType::BF16, kKey}));
  EXPECT_EQ(attention.out(), (TensorType{DType::BF16, kValue}));
  const std::vector<int> lengths{40, 60}, table{0, 1, 2, 3, 0, 1, 4, 5};
  PagedBatch batch = PagedBatch::make({.pageSize = kPage}).value();
  batch.update({.table = {.entries = table, .rowStride = 4}, .lengths = lengths}).value();
  const std::vector<std::uint16_t> q(2 * 4 * kKey), k(6 * kPage * kKey, kOne);
  std::vector<std::uint16_t> out(2 * 4 * kValue);
  std::vector<float> lse(2 * 4);
  const Runtime runtime = Runtime::create({.threads = 1}).value();
  Plan plan = batch.plan(attention).value();
  runtime
      .run(attention, plan, {.q = q.data(), .k = k.data(), .pageTable = table},
           {.out = out.data(), .lse = lse.data()})
      .value();
  EXPECT_THAT(out, Each(kOne));
  for (std::size_t i = 0; i < lse.size(); ++i)
    EXPECT_NEAR(lse[i], std::log(i < 4 ? 40.0F : 60.0F), 1e-4F) << i;
  const auto overlapping = runtime.run(attention, plan,
                                       {.q = q.data(),
                                        .k = k.data(),
                                        .pageTable = table,
                                        .strides = CacheStrides{.page = kPage * kKey, .token = kValue}},
                                       {.out = out.data(), .lse = lse.data()});
  ASSERT_FALSE(overlapping);
  EXPECT_THAT(overlapping.error().text(), HasSubstr("entries of page_size overlap: they span 80 elements and "
                                                    "begin 64 apart"));
}

/// Rows of 64 bytes that are 1, four scales and 16 rotated columns.
TEST(LatentRunTest, RowsMayHaveScalesInThem) {
  const Attention attention =
      compileSpec("attention a { query_heads = 4; kv_cache = latent(dim = 64, rope = 16, dtype = fp8_e4m3, "
                  "scales = 16); scale = 0.25; }")
          .value();
  EXPECT_EQ(attention.scaleColumns(), 16);
  EXPECT_EQ(attention.k().dim, kKey);
  constexpr int kRow = 64 + 16 + 32;
  std::vector<std::uint8_t> k(kPages * kPage * kRow);
  for (std::size_t row = 0; row < k.size(); row += kRow) {
    std::fill_n(k.begin() + static_cast<std::ptrdiff_t>(row), 64, std::uint8_t{0x38});
    const float scales[] = {0.5F, 1, 2, 448};
    std::memcpy(k.data() + row + 64, scales, sizeof scales);
    for (std::size_t i = 0; i < 16; ++i)
      std::memcpy(k.data() + row + 80 + 2 * i, &kTwo, 2);
  }
  Tree tree;
  (void)tree.addQuery(tree.addRoot(kTokens, 0).value()).value();
  Plan plan = Plan::make(attention, tree).value();
  const std::vector<int> table{3, 1, 0, 2};
  const std::vector<std::uint16_t> q(4 * kKey);
  std::vector<std::uint16_t> out(4 * kValue);
  const Runtime runtime = Runtime::create({.threads = 1}).value();
  runtime.run(attention, plan, {.q = q.data(), .k = k.data(), .pageTable = table}, {.out = out.data()})
      .value();
  const std::uint16_t means[] = {0x3f00, kOne, kTwo, 0x43e0}; // 448 in bf16
  for (std::size_t i = 0; i < out.size(); ++i)
    EXPECT_EQ(out[i], means[i % kValue / 16]) << i;
}

TEST(LatentRunTest, KeysAndValuesOfOtherDimsAreTensorsOfTheirOwn) {
  const Attention attention = compileSpec(kApart).value();
  EXPECT_FALSE(attention.valueInKey());
  Tree tree;
  (void)tree.addQuery(tree.addRoot(kTokens, 0).value()).value();
  Plan plan = Plan::make(attention, tree).value();
  const std::vector<int> table{0, 1, 2, 3};
  const std::vector<std::uint16_t> q(4 * kKey), k(kPages * kPage * 2 * kKey, kTwo),
      v(kPages * kPage * 2 * kValue, kOne);
  std::vector<std::uint16_t> out(4 * kValue);
  const Runtime runtime = Runtime::create({.threads = 1}).value();
  runtime
      .run(attention, plan, {.q = q.data(), .k = k.data(), .v = v.data(), .pageTable = table},
           {.out = out.data()})
      .value();
  EXPECT_THAT(out, Each(kOne));
  const auto none =
      runtime.run(attention, plan, {.q = q.data(), .k = k.data(), .pageTable = table}, {.out = out.data()});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().text(), "v is null");
}

} // namespace
} // namespace deft
