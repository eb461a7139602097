#include "compiler/package/VariantSourceJson.h"

#include <nlohmann/json.hpp>

namespace deft::package {
namespace {

using nlohmann::json;

const char *dtypeName(spec::DType dtype) { return dtype == spec::DType::BF16 ? "bf16" : "f16"; }

spec::DType dtypeFromName(const std::string &name) {
  if (name == "bf16")
    return spec::DType::BF16;
  if (name == "f16")
    return spec::DType::F16;
  throw std::invalid_argument("unknown dtype `" + name + "`");
}

} // namespace

json toJson(const VariantSource &source) {
  return {{"name", source.name},
          {"query_heads", source.queryHeads},
          {"kv_heads", source.kvHeads},
          {"head_dim", source.headDim},
          {"dtype", dtypeName(source.dtype)},
          {"output_dtype", dtypeName(source.outputDtype)},
          {"with_lse", source.withLse},
          {"page_size", source.pageSize},
          {"normalize", source.normalize == spec::Normalize::Softmax ? "softmax" : "sigmoid"},
          {"params", source.params},
          {"hooks", source.hooks}};
}

support::Result<VariantSource> variantSourceFromJson(const json &object) {
  // The text was written by toJson and is covered by a checksum, so one message for all that can be
  // wrong is enough; the library's text names the key.
  try {
    VariantSource source;
    source.name = object.at("name").get<std::string>();
    source.queryHeads = object.at("query_heads").get<int>();
    source.kvHeads = object.at("kv_heads").get<int>();
    source.headDim = object.at("head_dim").get<int>();
    source.dtype = dtypeFromName(object.at("dtype").get<std::string>());
    source.outputDtype = dtypeFromName(object.at("output_dtype").get<std::string>());
    source.withLse = object.at("with_lse").get<bool>();
    source.pageSize = object.at("page_size").get<int>();
    const auto normalize = object.at("normalize").get<std::string>();
    if (normalize != "softmax" && normalize != "sigmoid")
      throw std::invalid_argument("unknown normalize `" + normalize + "`");
    source.normalize = normalize == "softmax" ? spec::Normalize::Softmax : spec::Normalize::Sigmoid;
    source.params = object.at("params").get<std::vector<std::string>>();
    source.hooks = object.at("hooks").get<std::string>();
    if (source.kvHeads < 1 || source.queryHeads < 1 || source.queryHeads % source.kvHeads != 0 ||
        source.headDim < 16 || source.pageSize < 0)
      throw std::invalid_argument("numbers out of range");
    return source;
  } catch (const std::exception &error) {
    return support::Error{
        support::ErrorCode::Diagnostics, std::string("the variant source is malformed: ") + error.what(), {}};
  }
}

} // namespace deft::package
