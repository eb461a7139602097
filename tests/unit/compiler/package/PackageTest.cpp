#include "compiler/package/Package.h"
#include "compiler/package/Container.h"

#include "compiler/config/ConfigJson.h"
#include "templates/deft/abi.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <functional>

namespace deft::package {
namespace {

Kernel kernel(const std::string &entry) {
  return {entry, "cubin of " + entry, 128, 4096, {entry, 168, 8, 4, 2, 1}, KernelOrigin::Compiled};
}

Package sample() {
  PackagedVariant variant;
  static_cast<spec::AttentionShape &>(variant.source) = {32, 8, spec::Tensors::alike(128)};
  variant.source.name = "llama";
  variant.source.pageSize = 16;
  variant.source.params = {"cap"};
  variant.source.hooks = "struct Params {};\n";
  for (const char *arch : {"sm_80", "sm_90a"}) {
    KernelSet set;
    set.arch = arch;
    set.config.phases = {{"wide", 16, config::Family::Sm80, 64, 64, 2, 4}, {}};
    set.config.phases[1].name = "narrow";
    set.attend = {kernel("deft_llama_wide"), kernel("deft_llama_narrow")};
    set.merge = kernel("deft_llama_merge");
    variant.kernels.push_back(set);
  }
  PackagedVariant plain;
  static_cast<spec::AttentionShape &>(plain.source) = {1, 1, spec::Tensors::alike(64)};
  plain.source.name = "plain";
  plain.source.hooks = "h\n";
  return {"0.1.0",
          "13.0",
          {{"a.deft", "attention a {}\n"}, {"b.deft", "// imported\n"}},
          {variant, plain},
          {{3, "so v3"}, {4, "so v4"}}};
}

TEST(PackageTest, KernelsOfAnotherAbiAreLeftOut) {
  auto sections = readContainer(writePackage(sample()), "p");
  ASSERT_TRUE(sections);
  std::string &manifest = sections->front().bytes;
  auto json = nlohmann::json::parse(manifest);
  json.at("variants")[0].at("kernels")[0].at("abi") = abi::kVersion - 1;
  json.at("variants")[0].at("kernels")[1].erase("abi"); // as the first version wrote them
  manifest = json.dump();
  const auto read = readPackage(writeContainer(*sections), "p");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_TRUE(read->find("llama")->kernels.empty());
}

/// Packages had the schedule's lists once, which nobody read: they stand in the spec.
TEST(PackageTest, WhatOlderPackagesHadBesideIsPassedOver) {
  auto sections = readContainer(writePackage(sample()), "p");
  ASSERT_TRUE(sections);
  std::string &manifest = sections->front().bytes;
  auto json = nlohmann::json::parse(manifest);
  json.at("variants")[0]["space"] = "variants/llama/space.json";
  manifest = json.dump();
  sections->push_back({"variants/llama/space.json", "{\"partitions\": [], \"phases\": []}\n"});
  const auto read = readPackage(writeContainer(*sections), "p");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(writePackage(*read), writePackage(sample()));
}

TEST(PackageTest, RoundTripKeepsEverything) {
  const Package written = sample();
  const auto read = readPackage(writePackage(written), "p");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->deftcVersion, "0.1.0");
  EXPECT_EQ(read->nvrtcVersion, "13.0");
  ASSERT_EQ(read->specFiles.size(), 2u);
  EXPECT_EQ(read->specFiles[1].name, "b.deft");
  EXPECT_EQ(read->specFiles[1].text, "// imported\n");
  ASSERT_EQ(read->cpu.size(), 2u);
  EXPECT_EQ(read->cpu[1].isaLevel, 4);
  EXPECT_EQ(read->cpu[1].sharedObject, "so v4");
  ASSERT_EQ(read->variants.size(), 2u);
  const PackagedVariant &variant = *read->find("llama");
  EXPECT_EQ(variant.source.hooks, "struct Params {};\n");
  ASSERT_EQ(variant.kernels.size(), 2u);
  EXPECT_EQ(variant.kernels[1].arch, "sm_90a");
  EXPECT_EQ(config::toJson(variant.kernels[1].config), config::toJson(written.variants[0].kernels[1].config));
  const Kernel &attend = variant.kernels[1].attend[1];
  EXPECT_EQ(attend.entry, "deft_llama_narrow");
  EXPECT_EQ(attend.cubin, "cubin of deft_llama_narrow");
  EXPECT_EQ(attend.threads, 128);
  EXPECT_EQ(attend.smemBytes, 4096);
  EXPECT_EQ(attend.resources.registers, 168);
  EXPECT_EQ(attend.resources.spillStoreBytes, 4);
  EXPECT_EQ(attend.origin, KernelOrigin::Package);
  EXPECT_EQ(variant.kernels[0].merge.entry, "deft_llama_merge");
  EXPECT_EQ(read->find("none"), nullptr);
  EXPECT_EQ(writePackage(*read), writePackage(written));
}

TEST(PackageTest, ListsOfACallerHaveOneKernel) {
  Package written = sample();
  written.variants[0].source.worthGroups = 8;
  written.variants[0].source.lists = 1;
  written.variants[0].source.listsAreGiven = true;
  SelectingKernels &selecting = written.variants[0].kernels[1].selecting.emplace();
  selecting.sparse = kernel("deft_llama_sparse");
  selecting.sparsePhase = {"sparse", -1, config::Family::Sm80Latent, 16, 32, 2, 4};
  auto read = readPackage(writePackage(written), "p");
  ASSERT_TRUE(read) << read.error().message;
  const PackagedVariant &variant = *read->find("llama");
  EXPECT_TRUE(variant.source.listsAreGiven);
  const SelectingKernels &found = *variant.kernels[1].selecting;
  EXPECT_FALSE(found.select);
  EXPECT_TRUE(found.attend.empty());
  EXPECT_EQ(found.sparse.entry, "deft_llama_sparse");
  selecting.select = kernel("deft_llama_select");
  selecting.attend = {kernel("deft_llama_wide_selecting"), kernel("deft_llama_narrow_selecting")};
  read = readPackage(writePackage(written), "p");
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().message.find("the kernels of `llama` and its lists do not belong together"),
            std::string::npos)
      << read.error().message;
}

TEST(PackageTest, KernelsThatSelectAreKeptBesideTheOthers) {
  Package written = sample();
  written.variants[0].source.worthGroups = 8;
  written.variants[0].source.lists = 1;
  SelectingKernels &selecting = written.variants[0].kernels[1].selecting.emplace();
  selecting.attend = {kernel("deft_llama_wide_selecting"), kernel("deft_llama_narrow_selecting")};
  selecting.select = kernel("deft_llama_select");
  selecting.blocksOfList = 2;
  selecting.cachedKeys = 256;
  selecting.sparse = kernel("deft_llama_sparse");
  selecting.sparsePhase = {"sparse", -1, config::Family::Sm80, 16, 64, 2, 4};
  selecting.uniting = {kernel("deft_llama_unite"),
                       8,
                       kernel("deft_llama_united"),
                       {"united", -1, config::Family::Sm90, 128, 64, 4, 12}};
  const auto read = readPackage(writePackage(written), "p");
  ASSERT_TRUE(read) << read.error().message;
  const PackagedVariant &variant = *read->find("llama");
  EXPECT_EQ(variant.source.worthGroups, 8);
  EXPECT_EQ(variant.source.lists, 1);
  EXPECT_FALSE(variant.kernels[0].selecting); // as in packages from before there were any
  ASSERT_TRUE(variant.kernels[1].selecting);
  const SelectingKernels &found = *variant.kernels[1].selecting;
  ASSERT_EQ(found.attend.size(), 2u);
  EXPECT_EQ(found.attend[1].entry, "deft_llama_narrow_selecting");
  ASSERT_TRUE(found.select);
  EXPECT_EQ(found.select->cubin, "cubin of deft_llama_select");
  EXPECT_EQ(found.blocksOfList, 2);
  EXPECT_EQ(found.cachedKeys, 256);
  EXPECT_EQ(found.sparse.entry, "deft_llama_sparse");
  EXPECT_EQ(found.sparsePhase.tileKv, 64);
  ASSERT_TRUE(found.uniting);
  EXPECT_EQ(found.uniting->unite.entry, "deft_llama_unite");
  EXPECT_EQ(found.uniting->blocksOfList, 8);
  EXPECT_EQ(found.uniting->attend.cubin, "cubin of deft_llama_united");
  EXPECT_EQ(found.uniting->phase.family, config::Family::Sm90);
  EXPECT_EQ(writePackage(*read), writePackage(written));

  selecting.uniting.reset(); // as in packages from before there were any
  EXPECT_FALSE(readPackage(writePackage(written), "p")->find("llama")->kernels[1].selecting->uniting);
}

TEST(PackageTest, TheKernelOfAHookOfTheQueryIsKept) {
  Package written = sample();
  PackagedVariant &variant = written.variants[0];
  variant.source.has.query = true;
  for (KernelSet &set : variant.kernels) {
    set.query = set.merge;
    set.query->entry = "deft_llama_queries";
    set.query->cubin = "cubin of deft_llama_queries";
  }
  const auto read = readPackage(writePackage(written), "p");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->find("llama")->kernels[1].query->cubin, "cubin of deft_llama_queries");
  EXPECT_EQ(writePackage(*read), writePackage(written));

  variant.kernels[0].query.reset();
  EXPECT_FALSE(readPackage(writePackage(written), "p"));
}

TEST(PackageTest, KernelsOfSeveralConfigsOfAnArchitectureAreKeptApart) {
  Package written = sample();
  std::vector<KernelSet> &kernels = written.variants[0].kernels;
  kernels.push_back(kernels[1]);
  kernels[2].config.phases[0].tileQ = 128;
  kernels[2].attend[0].cubin = "other code";
  const std::string bytes = writePackage(written);
  const auto read = readPackage(bytes, "p");
  ASSERT_TRUE(read) << read.error().message;
  const std::vector<KernelSet> &found = read->find("llama")->kernels;
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[1].attend[0].cubin, "cubin of deft_llama_wide");
  EXPECT_EQ(found[2].attend[0].cubin, "other code");
  EXPECT_EQ(found[2].merge.cubin, "cubin of deft_llama_merge");
  // What is the same is there once.
  EXPECT_EQ(readContainer(bytes, "p")->size(), readContainer(writePackage(sample()), "p")->size() + 1);
}

TEST(PackageTest, EverySectionIsGuarded) {
  const std::string bytes = writePackage(sample());
  const auto sections = readContainer(bytes, "p");
  std::size_t at = bytes.size();
  for (auto section = sections->rbegin(); section != sections->rend(); ++section) {
    at -= section->bytes.size();
    std::string flipped = bytes;
    flipped[at] ^= 1;
    const auto read = readPackage(flipped, "p");
    ASSERT_FALSE(read) << section->name;
    EXPECT_EQ(read.error().message,
              "package `p` is altered: section `" + section->name + "` does not match its checksum");
  }
}

TEST(PackageTest, AMissingSectionIsNamed) {
  const auto sections = readContainer(writePackage(sample()), "p");
  for (const Section &gone : *sections) {
    std::vector<Section> rest;
    for (const Section &section : *sections)
      if (section.name != gone.name)
        rest.push_back(section);
    const auto read = readPackage(writeContainer(rest), "p");
    ASSERT_FALSE(read) << gone.name;
    EXPECT_EQ(read.error().message, "package `p` is malformed: section `" + gone.name + "` is missing");
  }
}

/// Every document of a package, with every value of it, at whatever depth, made a number, a list and nothing.
void eachDamage(const nlohmann::json &whole, const std::function<void(const nlohmann::json &)> &visit) {
  const nlohmann::json leaves = whole.flatten();
  for (const auto &[pointer, value] : leaves.items())
    for (auto at = nlohmann::json::json_pointer(pointer); !at.empty(); at.pop_back()) {
      for (const nlohmann::json &other : {nlohmann::json(-7), nlohmann::json(1e300), nlohmann::json("x"),
                                          nlohmann::json::array({1}), nlohmann::json(nullptr)}) {
        auto damaged = whole;
        damaged[at] = other;
        visit(damaged);
      }
      auto &&parent = whole[at.parent_pointer()];
      if (parent.is_object()) {
        auto damaged = whole;
        damaged[at.parent_pointer()].erase(at.back());
        visit(damaged);
      }
    }
}

TEST(PackageTest, DocumentsOfWrongTypesAreErrorsInOurWords) {
  const std::vector<Section> sections = *readContainer(writePackage(sample()), "p");
  int refused = 0;
  for (std::size_t i = 0; i < sections.size(); ++i) {
    if (!sections[i].name.ends_with(".json"))
      continue;
    eachDamage(nlohmann::json::parse(sections[i].bytes), [&](const nlohmann::json &damaged) {
      std::vector<Section> changed = sections;
      changed[i].bytes = damaged.dump();
      const auto read = readPackage(writeContainer(changed), "p");
      if (read) // a text that may be any, an optional key
        return;
      ++refused;
      EXPECT_EQ(read.error().code, support::ErrorCode::Diagnostics);
      EXPECT_EQ(read.error().message.find("package `p` is malformed: "), 0u) << read.error().message;
      for (const char *raw : {"exception", "std::", "type must be"})
        EXPECT_EQ(read.error().message.find(raw), std::string::npos) << read.error().message;
    });
  }
  EXPECT_GT(refused, 400);
}

TEST(PackageTest, FaultsOfAManifestAreNamed) {
  const auto errorOf = [](const std::string &manifest) {
    std::vector<Section> sections = *readContainer(writePackage(sample()), "p");
    sections[0].bytes = manifest;
    const auto read = readPackage(writeContainer(sections), "p");
    return read ? "read" : read.error().message;
  };
  EXPECT_EQ(
      errorOf("not json"),
      "package `p` is malformed: section `manifest.json`: it is not valid JSON, at byte 2: invalid literal");
  auto manifest = nlohmann::json::parse(readContainer(writePackage(sample()), "p")->front().bytes);
  manifest["variants"][0]["kernels"][0]["attend"][0]["threads"] = 5000;
  EXPECT_EQ(errorOf(manifest.dump()), "package `p` is malformed: `threads` = 5000 is not between 1 and 1024");
  manifest.erase("cpu");
  manifest["variants"][0]["kernels"][0]["abi"] = "new";
  EXPECT_EQ(errorOf(manifest.dump()), "package `p` is malformed: `abi` is not an integer");
}

TEST(PackageTest, AMissingFileIsAnEnvironmentError) {
  const auto package = openPackage("/nonexistent.deftpkg");
  ASSERT_FALSE(package);
  EXPECT_EQ(package.error().code, support::ErrorCode::Environment);
}

} // namespace
} // namespace deft::package
