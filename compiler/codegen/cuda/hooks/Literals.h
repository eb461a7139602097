#pragma once

#include "mlir/IR/Location.h"

#include <cstdint>
#include <optional>
#include <string>

namespace deft::codegen::cuda {

/// The shortest text that gives this value when it is parsed: `30.f`, `1e-10f`, `deft::kInfinity`.
std::string floatLiteral(float value);
/// For i32, and with a suffix for i64. The lowest values have no literal and become a sum.
std::string intLiteral(int64_t value, unsigned bits);

struct SpecLine {
  unsigned line = 0;
  std::string file; ///< the base name, with characters replaced that could end a string literal
  bool operator==(const SpecLine &) const = default;
};

/// The place of an operation in the spec: the first of the places that were fused into its location.
std::optional<SpecLine> specLine(mlir::Location location);

} // namespace deft::codegen::cuda
