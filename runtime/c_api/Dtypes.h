#pragma once

#include <deft/attention.hpp>
#include <deft/c/tensor.h>

#include <string>

/// Types of elements, as C programs name them.
namespace deft::c {

deft_dtype dtypeOf(DType dtype);

/// "bfloat16"; of one that the library has no name for, its number.
std::string dtypeName(deft_dtype dtype);

} // namespace deft::c
