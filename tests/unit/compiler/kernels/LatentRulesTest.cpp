/// What all families of latent caches refuse alike, each in its own name.

#include "compiler/kernels/LatentRules.h"
#include "tests/support/LatentTensors.h"

#include <gtest/gtest.h>

namespace deft::kernels {
namespace {

PhaseConfig phaseOf(config::Family family, bool isOfBytes = false) {
  if (family == config::Family::Sm90Latent)
    return {"tiles", -1, family, 64, 64, 2, isOfBytes ? 16 : 12};
  return {"tiles", -1, family, 64, 32, 2, 8};
}

class LatentRulesTest : public ::testing::TestWithParam<config::Family> {
protected:
  std::string name() const { return std::string(familyOf(phaseOf(GetParam())).name); }
  std::string check(const KernelShape &shape) const {
    const PhaseConfig phase = phaseOf(GetParam(), shape.tensors.k.elementBytes() == 1);
    const auto result = checkPhase(shape, phase, target::findTarget("sm_90a"));
    return result ? "legal" : result.error().message;
  }
  KernelShape shape_{{16, 1, test::latentTensors()}};
};

TEST_P(LatentRulesTest, LatentCachesOfQsTypeOrOfBytesAreRead) {
  EXPECT_EQ(check(shape_), "legal");
  EXPECT_EQ(check({{16, 1, spec::Tensors::alike(128)}}),
            "phase `tiles`: v has memory of its own; family " + name() + " reads it from k's");
  KernelShape other = shape_;
  other.tensors.q.dtype = spec::DType::F16;
  EXPECT_EQ(check(other), "phase `tiles`: q is f16 and k bf16; family " + name() +
                              " takes one dtype for both, or a k of 8-bit floats");
  for (const int scaleColumns : {0, 16, 64, 128})
    EXPECT_EQ(check({{16, 1, test::latentBytes(512, 64, scaleColumns)}}), "legal") << scaleColumns;
}

TEST_P(LatentRulesTest, HooksOfRowsAreRefused) {
  KernelShape hooked = shape_;
  hooked.has.key = true;
  EXPECT_EQ(check(hooked), "phase `tiles`: there is a hook `key`; family " + name() +
                               " reads values from keys as they lie in memory");
  hooked = shape_;
  hooked.has.query = true;
  EXPECT_EQ(check(hooked),
            "phase `tiles`: there is a hook `query`, and a query has 576 elements a head; GPUs "
            "make those of 256 at most");
}

INSTANTIATE_TEST_SUITE_P(Families, LatentRulesTest,
                         ::testing::Values(config::Family::Sm80Latent, config::Family::Sm90Latent),
                         [](const auto &info) { return std::string(familyOf(phaseOf(info.param)).name); });

} // namespace
} // namespace deft::kernels
