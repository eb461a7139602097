#include "runtime/exec/cpu/SharedObject.h"

#include "compiler/support/AtomicFile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace deft::exec {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

/// What the tests' native code (ScalarKernel.cpp) computes.
spec::Variant scalarVariant() {
  spec::Variant variant;
  variant.name = "host_program";
  variant.queryHeads = 4;
  variant.kvHeads = 2;
  variant.tensors = spec::Tensors::alike(64);
  return variant;
}

std::string scalarObject() {
  const auto bytes = support::readFile(DEFT_SCALAR_KERNEL);
  return bytes ? *bytes : "";
}

std::string errorOf(std::string_view object, const spec::Variant &variant = scalarVariant()) {
  const auto kernel = loadCpuKernel(object, variant, "p");
  if (kernel)
    return "loaded";
  EXPECT_EQ(kernel.error().code, support::ErrorCode::Diagnostics) << kernel.error().message;
  return kernel.error().message;
}

TEST(SharedObjectTest, AWholeObjectIsLoaded) { EXPECT_EQ(errorOf(scalarObject()), "loaded"); }

TEST(SharedObjectTest, EachObjectIsLoadedByItselfWhileOthersAre) {
  std::vector<CpuKernel> kernels; // all alive, so that none may stand for another
  for (int object = 0; object < 5; ++object) {
    const auto kernel = loadCpuKernel(scalarObject(), scalarVariant(), "p");
    ASSERT_TRUE(kernel) << kernel.error().message;
    for (const CpuKernel &earlier : kernels)
      EXPECT_NE(earlier.get(), kernel->get()) << object;
    kernels.push_back(*kernel);
  }
}

TEST(SharedObjectTest, BytesThatAreNoSharedObjectAreAnError) {
  for (const std::string &bytes : {std::string(), std::string("not an object"), std::string(4096, '\0')})
    EXPECT_THAT(errorOf(bytes), StartsWith("package `p` is malformed: its CPU code cannot be loaded: it "));
}

TEST(SharedObjectTest, AnObjectCutAnywhereIsAnErrorNotASignal) {
  const std::string whole = scalarObject();
  ASSERT_GT(whole.size(), 4096u);
  for (std::size_t size = 0; size < whole.size(); size += size < 4096 ? 7 : 997)
    EXPECT_THAT(errorOf(std::string_view(whole).substr(0, size)),
                StartsWith("package `p` is malformed: its CPU code cannot be loaded: it "))
        << size;
  EXPECT_THAT(errorOf(std::string_view(whole).substr(0, whole.size() - 1)),
              HasSubstr("it is cut: section headers"));
}

TEST(SharedObjectTest, SegmentsBeyondTheEndAreAnErrorNotASignal) {
  std::string object = scalarObject();
  // Without section headers, as `strip` may leave it: what is mapped tells a cut alone.
  constexpr std::size_t kSectionOffset = 0x28, kSectionCount = 0x3c;
  object.replace(kSectionOffset, 8, 8, '\0').replace(kSectionCount, 2, 2, '\0');
  EXPECT_EQ(errorOf(object), "loaded");
  EXPECT_THAT(errorOf(std::string_view(object).substr(0, object.size() / 4)),
              HasSubstr("it is cut: a segment"));
}

TEST(SharedObjectTest, CodeOfAnotherMakeIsMalformed) {
  spec::Variant other = scalarVariant();
  other.tensors = spec::Tensors::alike(128);
  EXPECT_EQ(errorOf(scalarObject(), other), "package `p` is malformed: its CPU code is not of its spec's "
                                            "`host_program`: its dim of q and k is 64, not 128");
  other = scalarVariant();
  other.params.push_back({});
  EXPECT_THAT(errorOf(scalarObject(), other), HasSubstr("its number of parameters is 0, not 1"));
  other.name = "other";
  EXPECT_EQ(errorOf(scalarObject(), other), "package `p` is malformed: its CPU code holds no `other`");
}

TEST(SharedObjectTest, LevelOfThisProcessorIsKnown) {
  const int level = hostIsaLevel();
  EXPECT_TRUE(level == 0 || level == 3 || level == 4) << level;
}

} // namespace
} // namespace deft::exec
