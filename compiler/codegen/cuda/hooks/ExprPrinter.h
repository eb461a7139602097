#pragma once

#include "compiler/codegen/cuda/hooks/StaticRange.h"

#include <map>
#include <string>
#include <vector>

namespace deft::codegen::cuda {

/// How f32 is rounded. Exact arithmetic is printed as intrinsics that are never fused: masks need it, because
/// a tile's bounds are proved for operations that round one by one. Fast arithmetic is fused, and has sines
/// and cosines of the units for them: as near as what is rounded to 16 bits needs.
enum class Rounding { Fused, Exact, Fast };

/// Prints values of regions as C++ expressions and the statements that they need: a value that is used once
/// and is short is written where it is used, any other gets a name. No recursion, so depth is no limit.
class ExprPrinter {
public:
  /// The expression that stands for a value: an argument, or what another function has computed.
  void bind(mlir::Value value, std::string expression) { bound_[value] = {std::move(expression), kAtom, 0}; }

  /// Appends statements for what `roots` need and returns their expressions. All are values of `region`.
  std::vector<std::string> print(mlir::Region &region, llvm::ArrayRef<mlir::Value> roots, Rounding rounding);

  /// `const float v0 = ...;` lines with their `#line` directives, indented for a function of a struct.
  const std::string &statements() const { return statements_; }
  /// One more statement, at a place of the spec.
  void statement(mlir::Location location, const std::string &text);

  /// The first operation that has no C++ form; null when all had one.
  mlir::Operation *unsupported() const { return unsupported_; }

private:
  enum Precedence { kTernary, kOr, kAnd, kEquality, kRelational, kSum, kProduct, kUnary, kAtom };
  struct Text {
    std::string text;
    Precedence precedence = kAtom;
    int weight = 0; ///< operations within
  };

  Text operation(mlir::Operation &op, Rounding rounding, const StaticRanges &ranges);
  Text comparison(mlir::Operation &op);
  Text binary(mlir::Operation &op, const char *symbol, Precedence precedence);
  Text wrapping(mlir::Operation &op, const char *symbol, Precedence precedence, const StaticRanges &ranges);
  Text call(mlir::Operation &op, const std::string &function);
  Text rounded(mlir::Operation &op, Rounding rounding, const char *symbol, Precedence precedence,
               const char *intrinsic);
  const Text &textOf(mlir::Value value) const { return bound_.find(value)->second; }
  /// Put in parentheses where it binds less tightly than `least`.
  std::string operand(mlir::Value value, Precedence least) const;

  llvm::DenseMap<mlir::Value, Text> bound_;
  std::string statements_;
  int names_ = 0;
  mlir::Operation *unsupported_ = nullptr;
};

/// A parameter's name as a member of `Params`: no keyword's and no macro's. An underscore behind it keeps it
/// apart from most; those of compilers begin with one, and many, as __CUDA_ARCH__, end with one, too.
std::string memberName(llvm::StringRef param);

/// "float", "int", "bool", "long long".
std::string typeName(mlir::Type type);

} // namespace deft::codegen::cuda
