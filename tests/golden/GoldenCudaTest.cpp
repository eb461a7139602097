// The generated CUDA text of some kernels, held word for word: it is what a reader sees with
// `deftc emit --as cuda` and what keys the cubin cache. `tools/dev golden` writes the files anew.
#include "compiler/codegen/cuda/Instantiate.h"
#include "compiler/driver/Compilation.h"
#include "compiler/kernels/DefaultConfig.h"
#include "compiler/support/AtomicFile.h"
#include "tests/support/ShippedVariants.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <ostream>

namespace deft {
namespace {

struct GoldenKernel {
  const char *variant;
  const char *phase; ///< of the default config for `arch`, or merge or queries
  const char *arch;

  std::string name() const { return std::string(variant) + "_" + phase + "_" + arch; }
};

/// What stands beside a test's name in lists of them: its bytes would be addresses, others in each run.
void PrintTo(const GoldenKernel &golden, std::ostream *out) { *out << golden.name(); }

class GoldenCudaTest : public testing::TestWithParam<GoldenKernel> {};

std::string generate(const GoldenKernel &golden) {
  const test::ShippedVariants shipped = test::shippedVariants();
  const auto variant = std::find_if(shipped.variants.begin(), shipped.variants.end(),
                                    [&](const spec::Variant &v) { return v.name == golden.variant; });
  if (variant == shipped.variants.end())
    return "no such variant";
  auto compilation = driver::Compilation::create(*variant, shipped.sources);
  if (!compilation)
    return compilation.error().message;
  const auto source = compilation->cudaVariantSource();
  if (!source)
    return source.error().message;
  if (std::string(golden.phase) == "merge")
    return codegen::cuda::instantiateMerge(*source);
  if (std::string(golden.phase) == "queries")
    return codegen::cuda::instantiateQueries(*source);
  const auto config = kernels::defaultConfig(*variant, target::findTarget(golden.arch));
  if (!config)
    return config.error().message;
  for (const config::PhaseConfig &phase : config->phases)
    if (phase.name == golden.phase)
      return codegen::cuda::instantiateAttend(*source, phase);
  return "no such phase";
}

TEST_P(GoldenCudaTest, TextIsAsReviewed) {
  const GoldenKernel &golden = GetParam();
  const std::string path = DEFT_GOLDEN_FOLDER "/cuda/" + golden.name() + ".cu";
  const std::string text = generate(golden);
  ASSERT_EQ(text.substr(0, 8), "// deft_") << text;
  if (std::getenv("DEFT_UPDATE_GOLDEN")) {
    ASSERT_TRUE(support::writeFileAtomically(path, text));
    return;
  }
  const auto expected = support::readFile(path);
  ASSERT_TRUE(expected) << expected.error().message;
  EXPECT_EQ(text, *expected) << "if the change is meant: tools/dev golden, and review the difference";
}

INSTANTIATE_TEST_SUITE_P(
    Kernels, GoldenCudaTest,
    testing::Values(
        GoldenKernel{"llama3_8b", "tiles", "sm_90a"}, GoldenKernel{"llama3_8b", "narrow", "sm_80"},
        GoldenKernel{"llama3_8b", "merge", "sm_80"}, GoldenKernel{"mistral_7b", "narrow", "sm_80"},
        GoldenKernel{"gemma2_9b_window", "wide", "sm_86"}, GoldenKernel{"mpt_7b_alibi", "narrow", "sm_80"},
        GoldenKernel{"streaming_sink", "wide", "sm_80"}, GoldenKernel{"sigmoid", "narrow", "sm_80"},
        GoldenKernel{"sigmoid", "merge", "sm_80"}, GoldenKernel{"gpt_oss", "merge", "sm_80"},
        GoldenKernel{"qwen3_8b_raw_q", "queries", "sm_80"}, GoldenKernel{"local_global", "tiles", "sm_90a"},
        GoldenKernel{"deepseek_v3", "tiles", "sm_80"}, GoldenKernel{"deepseek_v3", "tiles", "sm_90a"},
        GoldenKernel{"deepseek_v3_2", "tiles", "sm_90a"}),
    [](const auto &info) { return info.param.name(); });

} // namespace
} // namespace deft
