#include "runtime/c_api/Dtypes.h"

namespace deft::c {

namespace {

/// DLPack's type codes, as its header has them.
const char *kindOf(int code) {
  switch (code) {
  case 0:
    return "int";
  case 1:
    return "uint";
  case 2:
    return "float";
  case 4:
    return "bfloat";
  case 5:
    return "complex";
  case 6:
    return "bool";
  default:
    return nullptr;
  }
}

} // namespace

deft_dtype dtypeOf(DType dtype) {
  switch (dtype) {
  case DType::F16:
    return DEFT_F16;
  case DType::F8E4M3:
    return DEFT_F8_E4M3;
  case DType::F8E5M2:
    return DEFT_F8_E5M2;
  case DType::BF16:
    break;
  }
  return DEFT_BF16;
}

std::string dtypeName(deft_dtype dtype) {
  switch (dtype) {
  case DEFT_I32:
    return "int32";
  case DEFT_U32:
    return "uint32";
  case DEFT_F16:
    return "float16";
  case DEFT_F32:
    return "float32";
  case DEFT_BF16:
    return "bfloat16";
  case DEFT_F8_E4M3:
    return "float8_e4m3fn";
  case DEFT_F8_E5M2:
    return "float8_e5m2";
  case 0:
    return "no dtype (0)";
  default:
    break;
  }
  const int code = dtype >> 8, bits = dtype & 0xff;
  const std::string size = std::to_string(bits) + " bits";
  const char *const kind = kindOf(code);
  return kind ? std::string(kind) + " of " + size
              : "of a type that has no name here, DLPack's code " + std::to_string(code) + " with " + size;
}

} // namespace deft::c
