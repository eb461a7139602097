#pragma once

#include "compiler/spec/Variant.h"

#include <deft/c/tensor.h>

#include <optional>
#include <string>

/// Types of elements, with their names in C.
namespace deft::api {

deft_dtype dtypeOf(spec::DType dtype);
/// None: no tensor of an attention has this type.
std::optional<spec::DType> dtypeFrom(deft_dtype dtype);
/// "float16 or bfloat16": the types of `bytes` bytes.
std::string dtypeNames(int bytes);

/// "bfloat16"; for a type that DLPack has but this library does not accept: "int64".
std::string dtypeName(deft_dtype dtype);

} // namespace deft::api
