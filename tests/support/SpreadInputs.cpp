#include "tests/support/SpreadInputs.h"

#include <algorithm>
#include <array>
#include <random>

namespace deft::test {

namespace {

constexpr std::uint16_t kNaN = 0x7fff; // in f16 and in bf16; its bytes, in both 8-bit types

long long placeOf(const abi::CacheLayout &layout, int pageSize, long long slot, int head) {
  const long long page = std::max(pageSize, 1);
  return (pageSize == 0 ? slot * layout.tokenStride
                        : slot / page * layout.pageStride + slot % page * layout.tokenStride) +
         head * layout.headStride;
}

void spread(std::mt19937_64 &random, const spec::Variant &variant, const spec::TensorType &tensor,
            abi::CacheLayout &layout, exec::AlignedVector<std::uint16_t> &values) {
  const int pageSize = variant.cache.pageSize, heads = variant.kvHeads, dim = tensor.dim;
  const int bytes = tensor.elementBytes();
  const long long row = std::array{dim, dim + 16, 2 * dim}[random() % 3], page = std::max(pageSize, 1);
  const bool areTokensTogether = pageSize > 1 && random() % 2 == 0;
  const abi::CacheLayout apart{page * heads * row, areTokensTogether ? row : heads * row,
                               areTokensTogether ? page * row : row};
  const long long slots =
      static_cast<long long>(values.size()) * 2 / (static_cast<long long>(heads) * tensor.rowBytes());
  exec::AlignedVector<std::uint16_t> moved;
  moved.assign(static_cast<std::size_t>(slots * heads * row * bytes / 2), kNaN);
  const auto *from = reinterpret_cast<const std::byte *>(values.data());
  auto *to = reinterpret_cast<std::byte *>(moved.data());
  for (long long slot = 0; slot < slots; ++slot)
    for (int head = 0; head < heads; ++head)
      std::copy_n(from + placeOf(layout, pageSize, slot, head) * bytes, tensor.rowBytes(),
                  to + placeOf(apart, pageSize, slot, head) * bytes);
  layout = apart;
  values = std::move(moved);
}

} // namespace

exec::Inputs spreadInputs(const spec::Variant &variant, exec::Inputs inputs, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const spec::Tensors &tensors = variant.tensors;
  const long long packed = exec::rowStrideOf(0, variant, tensors.q);
  inputs.qStride = packed + static_cast<long long>(random() % 4) * 16;
  std::vector<std::uint16_t> q(static_cast<std::size_t>(inputs.queryCount * inputs.qStride), kNaN);
  for (int query = 0; query < inputs.queryCount; ++query)
    std::copy_n(inputs.q.begin() + query * packed, packed, q.begin() + query * inputs.qStride);
  inputs.q = std::move(q);
  spread(random, variant, tensors.keyRow(), inputs.cache.k, inputs.k);
  if (tensors.valueInKey)
    inputs.cache.v = inputs.cache.k;
  else
    spread(random, variant, tensors.v, inputs.cache.v, inputs.v);
  return inputs;
}

} // namespace deft::test
