#pragma once

#include "compiler/target/Target.h"
#include "runtime/nvrtc/Nvrtc.h"

#include <gtest/gtest.h>

#include <string>

namespace deft::exec {

/// The one kernel of a source, by NVRTC for each architecture. Skips the test where there is no NVRTC.
inline void expectCompilesEverywhere(const std::string &file, const std::string &source) {
  const auto nvrtc = nvrtc::Nvrtc::load();
  if (!nvrtc)
    GTEST_SKIP() << nvrtc.error().message;
  for (const target::Target &target : target::targets()) {
    const auto compiled = (*nvrtc)->compile(file, source, target.arch);
    ASSERT_TRUE(compiled.ok()) << target.arch << ": " << compiled.error().message;
    ASSERT_EQ(compiled->resources.size(), 1u) << target.arch;
    EXPECT_FALSE(compiled->resources[0].spills()) << target.arch;
  }
}

} // namespace deft::exec
