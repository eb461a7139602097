#include "runtime/c_api/Boundary.h"
#include "runtime/c_api/Dtypes.h"
#include "runtime/c_api/Sized.h"

#include <deft/c/quantize.h>
#include <deft/quantize.hpp>

using namespace deft::c;

namespace {

deft::Result<deft::DType> floatsOf(const char *field, deft_dtype dtype) {
  using deft::DType;
  for (const DType known : {DType::F16, DType::BF16, DType::F8E4M3, DType::F8E5M2})
    if (dtypeOf(known) == dtype)
      return known;
  return usage("deft_quantize_shape::" + std::string(field) + " is " + dtypeName(dtype) +
                   ", not floats of 16 or 8 bits",
               "from float16 or bfloat16 to float8_e4m3fn or float8_e5m2");
}

} // namespace

deft_status deft_quantize(const deft_quantize_shape *shape, const void *from, const float *scales,
                          size_t scale_count, void *to) {
  return call(__func__, {{"shape", shape}, {"scales", scales}}, [&]() -> deft::Result<void> {
    const auto known = readSized("deft_quantize_shape", shape);
    if (!known)
      return known.error();
    const auto fromType = floatsOf("from", known->from);
    if (!fromType)
      return fromType.error();
    const auto toType = floatsOf("to", known->to);
    if (!toType)
      return toType.error();
    return deft::quantize({.tokens = known->tokens,
                           .kvHeads = known->kv_heads,
                           .dim = known->dim,
                           .from = *fromType,
                           .to = *toType},
                          from, {scales, scale_count}, to);
  });
}
