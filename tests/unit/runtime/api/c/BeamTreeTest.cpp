#include "tests/unit/runtime/api/c/TestHandles.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace deft::c_test {
namespace {

using testing::HasSubstr;

using BeamsHandle = std::unique_ptr<deft_beam_tree, Destroy<deft_beam_tree_destroy>>;

constexpr std::uint16_t kOne = 0x3f80; // in bf16

/// Beams over a history of 20 tokens in pages 5 and 2 of a cache of eight.
class BeamTreeTest : public testing::Test {
protected:
  BeamTreeTest() {
    auto options = sized<deft_beam_tree_options>();
    options.page_size = 16;
    options.most_beams = 40;
    beams = made<BeamsHandle>(deft_beam_tree_make, &options);
    histories.stretches = &history;
    histories.stretch_count = 1;
    histories.entries = entries.data();
    histories.entry_count = entries.size();
    histories.pages = pages.data();
    histories.page_count = pages.size();
    EXPECT_EQ(deft_beam_tree_start(beams.get(), &histories), DEFT_OK) << deft_error_text();
  }

  deft_status advance(const std::vector<int32_t> &parents, deft_followers *followers = nullptr) {
    return deft_beam_tree_advance(beams.get(), parents.data(), parents.size(), followers);
  }
  deft_beam_step step() {
    auto step = sized<deft_beam_step>();
    EXPECT_EQ(deft_beam_tree_get_step(beams.get(), &step), DEFT_OK);
    return step;
  }

  deft_stretch history = {0, 20};
  std::vector<int32_t> entries = {5, 2}, pages = {7, 1, 0, 6};
  deft_beam_histories histories = sized<deft_beam_histories>();
  BeamsHandle beams;
};

/// Only slots that beams were given hold values, all of them 1, so outputs are 1 where every token's place is
/// right.
TEST_F(BeamTreeTest, AStepIsACallAndItsRuns) {
  const AttentionHandle attention = loadAttention();
  const auto runtime = made<RuntimeHandle>(deft_runtime_make, nullptr);
  ASSERT_EQ(advance(std::vector<int32_t>(17, 0)), DEFT_OK) << deft_error_text();
  const auto plan =
      made<PlanHandle>(deft_plan_make, attention.get(), deft_beam_tree_get_tree(beams.get()), nullptr);
  std::vector<std::uint16_t> k(8 * 16 * 2 * 64, 0), v(k.size(), 0x7fff); // NaN
  const auto fill = [&](int64_t slot) { std::fill_n(v.begin() + slot * 2 * 64, 2 * 64, kOne); };
  for (int token = 0; token < 20; ++token)
    fill(entries[static_cast<size_t>(token / 16)] * 16 + token % 16);

  deft_plan *plans[] = {plan.get()};
  auto followers = sized<deft_followers>();
  followers.plans = plans;
  followers.plan_count = 1;
  for (const std::vector<int32_t> &parents : {std::vector<int32_t>{16, 3, 3}, {2, 1, 0, 0}, {3}}) {
    const deft_beam_step before = step();
    for (size_t beam = 0; beam < before.beams; ++beam)
      fill(before.slots[beam]);
    ASSERT_EQ(advance(parents, &followers), DEFT_OK) << deft_error_text();
    EXPECT_EQ(followers.advanced, DEFT_ADVANCED_REMADE);
    EXPECT_EQ(followers.is_taken, 1);
    const deft_beam_step now = step();
    for (size_t beam = 0; beam < now.beams; ++beam)
      fill(now.slots[beam]);
    std::vector<std::uint16_t> q(parents.size() * 4 * 64), out(q.size());
    const int64_t rows = static_cast<int64_t>(parents.size()), ofQ[] = {rows, 4, 64},
                  ofCache[] = {8, 16, 2, 64};
    const int32_t *table = nullptr;
    size_t count = 0;
    ASSERT_EQ(deft_beam_tree_get_page_table(beams.get(), &table, &count), DEFT_OK);
    const int64_t ofTable[] = {static_cast<int64_t>(count)};
    const auto tensor = [](const void *data, const int64_t *shape, int32_t ndim, deft_dtype dtype) {
      auto own = sized<deft_tensor>();
      own.data = const_cast<void *>(data);
      own.shape = shape;
      own.ndim = ndim;
      own.dtype = dtype;
      own.device_type = DEFT_DEVICE_CPU;
      return own;
    };
    const deft_tensor tensors[] = {
        tensor(q.data(), ofQ, 3, DEFT_BF16), tensor(k.data(), ofCache, 4, DEFT_BF16),
        tensor(v.data(), ofCache, 4, DEFT_BF16), tensor(table, ofTable, 1, DEFT_I32),
        tensor(out.data(), ofQ, 3, DEFT_BF16)};
    auto inputs = sized<deft_inputs>();
    inputs.q = &tensors[0];
    inputs.k = &tensors[1];
    inputs.v = &tensors[2];
    inputs.page_table = &tensors[3];
    auto outputs = sized<deft_outputs>();
    outputs.out = &tensors[4];
    ASSERT_EQ(deft_runtime_run(runtime.get(), attention.get(), plan.get(), &inputs, &outputs), DEFT_OK)
        << deft_error_text();
    EXPECT_THAT(out, testing::Each(kOne));
  }
}

TEST_F(BeamTreeTest, PagesAreTheOwnersWhenTheyAreFree) {
  ASSERT_EQ(advance(std::vector<int32_t>(33, 0)), DEFT_OK) << deft_error_text();
  EXPECT_EQ(step().new_page_count, 3U);
  EXPECT_EQ(step().new_pages[0], 7);
  EXPECT_EQ(step().slots[32], 0);
  EXPECT_EQ(step().positions[32], 20);
  ASSERT_EQ(advance({32}), DEFT_OK);
  EXPECT_EQ(step().new_page_count, 0U); // the token lies behind those of the last page
  EXPECT_EQ(step().slots[0], 1);
  ASSERT_EQ(step().freed_page_count, 2U);
  EXPECT_EQ(deft_beam_tree_free_pages(beams.get()), 3);
  int32_t *taken = nullptr;
  size_t count = 0;
  ASSERT_EQ(deft_beam_tree_take_pages(beams.get(), 9, &taken, &count), DEFT_OK);
  const Owned<int32_t> owned(taken);
  EXPECT_EQ(count, 3U);
  EXPECT_EQ(advance(std::vector<int32_t>(17, 0)), DEFT_DIAGNOSTICS);
  EXPECT_THAT(deft_error_text(), HasSubstr("out of space"));
  ASSERT_EQ(deft_beam_tree_add_pages(beams.get(), taken, count), DEFT_OK) << deft_error_text();
  EXPECT_EQ(advance(std::vector<int32_t>(17, 0)), DEFT_OK);
}

TEST_F(BeamTreeTest, WrongCallsNameTheField) {
  EXPECT_EQ(advance({1}), DEFT_USAGE);
  EXPECT_STREQ(deft_error_field(), "parents");
  EXPECT_EQ(advance(std::vector<int32_t>(41, 0)), DEFT_USAGE);
  EXPECT_STREQ(deft_error_text(), "parents has 41 beams, there are at most 40");
  EXPECT_EQ(deft_beam_tree_advance(beams.get(), nullptr, 3, nullptr), DEFT_USAGE);
  EXPECT_STREQ(deft_error_field(), "parents");
  EXPECT_EQ(deft_beam_tree_advance(nullptr, nullptr, 0, nullptr), DEFT_USAGE);
  EXPECT_STREQ(deft_error_field(), "beams");
  EXPECT_EQ(deft_beam_tree_free_pages(nullptr), 0);
  histories.count = 2;
  EXPECT_EQ(deft_beam_tree_start(beams.get(), &histories), DEFT_USAGE);
  EXPECT_STREQ(deft_error_text(), "deft_beam_histories::indptr is null, and there are 2 histories");
  histories.count = 1;
  histories.entries = nullptr;
  EXPECT_EQ(deft_beam_tree_start(beams.get(), &histories), DEFT_USAGE);
  EXPECT_STREQ(deft_error_field(), "deft_beam_histories::entries");
  EXPECT_EQ(deft_beam_tree_add_pages(beams.get(), pages.data(), 1), DEFT_USAGE);
  EXPECT_STREQ(deft_error_text(), "pages has page 7 at 0, which the beams have already");
  auto *const tree = const_cast<deft_tree *>(deft_beam_tree_get_tree(beams.get()));
  EXPECT_EQ(deft_tree_append(tree, 0, 1), DEFT_USAGE);
  EXPECT_THAT(deft_error_message(), HasSubstr("belongs to"));
  EXPECT_EQ(deft_tree_tokens(tree), 20); // nothing has changed
  deft_beam_tree *none = nullptr;
  auto options = sized<deft_beam_tree_options>();
  EXPECT_EQ(deft_beam_tree_make(&options, &none), DEFT_USAGE);
  EXPECT_STREQ(deft_error_field(), "deft_beam_tree_options::page_size");
  EXPECT_EQ(none, nullptr);
}

} // namespace
} // namespace deft::c_test
