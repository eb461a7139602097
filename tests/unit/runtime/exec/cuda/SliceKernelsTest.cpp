#include "runtime/exec/cuda/SliceKernels.h"

#include "tests/support/FakeCuda.h"
#include "tests/unit/runtime/exec/cuda/CompilesEverywhere.h"

namespace deft::exec {
namespace {

TEST(SliceKernelsTest, TheKernelsCompileForEveryTargetWithoutSpills) {
  for (const StateType type : {StateType::F32, StateType::F16, StateType::BF16}) {
    if (!IsSkipped())
      expectCompilesEverywhere("deft_pack_slices.cu", SliceKernels::packSource(type));
    if (!IsSkipped())
      expectCompilesEverywhere("deft_merge_slices.cu", SliceKernels::mergeSource(type));
  }
}

TEST(SliceKernelsTest, AMessageHasRowsTheirLogarithmsAndTheRun) {
  EXPECT_EQ(SliceKernels::messageBytes(StateType::BF16, 0, 128), 128);
  EXPECT_EQ(SliceKernels::messageBytes(StateType::F32, 3, 4), 128);            // 48 + 16 + 8
  EXPECT_EQ(SliceKernels::messageBytes(StateType::BF16, 16, 128), 4096 + 128); // 64 + 8 behind the rows
}

TEST(SliceKernelsTest, APackingBlockIsForOneRank) {
  const auto device = device::Device::open(device::Driver::load(DEFT_FAKE_CUDA).value()).value();
  const auto kernels = SliceKernels::create(device, StateType::BF16);
  if (!kernels && kernels.error().code == support::ErrorCode::Environment)
    GTEST_SKIP() << kernels.error().message;
  ASSERT_TRUE(kernels.ok()) << kernels.error().message;
  const auto most = static_cast<unsigned>(device->facts().multiprocessors);
  for (const int queries : {0, 3, 1000}) {
    const auto bytes =
        static_cast<std::size_t>(SliceKernels::messageBytes(StateType::BF16, std::int64_t{queries} * 4, 128));
    std::vector<std::byte> first(bytes), second(bytes);
    std::vector<std::uint16_t> own(static_cast<std::size_t>(queries) * 8 * 128), out(own);
    std::vector<float> lse(static_cast<std::size_t>(queries) * 8), merged(lse);
    abi::SlicesState state{};
    abi::SlicesWatch watch{};
    abi::SlicesArgs args{};
    args.messages[0] = first.data();
    args.messages[1] = second.data();
    args.slices[0] = {0, 4};
    args.slices[1] = {4, 4};
    args.own = own.data();
    args.ownLse = lse.data();
    args.out = out.data();
    args.lse = merged.data();
    args.count = 2;
    args.queries = queries;
    args.dim = 128;
    args.heads = 8;
    args.state = &state;
    args.watch = &watch;
    (void)fake_cuda::takeCalls();
    ASSERT_TRUE(kernels->pack(args, nullptr).ok());
    EXPECT_EQ(watch.begun, 1U);
    args.heads = args.headCount = 4;
    ASSERT_TRUE(kernels->merge(args, nullptr).ok());
    EXPECT_EQ(watch.ended, 1U);
    const auto calls = fake_cuda::takeCalls();
    ASSERT_EQ(calls.size(), 2u);
    EXPECT_EQ(calls[0].kernel, "deft_pack_slices_bf16");
    EXPECT_EQ(calls[0].blocks % 2, 0U);
    EXPECT_LE(calls[0].blocks, most);
    EXPECT_TRUE(calls[0].isDependent);
    EXPECT_EQ(calls[0].argsAs<abi::SlicesArgs>().lanesOfRow, 16);
    EXPECT_EQ(calls[1].kernel, "deft_merge_slices_bf16");
    EXPECT_LE(calls[1].blocks, most);
    EXPECT_FALSE(calls[1].isDependent) << "what NCCL launches does not let it begin early";
  }
}

} // namespace
} // namespace deft::exec
