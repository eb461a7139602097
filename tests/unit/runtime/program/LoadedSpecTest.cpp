#include "runtime/program/LoadedSpec.h"

#include "tests/unit/runtime/module_cache/TestFolder.h"

#include <gtest/gtest.h>

#include <functional>

namespace deft::program {
namespace {

using module_cache::TestFolder;
using module_cache::writeText;

const std::string kTwo = "attention a { query_heads = 8; kv_heads = 4; head_dim = 64; }\n"
                         "attention wide : a { kv_heads = 2; }\n";

std::shared_ptr<LoadedSpec> checked(const std::string &text) {
  support::DiagnosticSink sink;
  auto spec = checkSpec({"my.deft", text}, {}, sink);
  EXPECT_FALSE(sink.hasErrors());
  return spec;
}

TEST(LoadedSpecTest, AFileComesBeforeAShippedSpecOfItsName) {
  const TestFolder folder;
  writeText(folder.path("my.deft"), kTwo);
  const auto own = readSpec(folder.path("my.deft"));
  ASSERT_TRUE(own);
  EXPECT_EQ(own->text, kTwo);
  const auto shipped = readSpec("llama3_8b");
  ASSERT_TRUE(shipped);
  EXPECT_EQ(shipped->name.front(), '<') << "no file of the machine is called so";
  const auto none = readSpec("llama3_8");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().hint, "did you mean `llama3_8b`?");
}

TEST(LoadedSpecTest, WhatIsNoTextOfASpecIsKnown) {
  const TestFolder folder;
  writeText(folder.path("tree.json"), " \n{\"format\": \"deftc-tree\"}");
  writeText(folder.path("list.json"), "[1]");
  const auto tree = readSpec(folder.path("tree.json")), list = readSpec(folder.path("list.json")),
             package = readSpec(DEFT_TEST_PACKAGE);
  EXPECT_EQ(tree.error().message, "`" + folder.path("tree.json") + "` is JSON, not the text of a spec");
  EXPECT_EQ(tree.error().hint, "a tree is given with --tree");
  EXPECT_EQ(list.error().hint, "");
  EXPECT_EQ(package.error().code, support::ErrorCode::Usage);
  EXPECT_NE(package.error().message.find("is a package, not the text of a spec"), std::string::npos);
}

TEST(LoadedSpecTest, OfSeveralVariantsOneIsChosenByName) {
  const auto messageOf = [](const std::string &text, const std::string &name) {
    const auto spec = checked(text);
    const auto chosen = chooseVariant(*spec, name, "choose one with --variant");
    return chosen ? (*chosen)->name : chosen.error().message + " | " + chosen.error().hint;
  };
  EXPECT_EQ(messageOf(kTwo, "wide"), "wide");
  EXPECT_EQ(messageOf(kTwo, ""), "`my.deft` defines 2 attentions | choose one with --variant: a, wide");
  EXPECT_EQ(messageOf(kTwo, "wied"), "`my.deft` defines no attention `wied` | did you mean `wide`?");
  EXPECT_EQ(messageOf(kTwo.substr(0, kTwo.find('\n')), ""), "a");
  EXPECT_EQ(messageOf("mask near() = kv_pos > 3;", "a"), "`my.deft` defines no attention | ");
}

TEST(LoadedSpecTest, APackageHoldsWhatItWasBuiltOf) {
  auto package = package::openPackage(DEFT_TEST_PACKAGE);
  ASSERT_TRUE(package);
  const auto loaded = loadPackagedSpec(*package, "p.deftpkg");
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ((*loaded)->path, "p.deftpkg");
  ASSERT_EQ((*loaded)->variants.size(), 1U);
  const auto faultWith = [&](const std::function<void(package::Package &)> &change) {
    package::Package other = *package;
    change(other);
    const auto read = loadPackagedSpec(other, "p.deftpkg");
    return read ? std::to_string((*read)->variants.size()) + " variants" : read.error().message;
  };
  const std::string malformed = "package `p.deftpkg` is malformed: ";
  EXPECT_EQ(faultWith([](auto &p) { p.specFiles.clear(); }), malformed + "it holds no spec");
  EXPECT_EQ(faultWith([](auto &p) { p.variants[0].source.pageSize = 8; }),
            malformed + "its kernels' source and its spec differ in page_size of `host_program`");
  EXPECT_EQ(faultWith([](auto &p) { p.variants[0].source.withLse = false; }),
            malformed + "its kernels' source and its spec differ in lse of `host_program`");
  EXPECT_EQ(faultWith([](auto &p) { p.variants[0].source.has.key = true; }),
            malformed + "its kernels' source and its spec differ in hooks of `host_program`");
  EXPECT_EQ(faultWith([](auto &p) { p.specFiles[0].text += "attention more : host_program { }\n"; }),
            "1 variants")
      << "what it was not built of is left out";
  EXPECT_EQ(faultWith([](auto &p) {
              p.specFiles[0].text = "nonsense";
            }).find("p.deftpkg: this deftc does not accept"),
            0U);
}

} // namespace
} // namespace deft::program
