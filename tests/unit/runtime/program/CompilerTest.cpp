/// What is asked of the compiler, in a build with it and in one without.

#include "runtime/program/Compiler.h"

#include <gtest/gtest.h>

namespace deft::program {
namespace {

class CompilerTest : public testing::Test {
protected:
  CompilerTest() {
    support::DiagnosticSink sink;
    spec = checkSpec({"my.deft",
                      "attention a { query_heads = 4; kv_heads = 2; head_dim = 16; mask = kv_pos > 3; }\n"
                      "attention b : a { kv_heads = 4; }\n"},
                     {}, sink);
  }
  const spec::Variant &a() const { return spec->variants.at(0); }
  const spec::Variant &b() const { return spec->variants.at(1); }

  std::shared_ptr<LoadedSpec> spec;
};

#ifdef DEFT_HAS_COMPILER

TEST_F(CompilerTest, SourceAndIrAreOfTheVariant) {
  const auto source = variantSource(*spec, a());
  ASSERT_TRUE(source) << source.error().message;
  EXPECT_EQ(source->name, "a");
  EXPECT_EQ(source->kvHeads, 2);
  EXPECT_EQ(variantSource(*spec, b())->kvHeads, 4);
  const auto ir = irText(*spec, b());
  ASSERT_TRUE(ir);
  EXPECT_NE(ir->find("deft.attention @b query_heads 4 kv_heads 4"), std::string::npos) << *ir;
}

TEST_F(CompilerTest, NativeCodeIsOfTheVariant) {
  const auto kernel = jitCpuKernel(*spec, a());
  ASSERT_TRUE(kernel) << kernel.error().message;
  EXPECT_EQ(exec::differenceOf(**kernel, a()), "");
  EXPECT_NE(exec::differenceOf(**kernel, b()), "");
}

TEST_F(CompilerTest, OneObjectHoldsAllThatItIsAskedFor) {
  const auto object = cpuSharedObject(*spec, {&a(), &b()}, 3);
  ASSERT_TRUE(object) << object.error().message;
  for (const char *const name : {"a", "b"})
    EXPECT_NE(object->find(std::string(abi::kCpuKernelPrefix) + name), std::string::npos) << name;
}

#else

TEST_F(CompilerTest, ABuildWithoutItSaysSo) {
  const auto expectLeftOut = [](const support::Error &error) {
    EXPECT_EQ(error.code, support::ErrorCode::Environment);
    EXPECT_EQ(error.message, "this build of deftc is without the compiler and cannot compile `my.deft`");
  };
  expectLeftOut(variantSource(*spec, a()).error());
  expectLeftOut(irText(*spec, a()).error());
  expectLeftOut(jitCpuKernel(*spec, a()).error());
  expectLeftOut(cpuSharedObject(*spec, {&a(), &b()}, 3).error());
}

#endif

} // namespace
} // namespace deft::program
