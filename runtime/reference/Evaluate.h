#pragma once

#include "compiler/spec/Variant.h"
#include "runtime/exec/Inputs.h"

#include <cstdint>
#include <vector>

namespace deft::reference {

/// `Exact` computes in float64. `Plain` also rounds the result of every f32 step to the variant's dtype, as a
/// plain implementation in that dtype would: the yardstick for errors. `Single` rounds to f32 instead, as
/// kernels do.
enum class Precision { Exact, Plain, Single };

/// The values that an expression may read, for one (row, token) pair.
struct Site {
  double s = 0; ///< the scaled score
  int qPos = 0;
  int kvPos = 0;
  int head = 0;
  int kvHead = 0;
  int depth = 0;
  int query = 0;    ///< caller's index
  int location = 0; ///< of the token
  // For an element, in `query`, `key` and `output`:
  double x = 0, xHalf = 0, xPair = 0, xRms = 0;
  int dim = 0;
};

/// Evaluates the expressions of a variant, operands first: without recursion, and a shared subexpression only
/// once. i32 wraps in two's complement.
class Evaluator {
public:
  Evaluator(const spec::Variant &variant, const exec::Inputs &inputs, Precision precision);

  double f32(spec::ExprId id, const Site &site) { return compute(id, site).f32; }
  bool boolean(spec::ExprId id, const Site &site) { return compute(id, site).i32 != 0; }

  bool isExact() const { return precision_ == Precision::Exact; }
  /// The nearest value in the precision.
  double round(double value) const;

private:
  struct Value {
    double f32 = 0;
    std::int32_t i32 = 0; ///< also bool
  };
  using Ids = std::vector<spec::ExprId>;

  Value compute(spec::ExprId id, const Site &site);
  Value apply(const spec::Expr &expr, const Site &site) const;
  Value readParam(const spec::Expr &expr, const Site &site) const;
  /// The index of the element that an expression reads from an array.
  std::size_t placeOf(const spec::Expr &expr, const Site &site) const;
  /// The element of a table that an index selects.
  int placeInTable(spec::ExprId index, int size) const;
  Ids operandsOf(spec::ExprId id) const;

  const spec::Variant &variant_;
  const exec::Inputs &inputs_;
  Precision precision_;
  std::vector<Ids> needed_; ///< for each requested expression: itself and its operands, operands first
  std::vector<Value> values_;
};

} // namespace deft::reference
