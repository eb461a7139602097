#include "runtime/exec/Quantize.h"

#include "runtime/exec/Half.h"

namespace deft::exec {

void quantize(const QuantizeShape &shape, const void *from, std::span<const float> scales, void *to) {
  long long at = 0;
  std::size_t row = 0;
  for (std::int64_t token = 0; token < shape.tokens; ++token)
    for (int head = 0; head < shape.kvHeads; ++head, ++row) {
      const float scale = scales[row % scales.size()];
      for (const long long end = at + shape.dim; at < end; ++at)
        setBitsAt(to, at, shape.to,
                  fromFloat(toFloat(bitsAt(from, at, shape.from), shape.from) / scale, shape.to));
    }
}

} // namespace deft::exec
