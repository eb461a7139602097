#include "tests/unit/runtime/api/GpuFixture.h"

#include <gmock/gmock.h>

namespace deft {
namespace {

using ::testing::HasSubstr;

class GpuLengthsTest : public GpuTest {};

// The host adds tokens to its tree only when their page is full, or the slack ends.
TEST_F(GpuLengthsTest, AGraphFollowsLengthsThatOnlyTheDeviceHas) {
  auto made = GpuPlan::make(attention_, tree(), {.followsLengths = true});
  if (!made && made.error().code == ErrorCode::Environment)
    GTEST_SKIP() << made.error().message;
  ASSERT_TRUE(made) << made.error().text();
  GpuPlan &plan = *made;
  plan.reserve({.queries = kMostQueries, .items = 200, .runs = 400, .partials = 400}).value();
  std::vector<int> lengths(kMostQueries);
  void *graph = nullptr, *executable = nullptr;
  table_.upload(sequences_, stream_).value();
  plan.upload(stream_).value();
  ASSERT_EQ(cuStreamBeginCapture_v2(stream_, 1), 0);
  ASSERT_TRUE(plan.follow(lengths.data(), stream_));
  ASSERT_TRUE(plan.run(attention_, inputs(), outputs(), stream_));
  ASSERT_EQ(cuStreamEndCapture(stream_, &graph), 0);
  ASSERT_EQ(cuGraphInstantiateWithFlags(&executable, graph, 0), 0);

  const auto planned = [&](int query) {
    int length = 0;
    for (int node = tree().query(query).node; node >= 0; node = tree().node(node).parent)
      length += tree().node(node).tokens;
    return length;
  };
  std::mt19937 random(9);
  std::vector<int> more(kMostQueries);
  for (int step = 0; step < 60; ++step) {
    if (step % 6 == 5) { // the host's tree catches up, for a plan of another generation
      for (const int leaf : leaves_)
        (void)sequences_.append(leaf, 1 + static_cast<int>(random() % 3)).value();
      plan.advance(tree()).value();
      table_.upload(sequences_, stream_).value();
      plan.upload(stream_).value();
    }
    for (int query = 0; query < tree().queryCount(); ++query) {
      const auto leftInPage = static_cast<unsigned>(kPageSize - 1 - lastSlot(query) % kPageSize);
      const auto i = static_cast<std::size_t>(query);
      more[i] = static_cast<int>(random() % (leftInPage + 1));
      lengths[i] = planned(query) + more[i];
    }
    ASSERT_EQ(cuGraphLaunch(executable, stream_), 0);
    EXPECT_TRUE(plan.checkReplays());
    ASSERT_TRUE(isRight(more)) << "step " << step;
  }
  lengths[2] = planned(2) + 17;
  ASSERT_EQ(cuGraphLaunch(executable, stream_), 0);
  const auto noticed = plan.checkReplays();
  ASSERT_FALSE(noticed);
  EXPECT_THAT(noticed.error().message, HasSubstr("query 2 saw"));
}

} // namespace
} // namespace deft
