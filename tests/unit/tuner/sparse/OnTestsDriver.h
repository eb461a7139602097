#pragma once

#include "tests/support/SetVariable.h"
#include "tests/unit/runtime/module_cache/TestFolder.h"
#include "tuner/sparse/TuneSparse.h"

#include <gtest/gtest.h>

namespace deft::sparse {

/// A package that selects, which is tuned on the tests' driver into a folder of the test's own.
class OnTestsDriver : public testing::Test {
protected:
  OnTestsDriver() {
    options_.lists = {{24, 1}, {24, 2}, {24, 3}};
    options_.places.userSparse = folder_.path("sparse");
  }

  static program::Program package() {
    auto program = program::Program::fromPackage(DEFT_TEST_SELECTING_PACKAGE, "", "");
    EXPECT_TRUE(program) << program.error().message;
    return std::move(*program);
  }

  test::SetVariable kernels_{"DEFT_FAKE_CUDA_VARIANT", "4,2,64,16,bf16,0.25,2,2"};
  module_cache::TestFolder folder_;
  test::SetVariable cache_{"DEFT_CACHE_DIR", folder_.path("cache")};
  TuneOptions options_;
};

} // namespace deft::sparse
