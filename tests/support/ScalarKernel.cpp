// A CPU kernel by hand, one number after the other, of the attention in host_program.deft. Packed by
// MakePackage, it lets a build without the compiler run packages: what the public API promises is then also
// seen under the thread sanitizer.
#include "templates/deft/cpu_abi.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace {

using namespace deft;

constexpr int kQueryHeads = 4, kHeadDim = 64;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

float fromBf16(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

std::uint16_t toBf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1)) >> 16);
}

/// A packed row is the query times the scale, in float; groups are of one row.
void pack(const abi::CpuPackCall *call) {
  const auto *q = static_cast<const std::uint16_t *>(call->q);
  float *packed = static_cast<float *>(call->packed) + static_cast<std::size_t>(call->rowBegin) * kHeadDim;
  for (int i = 0; i < call->rows * kHeadDim; ++i)
    packed[i] = fromBf16(q[i]) / 8; // 1 / sqrt(64)
}

void attend(const abi::CpuAttendCall *call) {
  const auto *packed = static_cast<const float *>(call->packed);
  const auto *k = static_cast<const std::uint16_t *>(call->k);
  const auto *v = static_cast<const std::uint16_t *>(call->v);
  for (int row = 0; row < call->rows; ++row) {
    float *acc = call->acc + row * kHeadDim, &m = call->m[row], &l = call->l[row];
    for (int t = 0; t < call->tokens; ++t) {
      if (call->cut && (row < call->rowLow[t] || row >= call->rowHigh[t]))
        continue;
      float score = 0;
      for (int d = 0; d < kHeadDim; ++d)
        score += packed[row * kHeadDim + d] * fromBf16(k[call->offsets[t] + d]);
      if (score > m) { // the state moves to the larger reference
        const float shrink = std::exp(m - score);
        m = score;
        l *= shrink;
        for (int d = 0; d < kHeadDim; ++d)
          acc[d] *= shrink;
      }
      const float weight = std::exp(score - m);
      l += weight;
      for (int d = 0; d < kHeadDim; ++d)
        acc[d] += weight * fromBf16(v[call->offsets[t] + d]);
    }
  }
}

int tile(const abi::CpuTileCall *) { return abi::kCpuTileAny | abi::kCpuTileAll; }

template <typename Store> void finishRows(const abi::CpuFinishCall *call, Store store) {
  for (int row = 0; row < call->rows; ++row) {
    const float l = call->l[row];
    for (int d = 0; d < kHeadDim; ++d)
      store(row * kHeadDim + d, l > 0 ? call->acc[row * kHeadDim + d] / l : 0);
    if (call->lse)
      call->lse[row] = l > 0 ? call->m[row] + std::log(l) : -kInfinity;
  }
}

void finish(const abi::CpuFinishCall *call) {
  auto *out = static_cast<std::uint16_t *>(call->out);
  finishRows(call, [&](int at, float value) { out[at] = toBf16(value); });
}

void finishPartial(const abi::CpuFinishCall *call) {
  auto *out = static_cast<float *>(call->out);
  finishRows(call, [&](int at, float value) { out[at] = value; });
}

void merge(const abi::CpuMergeCall *call) {
  auto *out = static_cast<std::uint16_t *>(call->out);
  for (int row = 0; row < call->rows; ++row) {
    const auto partial = [&](int slot) {
      return static_cast<std::size_t>(call->slots[slot]) * kQueryHeads + row;
    };
    float most = -kInfinity, total = 0, sums[kHeadDim] = {};
    for (int slot = 0; slot < call->slotCount; ++slot)
      most = std::fmax(most, call->partialLse[partial(slot)]);
    for (int slot = 0; slot < call->slotCount && most > -kInfinity; ++slot) {
      const float weight = std::exp(call->partialLse[partial(slot)] - most);
      total += weight;
      for (int d = 0; d < kHeadDim; ++d)
        sums[d] += weight * call->partialOut[partial(slot) * kHeadDim + static_cast<std::size_t>(d)];
    }
    for (int d = 0; d < kHeadDim; ++d)
      out[row * kHeadDim + d] = toBf16(total > 0 ? sums[d] / total : 0);
    if (call->lse)
      call->lse[row] = total > 0 ? most + std::log(total) : -kInfinity;
  }
}

} // namespace

extern "C" const abi::CpuKernel deft_cpu_host_program = {
    .version = abi::kCpuKernelVersion,
    .tableBytes = sizeof(abi::CpuKernel),
    .queryHeads = kQueryHeads,
    .kvHeads = 2,
    .headDim = kHeadDim,
    .dtype = 1,
    .outputDtype = 1,
    .sigmoid = 0,
    .hasMask = 0,
    .paramCount = 0,
    .blockTokens = 32,
    .groupRows = 1,
    .packedGroupBytes = kHeadDim * static_cast<int>(sizeof(float)),
    .isaLevel = 0, // compiled for whatever this build is compiled for
    .pack = pack,
    .attend = attend,
    .tile = tile,
    .finish = finish,
    .finishPartial = finishPartial,
    .merge = merge,
};
