#include "compiler/package/VariantSourceJson.h"

#include "compiler/codegen/cuda/Instantiate.h"
#include "tests/support/SampleSource.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace deft::package {
namespace {

using codegen::cuda::instantiateAttend;
using codegen::cuda::instantiateMerge;
using codegen::cuda::VariantSource;

TEST(VariantSourceJsonTest, RoundTripKeepsEveryMember) {
  VariantSource source = test::sampleSource();
  source.tensors = {.q = {spec::DType::F16, 192},
                    .k = {spec::DType::F16, 192},
                    .v = {spec::DType::BF16, 128},
                    .out = {spec::DType::F16, 128}};
  source.normalize = spec::Normalize::Sigmoid;
  source.worthGroups = source.kvHeads;
  source.lists = 1;
  const nlohmann::json json = toJson(source);
  const auto read = variantSourceFromJson(json);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(toJson(*read), json);
  EXPECT_EQ(instantiateAttend(*read, {}), instantiateAttend(source, {}));
  EXPECT_EQ(instantiateMerge(*read), instantiateMerge(source));
}

TEST(VariantSourceJsonTest, GivenListsAreTold) {
  VariantSource source = test::sampleSource();
  source.worthGroups = source.kvHeads;
  source.lists = 1;
  EXPECT_FALSE(toJson(source).contains("lists_are_given"));
  source.listsAreGiven = true;
  const auto read = variantSourceFromJson(toJson(source));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_TRUE(read->listsAreGiven && read->selects() && !read->unites());
  nlohmann::json several = toJson(source);
  several["lists"] = source.kvHeads;
  EXPECT_FALSE(variantSourceFromJson(several));
}

TEST(VariantSourceJsonTest, HooksOfElementsAreToldWhereTheyAre) {
  VariantSource source = test::sampleSource();
  for (const char *key : {"has_query", "has_key", "has_value_factor", "has_output"})
    EXPECT_FALSE(toJson(source).contains(key));
  source.has.query = source.has.key = source.has.valueFactor = source.has.output = true;
  const auto read = variantSourceFromJson(toJson(source));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_TRUE(read->has.query && read->has.key && read->has.output);
  EXPECT_TRUE(read->shape().has == source.has);
}

TEST(VariantSourceJsonTest, ArraysOverTokensAreCountedWhereThereAreAny) {
  VariantSource source = test::sampleSource();
  EXPECT_FALSE(toJson(source).contains("token_params"));
  source.tokenParams = 1;
  nlohmann::json json = toJson(source);
  const auto read = variantSourceFromJson(json);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->shape().tokenParams, 1);
  json["token_params"] = source.params.size() + 1;
  EXPECT_FALSE(variantSourceFromJson(json));
}

TEST(VariantSourceJsonTest, EveryKeyIsNeeded) {
  const nlohmann::json json = toJson(test::sampleSource());
  for (const auto &[key, value] : json.items()) {
    nlohmann::json broken = json;
    broken.erase(key);
    const auto read = variantSourceFromJson(broken);
    ASSERT_FALSE(read) << key;
    EXPECT_NE(read.error().message.find(key), std::string::npos) << read.error().message;
  }
  nlohmann::json broken = json;
  broken["kv_heads"] = 5;
  EXPECT_FALSE(variantSourceFromJson(broken));
  broken = json;
  broken["tensors"]["k"]["dtype"] = "f64";
  EXPECT_FALSE(variantSourceFromJson(broken));
}

TEST(VariantSourceJsonTest, ListsAreOfGroupsOrOfAll) {
  nlohmann::json json = toJson(test::sampleSource());
  const int kvHeads = json["kv_heads"];
  json["worth_groups"] = kvHeads;
  json["lists"] = kvHeads;
  EXPECT_TRUE(variantSourceFromJson(json));
  json["lists"] = 2;
  EXPECT_FALSE(variantSourceFromJson(json));
  json["lists"] = 1;
  json["worth_groups"] = kvHeads + 1;
  EXPECT_FALSE(variantSourceFromJson(json));
}

} // namespace
} // namespace deft::package
