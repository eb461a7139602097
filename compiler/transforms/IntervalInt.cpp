#include "compiler/transforms/Interval.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <algorithm>

/// Intervals of truth values and of i32.
namespace deft::transforms {

using namespace mlir::arith;
using mlir::Value;
using Predicate = CmpIPredicate;

static constexpr int64_t kIntMin = std::numeric_limits<int32_t>::min();
static constexpr int64_t kIntMax = std::numeric_limits<int32_t>::max();

Value IntervalBuilder::constantBool(bool value) {
  return ConstantOp::create(builder_, location_, builder_.getBoolAttr(value));
}

Value IntervalBuilder::constantInt(int64_t value, unsigned bits) {
  return ConstantOp::create(builder_, location_,
                            builder_.getIntegerAttr(builder_.getIntegerType(bits), value));
}

Value IntervalBuilder::invert(Value a) { return emit<XOrIOp>(a, constantBool(true)); }

Value IntervalBuilder::either(Value a, Value b) {
  if (!a || !b)
    return a ? a : b;
  return emit<OrIOp>(a, b);
}

BoolInterval IntervalBuilder::unknownBool() { return {constantBool(true), constantBool(false)}; }

BoolInterval IntervalBuilder::logicalNot(BoolInterval a) { return {invert(a.all), invert(a.any)}; }

BoolInterval IntervalBuilder::logicalAnd(BoolInterval a, BoolInterval b) {
  return {emit<AndIOp>(a.any, b.any), emit<AndIOp>(a.all, b.all)};
}

BoolInterval IntervalBuilder::logicalOr(BoolInterval a, BoolInterval b) {
  return {emit<OrIOp>(a.any, b.any), emit<OrIOp>(a.all, b.all)};
}

BoolInterval IntervalBuilder::logicalXor(BoolInterval a, BoolInterval b) {
  return logicalOr(logicalAnd(a, logicalNot(b)), logicalAnd(logicalNot(a), b));
}

BoolInterval IntervalBuilder::select(BoolInterval condition, BoolInterval a, BoolInterval b) {
  BoolInterval no = logicalNot(condition);
  BoolInterval taken = logicalAnd(condition, a), other = logicalAnd(no, b);
  // Surely true when each arm that a pair may take is: finer than `taken or other`, where an unknown
  // condition over two true arms would be lost.
  Value all = emit<AndIOp>(emit<OrIOp>(no.all, a.all), emit<OrIOp>(condition.all, b.all));
  return {emit<OrIOp>(taken.any, other.any), all};
}

IntInterval IntervalBuilder::integer(Value value) { return {value, value, kIntMin, kIntMax}; }

IntInterval IntervalBuilder::integer(int32_t value) {
  Value constant = constantInt(value);
  return {constant, constant, value, value};
}

IntInterval IntervalBuilder::unknownInt() {
  return {constantInt(kIntMin), constantInt(kIntMax), kIntMin, kIntMax};
}

IntInterval IntervalBuilder::wrapping(int64_t min, int64_t max, llvm::function_ref<Bounds(Widen)> compute) {
  if (min >= kIntMin && max <= kIntMax) {
    auto [lo, hi] = compute([](Value value) { return value; });
    return {lo, hi, min, max};
  }
  mlir::Type i64 = builder_.getI64Type(), i32 = builder_.getI32Type();
  auto [lo, hi] = compute([&](Value value) { return emit<ExtSIOp>(i64, value); });
  Value above = emit<CmpIOp>(Predicate::sge, lo, constantInt(kIntMin, 64));
  Value below = emit<CmpIOp>(Predicate::sle, hi, constantInt(kIntMax, 64));
  Value fits = emit<AndIOp>(above, below);
  IntInterval full = unknownInt();
  full.lo = emit<SelectOp>(fits, emit<TruncIOp>(i32, lo), full.lo);
  full.hi = emit<SelectOp>(fits, emit<TruncIOp>(i32, hi), full.hi);
  return full;
}

IntInterval IntervalBuilder::add(const IntInterval &a, const IntInterval &b) {
  return wrapping(a.min + b.min, a.max + b.max, [&](Widen w) {
    return Bounds{emit<AddIOp>(w(a.lo), w(b.lo)), emit<AddIOp>(w(a.hi), w(b.hi))};
  });
}

IntInterval IntervalBuilder::subtract(const IntInterval &a, const IntInterval &b) {
  return wrapping(a.min - b.max, a.max - b.min, [&](Widen w) {
    return Bounds{emit<SubIOp>(w(a.lo), w(b.hi)), emit<SubIOp>(w(a.hi), w(b.lo))};
  });
}

IntervalBuilder::Bounds IntervalBuilder::products(Value aLo, Value aHi, Value bLo, Value bHi) {
  Value p[] = {emit<MulIOp>(aLo, bLo), emit<MulIOp>(aLo, bHi), emit<MulIOp>(aHi, bLo),
               emit<MulIOp>(aHi, bHi)};
  Value lo = emit<MinSIOp>(emit<MinSIOp>(p[0], p[1]), emit<MinSIOp>(p[2], p[3]));
  Value hi = emit<MaxSIOp>(emit<MaxSIOp>(p[0], p[1]), emit<MaxSIOp>(p[2], p[3]));
  return {lo, hi};
}

IntInterval IntervalBuilder::multiply(const IntInterval &a, const IntInterval &b) {
  auto [min, max] = std::minmax({a.min * b.min, a.min * b.max, a.max * b.min, a.max * b.max});
  return wrapping(min, max, [&](Widen w) {
    Value aLo = w(a.lo), aHi = w(a.hi), bLo = w(b.lo), bHi = w(b.hi);
    if (a.min >= 0 && b.min >= 0)
      return Bounds{emit<MulIOp>(aLo, bLo), emit<MulIOp>(aHi, bHi)};
    if (b.lo == b.hi && b.min >= 0)
      return Bounds{emit<MulIOp>(aLo, bLo), emit<MulIOp>(aHi, bLo)};
    if (b.lo == b.hi && b.max <= 0)
      return Bounds{emit<MulIOp>(aHi, bLo), emit<MulIOp>(aLo, bLo)};
    return products(aLo, aHi, bLo, bHi);
  });
}

/// A remainder has the sign of the dividend and is smaller than the divisor. Between two multiples of one
/// divisor it is the dividend less a constant, so its bounds are the remainders of the ends.
IntInterval IntervalBuilder::remainder(const IntInterval &a, const IntInterval &b) {
  Value zero = constantInt(0), one = constantInt(1), minusOne = constantInt(-1);
  Value aboveOne = emit<SubIOp>(emit<MaxSIOp>(b.hi, one), one);
  Value belowOne = emit<SubIOp>(minusOne, emit<MinSIOp>(b.lo, minusOne));
  Value largest = emit<MaxSIOp>(aboveOne, belowOne);
  Value lo = zero, hi = zero;
  if (a.min < 0)
    lo = emit<MaxSIOp>(emit<MinSIOp>(a.lo, zero), emit<SubIOp>(zero, largest));
  if (a.max > 0)
    hi = emit<MinSIOp>(a.min >= 0 ? a.hi : emit<MaxSIOp>(a.hi, zero), largest);

  Value isZero = emit<CmpIOp>(Predicate::eq, b.lo, zero),
        isMinusOne = emit<CmpIOp>(Predicate::eq, b.lo, minusOne);
  Value divisor = emit<SelectOp>(emit<OrIOp>(isZero, isMinusOne), one, b.lo);
  Value oneDivisor =
      emit<AndIOp>(emit<CmpIOp>(Predicate::eq, divisor, b.lo), emit<CmpIOp>(Predicate::eq, b.lo, b.hi));
  Value remLo = emit<RemSIOp>(a.lo, divisor), remHi = emit<RemSIOp>(a.hi, divisor);
  Value onePeriod = emit<CmpIOp>(Predicate::eq, emit<SubIOp>(a.lo, remLo), emit<SubIOp>(a.hi, remHi));
  Value exact = emit<AndIOp>(oneDivisor, onePeriod);

  int64_t bound = std::max({std::abs(b.min), std::abs(b.max), int64_t{1}}) - 1;
  return {emit<SelectOp>(exact, remLo, lo), emit<SelectOp>(exact, remHi, hi),
          std::max(std::min<int64_t>(a.min, 0), -bound), std::min(std::max<int64_t>(a.max, 0), bound)};
}

IntInterval IntervalBuilder::roundToMultiple(const IntInterval &x, int32_t divisor) {
  Value constant = constantInt(divisor);
  return {emit<SubIOp>(x.lo, emit<RemSIOp>(x.lo, constant)),
          emit<SubIOp>(x.hi, emit<RemSIOp>(x.hi, constant)), x.min - x.min % divisor,
          x.max - x.max % divisor};
}

/// Monotone in the dividend. Of a divisor that is not known to be one positive number nothing is said.
IntInterval IntervalBuilder::floorDivide(const IntInterval &a, const IntInterval &b) {
  if (b.min != b.max || b.min <= 0)
    return unknownInt();
  auto quotient = [&](int64_t x) { return x / b.min - (x % b.min < 0); };
  Value divisor = constantInt(b.min);
  return {emit<FloorDivSIOp>(a.lo, divisor), emit<FloorDivSIOp>(a.hi, divisor), quotient(a.min),
          quotient(a.max)};
}

IntInterval IntervalBuilder::absolute(const IntInterval &a) {
  int64_t min = a.min > 0 ? a.min : a.max < 0 ? -a.max : 0;
  return wrapping(min, std::max(-a.min, a.max), [&](Widen w) {
    Value lo = w(a.lo), hi = w(a.hi);
    Value zero = constantInt(0, lo.getType().getIntOrFloatBitWidth());
    Value minusLo = emit<SubIOp>(zero, lo), minusHi = emit<SubIOp>(zero, hi);
    return Bounds{emit<MaxSIOp>(zero, emit<MaxSIOp>(lo, minusHi)), emit<MaxSIOp>(minusLo, hi)};
  });
}

IntInterval IntervalBuilder::minimum(const IntInterval &a, const IntInterval &b) {
  return {emit<MinSIOp>(a.lo, b.lo), emit<MinSIOp>(a.hi, b.hi), std::min(a.min, b.min),
          std::min(a.max, b.max)};
}

IntInterval IntervalBuilder::maximum(const IntInterval &a, const IntInterval &b) {
  return {emit<MaxSIOp>(a.lo, b.lo), emit<MaxSIOp>(a.hi, b.hi), std::max(a.min, b.min),
          std::max(a.max, b.max)};
}

IntInterval IntervalBuilder::join(const IntInterval &a, const IntInterval &b) {
  return {emit<MinSIOp>(a.lo, b.lo), emit<MaxSIOp>(a.hi, b.hi), std::min(a.min, b.min),
          std::max(a.max, b.max)};
}

Value IntervalBuilder::selectBound(BoolInterval condition, Value a, Value b, Value joined) {
  return emit<SelectOp>(condition.all, a, emit<SelectOp>(condition.any, joined, b));
}

IntInterval IntervalBuilder::select(BoolInterval condition, const IntInterval &a, const IntInterval &b) {
  IntInterval result = join(a, b);
  result.lo = selectBound(condition, a.lo, b.lo, result.lo);
  result.hi = selectBound(condition, a.hi, b.hi, result.hi);
  return result;
}

BoolInterval IntervalBuilder::less(const IntInterval &a, const IntInterval &b) {
  return {emit<CmpIOp>(Predicate::slt, a.lo, b.hi), emit<CmpIOp>(Predicate::slt, a.hi, b.lo)};
}

BoolInterval IntervalBuilder::equal(const IntInterval &a, const IntInterval &b) {
  Value overlap =
      emit<AndIOp>(emit<CmpIOp>(Predicate::sle, a.lo, b.hi), emit<CmpIOp>(Predicate::sle, b.lo, a.hi));
  Value same = emit<AndIOp>(emit<CmpIOp>(Predicate::eq, a.lo, b.hi), emit<CmpIOp>(Predicate::eq, a.hi, b.lo));
  return {overlap, same};
}

} // namespace deft::transforms
