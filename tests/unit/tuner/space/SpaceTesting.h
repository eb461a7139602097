#pragma once

#include "tuner/space/MakeSpace.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

/// Spaces of Llama's heads, as tests of this room look at them.
namespace deft::space {

inline spec::Variant llama(int queryHeads = 32, int kvHeads = 8) {
  spec::Variant variant;
  variant.name = "llama";
  variant.queryHeads = queryHeads;
  variant.kvHeads = kvHeads;
  variant.tensors = spec::Tensors::alike(128);
  return variant;
}

inline const target::Target &hopper() { return *target::findTarget("sm_90a"); }

inline Space make(const spec::Variant &variant, const target::Target *target,
                  const std::vector<std::string> &overrides = {}) {
  std::vector<AxisOverride> changes;
  for (const std::string &text : overrides)
    changes.push_back(*parseOverride(text));
  auto space = makeSpace(variant, {target, config::CostCoefficients()}, changes);
  EXPECT_TRUE(space.ok()) << space.error().message;
  return *space;
}

} // namespace deft::space
