#pragma once

#include "compiler/spec/Variant.h"

#include <deft/c/tensor.h>

#include <optional>
#include <string>

/// Types of elements, as C programs name them.
namespace deft::api {

deft_dtype dtypeOf(spec::DType dtype);
/// None: it is of no tensor of an attention.
std::optional<spec::DType> dtypeFrom(deft_dtype dtype);
/// "float16 or bfloat16": those of so many bytes.
std::string dtypeNames(int bytes);

/// "bfloat16"; of a type that DLPack knows and nothing here takes: "int of 64 bits".
std::string dtypeName(deft_dtype dtype);

} // namespace deft::api
