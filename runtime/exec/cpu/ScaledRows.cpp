#include "runtime/exec/cpu/ScaledRows.h"

#include "runtime/exec/ScaledRow.h"
#include "runtime/exec/cpu/Grow.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace deft::exec {

namespace {

/// The values of all codes of an 8-bit dtype.
std::array<float, 256> numbersOf(spec::DType dtype) {
  std::array<float, 256> numbers;
  for (std::size_t bits = 0; bits < numbers.size(); ++bits)
    numbers[bits] = toFloat(static_cast<std::uint16_t>(bits), dtype);
  return numbers;
}

const std::array<float, 256> &knownNumbersOf(spec::DType dtype) {
  static const std::array<float, 256> e4m3 = numbersOf(spec::DType::F8E4M3),
                                      e5m2 = numbersOf(spec::DType::F8E5M2);
  return dtype == spec::DType::F8E4M3 ? e4m3 : e5m2;
}

} // namespace

void ScaledRows::prepare(const spec::Variant &variant, const abi::CpuKernel &kernel) {
  if (!variant.tensors.hasScales())
    return;
  const auto tokens = static_cast<std::size_t>(kernel.blockTokens + abi::kCpuTokenPad);
  growTo(rows_, tokens * static_cast<std::size_t>(variant.tensors.k.dim));
  growTo(offsets_, tokens);
}

void ScaledRows::read(const spec::Variant &variant, const void *cache, const TokenBlock &block,
                      abi::CpuAttendCall &call) {
  const spec::Tensors &tensors = variant.tensors;
  const std::array<float, 256> &numbers = knownNumbersOf(tensors.k.dtype);
  const int dim = tensors.k.dim;
  for (int token = 0; token < block.tokens; ++token) {
    const long long first = block.keyOffsets[static_cast<std::size_t>(token)];
    const auto *bytes = static_cast<const std::uint8_t *>(cache) + first;
    std::uint16_t *const row = rows_.data() + static_cast<std::ptrdiff_t>(token) * dim;
    for (int begin = 0; begin < tensors.v.dim; begin += tensors.scaleColumns) {
      const float scale = scaleOf(tensors, cache, first, begin);
      for (int column = begin; column < begin + tensors.scaleColumns; ++column)
        row[column] = fromFloat(numbers[bytes[column]] * scale, tensors.q.dtype);
    }
    std::memcpy(row + tensors.v.dim, ropeOf(tensors, cache, first),
                static_cast<std::size_t>(dim - tensors.v.dim) * sizeof(std::uint16_t));
  }
  for (std::size_t i = 0; i < offsets_.size(); ++i) // the last token is repeated behind the end
    offsets_[i] = static_cast<long long>(std::min(static_cast<int>(i), block.tokens - 1)) * dim;
  call.keyOffsets = call.valueOffsets = offsets_.data();
  call.k = call.v = rows_.data();
  call.nextK = call.nextV = rows_.data();
  call.nextTokens = 0;
}

} // namespace deft::exec
