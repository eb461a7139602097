#include "tuner/measure/CompileService.h"

#include "compiler/config/ConfigJson.h"
#include "runtime/nvrtc/Nvrtc.h"
#include "tests/support/PlainHooks.h"
#include "tests/support/SetVariable.h"
#include "tests/unit/runtime/module_cache/TestFolder.h"
#include "tuner/measure/MeasureService.h"

#include <gtest/gtest.h>

namespace deft::measure {
namespace {

class CompileServiceTest : public testing::Test {
protected:
  void SetUp() override {
    if (const auto nvrtc = nvrtc::Nvrtc::load(); !nvrtc)
      GTEST_SKIP() << nvrtc.error().message;
    source_.name = "plain";
    source_.queryHeads = 2;
    source_.kvHeads = 1;
    source_.tensors = spec::Tensors::alike(16);
    source_.pageSize = 16;
    source_.hooks = test::plainHooks(0.25);
    config_.phases = {{"narrow", -1, config::Family::Sm80, 16, 64, 2, 4}};
    service_ = std::move(*makeCompileService(source_, *target::findTarget("sm_80")));
  }
  support::Result<Message> compile(const config::Config &config) {
    return service_->handle({{{"config", config::toJson(config)}}, {}});
  }

  module_cache::TestFolder folder_;
  test::SetVariable cache_{"DEFT_CACHE_DIR", folder_.path("cache")};
  codegen::cuda::VariantSource source_;
  config::Config config_;
  std::unique_ptr<Service> service_;
};

TEST_F(CompileServiceTest, TheAnswerIsTheKernelsOfTheConfig) {
  const auto answer = compile(config_);
  ASSERT_TRUE(answer) << answer.error().message;
  const package::KernelSet kernels = unpackKernels(*answer, config_);
  EXPECT_EQ(kernels.arch, "sm_80");
  ASSERT_EQ(kernels.attend.size(), 1U);
  EXPECT_EQ(kernels.attend[0].threads, 4 * 32);
  for (const package::Kernel *kernel : {&kernels.attend[0], &kernels.merge}) {
    EXPECT_EQ(kernel->cubin.substr(1, 3), "ELF");
    EXPECT_NE(kernel->cubin.find(kernel->entry), std::string::npos) << kernel->entry;
  }
}

TEST_F(CompileServiceTest, WhatIsNoConfigOrNotLegalIsRefused) {
  EXPECT_FALSE(service_->handle({{{"config", {{"partition", "none"}}}}, {}}));
  config_.phases[0].warps = 33;
  const auto answer = compile(config_);
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().message.find("warps is 33"), std::string::npos) << answer.error().message;
}

} // namespace
} // namespace deft::measure
