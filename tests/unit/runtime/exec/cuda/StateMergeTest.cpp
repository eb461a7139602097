#include "runtime/exec/cuda/StateMerge.h"

#include "tests/unit/runtime/exec/cuda/CompilesEverywhere.h"
#include "tests/unit/runtime/exec/cuda/FakeGpu.h"

#include <array>
#include <vector>

namespace deft::exec {
namespace {

constexpr std::array kTypes = {StateType::F32, StateType::F16, StateType::BF16};

TEST(StateMergeTest, TheKernelsCompileForEveryTargetWithoutSpills) {
  for (const StateType type : kTypes)
    if (!IsSkipped())
      expectCompilesEverywhere("deft_merge_states.cu", StateMerge::source(type));
}

// A lane has 16 bytes of a row, and a warp the rows that its lanes have room for.
TEST(StateMergeTest, LaunchesAsManyBlocksAsRowsTake) {
  const FakeGpu gpu;
  const auto merge = StateMerge::create(gpu.device, StateType::BF16);
  if (!merge && merge.error().code == support::ErrorCode::Environment)
    GTEST_SKIP() << merge.error().message;
  ASSERT_TRUE(merge.ok()) << merge.error().message;
  struct Case {
    int dim, lanes;
    long long rows;
    unsigned blocks;
  };
  for (const Case &each : {Case{128, 16, 8, 1}, Case{128, 16, 9, 2}, Case{8, 1, 128, 1}, Case{8, 1, 129, 2},
                           Case{72, 16, 8, 1}, Case{512, 32, 5, 2}}) {
    std::vector<std::uint16_t> out(static_cast<std::size_t>(each.rows * each.dim));
    std::vector<float> lse(static_cast<std::size_t>(each.rows));
    abi::StatesArgs args{};
    args.outs[0] = args.out = out.data();
    args.lses[0] = args.lse = lse.data();
    args.count = 1;
    args.dim = each.dim;
    args.rows = each.rows;
    (void)fake_cuda::takeCalls();
    ASSERT_TRUE(merge->launch(args, nullptr).ok());
    const auto calls = fake_cuda::takeCalls();
    ASSERT_EQ(calls.size(), 1u);
    EXPECT_EQ(calls[0].kernel, "deft_merge_states_bf16");
    EXPECT_EQ(calls[0].blocks, each.blocks) << each.dim << " " << each.rows;
    EXPECT_EQ(calls[0].argsAs<abi::StatesArgs>().lanesOfRow, each.lanes) << each.dim;
    args.rows = 0;
    EXPECT_TRUE(merge->launch(args, nullptr).ok());
    EXPECT_TRUE(fake_cuda::takeCalls().empty());
  }
}

} // namespace
} // namespace deft::exec
