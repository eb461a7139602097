#include "compiler/codegen/cpu/VectorMath.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>
#include <limits>

namespace deft::codegen::cpu {

using mlir::Value;
using mlir::arith::CmpFPredicate;

namespace {

constexpr float kLog2e = 1.44269504f;
constexpr float kLn2 = 0.693147181f;
// ln 2 in two parts. The first has so few bits that its product with any exponent is exact.
constexpr float kLn2High = 0.693359375f;
constexpr float kLn2Low = -2.12194440e-4f;
// Added to a number below 2^22 it leaves the nearest integer in the low bits.
constexpr float kRounder = 12582912.0f;

struct Reduced {
  Value exponent; ///< i32
  Value rest;     ///< within half of ln 2
};

/// x = exponent * ln 2 + rest.
Reduced reduce(Emitter &e, Value x) {
  Value rounded = e.fma(x, e.f32Like(x, kLog2e), e.f32Like(x, kRounder));
  Value exponent = e.sub(e.bitcast(e.i32Type(), rounded), e.i32Like(x, 0x4b400000)); // kRounder's own bits
  Value whole = e.sub(rounded, e.f32Like(x, kRounder));
  Value rest = e.fma(whole, e.f32Like(x, -kLn2High), x);
  return {exponent, e.fma(whole, e.f32Like(x, -kLn2Low), rest)};
}

/// e^r - 1 for |r| <= ln 2 / 2: r + r^2 P(r), P interpolated at Chebyshev nodes, relative error 1e-8.
Value expm1Core(Emitter &e, Value r) {
  Value p = e.f32Like(r, 1.3926250831e-3f);
  for (float coefficient : {8.3632328837e-3f, 4.1666554213e-2f, 1.6666576666e-1f, 0.5f})
    p = e.fma(p, r, e.f32Like(r, coefficient));
  return e.fma(e.mul(r, r), p, r);
}

/// 2^exponent for exponents of normal numbers.
Value powerOfTwo(Emitter &e, Value exponent) {
  return e.bitcast(e.f32Type(), e.shl(e.add(exponent, e.i32Like(exponent, 127)), 23));
}

/// value * 2^exponent, also into the subnormals and to infinity: in two steps, because one factor could not
/// hold the exponent.
Value scaleByPowerOfTwo(Emitter &e, Value value, Value exponent) {
  Value half = mlir::arith::ShRSIOp::create(e.builder(), e.location(), exponent, e.i32Like(exponent, 1));
  Value scaled = e.mul(value, powerOfTwo(e, half));
  return e.mul(scaled, powerOfTwo(e, e.sub(exponent, half)));
}

} // namespace

Value emitExp(Emitter &e, Value x) {
  // Just outside the range of finite results, so that the clamp turns into 0 and infinity by rounding. `x` is
  // the second operand, which a NaN leaves as it is.
  Value clamped = e.min(e.f32Like(x, 89.0f), e.max(e.f32Like(x, -105.0f), x));
  Reduced reduced = reduce(e, clamped);
  Value mantissa = e.add(expm1Core(e, reduced.rest), e.f32Like(x, 1.0f));
  return scaleByPowerOfTwo(e, mantissa, reduced.exponent);
}

Value emitExp2(Emitter &e, Value x) {
  Value clamped = e.min(e.f32Like(x, 129.0f), e.max(e.f32Like(x, -152.0f), x));
  Value rounded = e.add(clamped, e.f32Like(x, kRounder));
  Value exponent = e.sub(e.bitcast(e.i32Type(), rounded), e.i32Like(x, 0x4b400000));
  Value rest = e.mul(e.sub(clamped, e.sub(rounded, e.f32Like(x, kRounder))), e.f32Like(x, kLn2));
  Value mantissa = e.add(expm1Core(e, rest), e.f32Like(x, 1.0f));
  return scaleByPowerOfTwo(e, mantissa, exponent);
}

Value emitExpWeight(Emitter &e, Value x) {
  // A weight beside the largest one, which is 1: what is below the normal numbers cannot count.
  Value visible = e.compare(CmpFPredicate::OGT, x, e.f32Like(x, -87.3f));
  Reduced reduced = reduce(e, e.max(x, e.f32Like(x, -87.3f)));
  Value mantissa = e.add(expm1Core(e, reduced.rest), e.f32Like(x, 1.0f));
  return e.select(visible, e.mul(mantissa, powerOfTwo(e, reduced.exponent)), e.f32Like(x, 0.0f));
}

namespace {

struct Decomposed {
  Value exponent;   ///< f32
  Value lead, tail; ///< ln of the mantissa is their sum, the first much the larger
};

/// x = 2^exponent * mantissa with mantissa in [sqrt(1/2), sqrt(2)), for x positive and finite.
Decomposed decompose(Emitter &e, Value x) {
  Value isSubnormal = e.compare(CmpFPredicate::OLT, x, e.f32Like(x, std::numeric_limits<float>::min()));
  Value normal = e.select(isSubnormal, e.mul(x, e.f32Like(x, 8388608.0f)), x);
  // Taking the bits of sqrt(1/2) off moves the cut between two exponents from 1 to sqrt(1/2).
  constexpr std::int32_t kSqrtHalfBits = 0x3f3504f3;
  Value shifted = e.sub(e.bitcast(e.i32Type(), normal), e.i32Like(x, kSqrtHalfBits));
  Value exponent = mlir::arith::ShRSIOp::create(e.builder(), e.location(), shifted, e.i32Like(shifted, 23));
  Value mantissaBits = e.add(e.bitAnd(shifted, e.i32Like(x, 0x7fffff)), e.i32Like(x, kSqrtHalfBits));
  exponent = e.sub(exponent, e.select(isSubnormal, e.i32Like(exponent, 23), e.i32Like(exponent, 0)));

  // ln(1 + f) = 2 atanh(s), s = f / (2 + f), s^2 <= 0.0295, written as f - s (f - rest) to keep the leading f
  // exact.
  Value f = e.sub(e.bitcast(e.f32Type(), mantissaBits), e.f32Like(x, 1.0f));
  Value s = e.div(f, e.add(f, e.f32Like(x, 2.0f)));
  Value z = e.mul(s, s);
  Value series = e.f32Like(x, 2.0f / 11);
  for (float coefficient : {2.0f / 9, 2.0f / 7, 2.0f / 5, 2.0f / 3})
    series = e.fma(series, z, e.f32Like(x, coefficient));
  Value tail = e.mul(s, e.sub(e.mul(series, z), f)); // 2 atanh(s) = f + s (z series - f)
  return {e.toF32(exponent), f, tail};
}

Value atLogEnds(Emitter &e, Value x, Value log) {
  Value isZero = e.compare(CmpFPredicate::OEQ, x, e.f32Like(x, 0.0f));
  Value isInfinite = e.compare(CmpFPredicate::OEQ, x, e.f32Like(x, kInf));
  Value isNan = e.compare(CmpFPredicate::ULT, x, e.f32Like(x, 0.0f));
  log = e.select(isZero, e.f32Like(x, -kInf), log);
  log = e.select(isInfinite, e.f32Like(x, kInf), log);
  return e.select(isNan, e.f32Like(x, std::numeric_limits<float>::quiet_NaN()), log);
}

} // namespace

Value emitLog(Emitter &e, Value x) {
  Decomposed d = decompose(e, x);
  Value low = e.fma(d.exponent, e.f32Like(x, kLn2Low), d.tail);
  Value log = e.fma(d.exponent, e.f32Like(x, kLn2High), e.add(d.lead, low));
  return atLogEnds(e, x, log);
}

Value emitLog2(Emitter &e, Value x) {
  Decomposed d = decompose(e, x);
  Value natural = e.add(d.lead, d.tail);
  return atLogEnds(e, x, e.fma(natural, e.f32Like(x, kLog2e), d.exponent));
}

Value emitRsqrt(Emitter &e, Value x) {
  return e.div(e.f32Like(x, 1.0f), mlir::math::SqrtOp::create(e.builder(), e.location(), x));
}

Value emitTanh(Emitter &e, Value x) {
  // tanh |x| = t / (t + 2) with t = e^(2|x|) - 1, whose small values stay exact to the last place.
  Value bits = e.bitcast(e.i32Type(), x);
  Value magnitude = e.bitcast(e.f32Type(), e.bitAnd(bits, e.i32Like(x, 0x7fffffff)));
  Value twice = e.mul(e.min(e.f32Like(x, 10.0f), magnitude), e.f32Like(x, 2.0f));
  Reduced reduced = reduce(e, twice);
  Value power = powerOfTwo(e, reduced.exponent);
  Value t = e.fma(power, expm1Core(e, reduced.rest), e.sub(power, e.f32Like(x, 1.0f)));
  Value result = e.div(t, e.add(t, e.f32Like(x, 2.0f)));
  Value sign = e.bitAnd(bits, e.i32Like(x, static_cast<std::int32_t>(0x80000000u)));
  return e.bitcast(e.f32Type(), e.bitOr(e.bitcast(e.i32Type(), result), sign));
}

namespace {

/// Arithmetic in f64: a position times a frequency has few digits left behind the turns that it has made.
class Wide {
public:
  Wide(Emitter &e, Value like) : e_(e), like_(like) {}

  mlir::Type type(mlir::Type element) const {
    auto vector = mlir::dyn_cast<mlir::VectorType>(like_.getType());
    return vector ? mlir::Type(vector.clone(element)) : element;
  }
  Value constant(double value) const {
    mlir::Type shaped = type(e_.builder().getF64Type());
    auto attribute = e_.builder().getF64FloatAttr(value);
    mlir::TypedAttr typed = attribute;
    if (auto vector = mlir::dyn_cast<mlir::VectorType>(shaped))
      typed = mlir::DenseElementsAttr::get(vector, attribute.getValue());
    return mlir::arith::ConstantOp::create(e_.builder(), e_.location(), typed);
  }
  Value widen(Value x) const {
    return mlir::arith::ExtFOp::create(e_.builder(), e_.location(), type(e_.builder().getF64Type()), x);
  }
  Value narrow(Value x) const {
    return mlir::arith::TruncFOp::create(e_.builder(), e_.location(), type(e_.f32Type()), x);
  }
  /// c[0] + x c[1] + x^2 c[2] + ...
  Value series(Value x, std::initializer_list<double> coefficients) const {
    Value sum;
    for (auto c = std::rbegin(coefficients); c != std::rend(coefficients); ++c)
      sum = sum ? e_.fma(sum, x, constant(*c)) : constant(*c);
    return sum;
  }

private:
  Emitter &e_;
  Value like_;
};

/// sin(x + quarters * pi / 2).
Value emitSinus(Emitter &e, Value x, int quarters) {
  const Wide wide(e, x);
  constexpr double kRounder64 = 6755399441055744.0; // 1.5 * 2^52: leaves the nearest integer in the low bits
  constexpr double kHalfPiHigh = 1.5707963267341256, kHalfPiLow = 6.077100506506192e-11;
  Value isHuge =
      e.compare(CmpFPredicate::OGT,
                e.bitcast(e.f32Type(), e.bitAnd(e.bitcast(e.i32Type(), x), e.i32Like(x, 0x7fffffff))),
                e.f32Like(x, 0x1p31f));
  Value isInfinite =
      e.compare(CmpFPredicate::UEQ,
                e.bitcast(e.f32Type(), e.bitAnd(e.bitcast(e.i32Type(), x), e.i32Like(x, 0x7fffffff))),
                e.f32Like(x, kInf));
  Value in = wide.widen(e.select(isHuge, e.f32Like(x, 0), x));
  Value turned = e.fma(in, wide.constant(0.6366197723675814), wide.constant(kRounder64)); // 2 / pi
  Value whole = e.sub(turned, wide.constant(kRounder64));
  Value rest = e.fma(whole, wide.constant(-kHalfPiHigh), in);
  rest = e.fma(whole, wide.constant(-kHalfPiLow), rest);
  // Within pi / 4 the first terms of the series leave 2^-43.
  Value square = e.mul(rest, rest);
  Value sine =
      e.mul(rest, wide.series(square, {1, -1.0 / 6, 1.0 / 120, -1.0 / 5040, 1.0 / 362880, -1.0 / 39916800}));
  Value cosine =
      wide.series(square, {1, -1.0 / 2, 1.0 / 24, -1.0 / 720, 1.0 / 40320, -1.0 / 3628800, 1.0 / 479001600});
  Value bits = mlir::arith::BitcastOp::create(e.builder(), e.location(), wide.type(e.i64Type()), turned);
  Value quarter =
      e.add(mlir::arith::TruncIOp::create(e.builder(), e.location(), wide.type(e.i32Type()), bits),
            e.i32Like(x, quarters));
  using P = mlir::arith::CmpIPredicate;
  Value isOdd = e.compare(P::ne, e.bitAnd(quarter, e.i32Like(x, 1)), e.i32Like(x, 0));
  Value isBelow = e.compare(P::ne, e.bitAnd(quarter, e.i32Like(x, 2)), e.i32Like(x, 0));
  Value result = wide.narrow(e.select(isOdd, cosine, sine));
  result = e.select(isBelow, e.sub(e.f32Like(x, 0), result), result);
  return e.select(isInfinite, e.f32Like(x, std::numeric_limits<float>::quiet_NaN()), result);
}

} // namespace

Value emitSin(Emitter &e, Value x) { return emitSinus(e, x, 0); }
Value emitCos(Emitter &e, Value x) { return emitSinus(e, x, 1); }

} // namespace deft::codegen::cpu
