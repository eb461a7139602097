#include "compiler/spec/TensorsJson.h"

#include "compiler/support/JsonFields.h"

#include <gtest/gtest.h>

namespace deft::spec {
namespace {

/// All four of them unlike, so that none can be taken for another.
Tensors unlike() {
  return {{DType::F16, 64}, {DType::F8E4M3, 64}, {DType::F8E5M2, 32}, {DType::BF16, 32}, false};
}

std::string faultOfReading(const nlohmann::json &json) {
  try {
    readTensors(json);
  } catch (const support::WrongField &wrong) {
    return wrong.what();
  }
  return "none";
}

TEST(TensorsJsonTest, EachTensorStandsUnderItsName) {
  const nlohmann::json json = toJson(unlike());
  EXPECT_EQ(json.at("q"), (nlohmann::json{{"dtype", "f16"}, {"dim", 64}}));
  EXPECT_EQ(json.at("k"), (nlohmann::json{{"dtype", "fp8_e4m3"}, {"dim", 64}}));
  EXPECT_EQ(json.at("v"), (nlohmann::json{{"dtype", "fp8_e5m2"}, {"dim", 32}}));
  EXPECT_EQ(json.at("out"), (nlohmann::json{{"dtype", "bf16"}, {"dim", 32}}));
  EXPECT_EQ(json.at("value_in_key"), false);
}

TEST(TensorsJsonTest, WhatIsWrittenIsReadAgain) {
  Tensors latent = Tensors::alike(576);
  latent.v.dim = latent.out.dim = 512;
  latent.valueInKey = true;
  Tensors scaled = latent;
  scaled.k.dtype = scaled.v.dtype = DType::F8E4M3;
  EXPECT_FALSE(toJson(scaled).contains("scale_columns")) << "as files were before there were scales";
  scaled.scaleColumns = 128;
  Tensors bytes = Tensors::alike(64);
  bytes.k.dtype = bytes.v.dtype = DType::F8E4M3;
  EXPECT_FALSE(toJson(bytes).contains("products")) << "likewise";
  bytes.byteProducts = true;
  for (const Tensors &tensors : {unlike(), latent, scaled, bytes, Tensors::alike(16, DType::F16)})
    EXPECT_EQ(readTensors(nlohmann::json::parse(toJson(tensors).dump())), tensors);
}

TEST(TensorsJsonTest, EveryFieldIsNeeded) {
  const nlohmann::json whole = toJson(unlike());
  for (const char *const key : {"q", "k", "v", "out", "value_in_key"}) {
    nlohmann::json part = whole;
    part.erase(key);
    EXPECT_NE(faultOfReading(part).find(key), std::string::npos) << faultOfReading(part);
  }
  for (const char *const key : {"dtype", "dim"}) {
    nlohmann::json part = whole;
    part["v"].erase(key);
    EXPECT_NE(faultOfReading(part).find(key), std::string::npos) << faultOfReading(part);
  }
}

TEST(TensorsJsonTest, NoAttentionIsReadThatThereCannotBe) {
  nlohmann::json json = toJson(unlike());
  json["k"]["dim"] = 48; // and q has 64
  EXPECT_EQ(faultOfReading(json), faultOf({{DType::F16, 64}, {DType::F8E4M3, 48}, unlike().v, unlike().out}));
  for (const nlohmann::json &dim : {nlohmann::json(0), nlohmann::json(-16), nlohmann::json(1 << 30),
                                    nlohmann::json(16.5), nlohmann::json("64")}) {
    nlohmann::json other = toJson(unlike());
    other["q"]["dim"] = other["k"]["dim"] = dim;
    EXPECT_NE(faultOfReading(other), "none") << dim;
  }
  json = toJson(unlike());
  json["products"] = "bf16";
  EXPECT_EQ(faultOfReading(json), "`products` has a type that products cannot have");
  json["products"] = "fp8_e4m3"; // and v is of another
  EXPECT_EQ(faultOfReading(json), "products are of fp8_e4m3, k of fp8_e4m3 and v of fp8_e5m2");
  json = toJson(unlike());
  json["q"]["dtype"] = "f32";
  EXPECT_NE(faultOfReading(json), "none");
}

} // namespace
} // namespace deft::spec
