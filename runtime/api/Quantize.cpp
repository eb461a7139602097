#include "runtime/exec/Quantize.h"
#include "runtime/api/Checks.h"
#include "runtime/api/Dtypes.h"
#include "runtime/api/Sized.h"

#include <deft/c/quantize.h>

#include <cmath>
#include <span>

using namespace deft;
using namespace deft::api;

namespace {

Result<spec::DType> floatsOf(const char *field, deft_dtype dtype, int bytes) {
  const auto known = dtypeFrom(dtype);
  if (known && spec::elementBytes(*known) == bytes)
    return *known;
  return wrong(field, "is " + dtypeName(dtype), "from " + dtypeNames(2) + " to " + dtypeNames(1));
}

Result<exec::QuantizeShape> shapeOf(const deft_quantize_shape *given) {
  const auto known = readSized("deft_quantize_shape", given);
  if (!known)
    return known.error();
  constexpr int kMost = 1 << 20;
  if (auto checked = checkRange("deft_quantize_shape::tokens", known->tokens, 0, std::int64_t{1} << 40);
      !checked)
    return checked.error();
  if (auto checked = checkRange("deft_quantize_shape::kv_heads", known->kv_heads, 1, kMost); !checked)
    return checked.error();
  if (auto checked = checkRange("deft_quantize_shape::dim", known->dim, 1, kMost); !checked)
    return checked.error();
  const auto from = floatsOf("deft_quantize_shape::from", known->from, 2);
  if (!from)
    return from.error();
  const auto to = floatsOf("deft_quantize_shape::to", known->to, 1);
  if (!to)
    return to.error();
  return exec::QuantizeShape{known->tokens, known->kv_heads, known->dim, *from, *to};
}

Result<void> check(const exec::QuantizeShape &shape, const void *from, std::span<const float> scales,
                   void *to) {
  const auto heads = static_cast<std::size_t>(shape.kvHeads),
             rows = static_cast<std::size_t>(shape.tokens) * heads;
  if (scales.size() != 1 && scales.size() != heads && (scales.size() != rows || rows == 0))
    return usage(std::to_string(scales.size()) + " scales, not 1, " + std::to_string(heads) + " or " +
                     std::to_string(rows),
                 "one for all, one for each KV head, or one for each KV head of each token");
  for (std::size_t i = 0; i < scales.size(); ++i)
    if (!(scales[i] > 0) || !std::isfinite(scales[i]))
      return usage("scale " + std::to_string(i) + " is " + std::to_string(scales[i]) +
                   ", not finite and above 0");
  if (shape.tokens > 0 && (!from || !to))
    return wrong(from ? "to" : "from", "is null");
  // Elements of 16 bits become elements of 8: one that is written where others are still to be read is in
  // their way.
  const auto elements =
      static_cast<std::uintptr_t>(shape.tokens) * heads * static_cast<std::uintptr_t>(shape.dim);
  const auto read = reinterpret_cast<std::uintptr_t>(from), written = reinterpret_cast<std::uintptr_t>(to);
  if (written < read + 2 * elements && read < written + elements)
    return wrong("to", "overlaps with from", "give it memory of its own");
  return {};
}

} // namespace

deft_status deft_quantize(const deft_quantize_shape *shape, const void *from, const float *scales,
                          size_t scale_count, void *to) {
  return call({{"shape", shape}, {"scales", scales}}, [&]() -> Result<void> {
    const auto known = shapeOf(shape);
    if (!known)
      return known.error();
    const std::span all(scales, scale_count);
    if (auto checked = check(*known, from, all, to); !checked)
      return checked;
    exec::quantize(*known, from, all, to);
    return {};
  });
}
