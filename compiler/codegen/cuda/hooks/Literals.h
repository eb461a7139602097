#pragma once

#include "mlir/IR/Location.h"

#include <cstdint>
#include <optional>
#include <string>

namespace deft::codegen::cuda {

/// The shortest text that reads back as this value: `30.f`, `1e-10f`, `deft::kInfinity`.
std::string floatLiteral(float value);
/// Of an i32 or, with a suffix, an i64. The least values have no literal and become a sum.
std::string intLiteral(int64_t value, unsigned bits);

struct SpecLine {
  unsigned line = 0;
  std::string file; ///< the base name alone, with what could end a string literal replaced
  bool operator==(const SpecLine &) const = default;
};

/// Where an operation stands in the spec: the first place among those that were fused into its location.
std::optional<SpecLine> specLine(mlir::Location location);

} // namespace deft::codegen::cuda
