#include "runtime/api/Dtypes.h"

namespace deft::api {

namespace {

/// What the tensors of attentions are made of.
constexpr struct {
  spec::DType dtype;
  deft_dtype code;
  const char *name;
} kDtypes[] = {
#define DEFT_DTYPE_ROW(ID, WORD, BYTES, DEVICE, IR, CODE, NAME) {spec::DType::ID, CODE, NAME},
    DEFT_DTYPES(DEFT_DTYPE_ROW)
#undef DEFT_DTYPE_ROW
};

constexpr deft_dtype kBool = 0x0608;

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

deft_dtype dtypeOf(spec::DType dtype) {
  for (const auto &known : kDtypes)
    if (known.dtype == dtype)
      return known.code;
  return 0;
}

std::optional<spec::DType> dtypeFrom(deft_dtype dtype) {
  for (const auto &known : kDtypes)
    if (known.code == dtype)
      return known.dtype;
  return std::nullopt;
}

std::string dtypeNames(int bytes) {
  std::string names;
  for (const auto &known : kDtypes)
    if (spec::elementBytes(known.dtype) == bytes)
      names += (names.empty() ? "" : " or ") + std::string(known.name);
  return names;
}

std::string dtypeName(deft_dtype dtype) {
  for (const auto &known : kDtypes)
    if (known.code == dtype)
      return known.name;
  switch (dtype) {
  case DEFT_I32:
    return "int32";
  case DEFT_U32:
    return "uint32";
  case DEFT_F32:
    return "float32";
  case 0:
    return "no dtype (0)";
  default:
    break;
  }
  const int code = dtype >> 8, bits = dtype & 0xff;
  if (dtype == kBool)
    return "bool";
  const std::string size = std::to_string(bits);
  const char *const kind = kindOf(code);
  return kind ? kind + size
              : "of a type that has no name here, DLPack's code " + std::to_string(code) + " with " + size +
                    " bits";
}

} // namespace deft::api
