#include "runtime/exec/MergeStates.h"

#include "runtime/exec/Half.h"

#include <array>
#include <cmath>
#include <limits>

namespace deft::exec {

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct F32 {
  using Stored = float;
  static float load(float stored) { return stored; }
  static float store(float value) { return value; }
};
struct F16 {
  using Stored = std::uint16_t;
  static float load(std::uint16_t stored) { return floatFromF16(stored); }
  static std::uint16_t store(float value) { return f16FromFloat(value); }
};
struct BF16 {
  using Stored = std::uint16_t;
  static float load(std::uint16_t stored) { return floatFromBf16(stored); }
  static std::uint16_t store(float value) { return bf16FromFloat(value); }
};

/// Merges one row of several parts; each part has its own place for it.
template <class Type, class Lse, class Out>
float mergeRow(int count, int dim, float *weights, Lse lseOf, Out outOf, typename Type::Stored *out) {
  float top = -kInfinity;
  for (int i = 0; i < count; ++i)
    top = lseOf(i) > top ? lseOf(i) : top;
  const float shift = top == -kInfinity ? 0 : top;
  float total = 0;
  for (int i = 0; i < count; ++i)
    total += weights[i] = std::exp(lseOf(i) - shift);
  const float scale = total == 0 ? 0 : 1 / total; // 0: no part saw a token
  for (int d = 0; d < dim; ++d) {
    float sum = 0;
    for (int i = 0; i < count; ++i)
      if (weights[i] != 0) // NaN is passed on
        sum += weights[i] * Type::load(outOf(i)[d]);
    out[d] = Type::store(sum * scale);
  }
  return shift + std::log(total); // 0 + -inf if no part saw a token
}

template <class Type> void mergeRow(const abi::StatesArgs &args, long long row) {
  using Stored = typename Type::Stored;
  std::array<float, abi::StatesArgs::kMost> weights{};
  const float lse = mergeRow<Type>(
      args.count, args.dim, weights.data(), [&](int i) { return args.lses[i][row]; },
      [&](int i) { return static_cast<const Stored *>(args.outs[i]) + row * args.dim; },
      static_cast<Stored *>(args.out) + row * args.dim);
  if (args.lse)
    args.lse[row] = lse;
}

template <class Type> void mergeHeads(const PartsOfRows &parts, void *out, float *lse) {
  using Stored = typename Type::Stored;
  std::vector<float> weights(parts.outs.size());
  for (std::int64_t query = 0; query < parts.queries; ++query)
    for (int head = 0; head < parts.headCount; ++head) {
      const std::int64_t row = query * parts.heads + parts.headBegin + head;
      const std::int64_t to = query * parts.headCount + head;
      const float merged = mergeRow<Type>(
          static_cast<int>(parts.outs.size()), parts.dim, weights.data(),
          [&](int i) { return parts.lses[static_cast<std::size_t>(i)][row]; },
          [&](int i) {
            return static_cast<const Stored *>(parts.outs[static_cast<std::size_t>(i)]) + row * parts.dim;
          },
          static_cast<Stored *>(out) + to * parts.dim);
      if (lse)
        lse[to] = merged;
    }
}

template <class Type> void mergeRows(const abi::StatesArgs &args) {
  for (long long row = 0; row < args.rows; ++row)
    mergeRow<Type>(args, row);
}

} // namespace

void mergeStates(const abi::StatesArgs &args, StateType type) {
  switch (type) {
  case StateType::F32:
    return mergeRows<F32>(args);
  case StateType::F16:
    return mergeRows<F16>(args);
  case StateType::BF16:
    return mergeRows<BF16>(args);
  }
}

void mergeHeads(const PartsOfRows &parts, StateType type, void *out, float *lse) {
  switch (type) {
  case StateType::F32:
    return mergeHeads<F32>(parts, out, lse);
  case StateType::F16:
    return mergeHeads<F16>(parts, out, lse);
  case StateType::BF16:
    return mergeHeads<BF16>(parts, out, lse);
  }
}

} // namespace deft::exec
