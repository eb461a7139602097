#include "runtime/exec/Quantize.h"
#include "runtime/api/CheckOptions.h"
#include "runtime/api/Convert.h"

#include <deft/quantize.hpp>

#include <cmath>

namespace deft {

using api::usage;

namespace {

bool isWide(DType dtype) { return dtype == DType::F16 || dtype == DType::BF16; }

Result<void> check(const QuantizeShape &shape, const void *from, std::span<const float> scales, void *to) {
  constexpr std::int64_t kMostTokens = std::int64_t{1} << 40;
  constexpr int kMost = 1 << 20;
  if (auto checked = api::checkRange("QuantizeShape::tokens", shape.tokens, 0, kMostTokens); !checked)
    return checked;
  if (auto checked = api::checkRange("QuantizeShape::kvHeads", shape.kvHeads, 1, kMost); !checked)
    return checked;
  if (auto checked = api::checkRange("QuantizeShape::dim", shape.dim, 1, kMost); !checked)
    return checked;
  if (!isWide(shape.from) || isWide(shape.to))
    return usage(isWide(shape.from) ? "QuantizeShape::to has 16 bits" : "QuantizeShape::from has 8 bits",
                 "from F16 or BF16 to F8E4M3 or F8E5M2");
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
    return usage(std::string(from ? "to" : "from") + " is null");
  // Elements of 16 bits become elements of 8: one that is written where others are still to be read is in
  // their way.
  const auto elements =
      static_cast<std::uintptr_t>(shape.tokens) * heads * static_cast<std::uintptr_t>(shape.dim);
  const auto read = reinterpret_cast<std::uintptr_t>(from), written = reinterpret_cast<std::uintptr_t>(to);
  if (written < read + 2 * elements && read < written + elements)
    return usage("to overlaps with from", "give it memory of its own");
  return {};
}

} // namespace

Result<void> quantize(const QuantizeShape &shape, const void *from, std::span<const float> scales, void *to) {
  return api::guarded([&]() -> Result<void> {
    if (auto checked = check(shape, from, scales, to); !checked)
      return checked;
    const auto internal = [](DType dtype) { return static_cast<spec::DType>(dtype); }; // see Attention.cpp
    exec::quantize({shape.tokens, shape.kvHeads, shape.dim, internal(shape.from), internal(shape.to)}, from,
                   scales, to);
    return {};
  });
}

} // namespace deft
