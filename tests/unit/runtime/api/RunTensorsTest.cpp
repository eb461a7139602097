#include "tests/unit/runtime/api/c/TestHandles.h"

#include <gmock/gmock.h>

#include <cmath>
#include <utility>
#include <vector>

namespace deft::c_test {
namespace {

using testing::Each;
using testing::HasSubstr;
using testing::StartsWith;

constexpr uint16_t kOne = 0x3f80, kTwo = 0x4000; // in bf16

/// Two branches of a prompt, in 4 pages; every value is 1, so every output is 1, whatever the scores.
/// tests/host_program/c_project/wrong_calls.c has what may be wrong with such a run.
class RunTensorsTest : public testing::Test {
protected:
  deft_tensor tensor(void *data, deft_dtype dtype, const std::vector<int64_t> &shape,
                     const std::vector<int64_t> *strides = nullptr) {
    return {.size = sizeof(deft_tensor),
            .data = data,
            .shape = shape.data(),
            .strides = strides ? strides->data() : nullptr,
            .dtype = dtype,
            .ndim = static_cast<int32_t>(shape.size()),
            .device_type = DEFT_DEVICE_UNSAID,
            .device_id = 0};
  }

  deft_status run() {
    return deft_runtime_run(runtime.get(), attention.get(), plan.get(), &inputs, &outputs);
  }

  AttentionHandle attention = loadAttention();
  RuntimeHandle runtime = made<RuntimeHandle>(deft_runtime_make, nullptr);
  TreeHandle tree = twoBranches(40, 6);
  PlanHandle plan = made<PlanHandle>(deft_plan_make, attention.get(), tree.get(), nullptr);

  std::vector<uint16_t> q = std::vector<uint16_t>(2 * 4 * 64), k = std::vector<uint16_t>(4 * 16 * 2 * 64),
                        v = std::vector<uint16_t>(k.size(), kOne), out = std::vector<uint16_t>(q.size());
  std::vector<float> lse = std::vector<float>(2 * 4);
  std::vector<int32_t> pages = {3, 1, 0, 2};
  const std::vector<int64_t> rows = {2, 4, 64}, heads = {2, 4}, cache = {4, 16, 2, 64}, entries = {4};

  deft_tensor qTensor = tensor(q.data(), DEFT_BF16, rows), kTensor = tensor(k.data(), DEFT_BF16, cache),
              vTensor = tensor(v.data(), DEFT_BF16, cache), table = tensor(pages.data(), DEFT_I32, entries),
              outTensor = tensor(out.data(), DEFT_BF16, rows),
              lseTensor = tensor(lse.data(), DEFT_F32, heads);
  deft_inputs inputs = {.size = sizeof inputs,
                        .q = &qTensor,
                        .k = &kTensor,
                        .v = &vTensor,
                        .page_table = &table,
                        .params = nullptr,
                        .settings = {},
                        .k_rope = nullptr,
                        .lists = nullptr};
  deft_outputs outputs = {.size = sizeof outputs, .out = &outTensor, .lse = &lseTensor};
};

TEST_F(RunTensorsTest, PackedTensorsNeedNoStrides) {
  ASSERT_EQ(run(), DEFT_OK) << deft_error_text();
  EXPECT_THAT(out, Each(kOne));
  EXPECT_THAT(lse, Each(testing::FloatNear(std::log(46.0f), 1e-4f))); // all scores are 0
}

TEST_F(RunTensorsTest, DevicesOfTheHostAreTaken) {
  for (const int32_t device : {DEFT_DEVICE_CPU, DEFT_DEVICE_CUDA_HOST, DEFT_DEVICE_CUDA_MANAGED}) {
    qTensor.device_type = device;
    EXPECT_EQ(run(), DEFT_OK) << deft_error_text();
  }
  qTensor.device_type = 7;
  EXPECT_EQ(run(), DEFT_USAGE);
  EXPECT_STREQ(deft_error_text(), "q is in memory of device type 7, the run takes memory of the CPU");
}

TEST_F(RunTensorsTest, LayersSideBySide) {
  // K and V of two layers in one token, the second layer's V last.
  std::vector<uint16_t> all(4 * v.size(), kTwo);
  for (std::size_t token = 0; token < 64; ++token)
    std::fill_n(all.begin() + static_cast<std::ptrdiff_t>(token * 512 + 384), 128, kOne);
  const std::vector<int64_t> strides = {16 * 512, 512, 64, 1};
  kTensor = tensor(all.data() + 256, DEFT_BF16, cache, &strides);
  vTensor = tensor(all.data() + 384, DEFT_BF16, cache, &strides);
  ASSERT_EQ(run(), DEFT_OK) << deft_error_text();
  EXPECT_THAT(out, Each(kOne));
}

TEST_F(RunTensorsTest, ValuesMayLieInAnotherWayThanKeys) {
  std::vector<uint16_t> apart(4 * 2 * 16 * 80, kTwo); // [pages, kv_heads, slots, 80], of which 64 are V's
  for (std::size_t row = 0; row < 4 * 2 * 16; ++row)
    std::fill_n(apart.begin() + static_cast<std::ptrdiff_t>(row * 80), 64, kOne);
  const std::vector<int64_t> strides = {2 * 16 * 80, 80, 16 * 80, 1};
  vTensor = tensor(apart.data(), DEFT_BF16, cache, &strides);
  ASSERT_EQ(run(), DEFT_OK) << deft_error_text();
  EXPECT_THAT(out, Each(kOne));
  const std::vector<int64_t> fewer = {3, 16, 2, 64};
  vTensor = tensor(v.data(), DEFT_BF16, fewer);
  EXPECT_EQ(run(), DEFT_USAGE);
  EXPECT_THAT(deft_error_text(), StartsWith("v is [3, 16, 2, 64], and k has 4 pages\n"));
}

TEST_F(RunTensorsTest, RowsMayBeWiderThanTheirHeads) {
  std::vector<uint16_t> fused(2 * 512, 0x7fc0), wide(2 * 300, kTwo); // q is 256 of each row
  for (std::size_t query = 0; query < 2; ++query)
    std::fill_n(fused.begin() + static_cast<std::ptrdiff_t>(query * 512), 256, kOne);
  const std::vector<int64_t> ofQ = {512, 64, 1}, ofOut = {300, 64, 1};
  qTensor = tensor(fused.data(), DEFT_BF16, rows, &ofQ);
  outTensor = tensor(wide.data(), DEFT_BF16, rows, &ofOut);
  ASSERT_EQ(run(), DEFT_OK) << deft_error_text();
  for (std::size_t i = 0; i < wide.size(); ++i)
    EXPECT_EQ(wide[i], i % 300 < 256 ? kOne : kTwo) << i;
  const std::vector<int64_t> overlapping = {64, 64, 1};
  outTensor.strides = overlapping.data();
  EXPECT_EQ(run(), DEFT_USAGE);
  EXPECT_THAT(deft_error_text(), StartsWith("out of shape [2, 4, 64] has strides [64, 64, 1], except for the "
                                            "first, which may be larger, they must be [256, 64, 1]\n"));
}

TEST_F(RunTensorsTest, StridesOfOneElementDoNotMatter) {
  ASSERT_EQ(deft_tree_remove_query(tree.get(), 1), DEFT_OK);
  ASSERT_EQ(deft_plan_advance(plan.get(), tree.get(), nullptr), DEFT_OK);
  const std::vector<int64_t> row = {1, 4, 64}, strides = {12345, 64, 1};
  qTensor = tensor(q.data(), DEFT_BF16, row, &strides);
  outTensor = tensor(out.data(), DEFT_BF16, row, &strides);
  outputs.lse = nullptr;
  EXPECT_EQ(run(), DEFT_OK) << deft_error_text();
}

TEST_F(RunTensorsTest, AStepWithoutQueriesNeedsNoTensors) {
  ASSERT_EQ(deft_tree_clear_queries(tree.get()), DEFT_OK);
  ASSERT_EQ(deft_plan_advance(plan.get(), tree.get(), nullptr), DEFT_OK);
  inputs = {.size = sizeof inputs,
            .q = nullptr,
            .k = nullptr,
            .v = nullptr,
            .page_table = nullptr,
            .params = nullptr,
            .settings = {},
            .k_rope = nullptr,
            .lists = nullptr};
  outputs = {.size = sizeof outputs, .out = nullptr, .lse = nullptr};
  EXPECT_EQ(run(), DEFT_OK) << deft_error_text();
  const std::vector<int64_t> none = {0, 4, 64}, any = {7, 7, 7};
  qTensor = tensor(nullptr, DEFT_BF16, none, &any); // as numpy makes an array of nothing
  inputs.q = &qTensor;
  EXPECT_EQ(run(), DEFT_OK) << deft_error_text();
}

TEST_F(RunTensorsTest, TensorsWithoutMemoryAreNamed) {
  for (deft_tensor *const one : {&qTensor, &kTensor, &vTensor, &table, &outTensor, &lseTensor}) {
    void *const memory = std::exchange(one->data, nullptr);
    EXPECT_EQ(run(), DEFT_USAGE);
    EXPECT_THAT(deft_error_text(), HasSubstr("] is at no address\n  = hint: its data is null"));
    one->data = memory;
  }
  table.data = nullptr;
  EXPECT_EQ(run(), DEFT_USAGE);
  EXPECT_THAT(deft_error_text(), StartsWith("page_table of shape [4] is at no address"));
}

TEST_F(RunTensorsTest, WhatIsNotFiniteIsLookedForWhereAskedFor) {
  q[3 * 64 + 1] = 0x7fc0;
  EXPECT_EQ(run(), DEFT_OK) << deft_error_text();
  inputs.settings.check_finite = 1;
  EXPECT_EQ(run(), DEFT_USAGE);
  EXPECT_THAT(deft_error_text(), StartsWith("query 0, head 3: q is NaN at element 1"));
  inputs.settings.reserved[1] = 5;
  EXPECT_EQ(run(), DEFT_USAGE);
  EXPECT_STREQ(deft_error_text(), "deft_run_settings::reserved is 5, not 0");
}

TEST_F(RunTensorsTest, HeadsMayStandBeforeSlots) {
  if (!deft_has_compiler())
    GTEST_SKIP() << "the library has no compiler";
  attention =
      made<AttentionHandle>(deft_attention_compile,
                            "attention a { query_heads = 4; kv_heads = 2; head_dim = 64; output = f16;"
                            "  kv_cache = paged(page_size = 16, order = hnd); }",
                            nullptr);
  plan = made<PlanHandle>(deft_plan_make, attention.get(), tree.get(), nullptr);
  outputs.lse = nullptr;
  outTensor.dtype = DEFT_F16;
  EXPECT_EQ(run(), DEFT_USAGE);
  EXPECT_STREQ(deft_error_text(),
               "k is [4, 16, 2, 64], it must be [pages, kv_heads, page_size, head_dim] = [any, 2, 16, 64]");
  const std::vector<int64_t> hnd = {4, 2, 16, 64};
  kTensor.shape = vTensor.shape = hnd.data();
  ASSERT_EQ(run(), DEFT_OK) << deft_error_text();
  EXPECT_THAT(out, Each(0x3c00)); // 1 in f16
}

TEST_F(RunTensorsTest, WhatIsWrittenOverlapsWithNothing) {
  const std::string hint = "\n  = hint: it is written while that is read: give it its own memory";
  const auto refused = [&](const std::string &what) {
    EXPECT_EQ(run(), DEFT_USAGE);
    EXPECT_EQ(deft_error_text(), what);
  };
  outTensor.data = k.data() + 64;
  refused("out overlaps with k" + hint);
  outTensor.data = v.data() + v.size() - 1; // its last element alone
  refused("out overlaps with v" + hint);
  outTensor.data = q.data();
  refused("out overlaps with q" + hint);
  outTensor.data = out.data();
  std::vector<uint16_t> both(out.size() + 16);
  outTensor.data = both.data();
  lseTensor.data = both.data() + out.size() - 2;
  refused("lse overlaps with out\n  = hint: both are written: give each its own memory");
  lseTensor.data = both.data() + out.size();
  EXPECT_EQ(run(), DEFT_OK) << deft_error_text();
  lseTensor.data = pages.data();
  refused("lse overlaps with page_table" + hint);
}

TEST_F(RunTensorsTest, HeadsOfARowMayBeReadAndOthersWritten) {
  std::vector<uint16_t> fused(2 * 512);
  const std::vector<int64_t> wide = {512, 64, 1};
  qTensor = tensor(fused.data(), DEFT_BF16, rows, &wide);
  outTensor = tensor(fused.data() + 256, DEFT_BF16, rows, &wide);
  EXPECT_EQ(run(), DEFT_OK) << deft_error_text();
  outTensor.data = fused.data() + 192;
  EXPECT_EQ(run(), DEFT_USAGE);
}

} // namespace
} // namespace deft::c_test
