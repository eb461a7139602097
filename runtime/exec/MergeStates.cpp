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

template <class Type> void mergeRow(const abi::StatesArgs &args, long long row) {
  float top = -kInfinity;
  for (int i = 0; i < args.count; ++i)
    top = args.lses[i][row] > top ? args.lses[i][row] : top;
  const float shift = top == -kInfinity ? 0 : top;
  std::array<float, abi::StatesArgs::kMost> weights{};
  float total = 0;
  for (int i = 0; i < args.count; ++i)
    total += weights[static_cast<std::size_t>(i)] = std::exp(args.lses[i][row] - shift);
  const float scale = total == 0 ? 0 : 1 / total; // of a row that nobody saw: 0
  using Stored = typename Type::Stored;
  for (int d = 0; d < args.dim; ++d) {
    const long long at = row * args.dim + d;
    float sum = 0;
    for (int i = 0; i < args.count; ++i)
      if (const float weight = weights[static_cast<std::size_t>(i)]; weight != 0) // NaN is passed on
        sum += weight * Type::load(static_cast<const Stored *>(args.outs[i])[at]);
    static_cast<Stored *>(args.out)[at] = Type::store(sum * scale);
  }
  if (args.lse)
    args.lse[row] = shift + std::log(total); // of a row that nobody saw: 0 + -inf
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

} // namespace deft::exec
