#include "compiler/transforms/Interval.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <algorithm>
#include <cmath>

/// Intervals of f32. Where an operation could make a NaN out of numbers (inf - inf, 0 * inf, a division by an
/// interval that holds 0, a root of a negative), everything becomes possible: precision there is worth
/// nothing.
namespace deft::transforms {

using namespace mlir::arith;
using namespace mlir::math;
using mlir::Value;
using Predicate = CmpFPredicate;

static constexpr float kInf = std::numeric_limits<float>::infinity();

Value IntervalBuilder::constantFloat(float value) {
  return ConstantOp::create(builder_, location_, builder_.getF32FloatAttr(value));
}

FloatInterval IntervalBuilder::real(float value) {
  if (std::isnan(value))
    return unknownFloat();
  Value constant = constantFloat(value);
  return {constant, constant, {}, value, value};
}

FloatInterval IntervalBuilder::unknownFloat() {
  return {constantFloat(-kInf), constantFloat(kInf), constantBool(true), -kInf, kInf};
}

FloatInterval IntervalBuilder::escape(FloatInterval a, Value unsafe) {
  if (!unsafe)
    return a;
  Value lo = emit<SelectOp>(unsafe, constantFloat(-kInf), a.lo);
  Value hi = emit<SelectOp>(unsafe, constantFloat(kInf), a.hi);
  return {lo, hi, either(a.nan, unsafe), -kInf, kInf};
}

FloatInterval IntervalBuilder::real(Value value) {
  return escape({value, value, {}, -kInf, kInf}, emit<CmpFOp>(Predicate::UNO, value, value));
}

FloatInterval IntervalBuilder::fromInt(const IntInterval &a) {
  mlir::Type f32 = builder_.getF32Type();
  return {emit<SIToFPOp>(f32, a.lo),
          emit<SIToFPOp>(f32, a.hi),
          {},
          static_cast<float>(a.min),
          static_cast<float>(a.max)};
}

Value IntervalBuilder::isInfinite(const FloatInterval &a) {
  Value result;
  if (a.min == -kInf)
    result = emit<CmpFOp>(Predicate::OEQ, a.lo, constantFloat(-kInf));
  if (a.max == kInf)
    result = either(result, emit<CmpFOp>(Predicate::OEQ, a.hi, constantFloat(kInf)));
  return result;
}

FloatInterval IntervalBuilder::add(const FloatInterval &a, const FloatInterval &b) {
  bool mayCancel = (a.max == kInf && b.min == -kInf) || (a.min == -kInf && b.max == kInf);
  FloatInterval sum = {emit<AddFOp>(a.lo, b.lo), emit<AddFOp>(a.hi, b.hi), either(a.nan, b.nan),
                       a.min + b.min, a.max + b.max};
  return mayCancel ? escape(sum, either(isInfinite(a), isInfinite(b))) : sum;
}

/// The hull of the four combinations of bounds; right for an operation that is monotone in each operand.
template <typename Op>
FloatInterval IntervalBuilder::corners(const FloatInterval &a, const FloatInterval &b, Value unsafe) {
  FloatInterval result;
  result.nan = either(a.nan, b.nan);
  if (b.lo == b.hi && (b.min > 0 || b.max < 0)) {
    result.lo = emit<Op>(b.min > 0 ? a.lo : a.hi, b.lo);
    result.hi = emit<Op>(b.min > 0 ? a.hi : a.lo, b.lo);
    return escape(result, unsafe);
  }
  Value p[] = {emit<Op>(a.lo, b.lo), emit<Op>(a.lo, b.hi), emit<Op>(a.hi, b.lo), emit<Op>(a.hi, b.hi)};
  result.lo = emit<MinNumFOp>(emit<MinNumFOp>(p[0], p[1]), emit<MinNumFOp>(p[2], p[3]));
  result.hi = emit<MaxNumFOp>(emit<MaxNumFOp>(p[0], p[1]), emit<MaxNumFOp>(p[2], p[3]));
  return escape(result, unsafe);
}

static bool holdsZero(const FloatInterval &a) { return a.min <= 0 && a.max >= 0; }
static bool holdsInfinity(const FloatInterval &a) { return a.min == -kInf || a.max == kInf; }

FloatInterval IntervalBuilder::multiply(const FloatInterval &a, const FloatInterval &b) {
  bool mayBeNan = (holdsInfinity(a) && holdsZero(b)) || (holdsZero(a) && holdsInfinity(b));
  FloatInterval result = corners<MulFOp>(a, b, mayBeNan ? either(isInfinite(a), isInfinite(b)) : Value());
  if (!mayBeNan) {
    auto [min, max] = std::minmax({a.min * b.min, a.min * b.max, a.max * b.min, a.max * b.max});
    result.min = min;
    result.max = max;
  }
  return result;
}

FloatInterval IntervalBuilder::divide(const FloatInterval &a, const FloatInterval &b) {
  Value unsafe;
  if (holdsZero(b)) {
    Value fromBelow = emit<CmpFOp>(Predicate::OLE, b.lo, constantFloat(0));
    unsafe = emit<AndIOp>(fromBelow, emit<CmpFOp>(Predicate::OGE, b.hi, constantFloat(0)));
  }
  if (holdsInfinity(a) && holdsInfinity(b))
    unsafe = either(unsafe, either(isInfinite(a), isInfinite(b)));
  FloatInterval result = corners<DivFOp>(a, b, unsafe);
  if (!unsafe) {
    auto [min, max] = std::minmax({a.min / b.min, a.min / b.max, a.max / b.min, a.max / b.max});
    result.min = min;
    result.max = max;
  }
  return result;
}

FloatInterval IntervalBuilder::negate(const FloatInterval &a) {
  return {emit<NegFOp>(a.hi), emit<NegFOp>(a.lo), a.nan, -a.max, -a.min};
}

FloatInterval IntervalBuilder::absolute(const FloatInterval &a) {
  Value zero = constantFloat(0);
  FloatInterval minus = negate(a);
  Value lo = emit<MaxNumFOp>(zero, emit<MaxNumFOp>(a.lo, minus.lo));
  float min = std::max({0.f, a.min, minus.min});
  return {lo, emit<MaxNumFOp>(a.hi, minus.hi), a.nan, min, std::max(a.max, minus.max)};
}

FloatInterval IntervalBuilder::join(const FloatInterval &a, const FloatInterval &b) {
  return {emit<MinNumFOp>(a.lo, b.lo), emit<MaxNumFOp>(a.hi, b.hi), either(a.nan, b.nan),
          std::min(a.min, b.min), std::max(a.max, b.max)};
}

/// A NaN operand leaves the other one, so where one is possible the result is only known to be one of them.
FloatInterval IntervalBuilder::minimum(const FloatInterval &a, const FloatInterval &b) {
  FloatInterval result = {emit<MinNumFOp>(a.lo, b.lo),
                          emit<MinNumFOp>(a.hi, b.hi),
                          {},
                          std::min(a.min, b.min),
                          std::min(a.max, b.max)};
  Value nan = either(a.nan, b.nan);
  if (!nan)
    return result;
  result.hi = emit<SelectOp>(nan, emit<MaxNumFOp>(a.hi, b.hi), result.hi);
  result.max = std::max(a.max, b.max);
  if (a.nan && b.nan)
    result.nan = emit<AndIOp>(a.nan, b.nan);
  return result;
}

FloatInterval IntervalBuilder::maximum(const FloatInterval &a, const FloatInterval &b) {
  return negate(minimum(negate(a), negate(b)));
}

FloatInterval IntervalBuilder::floor(const FloatInterval &a) {
  return {emit<FloorOp>(a.lo), emit<FloorOp>(a.hi), a.nan, std::floor(a.min), std::floor(a.max)};
}

FloatInterval IntervalBuilder::squareRoot(const FloatInterval &a) {
  Value zero = constantFloat(0);
  FloatInterval result = {emit<SqrtOp>(emit<MaxNumFOp>(a.lo, zero)),
                          emit<SqrtOp>(emit<MaxNumFOp>(a.hi, zero)), a.nan, std::sqrt(std::max(a.min, 0.f)),
                          std::sqrt(std::max(a.max, 0.f))};
  return a.min >= 0 ? result : escape(result, emit<CmpFOp>(Predicate::OLT, a.lo, zero));
}

FloatInterval IntervalBuilder::widen(FloatInterval a, float low, float high) {
  Value relative = constantFloat(0x1p-16f), least = constantFloat(0x1p-16f);
  auto margin = [&](Value bound) { return emit<AddFOp>(emit<MulFOp>(emit<AbsFOp>(bound), relative), least); };
  a.lo = emit<MaxNumFOp>(emit<SubFOp>(a.lo, margin(a.lo)), constantFloat(low));
  a.hi = emit<MinNumFOp>(emit<AddFOp>(a.hi, margin(a.hi)), constantFloat(high));
  // inf - inf above gives NaN, which the clamp turns into `low` or `high`: wide, and right.
  a.min = low;
  a.max = high;
  return a;
}

FloatInterval IntervalBuilder::increasing(Function f, const FloatInterval &a, float low, float high) {
  return widen({f(a.lo), f(a.hi), a.nan, low, high}, low, high);
}

FloatInterval IntervalBuilder::logarithm(Function f, const FloatInterval &a) {
  Value zero = constantFloat(0);
  FloatInterval result =
      widen({f(emit<MaxNumFOp>(a.lo, zero)), f(emit<MaxNumFOp>(a.hi, zero)), a.nan}, -kInf, kInf);
  return a.min >= 0 ? result : escape(result, emit<CmpFOp>(Predicate::OLT, a.lo, zero));
}

/// Falling; at 0 its sign is that of the zero, which bounds do not tell.
FloatInterval IntervalBuilder::reciprocalSquareRoot(const FloatInterval &a) {
  FloatInterval result = widen({emit<RsqrtOp>(a.hi), emit<RsqrtOp>(a.lo), a.nan}, 0, kInf);
  return a.min > 0 ? result : escape(result, emit<CmpFOp>(Predicate::OLE, a.lo, constantFloat(0)));
}

FloatInterval IntervalBuilder::select(BoolInterval condition, const FloatInterval &a,
                                      const FloatInterval &b) {
  FloatInterval result = join(a, b);
  result.lo = selectBound(condition, a.lo, b.lo, result.lo);
  result.hi = selectBound(condition, a.hi, b.hi, result.hi);
  Value fromA = a.nan ? emit<AndIOp>(condition.any, a.nan) : Value();
  Value fromB = b.nan ? emit<AndIOp>(invert(condition.all), b.nan) : Value();
  result.nan = either(fromA, fromB);
  return result;
}

BoolInterval IntervalBuilder::unordered(const FloatInterval &a, const FloatInterval &b) {
  Value nan = either(a.nan, b.nan);
  return {nan ? nan : constantBool(false), constantBool(false)};
}

BoolInterval IntervalBuilder::orderedLess(const FloatInterval &a, const FloatInterval &b, bool orEqual) {
  Predicate predicate = orEqual ? Predicate::OLE : Predicate::OLT;
  BoolInterval result = {emit<CmpFOp>(predicate, a.lo, b.hi), emit<CmpFOp>(predicate, a.hi, b.lo)};
  if (Value nan = either(a.nan, b.nan))
    result.all = emit<AndIOp>(result.all, invert(nan));
  return result;
}

BoolInterval IntervalBuilder::orderedEqual(const FloatInterval &a, const FloatInterval &b) {
  Value overlap =
      emit<AndIOp>(emit<CmpFOp>(Predicate::OLE, a.lo, b.hi), emit<CmpFOp>(Predicate::OLE, b.lo, a.hi));
  Value same =
      emit<AndIOp>(emit<CmpFOp>(Predicate::OEQ, a.lo, b.hi), emit<CmpFOp>(Predicate::OEQ, a.hi, b.lo));
  if (Value nan = either(a.nan, b.nan))
    same = emit<AndIOp>(same, invert(nan));
  return {overlap, same};
}

BoolInterval IntervalBuilder::orUnordered(BoolInterval ordered, const FloatInterval &a,
                                          const FloatInterval &b) {
  if (Value nan = either(a.nan, b.nan))
    ordered.any = emit<OrIOp>(ordered.any, nan);
  return ordered;
}

} // namespace deft::transforms
