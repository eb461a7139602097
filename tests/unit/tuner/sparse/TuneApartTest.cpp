// On the tests' driver, which the child loads as it would the machine's.
#include "tuner/sparse/TuneApart.h"

#include "runtime/config_cache/SparseFiles.h"
#include "tests/unit/tuner/sparse/OnTestsDriver.h"
#include "tuner/measure/Machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace deft::sparse {
namespace {

using testing::HasSubstr;

class TuneApartTest : public OnTestsDriver {};

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
