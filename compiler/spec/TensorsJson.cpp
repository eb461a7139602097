#include "compiler/spec/TensorsJson.h"

#include "compiler/spec/Limits.h"
#include "compiler/spec/Names.h"
#include "compiler/support/JsonFields.h"

#include <nlohmann/json.hpp>

namespace deft::spec {
namespace {

nlohmann::ordered_json toJson(const TensorType &tensor) {
  return {{"dtype", toString(tensor.dtype)}, {"dim", tensor.dim}};
}

TensorType readTensor(const nlohmann::json &json, const char *key) {
  const nlohmann::json &tensor = support::member(json, key);
  return {support::word(tensor, "dtype", parseDType), support::integer(tensor, "dim", 1, kMaxTensorDim)};
}

} // namespace

nlohmann::ordered_json toJson(const Tensors &tensors) {
  nlohmann::ordered_json json = {{"q", toJson(tensors.q)},
                                 {"k", toJson(tensors.k)},
                                 {"v", toJson(tensors.v)},
                                 {"out", toJson(tensors.out)},
                                 {"value_in_key", tensors.valueInKey}};
  if (tensors.hasScales()) // which came later
    json["scale_columns"] = tensors.scaleColumns;
  if (tensors.byteProducts) // likewise
    json["products"] = toString(kByteProducts);
  return json;
}

Tensors readTensors(const nlohmann::json &json) {
  Tensors tensors{readTensor(json, "q"), readTensor(json, "k"), readTensor(json, "v"),
                  readTensor(json, "out"), support::boolean(json, "value_in_key")};
  if (json.contains("scale_columns"))
    tensors.scaleColumns = support::integer(json, "scale_columns", 1, kMaxTensorDim);
  if (json.contains("products")) {
    tensors.byteProducts = support::word(json, "products", parseDType) == kByteProducts;
    support::require(tensors.byteProducts, "`products` has a type that products cannot have");
  }
  const std::optional<std::string> fault = faultOf(tensors);
  support::require(!fault, fault.value_or(""));
  return tensors;
}

} // namespace deft::spec
