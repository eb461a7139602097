#pragma once

#include "mlir/IR/Builders.h"
#include "mlir/IR/Value.h"

#include <cstdint>
#include <limits>

namespace deft::transforms {

/// The range of a truth value over a set of pairs: `any` is false if it is true for no pair, `all` is true if
/// it is true for every pair. Both are i1; any = false with all = true is impossible.
struct BoolInterval {
  mlir::Value any, all;
};

/// An i32 over a set of pairs: inclusive bounds computed at run time, and static ones that hold for every
/// set.
struct IntInterval {
  mlir::Value lo, hi;
  int64_t min = std::numeric_limits<int32_t>::min();
  int64_t max = std::numeric_limits<int32_t>::max();
};

/// An f32 over a set of pairs. The bounds are never NaN and hold for the values that are not; `nan` is an i1
/// that is true where a NaN is possible, null when none ever is.
struct FloatInterval {
  mlir::Value lo, hi, nan;
  float min = -std::numeric_limits<float>::infinity();
  float max = std::numeric_limits<float>::infinity();
};

/// Emits the operations that compute intervals at run time. Sound for the language's arithmetic: i32 wraps,
/// so a bound that may leave i32 is computed in i64 and falls back to all of i32; f32 bounds use the same
/// round-to-nearest operations as the values, which are monotone; what is not monotone to the last bit (exp
/// and its like) is widened by far more than any implementation's error.
class IntervalBuilder {
public:
  IntervalBuilder(mlir::OpBuilder &builder, mlir::Location location)
      : builder_(builder), location_(location) {}
  void setLocation(mlir::Location location) { location_ = location; }

  BoolInterval boolean(mlir::Value value) { return {value, value}; }
  BoolInterval unknownBool();
  BoolInterval logicalNot(BoolInterval a);
  BoolInterval logicalAnd(BoolInterval a, BoolInterval b);
  BoolInterval logicalOr(BoolInterval a, BoolInterval b);
  BoolInterval logicalXor(BoolInterval a, BoolInterval b);
  BoolInterval select(BoolInterval condition, BoolInterval a, BoolInterval b);

  IntInterval integer(mlir::Value value); ///< one value that is unknown before run time
  IntInterval integer(int32_t value);
  IntInterval unknownInt();
  IntInterval add(const IntInterval &a, const IntInterval &b);
  IntInterval subtract(const IntInterval &a, const IntInterval &b);
  IntInterval multiply(const IntInterval &a, const IntInterval &b);
  IntInterval remainder(const IntInterval &a, const IntInterval &b);
  /// x - x % d of one divisor: rounds toward zero to a multiple, which is monotone in x.
  IntInterval roundToMultiple(const IntInterval &x, int32_t divisor);
  IntInterval floorDivide(const IntInterval &a, const IntInterval &b);
  IntInterval absolute(const IntInterval &a);
  IntInterval minimum(const IntInterval &a, const IntInterval &b);
  IntInterval maximum(const IntInterval &a, const IntInterval &b);
  IntInterval select(BoolInterval condition, const IntInterval &a, const IntInterval &b);
  IntInterval join(const IntInterval &a, const IntInterval &b);
  BoolInterval less(const IntInterval &a, const IntInterval &b);
  BoolInterval equal(const IntInterval &a, const IntInterval &b);

  FloatInterval real(mlir::Value value);
  FloatInterval real(float value);
  FloatInterval unknownFloat();
  FloatInterval fromInt(const IntInterval &a);
  FloatInterval add(const FloatInterval &a, const FloatInterval &b);
  FloatInterval subtract(const FloatInterval &a, const FloatInterval &b) { return add(a, negate(b)); }
  FloatInterval multiply(const FloatInterval &a, const FloatInterval &b);
  FloatInterval divide(const FloatInterval &a, const FloatInterval &b);
  FloatInterval negate(const FloatInterval &a);
  FloatInterval absolute(const FloatInterval &a);
  FloatInterval minimum(const FloatInterval &a, const FloatInterval &b); ///< the operand that is not NaN
  FloatInterval maximum(const FloatInterval &a, const FloatInterval &b);
  FloatInterval floor(const FloatInterval &a);
  FloatInterval squareRoot(const FloatInterval &a);
  FloatInterval reciprocalSquareRoot(const FloatInterval &a);
  using Function = llvm::function_ref<mlir::Value(mlir::Value)>;
  /// `f` is non-decreasing up to its rounding error, with values within [low, high].
  FloatInterval increasing(Function f, const FloatInterval &a, float low, float high);
  FloatInterval logarithm(Function f, const FloatInterval &a);
  FloatInterval select(BoolInterval condition, const FloatInterval &a, const FloatInterval &b);
  FloatInterval join(const FloatInterval &a, const FloatInterval &b);
  BoolInterval orderedLess(const FloatInterval &a, const FloatInterval &b, bool orEqual);
  BoolInterval orderedEqual(const FloatInterval &a, const FloatInterval &b);
  /// The same comparison, but true if an operand is NaN.
  BoolInterval orUnordered(BoolInterval ordered, const FloatInterval &a, const FloatInterval &b);
  BoolInterval unordered(const FloatInterval &a, const FloatInterval &b);

  mlir::Value constantBool(bool value);
  mlir::Value constantInt(int64_t value, unsigned bits = 32);
  mlir::Value constantFloat(float value);
  template <typename Op, typename... Args> mlir::Value emit(Args &&...args) {
    return builder_.createOrFold<Op>(location_, std::forward<Args>(args)...);
  }

private:
  using Bounds = std::pair<mlir::Value, mlir::Value>;
  using Widen = llvm::function_ref<mlir::Value(mlir::Value)>;
  /// Runs `compute` in i32 if the static bounds exclude an overflow; otherwise in i64, with the
  /// fallback.
  IntInterval wrapping(int64_t min, int64_t max, llvm::function_ref<Bounds(Widen)> compute);
  Bounds products(mlir::Value aLo, mlir::Value aHi, mlir::Value bLo, mlir::Value bHi);
  template <typename Op>
  FloatInterval corners(const FloatInterval &a, const FloatInterval &b, mlir::Value unsafe);
  mlir::Value selectBound(BoolInterval condition, mlir::Value a, mlir::Value b, mlir::Value joined);
  mlir::Value either(mlir::Value a, mlir::Value b); ///< i1 or; null means false
  mlir::Value isInfinite(const FloatInterval &a);   ///< null if no bound can be
  /// Allows every value if `unsafe` holds.
  FloatInterval escape(FloatInterval a, mlir::Value unsafe);
  FloatInterval widen(FloatInterval a, float low, float high);
  mlir::Value invert(mlir::Value a);

  mlir::OpBuilder &builder_;
  mlir::Location location_;
};

} // namespace deft::transforms
