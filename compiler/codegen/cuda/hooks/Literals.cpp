#include "compiler/codegen/cuda/hooks/Literals.h"

#include "mlir/IR/BuiltinAttributes.h"

#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>

namespace deft::codegen::cuda {

std::string floatLiteral(float value) {
  if (std::isnan(value))
    return "__int_as_float(0x7fffffff)";
  if (std::isinf(value))
    return value > 0 ? "deft::kInfinity" : "-deft::kInfinity";
  char buffer[64];
  auto [end, error] = std::to_chars(buffer, buffer + sizeof(buffer), value);
  std::string text(buffer, end);
  if (text.find_first_of(".e") == std::string::npos)
    text += '.';
  return text + 'f';
}

std::string intLiteral(int64_t value, unsigned bits) {
  bool isWide = bits == 64;
  int64_t least = isWide ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int32_t>::min();
  std::string suffix = isWide ? "ll" : "";
  if (value == least)
    return "(" + std::to_string(value + 1) + suffix + " - 1)";
  return std::to_string(value) + suffix;
}

std::optional<SpecLine> specLine(mlir::Location location) {
  auto place = location->findInstanceOf<mlir::FileLineColLoc>();
  if (!place)
    return std::nullopt;
  llvm::StringRef name = place.getFilename().getValue();
  name = name.substr(name.find_last_of('/') + 1); // npos + 1 is 0
  SpecLine result{place.getLine(), {}};
  for (char c : name)
    result.file += std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-' ? c : '_';
  return result;
}

} // namespace deft::codegen::cuda
