#include "runtime/exec/cuda/ListCheck.h"

#include "tests/unit/runtime/exec/cuda/CompilesEverywhere.h"

#include <gtest/gtest.h>

// What runs with it say is in tests/unit/runtime/api/GpuGivenListsTest.cpp.
namespace deft::exec {
namespace {

TEST(ListCheckTest, TheKernelCompilesForEveryTargetWithoutSpills) {
  expectCompilesEverywhere("deft_check_lists.cu", ListCheck::source());
}

} // namespace
} // namespace deft::exec
