#include "tools/deftc/common/SparseChoice.h"

#include "runtime/config_cache/SparseFiles.h"
#include "tests/unit/runtime/module_cache/TestFolder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <sstream>

namespace deft::cli {
namespace {

/// A spec that selects, and a device.
class SparseChoiceTest : public testing::Test {
protected:
  SparseChoiceTest() {
    places_.userSparse = folder_.path("sparse");
    device_.key = {config_cache::DeviceKey::Kind::Gpu, "sm_90", 0, 132, "NVIDIA H200"};
    device_.target = target::findTarget("sm_90a");
  }

  static program::Program program(const std::string &select = "select { budget = tune(4096, 1024); }") {
    const std::string text = "attention sparse {\n  query_heads = 32;\n  kv_heads = 8;\n  head_dim = 128;\n"
                             "  kv_cache = paged(page_size = 16, order = nhd);\n  output = bf16;\n  " +
                             select + "\n}\n";
    support::DiagnosticSink sink;
    const auto imports = [](const std::string &, const std::string &) {
      return support::Result<spec::ImportedFile>(support::Error{});
    };
    auto made = program::Program::fromSpec(program::checkSpec({"sparse.deft", text}, imports, sink), "", "");
    EXPECT_TRUE(made) << made.error().message;
    return std::move(*made);
  }

  std::string text() const {
    const auto choice = sparseChoice(program(), device_, places_);
    std::ostringstream out;
    if (choice)
      print(*choice, out);
    return out.str();
  }

  module_cache::TestFolder folder_;
  config_cache::Places places_;
  ChosenDevice device_;
};

TEST_F(SparseChoiceTest, WithoutFilesItIsTheRules) {
  EXPECT_EQ(text(), "sparse    tiles of 64 tokens, 2 stages, 4 warps, by the rule\n"
                    "          budget 4096: cut by the rule\n"
                    "          budget 1024: cut by the rule\n");
}

TEST_F(SparseChoiceTest, WhatWasTunedIsToldWithItsFile) {
  config_cache::SparseEntry entry;
  entry.signature = config_cache::VariantSignature::of(program().variant());
  entry.budget = 1024;
  entry.tileKv = 32;
  entry.stages = 3;
  entry.warps = 1;
  entry.isChosen = true;
  entry.cuts = {{1, 1024, 10, 11, 0}, {2, 0, 10, 11, 0}};
  entry.provenance.kernelHash = config_cache::sparseKernelHash();
  const auto path = config_cache::saveSparse(places_, device_.key, {entry});
  ASSERT_TRUE(path) << path.error().message;
  EXPECT_EQ(text(),
            "sparse    tiles of 32 tokens, 3 stages, 1 warp, as tuned\n"
            "          budget 4096: cut by the rule\n"
            "          budget 1024: items of 1,024 tokens for 1 query, the rule's for 1 number of queries: " +
                *path + "\n");
  const nlohmann::json json = toJson(*sparseChoice(program(), device_, places_));
  EXPECT_EQ(json["tile_kv"], 32);
  EXPECT_EQ(json["file"], *path);
  EXPECT_EQ(json["lists"][1]["cuts"][0]["item_tokens"], 1024);
}

TEST_F(SparseChoiceTest, OnProcessorsAndWhereNothingSelectsThereIsNone) {
  EXPECT_FALSE(sparseChoice(program(""), device_, places_));
  device_.target = nullptr;
  EXPECT_FALSE(sparseChoice(program(), device_, places_));
}

} // namespace
} // namespace deft::cli
