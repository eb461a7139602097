#include "runtime/c_api/Dtypes.h"

namespace deft::c {

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
  default:
    return "of dtype " + std::to_string(dtype) + " (DLPack's code " + std::to_string(dtype >> 8) + ", " +
           std::to_string(dtype & 0xff) + " bits)";
  }
}

} // namespace deft::c
