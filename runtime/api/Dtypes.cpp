#include "runtime/api/Dtypes.h"

namespace deft::api {

namespace {

/// What the tensors of attentions are made of.
constexpr struct {
  spec::DType dtype;
  deft_dtype code;
} kDtypes[] = {{spec::DType::F16, DEFT_F16},
               {spec::DType::BF16, DEFT_BF16},
               {spec::DType::F8E4M3, DEFT_F8_E4M3},
               {spec::DType::F8E5M2, DEFT_F8_E5M2}};

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
      names += (names.empty() ? "" : " or ") + dtypeName(known.code);
  return names;
}

std::string dtypeName(deft_dtype dtype) {
  if (const auto known = dtypeFrom(dtype)) {
    switch (*known) {
#define DEFT_DTYPE_NAME(ID, WORD, BYTES, DEVICE, IR, NAME)                                                   \
  case spec::DType::ID:                                                                                      \
    return NAME;
      DEFT_DTYPES(DEFT_DTYPE_NAME)
#undef DEFT_DTYPE_NAME
    }
  }
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
