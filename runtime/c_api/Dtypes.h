#pragma once

#include <deft/attention.hpp>
#include <deft/c/tensor.h>

#include <string>

/// Types of elements, as C programs name them.
namespace deft::c {

deft_dtype dtypeOf(DType dtype);

/// "bfloat16"; of one that the library has no name for, what DLPack says of it: "float of 64 bits". A number
/// has no lanes: elements are scalars.
std::string dtypeName(deft_dtype dtype);

} // namespace deft::c
