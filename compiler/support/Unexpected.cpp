#include "compiler/support/Unexpected.h"

#include <nlohmann/json.hpp>

#include <new>

namespace deft::support {

Error unexpected(const std::exception &exception) {
  if (dynamic_cast<const std::bad_alloc *>(&exception))
    return {ErrorCode::Environment, "out of memory", ""};
  constexpr int kNoUtf8 = 316;
  if (const auto *json = dynamic_cast<const nlohmann::json::type_error *>(&exception);
      json && json->id == kNoUtf8)
    return {ErrorCode::Usage, "a given text is not UTF-8 and cannot be written as JSON", ""};
  return {ErrorCode::Internal, "unexpected internal error",
          "this is a bug in deftc; please report it with the call and its arguments"};
}

} // namespace deft::support
