#include "compiler/package/VariantSourceJson.h"

#include "compiler/spec/Limits.h"
#include "compiler/spec/Names.h"
#include "compiler/spec/TensorsJson.h"
#include "compiler/support/JsonFields.h"

#include <nlohmann/json.hpp>

namespace deft::package {

using nlohmann::json;

json toJson(const codegen::cuda::VariantSource &source) {
  json object = {{"name", source.name},
                 {"query_heads", source.queryHeads},
                 {"kv_heads", source.kvHeads},
                 {"tensors", spec::toJson(source.tensors)},
                 {"with_lse", source.withLse},
                 {"page_size", source.pageSize},
                 {"normalize", source.normalize == spec::Normalize::Softmax ? "softmax" : "sigmoid"},
                 {"has_sink", source.has.sink},
                 {"params", source.params},
                 {"hooks", source.hooks}};
  if (source.selects()) { // as it was before there were such specs
    object["worth_groups"] = source.worthGroups;
    object["lists"] = source.lists;
    if (source.listsAreGiven)
      object["lists_are_given"] = true;
  }
#define DEFT_TELL(ID, REGION, KEY, ...)                                                                      \
  if (source.has.ID) /* those without are written as ever */                                                 \
    object["has_" KEY] = true;
  DEFT_HOOKS(DEFT_NO_HOOK, DEFT_TELL)
#undef DEFT_TELL
  if (source.tokenParams > 0)
    object["token_params"] = source.tokenParams;
  return object;
}

support::Result<codegen::cuda::VariantSource> variantSourceFromJson(const json &object) {
  using namespace support;
  try {
    const auto flag = [&](const char *key) { return object.contains(key) && boolean(object, key); };
    codegen::cuda::VariantSource source;
    source.name = identifier(object, "name", spec::kMaxNameLength);
    source.queryHeads = integer(object, "query_heads", 1, spec::kMaxHeads);
    source.kvHeads = integer(object, "kv_heads", 1, spec::kMaxHeads);
    require(source.queryHeads % source.kvHeads == 0, "`query_heads` is not a multiple of `kv_heads`");
    source.tensors = spec::readTensors(member(object, "tensors"));
    source.withLse = boolean(object, "with_lse");
    source.pageSize = integer(object, "page_size", 0, spec::kMaxPageSize);
    source.normalize = word(object, "normalize", spec::parseNormalize);
#define DEFT_READ(ID, REGION, KEY, ...) source.has.ID = flag("has_" KEY);
    DEFT_HOOKS(DEFT_NO_HOOK, DEFT_READ)
#undef DEFT_READ
    source.has.sink = boolean(object, "has_sink"); // which is always said
    require(!source.has.sink || source.normalize == spec::Normalize::Softmax, "sigmoid has no sink");
    for (const json &param : array(object, "params", spec::kMaxParams)) {
      require(param.is_string(), "an element of `params` is not a string");
      source.params.push_back(param.get<std::string>());
    }
    if (object.contains("token_params"))
      source.tokenParams = integer(object, "token_params", 1, static_cast<int>(source.params.size()));
    source.hooks = text(object, "hooks");
    if (object.contains("lists")) {
      source.worthGroups = integer(object, "worth_groups", 1, spec::kMaxHeads);
      source.lists = integer(object, "lists", 1, spec::kMaxHeads);
      require(source.worthGroups == source.kvHeads || source.worthGroups == source.queryHeads,
              "`worth_groups` is neither the number of query heads nor of KV heads");
      source.listsAreGiven = flag("lists_are_given");
      require(source.lists == 1 || !source.listsAreGiven,
              "lists given by the caller must be one for each query");
      require(source.lists == 1 || source.lists == source.worthGroups, "`lists` is not 1 or `worth_groups`");
    }
    return source;
  } catch (const WrongField &wrong) {
    return Error{ErrorCode::Diagnostics, std::string("the variant source is malformed: ") + wrong.what(), {}};
  }
}

} // namespace deft::package
