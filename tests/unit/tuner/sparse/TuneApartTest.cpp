// On the tests' driver, which the child loads as it would the machine's.
#include "tuner/sparse/TuneApart.h"

#include "runtime/config_cache/SparseFiles.h"
#include "tests/support/SetVariable.h"
#include "tests/unit/runtime/module_cache/TestFolder.h"
#include "tuner/measure/Machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace deft::sparse {
namespace {

using testing::HasSubstr;

class TuneApartTest : public testing::Test {
protected:
  TuneApartTest() {
    options_.lists = {{24, 1}, {24, 2}, {24, 3}};
    options_.places.userSparse = folder_.path("sparse");
  }

  static program::Program package() {
    auto program = program::Program::fromPackage(DEFT_TEST_SELECTING_PACKAGE, "", "");
    EXPECT_TRUE(program) << program.error().message;
    return std::move(*program);
  }

  test::SetVariable kernels_{"DEFT_FAKE_CUDA_VARIANT", "4,2,64,16,bf16,0.25,2,2"};
  module_cache::TestFolder folder_;
  test::SetVariable cache_{"DEFT_CACHE_DIR", folder_.path("cache")};
  TuneOptions options_;
};

TEST_F(TuneApartTest, FindsAndKeepsTheSameAndLeavesCudaToOthers) {
  std::vector<Status> told;
  Listener listener;
  listener.progress = [&](const Status &status) { told.push_back(status); };
  const auto report = tuneApart(package(), {}, options_, listener);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->ended, Ended::Complete);
  EXPECT_EQ(report->device.arch, "sm_90");
  ASSERT_EQ(report->lists.size(), 3u);
  EXPECT_EQ(report->lists[2].lists, (Lists{24, 3}));
  EXPECT_GT(report->lists[2].tunedUs, 0);
  const auto entries = config_cache::findSparse(options_.places, report->device).tuning.entries();
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].path, report->path);
  ASSERT_FALSE(told.empty());
  for (const Status &status : told)
    EXPECT_EQ(status.done + status.left, 3);
  const auto again = tuneApart(package(), {}, options_); // in a process that had a context no child could
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->known.size(), 3u);
}

TEST_F(TuneApartTest, CancellingKeepsWhatIsDone) {
  Listener listener;
  bool hasSome = false;
  listener.progress = [&](const Status &status) { hasSome |= status.done > 0; };
  listener.isCancelled = [&] { return hasSome; };
  const auto report = tuneApart(package(), {}, options_, listener);
  ASSERT_TRUE(report) << report.error().message;
  if (report->ended == Ended::Complete) // it was faster than the news of it
    return;
  EXPECT_EQ(report->ended, Ended::Interrupted);
  EXPECT_FALSE(report->lists.empty());
  EXPECT_FALSE(report->path.empty());
}

TEST_F(TuneApartTest, ItsErrorsAreThoseOfATuning) {
  options_.axes = {{"tile_q", {"16"}}};
  const auto refused = tuneApart(package(), {}, options_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, support::ErrorCode::Usage);
  EXPECT_EQ(refused.error().message, "sparse layers have no axis `tile_q`");
  EXPECT_THAT(refused.error().hint, HasSubstr("tile_kv"));
}

} // namespace
} // namespace deft::sparse
