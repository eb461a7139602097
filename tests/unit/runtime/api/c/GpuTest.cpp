// The C API on GPUs, as a program sees it. `libcuda.so.1` is the tests' driver, whose memory is the host's.
#include "tests/support/DriverCalls.h"
#include "tests/support/FakeCuda.h"
#include "tests/unit/runtime/api/c/TestHandles.h"

#include <gmock/gmock.h>

#include <vector>

namespace deft::c_test {
namespace {

using testing::Each;
using testing::HasSubstr;

using GpuHandle = std::unique_ptr<deft_gpu, Destroy<deft_gpu_destroy>>;
using GpuAttentionHandle = std::unique_ptr<deft_gpu_attention, Destroy<deft_gpu_attention_destroy>>;
using GpuPlanHandle = std::unique_ptr<deft_gpu_plan, Destroy<deft_gpu_plan_destroy>>;
using TableHandle = std::unique_ptr<deft_gpu_page_table, Destroy<deft_gpu_page_table_destroy>>;

constexpr int kPages = 64, kBranches = 3;
constexpr uint16_t kOne = 0x3f80; // in bf16

/// 16-byte aligned, as memory of a GPU is.
struct alignas(16) Eight {
  uint16_t values[8];
};
using Memory = std::vector<Eight>;

/// A prompt with branches in a pool; every value is 1, so every output must be 1.
class GpuTest : public testing::Test {
protected:
  GpuTest() {
    fake_cuda::setVariant({4, 2, 64, 16, true, 0.25f});
    EXPECT_EQ(cuStreamCreate(&stream, 1), 0);
    const deft_pool_options pool = {.size = sizeof pool, .pages = kPages, .page_size = 16, .reserved = 0};
    sequences = made<SequencesHandle>(deft_sequence_tree_make, &pool);
    EXPECT_EQ(deft_sequence_tree_add_root(sequences.get(), 70, nullptr), DEFT_OK);
    for (int i = 0; i < kBranches; ++i) {
      EXPECT_EQ(deft_sequence_tree_add_child(sequences.get(), 0, 3 + 7 * i, &branches[i]), DEFT_OK);
      EXPECT_EQ(deft_sequence_tree_add_query(sequences.get(), branches[i], DEFT_WHOLE, nullptr), DEFT_OK);
    }
    gpu = made<GpuHandle>(deft_gpu_open, 0);
    const auto package = made<AttentionHandle>(deft_attention_load_package, DEFT_TEST_GPU_PACKAGE, nullptr);
    attention = made<GpuAttentionHandle>(deft_gpu_attention_load, gpu.get(), package.get(), nullptr);
    table = made<TableHandle>(deft_gpu_page_table_make, gpu.get(), 256);
    for (Eight &eight : cache)
      std::fill(std::begin(eight.values), std::end(eight.values), kOne);
    pages = {.size = sizeof pages,
             .data = const_cast<int32_t *>(deft_gpu_page_table_data(table.get())),
             .shape = entries,
             .strides = nullptr,
             .dtype = DEFT_I32,
             .ndim = 1,
             .device_type = DEFT_DEVICE_CUDA,
             .device_id = 0};
    rows = {.size = sizeof rows,
            .data = q.data(),
            .shape = rowShape,
            .strides = nullptr,
            .dtype = DEFT_BF16,
            .ndim = 3,
            .device_type = DEFT_DEVICE_CUDA,
            .device_id = 0};
    results = rows;
    results.data = out.data();
    tokens = rows;
    tokens.data = cache.data();
    tokens.shape = cacheShape;
    tokens.ndim = 4;
  }

  const deft_tree *tree() const { return deft_sequence_tree_get_tree(sequences.get()); }
  deft_status upload(deft_gpu_plan *plan) {
    const deft_status status = deft_gpu_page_table_upload(table.get(), sequences.get(), stream);
    return status != DEFT_OK ? status : deft_gpu_plan_upload(plan, stream);
  }
  deft_status run(deft_gpu_plan *plan) {
    return deft_gpu_plan_run(plan, attention.get(), &inputs, &outputs, stream);
  }
  void grow() {
    for (const int32_t branch : branches) {
      deft_token_copy *copies = nullptr;
      size_t count = 0;
      ASSERT_EQ(deft_sequence_tree_append(sequences.get(), branch, 1, &copies, &count), DEFT_OK);
      deft_free(copies);
    }
  }
  std::vector<uint16_t> takeOutput() {
    std::vector<uint16_t> values;
    for (Eight &eight : out)
      for (uint16_t &value : eight.values) {
        values.push_back(value);
        value = 0;
      }
    return values;
  }

  void *stream = nullptr;
  SequencesHandle sequences;
  int32_t branches[kBranches] = {};
  GpuHandle gpu;
  GpuAttentionHandle attention;
  TableHandle table;
  Memory q = Memory(kBranches * 4 * 8), cache = Memory(kPages * 16 * 2 * 8), out = Memory(q.size());
  const int64_t rowShape[3] = {kBranches, 4, 64}, cacheShape[4] = {kPages, 16, 2, 64}, entries[1] = {256};
  deft_tensor rows = {}, tokens = {}, pages = {}, results = {};
  deft_inputs inputs = {.size = sizeof inputs,
                        .q = &rows,
                        .k = &tokens,
                        .v = &tokens,
                        .page_table = &pages,
                        .params = nullptr,
                        .settings = {},
                        .k_rope = nullptr,
                        .lists = nullptr};
  deft_outputs outputs = {.size = sizeof outputs, .out = &results, .lse = nullptr};
};

TEST_F(GpuTest, ListsWhatTheDriverShows) {
  const auto all = made<Owned<deft_gpus>>(deft_gpu_list);
  ASSERT_EQ(all->count, 3U);
  EXPECT_STREQ(all->gpus[0]->name, "Fake Hopper");
  EXPECT_STREQ(all->gpus[1]->architecture, "sm_80");
  EXPECT_STREQ(all->gpus[2]->architecture, "");
  auto facts = sized<deft_gpu_facts>();
  ASSERT_EQ(deft_gpu_get_facts(gpu.get(), &facts), DEFT_OK);
  EXPECT_STREQ(facts.name, "Fake Hopper");
  EXPECT_EQ(facts.capability_major, 9);
  EXPECT_EQ(facts.multiprocessors, 132);
  deft_gpu *none = nullptr;
  EXPECT_EQ(deft_gpu_open(7, &none), DEFT_USAGE);
  EXPECT_EQ(deft_gpu_open(2, &none), DEFT_ENVIRONMENT);
}

TEST_F(GpuTest, StepsOfADecodeLoopAreRight) {
  const auto plan = made<GpuPlanHandle>(deft_gpu_plan_make, attention.get(), tree(), nullptr);
  for (int step = 0; step < 5; ++step) {
    grow();
    ASSERT_EQ(deft_gpu_plan_advance(plan.get(), tree(), nullptr), DEFT_OK);
    ASSERT_EQ(upload(plan.get()), DEFT_OK) << deft_error_text();
    ASSERT_EQ(run(plan.get()), DEFT_OK) << deft_error_text();
    EXPECT_THAT(takeOutput(), Each(kOne));
  }
  EXPECT_EQ(deft_gpu_plan_query_count(plan.get()), kBranches);
  auto summary = sized<deft_plan_summary>();
  ASSERT_EQ(deft_gpu_plan_get_summary(plan.get(), &summary), DEFT_OK);
  EXPECT_GT(summary.items, 0);
  const auto choice = made<Owned<deft_config_choice>>(deft_gpu_plan_get_choice, plan.get());
  EXPECT_STRNE(choice->rule, "");
}

using SelectionHandle = std::unique_ptr<deft_selection, Destroy<deft_selection_destroy>>;

TEST_F(GpuTest, ARunSelectsWhatSparseOnesRead) {
  const auto package =
      made<AttentionHandle>(deft_attention_load_package, DEFT_TEST_SELECTING_PACKAGE, nullptr);
  attention = made<GpuAttentionHandle>(deft_gpu_attention_load, gpu.get(), package.get(), nullptr);
  auto options = sized<deft_gpu_plan_options>();
  options.budget = 24;
  const auto plan = made<GpuPlanHandle>(deft_gpu_plan_make, attention.get(), tree(), &options);
  ASSERT_EQ(upload(plan.get()), DEFT_OK);
  EXPECT_EQ(deft_gpu_plan_run_sparse(plan.get(), attention.get(), &inputs, &outputs, stream), DEFT_USAGE);
  ASSERT_EQ(deft_gpu_plan_run_selecting(plan.get(), attention.get(), &inputs, &outputs, stream), DEFT_OK)
      << deft_error_text();
  EXPECT_THAT(takeOutput(), Each(kOne));
  ASSERT_EQ(deft_gpu_plan_run_sparse(plan.get(), attention.get(), &inputs, &outputs, stream), DEFT_OK)
      << deft_error_text();
  EXPECT_THAT(takeOutput(), Each(kOne));
  const auto selection = made<SelectionHandle>(deft_selection_make, package.get(), 24);
  ASSERT_EQ(deft_gpu_plan_read_lists(plan.get(), selection.get(), stream), DEFT_OK) << deft_error_text();
  auto view = sized<deft_selection_view>();
  ASSERT_EQ(deft_selection_get(selection.get(), &view), DEFT_OK);
  EXPECT_EQ(view.queries, kBranches);
  EXPECT_EQ(view.counts[0], 24);
  EXPECT_EQ(view.positions[21], 21); // of equal tokens the first, and the last two
  EXPECT_EQ(view.positions[22], 71);
}

TEST_F(GpuTest, AGraphFollowsTheTree) {
  const auto plan = made<GpuPlanHandle>(deft_gpu_plan_make, attention.get(), tree(), nullptr);
  const deft_gpu_room wanted = {.size = sizeof wanted,
                                .queries = 16,
                                .items = 100,
                                .runs = 300,
                                .partials = 300,
                                .positions = 0,
                                .stretches = 0};
  ASSERT_EQ(deft_gpu_plan_reserve(plan.get(), &wanted), DEFT_OK);
  auto room = sized<deft_gpu_room>();
  ASSERT_EQ(deft_gpu_plan_get_room(plan.get(), &room), DEFT_OK);
  EXPECT_GE(room.partials, 300);
  ASSERT_EQ(upload(plan.get()), DEFT_OK);
  void *graph = nullptr, *executable = nullptr;
  ASSERT_EQ(cuStreamBeginCapture_v2(stream, 1), 0);
  const deft_status captured = run(plan.get());
  ASSERT_EQ(cuStreamEndCapture(stream, &graph), 0);
  ASSERT_EQ(captured, DEFT_OK) << deft_error_text();
  ASSERT_EQ(cuGraphInstantiateWithFlags(&executable, graph, 0), 0);
  for (int step = 0; step < 4; ++step) {
    grow();
    ASSERT_EQ(deft_gpu_plan_advance(plan.get(), tree(), nullptr), DEFT_OK);
    ASSERT_EQ(upload(plan.get()), DEFT_OK);
    ASSERT_EQ(cuGraphLaunch(executable, stream), 0);
    EXPECT_THAT(takeOutput(), Each(kOne));
    EXPECT_EQ(deft_gpu_plan_check_replays(plan.get()), DEFT_OK);
  }
  grow();
  ASSERT_EQ(cuGraphLaunch(executable, stream), 0);
  EXPECT_EQ(deft_gpu_plan_check_replays(plan.get()), DEFT_USAGE);
  EXPECT_THAT(deft_error_text(), HasSubstr("stale plan"));
  EXPECT_EQ(deft_gpu_plan_is_current(plan.get()), 0);
  EXPECT_EQ(deft_gpu_plan_reserve(plan.get(), &wanted), DEFT_USAGE);
}

TEST_F(GpuTest, RoomIsAskedForAndNotGuessed) {
  auto room = sized<deft_gpu_room>();
  auto bytes = sized<deft_gpu_room_size>();
  ASSERT_EQ(deft_gpu_room_for(attention.get(), 64, 64, 10'000, nullptr, &room, &bytes), DEFT_OK)
      << deft_error_text();
  EXPECT_EQ(room.queries, 64);
  EXPECT_GT(bytes.device_bytes, bytes.host_bytes / 2);
  const auto plan = made<GpuPlanHandle>(deft_gpu_plan_make, attention.get(), tree(), nullptr);
  ASSERT_EQ(deft_gpu_plan_reserve(plan.get(), &room), DEFT_OK) << deft_error_text();
  EXPECT_EQ(deft_gpu_room_for(attention.get(), 64, -1, 10'000, nullptr, &room, nullptr), DEFT_USAGE);
  EXPECT_THAT(deft_error_text(), HasSubstr("queries is -1"));
}

TEST_F(GpuTest, APageTableOfTheHostsOwn) {
  const auto own = made<TableHandle>(deft_gpu_page_table_make, gpu.get(), 256);
  std::vector<int32_t> entries256(256, -1);
  for (int32_t page = 0; page < kPages; ++page)
    entries256[static_cast<size_t>(page)] = page;
  const auto write = [&](int32_t first, size_t count) {
    return deft_gpu_page_table_upload_entries(own.get(), first, entries256.data(), count, stream);
  };
  ASSERT_EQ(write(0, 256), DEFT_OK) << deft_error_text();
  pages.data = const_cast<int32_t *>(deft_gpu_page_table_data(own.get()));
  const auto plan = made<GpuPlanHandle>(deft_gpu_plan_make, attention.get(), tree(), nullptr);
  ASSERT_EQ(deft_gpu_plan_upload(plan.get(), stream), DEFT_OK);
  ASSERT_EQ(run(plan.get()), DEFT_OK) << deft_error_text();
  EXPECT_THAT(takeOutput(), Each(kOne));
  EXPECT_EQ(write(1, 256), DEFT_USAGE);
  EXPECT_THAT(deft_error_text(), HasSubstr("the entries from 1 to 257"));
  EXPECT_EQ(deft_gpu_page_table_upload(own.get(), sequences.get(), stream), DEFT_USAGE);
}

TEST_F(GpuTest, WrongTensorsAreNamedBeforeAnythingIsEnqueued) {
  const auto plan = made<GpuPlanHandle>(deft_gpu_plan_make, attention.get(), tree(), nullptr);
  ASSERT_EQ(upload(plan.get()), DEFT_OK);
  (void)fake_cuda::takeCalls();
  rows.device_id = 1;
  EXPECT_EQ(run(plan.get()), DEFT_USAGE);
  EXPECT_STREQ(deft_error_text(), "q is in memory of CUDA device 1, the run takes memory of CUDA device 0");
  rows.device_id = 0;
  tokens.device_type = DEFT_DEVICE_CPU;
  EXPECT_EQ(run(plan.get()), DEFT_USAGE);
  EXPECT_STREQ(deft_error_text(), "k is in memory of the CPU, the run takes memory of CUDA device 0");
  tokens.device_type = DEFT_DEVICE_CUDA;
  const int64_t fewer[1] = {1};
  pages.shape = fewer;
  EXPECT_EQ(run(plan.get()), DEFT_USAGE);
  EXPECT_THAT(deft_error_text(), HasSubstr("page_table has 1 pages, the tree needs the first "));
  pages.shape = entries;
  results.dtype = DEFT_F16;
  EXPECT_EQ(run(plan.get()), DEFT_USAGE);
  EXPECT_STREQ(deft_error_text(), "out is float16, `host_program` takes bfloat16");
  results.dtype = DEFT_BF16;
  const auto params = made<ParamsHandle>(deft_params_make, deft_gpu_attention_get_attention(attention.get()));
  inputs.params = params.get();
  EXPECT_EQ(run(plan.get()), DEFT_USAGE);
  EXPECT_THAT(deft_error_text(), HasSubstr("make another one with other values"));
  EXPECT_TRUE(fake_cuda::takeCalls().empty());
  inputs.params = nullptr;
  EXPECT_EQ(run(plan.get()), DEFT_OK) << deft_error_text();
}

TEST_F(GpuTest, RequestsGrowOnTheGpuAlone) {
  auto options = sized<deft_gpu_plan_options>();
  options.follows_lengths = 1;
  const auto plan = made<GpuPlanHandle>(deft_gpu_plan_make, attention.get(), tree(), &options);
  std::vector<int32_t> lengths;
  for (int query = 0; query < kBranches; ++query)
    lengths.push_back(deft_tree_path_tokens(tree(), query) + 1);
  const int64_t queries[] = {kBranches};
  auto tensor = sized<deft_tensor>();
  tensor.data = lengths.data(); // memory of the tests' GPU is the host's
  tensor.shape = queries;
  tensor.dtype = DEFT_I32;
  tensor.ndim = 1;
  tensor.device_type = DEFT_DEVICE_CPU;
  ASSERT_EQ(upload(plan.get()), DEFT_OK) << deft_error_text();
  EXPECT_EQ(deft_gpu_plan_follow(plan.get(), &tensor, stream), DEFT_USAGE);
  EXPECT_STREQ(deft_error_text(), "lengths is in memory of the CPU, the run takes memory of CUDA device 0");
  tensor.device_type = DEFT_DEVICE_CUDA;
  tensor.dtype = DEFT_F32;
  EXPECT_EQ(deft_gpu_plan_follow(plan.get(), &tensor, stream), DEFT_USAGE);
  EXPECT_STREQ(deft_error_text(), "lengths is float32, the plan takes int32");
  tensor.dtype = DEFT_I32;
  EXPECT_EQ(deft_gpu_plan_follow(plan.get(), &tensor, stream), DEFT_OK) << deft_error_text();
  EXPECT_EQ(run(plan.get()), DEFT_OK) << deft_error_text();
  EXPECT_THAT(takeOutput(), Each(kOne));
  EXPECT_EQ(deft_gpu_plan_check_replays(plan.get()), DEFT_OK) << deft_error_text();
  options.slack = -1;
  deft_gpu_plan *none = nullptr;
  EXPECT_EQ(deft_gpu_plan_make(attention.get(), tree(), &options, &none), DEFT_USAGE);
}

TEST_F(GpuTest, PagesThatKLacksAreToldWhereAskedFor) {
  auto options = sized<deft_gpu_plan_options>();
  options.checks_pages = 1;
  const auto plan = made<GpuPlanHandle>(deft_gpu_plan_make, attention.get(), tree(), &options);
  ASSERT_EQ(upload(plan.get()), DEFT_OK) << deft_error_text();
  ASSERT_EQ(run(plan.get()), DEFT_OK) << deft_error_text();
  EXPECT_EQ(deft_gpu_plan_check_replays(plan.get()), DEFT_OK) << deft_error_text();
  const int64_t few[4] = {3, 16, 2, 64};
  tokens.shape = few;
  ASSERT_EQ(run(plan.get()), DEFT_OK) << deft_error_text();
  EXPECT_EQ(deft_gpu_plan_check_replays(plan.get()), DEFT_USAGE);
  EXPECT_THAT(deft_error_text(), HasSubstr("and the cache has 3 pages"));
}

TEST_F(GpuTest, PagedBatchesArePlannedThere) {
  auto options = sized<deft_paged_batch_options>();
  options.page_size = 16;
  using BatchHandle = std::unique_ptr<deft_paged_batch, Destroy<deft_paged_batch_destroy>>;
  const auto batch = made<BatchHandle>(deft_paged_batch_make, &options);
  const std::vector<int32_t> blockTable = {5, 1, 5, 2, 5, 3}, lengths = {20, 25, 32};
  auto blocks = sized<deft_page_table>();
  blocks.entries = blockTable.data();
  blocks.entry_count = blockTable.size();
  blocks.row_stride = 2;
  auto requests = sized<deft_paged_requests>();
  requests.table = &blocks;
  requests.count = lengths.size();
  requests.lengths = lengths.data();
  ASSERT_EQ(deft_paged_batch_update(batch.get(), &requests), DEFT_OK) << deft_error_text();
  const auto plan =
      made<GpuPlanHandle>(deft_paged_batch_make_gpu_plan, batch.get(), attention.get(), nullptr);
  ASSERT_TRUE(plan);
  ASSERT_EQ(deft_gpu_plan_upload(plan.get(), stream), DEFT_OK);
  const int64_t entryCount[] = {6};
  pages.data = const_cast<int32_t *>(blockTable.data());
  pages.shape = entryCount;
  ASSERT_EQ(run(plan.get()), DEFT_OK) << deft_error_text();
  EXPECT_THAT(takeOutput(), Each(kOne));
}

TEST_F(GpuTest, StatesAreMergedThere) {
  using MergeHandle = std::unique_ptr<deft_gpu_state_merge, Destroy<deft_gpu_state_merge_destroy>>;
  deft_gpu_state_merge *loaded = nullptr;
  const deft_status status = deft_gpu_state_merge_load(gpu.get(), DEFT_BF16, &loaded);
  if (status == DEFT_ENVIRONMENT)
    GTEST_SKIP() << deft_error_text();
  ASSERT_EQ(status, DEFT_OK) << deft_error_text();
  const MergeHandle merge(loaded);
  for (Eight &eight : q)
    std::fill(std::begin(eight.values), std::end(eight.values), kOne);
  std::vector<float> logs(kBranches * 4, 2);
  deft_tensor lse = rows;
  lse.data = logs.data();
  lse.dtype = DEFT_F32;
  lse.ndim = 2;
  const deft_state states[] = {{&rows, &lse}, {&rows, &lse}}, to = {&results, nullptr};
  ASSERT_EQ(deft_gpu_state_merge_run(merge.get(), states, 2, &to, stream), DEFT_OK) << deft_error_text();
  EXPECT_THAT(takeOutput(), Each(kOne));
  lse.device_type = DEFT_DEVICE_CPU;
  EXPECT_EQ(deft_gpu_state_merge_run(merge.get(), states, 2, &to, stream), DEFT_USAGE);
  EXPECT_STREQ(deft_error_text(),
               "states[0].lse is in memory of the CPU, the run takes memory of CUDA device 0");
  EXPECT_EQ(deft_gpu_state_merge_load(gpu.get(), DEFT_I32, &loaded), DEFT_USAGE);
  EXPECT_EQ(loaded, nullptr);
}

TEST_F(GpuTest, WhatWasMadeGoesOnWithoutItsMakers) {
  const auto params = made<ParamsHandle>(deft_params_make, deft_gpu_attention_get_attention(attention.get()));
  auto other = made<GpuAttentionHandle>(deft_gpu_attention_with_params, attention.get(), params.get());
  auto options = sized<deft_gpu_plan_options>();
  options.runs_ahead = 2;
  const auto plan = made<GpuPlanHandle>(deft_gpu_plan_make, attention.get(), tree(), &options);
  gpu.reset();
  attention = std::move(other);
  auto facts = sized<deft_gpu_facts>();
  ASSERT_EQ(deft_gpu_get_facts(deft_gpu_attention_get_gpu(attention.get()), &facts), DEFT_OK);
  EXPECT_STREQ(facts.name, "Fake Hopper");
  ASSERT_EQ(upload(plan.get()), DEFT_OK);
  EXPECT_EQ(run(plan.get()), DEFT_OK) << deft_error_text();
  EXPECT_THAT(takeOutput(), Each(kOne));
}

} // namespace
} // namespace deft::c_test
