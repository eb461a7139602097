#include "tuner/bench/ProbeKernels.h"

#include "compiler/target/Target.h"
#include "runtime/nvrtc/Nvrtc.h"

#include <gtest/gtest.h>

#include <set>

namespace deft::bench {
namespace {

TEST(ProbeKernelsTest, CompileForEveryTargetWithoutSpills) {
  const auto nvrtc = nvrtc::Nvrtc::load();
  if (!nvrtc)
    GTEST_SKIP() << nvrtc.error().message;
  for (const target::Target &target : target::targets()) {
    const auto compiled = (*nvrtc)->compile("probe.cu", std::string(kProbeSource), target.arch);
    ASSERT_TRUE(compiled) << target.arch << ": " << compiled.error().message;
    std::set<std::string> entries;
    for (const nvrtc::KernelResources &resources : compiled->resources) {
      entries.insert(resources.entry);
      EXPECT_FALSE(resources.spills()) << target.arch << " " << resources.entry;
    }
    EXPECT_EQ(entries,
              (std::set<std::string>{kProbeEmpty, kProbeFill, kProbeLoads, kProbeBulk, kProbeMatrix}))
        << target.arch;
  }
}

/// What is measured must be what the names say.
TEST(ProbeKernelsTest, HopperCopiesInBulkAndMultipliesByWarpGroups) {
  const auto nvrtc = nvrtc::Nvrtc::load();
  if (!nvrtc)
    GTEST_SKIP() << nvrtc.error().message;
  nvrtc::CompileOptions options;
  options.ptx = true;
  const auto compiled = (*nvrtc)->compile("probe.cu", std::string(kProbeSource), "sm_90a", options);
  ASSERT_TRUE(compiled) << compiled.error().message;
  EXPECT_NE(compiled->ptx.find("cp.async.bulk.shared::cluster.global"), std::string::npos);
  EXPECT_NE(compiled->ptx.find("wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16"), std::string::npos);
  EXPECT_NE(compiled->ptx.find("ld.global.nc.L1::no_allocate.v4.u32"), std::string::npos);
}

} // namespace
} // namespace deft::bench
