#include "runtime/module_cache/CompileKernels.h"

#include "compiler/kernels/SparsePhase.h"

#include "compiler/codegen/cuda/Instantiate.h"
#include "compiler/kernels/DefaultConfig.h"
#include "compiler/kernels/Sm90.h"
#include "compiler/support/Log.h"
#include "tests/support/MachineCode.h"
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

TEST(KernelSetTest, TheLogTellsOfMissCompilationAndHit) {
  const auto nvrtc = nvrtc::Nvrtc::load();
  if (!nvrtc)
    GTEST_SKIP() << nvrtc.error().message;
  const TestFolder folder;
  const auto cache = CubinCache::open(folder.path());
  std::vector<support::LogMessage> told;
  support::setLog([&](const support::LogMessage &message) { told.push_back(message); });
  const std::string merge = codegen::cuda::instantiateMerge(plain());
  for (int i = 0; i < 2; ++i)
    EXPECT_TRUE(compileKernel(cache.get(), **nvrtc, "deft_plain_merge", merge, "sm_80", {}));
  support::setLog(nullptr);
  ASSERT_EQ(told.size(), 3u);
  EXPECT_EQ(told[0].kind, support::LogKind::CacheMiss);
  EXPECT_EQ(told[0].text, "deft_plain_merge for sm_80: not in " + cache->folder());
  EXPECT_EQ(told[1].kind, support::LogKind::Compile);
  EXPECT_EQ(told[1].text, "deft_plain_merge for sm_80, by NVRTC");
  EXPECT_GT(told[1].durationUs, 0);
  EXPECT_EQ(told[2].kind, support::LogKind::CacheHit);
  EXPECT_EQ(told[2].text, "deft_plain_merge for sm_80");
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

TEST(KernelSetTest, AVariantThatSelectsHasTheKernelsOfItsOtherAttentions) {
  const auto nvrtc = nvrtc::Nvrtc::load();
  if (!nvrtc)
    GTEST_SKIP() << nvrtc.error().message;
  codegen::cuda::VariantSource source = plain();
  const target::Target &target = *target::findTarget("sm_80");
  EXPECT_FALSE(compileLayers(nullptr, **nvrtc, source, small(), target)->selecting);
  source.worthGroups = source.kvHeads;
  source.lists = 1;
  const auto set = compileLayers(nullptr, **nvrtc, source, small(), target);
  ASSERT_TRUE(set) << set.error().message;
  ASSERT_TRUE(set->selecting);
  ASSERT_EQ(set->selecting->attend.size(), 2u);
  EXPECT_EQ(set->selecting->attend[1].entry, "deft_plain_narrow_selecting");
  EXPECT_EQ(set->selecting->attend[1].threads, set->attend[1].threads);
  EXPECT_EQ(set->selecting->attend[1].smemBytes, set->attend[1].smemBytes);
  ASSERT_TRUE(set->selecting->select);
  EXPECT_EQ(set->selecting->select->entry, "deft_plain_select");
  EXPECT_EQ(set->selecting->select->threads, 1024);
  EXPECT_LE(set->selecting->select->smemBytes, target.smemPerBlock);
  EXPECT_EQ(set->selecting->blocksOfList, 1);
  EXPECT_EQ(set->selecting->sparse.entry, "deft_plain_sparse");
  EXPECT_EQ(set->selecting->sparse.threads, 32 * set->selecting->sparsePhase.warps);
  ASSERT_TRUE(set->selecting->uniting);
  EXPECT_EQ(set->selecting->uniting->unite.entry, "deft_plain_unite");
  EXPECT_EQ(set->selecting->uniting->unite.threads, 1024);
  EXPECT_EQ(set->selecting->uniting->attend.entry, "deft_plain_united");
  EXPECT_EQ(set->selecting->uniting->attend.threads, 32 * set->selecting->uniting->phase.warps);
}

TEST(KernelSetTest, ListsAreReadByTheTileThatIsAskedFor) {
  const auto nvrtc = nvrtc::Nvrtc::load();
  if (!nvrtc)
    GTEST_SKIP() << nvrtc.error().message;
  codegen::cuda::VariantSource source = plain();
  const target::Target &target = *target::findTarget("sm_80");
  source.worthGroups = source.lists = source.kvHeads;
  const config::PhaseConfig tile = kernels::sparsePhases(source.shape(), target).back();
  const auto set = compileLayers(nullptr, **nvrtc, source, small(), target, {}, &tile);
  ASSERT_TRUE(set) << set.error().message;
  EXPECT_TRUE(kernels::haveSameSparseTile(set->selecting->sparsePhase, tile));
  const auto alone = compileSparse(nullptr, **nvrtc, source, tile, target);
  ASSERT_TRUE(alone) << alone.error().message;
  EXPECT_EQ(alone->entry, set->selecting->sparse.entry);
  EXPECT_EQ(alone->threads, 32 * tile.warps);
  EXPECT_EQ(alone->threads, set->selecting->sparse.threads);
  EXPECT_EQ(alone->smemBytes, set->selecting->sparse.smemBytes);
  EXPECT_EQ(alone->resources.registers, set->selecting->sparse.resources.registers);
}

/// ptxas 13.0 takes the registers of the queries for those of the weights where both have as many, or V has
/// as many columns as a tile has tokens, and nothing but wgmma reads the queries in the loop; from the second
/// tile on all results are wrong then.
TEST(KernelSetTest, WeightsHaveOtherRegistersThanQueries) {
  const auto nvrtc = nvrtc::Nvrtc::load();
  if (!nvrtc)
    GTEST_SKIP() << nvrtc.error().message;
  const target::Target &hopper = *target::findTarget("sm_90a");
  const TestFolder folder;
  const auto cache = CubinCache::open(folder.path()); // for what is the same under each config
  for (const auto &[dim, valueDim] :
       {std::pair(32, 32), std::pair(64, 64), std::pair(128, 128), std::pair(96, 64)})
    for (const config::PhaseConfig &phase :
         {config::PhaseConfig{"light", -1, config::Family::Sm90, 64, 64, 2, kernels::kSm90LightWarps},
          config::PhaseConfig{"wide", -1, config::Family::Sm90, 128, 64, 4, kernels::kSm90Warps}})
      for (const config::Order order : {config::Order::FromRoot, config::Order::Mixed}) {
        codegen::cuda::VariantSource source = plain();
        source.tensors = spec::Tensors::alike(dim);
        source.tensors.v.dim = source.tensors.out.dim = valueDim;
        config::Config config;
        config.phases = {phase};
        config.order = order;
        source.worthGroups = source.lists = source.kvHeads;
        const auto set = compileLayers(cache.get(), **nvrtc, source, config, hopper);
        ASSERT_TRUE(set) << set.error().message;
        for (const package::Kernel &kernel :
             {set->attend[0], set->selecting->attend[0], set->selecting->uniting->attend}) {
          SCOPED_TRACE(kernel.entry + " " + std::to_string(dim));
          const test::ProductRegisters registers = test::productRegisters(kernel.cubin);
          EXPECT_GE(registers.ofKeys.size(), static_cast<std::size_t>(dim / 4));
          EXPECT_EQ(registers.ofValues.size(), 16u);
          for (const int one : registers.ofKeys)
            EXPECT_FALSE(registers.ofValues.contains(one)) << "register " << one;
        }
      }
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
