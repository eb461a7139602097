#include "tests/unit/runtime/api/c/TestHandles.h"

#include <gmock/gmock.h>

#include <vector>

namespace deft::c_test {
namespace {

using testing::HasSubstr;

using BatchHandle = std::unique_ptr<deft_paged_batch, Destroy<deft_paged_batch_destroy>>;

/// Three requests in rows of four pages of 16 tokens: the first two pages are shared by all, the rest by
/// none. tests/host_program/c_project/decode_paged.c runs such batches.
class PagedBatchTest : public testing::Test {
protected:
  PagedBatchTest() {
    auto options = sized<deft_paged_batch_options>();
    options.page_size = 16;
    options.check_entries = DEFT_CHECK_ALWAYS;
    batch = made<BatchHandle>(deft_paged_batch_make, &options);
    table.entries = entries.data();
    table.entry_count = entries.size();
    table.row_stride = 4;
    requests.table = &table;
    requests.count = lengths.size();
    requests.lengths = lengths.data();
    requests.ids = ids.data();
  }

  deft_status update() { return deft_paged_batch_update(batch.get(), &requests); }
  deft_sharing_summary summary() {
    auto summary = sized<deft_sharing_summary>();
    EXPECT_EQ(deft_paged_batch_get_summary(batch.get(), &summary), DEFT_OK);
    return summary;
  }

  AttentionHandle attention = loadAttention();
  std::vector<int32_t> entries = {5, 6, 1, -1, 5, 6, 2, -1, 5, 6, 3, -1};
  std::vector<int32_t> lengths = {40, 35, 33};
  std::vector<uint64_t> ids = {1, 2, 3};
  deft_page_table table = sized<deft_page_table>();
  deft_paged_requests requests = sized<deft_paged_requests>();
  BatchHandle batch;
};

TEST_F(PagedBatchTest, SharingIsFoundAndPlansFollow) {
  ASSERT_EQ(update(), DEFT_OK) << deft_error_text();
  EXPECT_EQ(summary().requests, 3);
  EXPECT_EQ(summary().request_tokens, 108);
  EXPECT_EQ(summary().tokens, 44);
  const auto plan = made<PlanHandle>(deft_paged_batch_make_plan, batch.get(), attention.get(), nullptr);
  EXPECT_EQ(deft_plan_query_count(plan.get()), 3);

  lengths = {41, 36, 34};
  ASSERT_EQ(deft_paged_batch_grow(batch.get(), &table, lengths.data(), 3), DEFT_OK) << deft_error_text();
  EXPECT_EQ(deft_plan_is_current(plan.get()), 0);
  deft_advanced advanced = -1;
  ASSERT_EQ(deft_plan_advance(plan.get(), deft_paged_batch_get_tree(batch.get()), &advanced), DEFT_OK);
  EXPECT_EQ(advanced, DEFT_ADVANCED_IN_PLACE);

  requests.count = 1; // the others have gone
  ASSERT_EQ(update(), DEFT_OK) << deft_error_text();
  EXPECT_EQ(summary().tokens, 41);
}

TEST_F(PagedBatchTest, TablesComeInBothFormsAndQueriesInAnyNumber) {
  const std::vector<int32_t> packed = {5, 6, 1, 5, 6, 2, 5, 6, 3}, indptr = {0, 3, 6, 9},
                             lastPages = {8, 3, 1};
  table = sized<deft_page_table>();
  table.entries = packed.data();
  table.entry_count = packed.size();
  table.indptr = indptr.data();
  table.indptr_count = indptr.size();
  requests.lengths = nullptr;
  requests.last_page_lengths = lastPages.data();
  const std::vector<int32_t> queries = {0, 2, 3, 6};
  requests.query_indptr = queries.data();
  ASSERT_EQ(update(), DEFT_OK) << deft_error_text();
  EXPECT_EQ(summary().tokens, 44);
  const auto plan = made<PlanHandle>(deft_paged_batch_make_plan, batch.get(), attention.get(), nullptr);
  EXPECT_EQ(deft_plan_query_count(plan.get()), 6);
}

TEST_F(PagedBatchTest, WrongRequestsAreNamedAndChangeNothing) {
  ASSERT_EQ(update(), DEFT_OK);
  lengths[1] = 65;
  EXPECT_NE(update(), DEFT_OK);
  EXPECT_THAT(deft_error_text(), HasSubstr("request 1"));
  lengths[1] = 35;
  requests.table = nullptr;
  EXPECT_EQ(update(), DEFT_USAGE);
  EXPECT_STREQ(deft_error_text(), "deft_paged_requests::table is null");
  requests.table = &table;
  requests.lengths = nullptr;
  EXPECT_EQ(update(), DEFT_USAGE);
  EXPECT_STREQ(deft_error_text(),
               "deft_paged_requests::lengths is null, and the lengths of last pages are not given");
  requests.lengths = lengths.data();
  entries[1] = 9; // and the request says that it is the one it was
  EXPECT_NE(update(), DEFT_OK);
  EXPECT_EQ(summary().tokens, 44);
  table.reserved = 1;
  EXPECT_EQ(update(), DEFT_USAGE);
  EXPECT_STREQ(deft_error_text(), "deft_page_table::reserved is 1, not 0");
}

TEST_F(PagedBatchTest, AStepWithoutRequestsHasNoLengths) {
  requests.count = 0;
  ASSERT_EQ(update(), DEFT_OK) << deft_error_text();
  EXPECT_EQ(deft_paged_batch_grow(batch.get(), &table, nullptr, 0), DEFT_OK) << deft_error_text();
  EXPECT_EQ(deft_paged_batch_grow(batch.get(), &table, nullptr, 1), DEFT_USAGE);
  EXPECT_STREQ(deft_error_text(), "deft_paged_batch_grow: lengths is null");
}

TEST_F(PagedBatchTest, WrongOptionsAreNamed) {
  deft_paged_batch *none = nullptr;
  auto options = sized<deft_paged_batch_options>();
  EXPECT_EQ(deft_paged_batch_make(&options, &none), DEFT_USAGE);
  EXPECT_THAT(deft_error_text(), HasSubstr("page_size is 0"));
  options.page_size = 16;
  options.check_entries = 3;
  EXPECT_EQ(deft_paged_batch_make(&options, &none), DEFT_USAGE);
  EXPECT_STREQ(deft_error_text(), "deft_paged_batch_options::check_entries is 3, not between 0 and 2");
  options.check_entries = DEFT_CHECK_NEVER;
  options.cache_pages = -4;
  EXPECT_EQ(deft_paged_batch_make(&options, &none), DEFT_USAGE);
  EXPECT_STREQ(deft_error_text(),
               "deft_paged_batch_options::cache_pages is -4, not between 0 and 2147483648");
  options.cache_pages = 6;
  const auto small = made<BatchHandle>(deft_paged_batch_make, &options);
  EXPECT_EQ(deft_paged_batch_update(small.get(), &requests), DEFT_USAGE);
  EXPECT_STREQ(deft_error_text(), "request 0: page 1 of row 0 is 6, and the cache has 6 pages");
  options.cache_pages = 0;
  options.invariant_chunk = 96;
  const auto whole = made<BatchHandle>(deft_paged_batch_make, &options);
  auto invariant = sized<deft_plan_options>();
  invariant.is_invariant = 1;
  deft_plan *plan = nullptr;
  EXPECT_EQ(deft_paged_batch_make_plan(whole.get(), attention.get(), &invariant, &plan), DEFT_USAGE);
  EXPECT_THAT(deft_error_text(), HasSubstr("share multiples of 96 tokens"));
  invariant.chunk_tokens = 48;
  const auto planned = made<PlanHandle>(deft_paged_batch_make_plan, whole.get(), attention.get(), &invariant);
  options.invariant_chunk = 0;
  options.page_size = 32;
  const auto other = made<BatchHandle>(deft_paged_batch_make, &options);
  EXPECT_EQ(deft_paged_batch_make_plan(other.get(), attention.get(), nullptr, &plan), DEFT_USAGE);
  EXPECT_THAT(deft_error_text(), HasSubstr("pages of 32 tokens"));
}

TEST_F(PagedBatchTest, ItsTreeIsChangedThroughItAlone) {
  ASSERT_EQ(update(), DEFT_OK);
  auto *const tree = const_cast<deft_tree *>(deft_paged_batch_get_tree(batch.get()));
  EXPECT_EQ(deft_tree_clear_queries(tree), DEFT_USAGE);
  EXPECT_THAT(deft_error_message(), HasSubstr("belongs to"));
  EXPECT_EQ(deft_tree_query_count(tree), 3);
}

TEST_F(PagedBatchTest, ABatchForMasksBoundByPathRefusesWhatTheyDoNotServe) {
  auto options = sized<deft_paged_batch_options>();
  options.page_size = 16;
  options.sees_path = 1;
  batch = made<BatchHandle>(deft_paged_batch_make, &options);
  ASSERT_EQ(update(), DEFT_OK) << deft_error_text();
  const std::vector<int32_t> indptr = {0, 1, 10, 11}; // the second one's last 9 tokens, 6 of which all have
  requests.query_indptr = indptr.data();
  EXPECT_EQ(update(), DEFT_USAGE);
  EXPECT_THAT(deft_error_message(), HasSubstr("request 1: others share pages with its new tokens"));
  EXPECT_EQ(deft_tree_query_count(deft_paged_batch_get_tree(batch.get())), 3);
  EXPECT_EQ(summary().tokens, 44);
}

} // namespace
} // namespace deft::c_test
