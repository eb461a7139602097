#pragma once

#include "compiler/codegen/cuda/hooks/StaticRange.h"

#include <map>
#include <string>
#include <vector>

namespace deft::codegen::cuda {

/// How f32 is rounded. Exact arithmetic is printed as intrinsics that are never fused: masks need it, because
/// bounds over tiles are proved for operations that round separately. Fast arithmetic is fused and uses
/// hardware sines and cosines, which are accurate enough for results that are rounded to 16 bits.
enum class Rounding { Fused, Exact, Fast };

/// Prints values of regions as C++ expressions and the statements that they need. A short value with a single
/// use is printed inline; any other value gets a name. It does not recurse, so depth is no limit.
class ExprPrinter {
public:
  /// Sets the expression for a value: an argument, or the result of another function.
  void bind(mlir::Value value, std::string expression) { bound_[value] = {std::move(expression), kAtom, 0}; }

  /// Appends the statements for `roots`, which are values of `region`, and returns their expressions.
  std::vector<std::string> print(mlir::Region &region, llvm::ArrayRef<mlir::Value> roots, Rounding rounding);

  /// Lines `const float v0 = ...;` with `#line` directives, indented for a member function.
  const std::string &statements() const { return statements_; }
  /// Appends a statement that belongs to a place in the spec.
  void statement(mlir::Location location, const std::string &text);

  /// The first operation without a C++ form; null if all have one.
  mlir::Operation *unsupported() const { return unsupported_; }

private:
  enum Precedence { kTernary, kOr, kAnd, kEquality, kRelational, kSum, kProduct, kUnary, kAtom };
  struct Text {
    std::string text;
    Precedence precedence = kAtom;
    int weight = 0; ///< operations in the text
  };

  Text operation(mlir::Operation &op, Rounding rounding, const StaticRanges &ranges);
  Text comparison(mlir::Operation &op);
  Text binary(mlir::Operation &op, const char *symbol, Precedence precedence);
  Text wrapping(mlir::Operation &op, const char *symbol, Precedence precedence, const StaticRanges &ranges);
  Text call(mlir::Operation &op, const std::string &function);
  Text rounded(mlir::Operation &op, Rounding rounding, const char *symbol, Precedence precedence,
               const char *intrinsic);
  const Text &textOf(mlir::Value value) const { return bound_.find(value)->second; }
  /// The value's text, in parentheses if it binds less tightly than `least`.
  std::string operand(mlir::Value value, Precedence least) const;

  llvm::DenseMap<mlir::Value, Text> bound_;
  std::string statements_;
  int names_ = 0;
  mlir::Operation *unsupported_ = nullptr;
};

/// The name of a parameter as a member of `Params`, distinct from keywords and macros. It ends with an
/// underscore and never begins with one, unlike names of compilers such as __CUDA_ARCH__.
std::string memberName(llvm::StringRef param);

/// "float", "int", "bool", "long long".
std::string typeName(mlir::Type type);

} // namespace deft::codegen::cuda
