#include "runtime/module_cache/CompileKernels.h"

#include "compiler/kernels/DefaultConfig.h"
#include "tests/support/PlainHooks.h"
#include "tests/unit/runtime/module_cache/TestFolder.h"

#include <gtest/gtest.h>

namespace deft::module_cache {
namespace {

codegen::cuda::VariantSource plain() {
  codegen::cuda::VariantSource source;
  source.name = "plain";
  source.queryHeads = 4;
  source.kvHeads = 4;
  source.tensors = spec::Tensors::alike(64);
  source.pageSize = 16;
  source.hooks = test::plainHooks(0.125);
  return source;
}

config::Config small() {
  config::Config config;
  config.phases = {{"wide", 16, config::Family::Sm80, 32, 32, 2, 2},
                   {"narrow", -1, config::Family::Sm80, 16, 32, 2, 2}};
  return config;
}

TEST(KernelSetTest, CompilesEachPhaseAndTheMergeAndFindsThemAgain) {
  const auto nvrtc = nvrtc::Nvrtc::load();
  if (!nvrtc)
    GTEST_SKIP() << nvrtc.error().message;
  const TestFolder folder;
  const auto cache = CubinCache::open(folder.path());
  const target::Target &target = *target::findTarget("sm_80");
  const auto first = compileKernels(cache.get(), **nvrtc, plain(), small(), target);
  ASSERT_TRUE(first) << first.error().message;
  ASSERT_EQ(first->attend.size(), 2u);
  EXPECT_EQ(first->arch, "sm_80");
  EXPECT_EQ(first->attend[0].entry, "deft_plain_wide");
  EXPECT_EQ(first->attend[1].entry, "deft_plain_narrow");
  EXPECT_EQ(first->merge.entry, "deft_plain_merge");
  EXPECT_EQ(first->attend[0].threads, 64);
  EXPECT_EQ(first->merge.threads, 128);
  EXPECT_GT(first->attend[0].smemBytes, 0);
  EXPECT_EQ(first->attend[0].origin, package::KernelOrigin::Compiled);

  const auto again = compileKernels(cache.get(), **nvrtc, plain(), small(), target);
  ASSERT_TRUE(again) << again.error().message;
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(again->attend[i].origin, package::KernelOrigin::Cache);
    EXPECT_EQ(again->attend[i].cubin, first->attend[i].cubin);
    EXPECT_EQ(again->attend[i].resources.registers, first->attend[i].resources.registers);
  }
  EXPECT_EQ(again->merge.origin, package::KernelOrigin::Cache);
}

TEST(KernelSetTest, AnIllegalConfigIsRefusedBeforeCompiling) {
  const auto nvrtc = nvrtc::Nvrtc::load();
  if (!nvrtc)
    GTEST_SKIP() << nvrtc.error().message;
  config::Config config = small();
  config.phases[0].stages = 99;
  const auto set = compileKernels(nullptr, **nvrtc, plain(), config, *target::findTarget("sm_80"));
  ASSERT_FALSE(set);
  EXPECT_EQ(set.error().message, "phase `wide`: stages is 99, not between 2 and 8");
}

TEST(KernelSetTest, DisagreementOfHostAndDeviceIsACompileError) {
  const auto nvrtc = nvrtc::Nvrtc::load();
  if (!nvrtc)
    GTEST_SKIP() << nvrtc.error().message;
  codegen::cuda::VariantSource source = plain();
  source.params = {"cap"}; // the hooks have none
  const auto set = compileKernels(nullptr, **nvrtc, source, small(), *target::findTarget("sm_80"));
  ASSERT_FALSE(set);
  EXPECT_EQ(set.error().code, support::ErrorCode::Internal);
  EXPECT_NE(set.error().message.find("host and device disagree on the parameters"), std::string::npos)
      << set.error().message;
}

} // namespace
} // namespace deft::module_cache
