#include "compiler/spec/TensorsJson.h"

#include "compiler/spec/Limits.h"
#include "compiler/spec/Names.h"
#include "compiler/support/JsonFields.h"

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
  return {{"q", toJson(tensors.q)},
          {"k", toJson(tensors.k)},
          {"v", toJson(tensors.v)},
          {"out", toJson(tensors.out)},
          {"value_in_key", tensors.valueInKey}};
}

Tensors readTensors(const nlohmann::json &json) {
  const Tensors tensors{readTensor(json, "q"), readTensor(json, "k"), readTensor(json, "v"),
                        readTensor(json, "out"), support::boolean(json, "value_in_key")};
  const std::optional<std::string> fault = faultOf(tensors);
  support::require(!fault, fault.value_or(""));
  return tensors;
}

} // namespace deft::spec
