#include "compiler/package/VariantSourceJson.h"

#include "compiler/codegen/cuda/Instantiate.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace deft::package {
namespace {

using codegen::cuda::instantiateAttend;
using codegen::cuda::instantiateMerge;
using codegen::cuda::VariantSource;

VariantSource sample() {
  VariantSource source;
  source.name = "llama";
  source.queryHeads = 32;
  source.kvHeads = 8;
  source.headDim = 128;
  source.outputDtype = spec::DType::F16;
  source.withLse = true;
  source.pageSize = 16;
  source.params = {"cap"};
  source.hooks = "struct Params {};\nstruct Variant {};\n";
  return source;
}

TEST(VariantSourceJsonTest, RoundTripKeepsEveryMember) {
  VariantSource source = sample();
  source.dtype = spec::DType::F16;
  source.normalize = spec::Normalize::Sigmoid;
  const nlohmann::json json = toJson(source);
  const auto read = variantSourceFromJson(json);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(toJson(*read), json);
  EXPECT_EQ(instantiateAttend(*read, {}), instantiateAttend(source, {}));
  EXPECT_EQ(instantiateMerge(*read), instantiateMerge(source));
}

TEST(VariantSourceJsonTest, EveryKeyIsNeeded) {
  const nlohmann::json json = toJson(sample());
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
  broken["dtype"] = "f64";
  EXPECT_FALSE(variantSourceFromJson(broken));
}

} // namespace
} // namespace deft::package
