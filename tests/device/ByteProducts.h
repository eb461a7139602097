#pragma once

#include "deft/types.cuh"
#include "runtime/exec/Fp8.h"

#include <algorithm>
#include <cmath>
#include <vector>

/// Products of 8 bits (LANGUAGE.md, rule A12) as a case expects them of a kernel.
namespace deft::test {

template <class Config> constexpr bool kHasByteProducts = requires { requires Config::kByteProducts; };

/// A row of q as its products take it.
template <class Config> std::vector<double> multiplied(std::vector<double> row) {
  if constexpr (kHasByteProducts<Config>) {
    double scale = 0x1p-126;
    while (std::any_of(row.begin(), row.end(), [&](double x) { return std::abs(x) > 448 * scale; }))
      scale *= 2;
    for (double &x : row)
      x = scale * exec::floatFromE4m3(exec::fp8FromFloat(static_cast<float>(x / scale), exec::kE4m3));
  }
  return row;
}

/// How far a weight may be off, of itself and beside. None is where all are 1.
struct WeightRounding {
  double relative = 0, absolute = 0;

  template <class Config> static WeightRounding of(const std::vector<double> &weights) {
    const bool areOne = std::all_of(weights.begin(), weights.end(), [](double w) { return w == 1; });
    return kHasByteProducts<Config> && !areOne ? WeightRounding{0x1p-4, 0x1p-18} : WeightRounding{};
  }
};

} // namespace deft::test
