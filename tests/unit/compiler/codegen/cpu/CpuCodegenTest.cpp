/// Targets, and code as text and files. What the code computes is CpuKernelTest's.

#include "compiler/codegen/cpu/CpuCodegen.h"

#include "tests/support/SetVariable.h"
#include "tests/unit/compiler/transforms/HookTesting.h"
#include "tests/unit/runtime/module_cache/TestFolder.h"

#include <gtest/gtest.h>

#include <csignal>
#include <future>

namespace deft::codegen::cpu {
namespace {

using test::ImportedHooks;

TEST(CpuCodegenTest, ALevelIsItsVectorWidth) {
  EXPECT_EQ(CpuTarget::level(3)->lanes(), 8);
  EXPECT_EQ(CpuTarget::level(4)->lanes(), 16);
  EXPECT_EQ(CpuTarget::level(4)->cpu, "x86-64-v4");
  for (const int level : {2, 5})
    EXPECT_EQ(CpuTarget::level(level).error().message, "x86-64-v" + std::to_string(level) + " is not 3 or 4");
  const auto host = CpuTarget::host();
  ASSERT_TRUE(host) << host.error().message;
  EXPECT_TRUE(host->isaLevel == 3 || host->isaLevel == 4);
  EXPECT_EQ(host->features.find("+avx2") != std::string::npos, true);
  EXPECT_TRUE(!host->bf16Dot || host->isaLevel == 4);
}

TEST(CpuCodegenTest, CodeOfALevelHasItsRegisters) {
  ImportedHooks hooks("mask = kv_pos > 3;");
  const auto narrow = asmText(hooks.attention, *CpuTarget::level(3)),
             wide = asmText(hooks.attention, *CpuTarget::level(4));
  ASSERT_TRUE(narrow && wide);
  EXPECT_EQ(narrow->find("%zmm"), std::string::npos);
  EXPECT_NE(narrow->find("%ymm"), std::string::npos);
  EXPECT_NE(wide->find("%zmm"), std::string::npos);
  EXPECT_EQ(*asmText(hooks.attention, *CpuTarget::level(3)), *narrow) << "the same text every time";
}

TEST(CpuCodegenTest, ObjectsAreLinkedIntoOneThatNeedsNoOther) {
  ImportedHooks hooks("score = exp(s);");
  const auto object = objectCode(hooks.attention, *CpuTarget::level(3));
  ASSERT_TRUE(object) << object.error().message;
  const auto linked = linkSharedObject({*object});
  ASSERT_TRUE(linked) << linked.error().message;
  EXPECT_EQ(linked->substr(1, 3), "ELF");
  EXPECT_NE(linked->find("deft_cpu_a"), std::string::npos) << "the variant's table";
  EXPECT_EQ(*linkSharedObject({*object}), *linked) << "the same bytes every time";
}

TEST(CpuCodegenTest, WhatCannotBeLinkedIsAnErrorOfTheEnvironment) {
  const auto garbage = linkSharedObject({"no object"});
  ASSERT_FALSE(garbage);
  EXPECT_EQ(garbage.error().code, support::ErrorCode::Environment);
  EXPECT_EQ(garbage.error().message.find("the CPU kernels cannot be linked: "), 0U);
}

TEST(CpuCodegenTest, LinkingNeedsNoProgramOfTheMachineAndGoesOnAfterAnError) {
  ImportedHooks hooks("score = exp(s);");
  const auto object = objectCode(hooks.attention, *CpuTarget::level(3));
  ASSERT_TRUE(object) << object.error().message;
  const test::SetVariable path("PATH", "/no/such/folder");
  EXPECT_FALSE(linkSharedObject({"no object"}));
  EXPECT_TRUE(linkSharedObject({*object}));
}

TEST(CpuCodegenTest, LinkingLeavesSignalsToTheHost) {
  ImportedHooks hooks("score = exp(s);");
  const auto object = objectCode(hooks.attention, *CpuTarget::level(3));
  ASSERT_TRUE(object) << object.error().message;
  const auto handlers = [] {
    std::vector<void (*)(int)> all;
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGSEGV, SIGABRT, SIGUSR1}) {
      struct sigaction action = {};
      sigaction(signal, nullptr, &action);
      all.push_back(action.sa_handler);
    }
    return all;
  };
  const auto before = handlers();
  ASSERT_TRUE(linkSharedObject({*object}));
  EXPECT_FALSE(linkSharedObject({"no object"}));
  EXPECT_EQ(handlers(), before);
}

TEST(CpuCodegenTest, LinkingLeavesNothingBehind) {
  ImportedHooks hooks("score = exp(s);");
  const auto object = objectCode(hooks.attention, *CpuTarget::level(3));
  ASSERT_TRUE(object) << object.error().message;
  const module_cache::TestFolder folder;
  const test::SetVariable temporary("TMPDIR", folder.path());
  ASSERT_TRUE(linkSharedObject({*object}));
  EXPECT_FALSE(linkSharedObject({"no object"}));
  EXPECT_EQ(module_cache::namesIn(folder.path()), std::vector<std::string>{});
  const test::SetVariable none("TMPDIR", folder.path("none"));
  EXPECT_FALSE(linkSharedObject({*object})) << "it is made in this folder";
}

TEST(CpuCodegenTest, SeveralThreadsMayLink) {
  ImportedHooks hooks("score = exp(s);");
  const auto object = objectCode(hooks.attention, *CpuTarget::level(3));
  ASSERT_TRUE(object) << object.error().message;
  std::vector<std::future<support::Result<std::string>>> linked;
  for (int i = 0; i < 4; ++i)
    linked.push_back(std::async(std::launch::async, [&] { return linkSharedObject({*object}); }));
  const auto expected = linkSharedObject({*object});
  ASSERT_TRUE(expected) << expected.error().message;
  for (auto &one : linked)
    EXPECT_EQ(*one.get(), *expected);
}

} // namespace
} // namespace deft::codegen::cpu
