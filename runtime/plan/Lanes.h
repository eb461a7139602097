#pragma once

/// Eight numbers at a time, as two vectors of four, which every 64-bit machine supports. Compilers do not
/// vectorise loops of eight with selections by themselves; GCC and Clang share this extension.
namespace deft::plan {

using Float4 = float __attribute__((vector_size(16)));
using Int4 = int __attribute__((vector_size(16)));

inline Float4 splat(float value) { return Float4{value, value, value, value}; }
inline Int4 splat(int value) { return Int4{value, value, value, value}; }
inline Float4 toFloat(Int4 value) { return __builtin_convertvector(value, Float4); }
inline Int4 truncate(Float4 value) { return __builtin_convertvector(value, Int4); }
inline Float4 truncated(Float4 value) { return toFloat(truncate(value)); }
/// `yes` in lanes where the comparison holds (all bits set), else `no`.
inline Float4 select(Int4 condition, Float4 yes, Float4 no) { return condition ? yes : no; }
inline Int4 select(Int4 condition, Int4 yes, Int4 no) { return condition ? yes : no; }
inline bool any(Int4 condition) {
  using Long2 = long long __attribute__((vector_size(16)));
  const Long2 halves = reinterpret_cast<Long2>(condition);
  return (halves[0] | halves[1]) != 0;
}

/// Shifts eight lanes in two halves: the four lanes before the last one, or the four behind the first.
inline Int4 beforeLast(Int4 low, Int4 high) { return __builtin_shufflevector(low, high, 3, 4, 5, 6); }
inline Float4 behindFirst(Float4 low, Float4 high) { return __builtin_shufflevector(low, high, 1, 2, 3, 4); }
/// For the last four lanes: those behind the first one, and the last one again.
inline Float4 behindFirst(Float4 last) { return __builtin_shufflevector(last, last, 1, 2, 3, 3); }

/// Four rows of four become four columns.
inline void transpose(Float4 (&rows)[4]) {
  const Float4 low01 = __builtin_shufflevector(rows[0], rows[1], 0, 4, 1, 5);
  const Float4 high01 = __builtin_shufflevector(rows[0], rows[1], 2, 6, 3, 7);
  const Float4 low23 = __builtin_shufflevector(rows[2], rows[3], 0, 4, 1, 5);
  const Float4 high23 = __builtin_shufflevector(rows[2], rows[3], 2, 6, 3, 7);
  rows[0] = __builtin_shufflevector(low01, low23, 0, 1, 4, 5);
  rows[1] = __builtin_shufflevector(low01, low23, 2, 3, 6, 7);
  rows[2] = __builtin_shufflevector(high01, high23, 0, 1, 4, 5);
  rows[3] = __builtin_shufflevector(high01, high23, 2, 3, 6, 7);
}

inline constexpr int kLanes = 8;

} // namespace deft::plan
