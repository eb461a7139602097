#include "compiler/codegen/cpu/Emitter.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <limits>

namespace deft::codegen::cpu {

namespace arith = mlir::arith;
namespace LLVM = mlir::LLVM;
using mlir::Type;
using mlir::Value;

Emitter::Emitter(mlir::OpBuilder &builder, mlir::Location location, int lanes)
    : builder_(builder), location_(location), lanes_(lanes), f32_(builder.getF32Type()),
      i16_(builder.getIntegerType(16)), i32_(builder.getI32Type()), i64_(builder.getI64Type()),
      pointer_(LLVM::LLVMPointerType::get(builder.getContext())) {}

static int laneCount(Value value) {
  auto type = mlir::dyn_cast<mlir::VectorType>(value.getType());
  return type ? static_cast<int>(type.getNumElements()) : 0;
}

bool Emitter::isFloat(Value value) { return mlir::isa<mlir::FloatType>(mlir::getElementTypeOrSelf(value)); }

void Emitter::unify(Value &a, Value &b) {
  if (laneCount(a) && !laneCount(b))
    b = splat(b, laneCount(a));
  else if (laneCount(b) && !laneCount(a))
    a = splat(a, laneCount(b));
}

Value Emitter::i1(bool value) {
  return arith::ConstantOp::create(builder_, location_, builder_.getBoolAttr(value));
}
Value Emitter::i32(std::int32_t value) {
  return arith::ConstantOp::create(builder_, location_, builder_.getI32IntegerAttr(value));
}
Value Emitter::i64(std::int64_t value) {
  return arith::ConstantOp::create(builder_, location_, builder_.getI64IntegerAttr(value));
}
Value Emitter::f32(float value) {
  return arith::ConstantOp::create(builder_, location_, builder_.getF32FloatAttr(value));
}

Value Emitter::f32Like(Value like, float value) {
  auto attribute = builder_.getF32FloatAttr(value);
  if (int lanes = laneCount(like))
    return arith::ConstantOp::create(
        builder_, location_, mlir::DenseElementsAttr::get(vectorOf(f32_, lanes), attribute.getValue()));
  return arith::ConstantOp::create(builder_, location_, attribute);
}

Value Emitter::i32Like(Value like, std::int32_t value) {
  if (int lanes = laneCount(like))
    return arith::ConstantOp::create(builder_, location_,
                                     mlir::DenseElementsAttr::get(vectorOf(i32_, lanes), value));
  return i32(value);
}

Value Emitter::splat(Value scalar, int lanes) {
  return mlir::vector::BroadcastOp::create(builder_, location_, vectorOf(scalar.getType(), lanes), scalar);
}

Value Emitter::spread(Value value) { return laneCount(value) > 0 ? value : splat(value); }

Value Emitter::laneNumbers() {
  llvm::SmallVector<std::int32_t> numbers;
  for (int lane = 0; lane < lanes_; ++lane)
    numbers.push_back(lane);
  return arith::ConstantOp::create(
      builder_, location_,
      mlir::DenseElementsAttr::get(vectorOf(i32_), llvm::ArrayRef<std::int32_t>(numbers)));
}

Value Emitter::add(Value a, Value b) {
  unify(a, b);
  if (isFloat(a))
    return arith::AddFOp::create(builder_, location_, a, b);
  return arith::AddIOp::create(builder_, location_, a, b);
}
Value Emitter::sub(Value a, Value b) {
  unify(a, b);
  if (isFloat(a))
    return arith::SubFOp::create(builder_, location_, a, b);
  return arith::SubIOp::create(builder_, location_, a, b);
}
Value Emitter::mul(Value a, Value b) {
  unify(a, b);
  if (isFloat(a))
    return arith::MulFOp::create(builder_, location_, a, b);
  return arith::MulIOp::create(builder_, location_, a, b);
}
Value Emitter::div(Value a, Value b) {
  unify(a, b);
  return arith::DivFOp::create(builder_, location_, a, b);
}
Value Emitter::fma(Value a, Value b, Value c) {
  unify(a, b);
  unify(a, c);
  unify(b, c);
  return LLVM::FMAOp::create(builder_, location_, a, b, c);
}
Value Emitter::dotPairs(Value a, Value b, Value c) {
  return LLVM::CallIntrinsicOp::create(builder_, location_, c.getType(),
                                       builder_.getStringAttr("llvm.x86.avx512bf16.dpbf16ps.512"),
                                       mlir::ValueRange{c, a, b})
      .getResult(0);
}
Value Emitter::narrowWeights(Value a) {
  return LLVM::CallIntrinsicOp::create(builder_, location_, vectorOf(builder_.getBF16Type(), 16),
                                       builder_.getStringAttr("llvm.x86.avx512bf16.cvtneps2bf16.512"),
                                       mlir::ValueRange{a})
      .getResult(0);
}
Value Emitter::shl(Value a, int bits) {
  return arith::ShLIOp::create(builder_, location_, a, i32Like(a, bits));
}
Value Emitter::shr(Value a, int bits) {
  if (a.getType() == i64_)
    return arith::ShRUIOp::create(builder_, location_, a, i64(bits));
  return arith::ShRUIOp::create(builder_, location_, a, i32Like(a, bits));
}
Value Emitter::bitAnd(Value a, Value b) {
  unify(a, b);
  return arith::AndIOp::create(builder_, location_, a, b);
}
Value Emitter::bitOr(Value a, Value b) {
  unify(a, b);
  return arith::OrIOp::create(builder_, location_, a, b);
}
Value Emitter::max(Value a, Value b) {
  unify(a, b);
  Value larger =
      isFloat(a) ? compare(arith::CmpFPredicate::OGT, a, b) : compare(arith::CmpIPredicate::sgt, a, b);
  return select(larger, a, b);
}
Value Emitter::min(Value a, Value b) {
  unify(a, b);
  Value smaller =
      isFloat(a) ? compare(arith::CmpFPredicate::OLT, a, b) : compare(arith::CmpIPredicate::slt, a, b);
  return select(smaller, a, b);
}
Value Emitter::select(Value condition, Value a, Value b) {
  unify(a, b);
  if (laneCount(condition)) {
    unify(condition, a);
    unify(condition, b);
  }
  return arith::SelectOp::create(builder_, location_, condition, a, b);
}
Value Emitter::compare(arith::CmpFPredicate predicate, Value a, Value b) {
  unify(a, b);
  return arith::CmpFOp::create(builder_, location_, predicate, a, b);
}
Value Emitter::compare(arith::CmpIPredicate predicate, Value a, Value b) {
  unify(a, b);
  return arith::CmpIOp::create(builder_, location_, predicate, a, b);
}
Value Emitter::bitcast(Type element, Value value) {
  const int lanes = laneCount(value);
  return arith::BitcastOp::create(builder_, location_, lanes ? Type(vectorOf(element, lanes)) : element,
                                  value);
}
Value Emitter::toI64(Value value) { return arith::ExtSIOp::create(builder_, location_, i64_, value); }
Value Emitter::toI32(Value value) { return arith::TruncIOp::create(builder_, location_, i32_, value); }
Value Emitter::toF32(Value value) {
  const int lanes = laneCount(value);
  return arith::SIToFPOp::create(builder_, location_, lanes ? Type(vectorOf(f32_, lanes)) : f32_, value);
}
Value Emitter::shuffle(Value a, Value b, llvm::ArrayRef<std::int64_t> lanes) {
  return mlir::vector::ShuffleOp::create(builder_, location_, a, b, lanes);
}

/// Halves the vector until one lane is left; the order of the additions is fixed by the width alone.
static Value reduceTree(Emitter &e, Value vector, const std::function<Value(Value, Value)> &combine) {
  for (int lanes = laneCount(vector); lanes > 1; lanes /= 2) {
    llvm::SmallVector<std::int64_t> low, high;
    for (int lane = 0; lane < lanes / 2; ++lane) {
      low.push_back(lane);
      high.push_back(lane + lanes / 2);
    }
    vector = combine(e.shuffle(vector, vector, low), e.shuffle(vector, vector, high));
  }
  return mlir::vector::ExtractOp::create(e.builder(), e.location(), vector, 0);
}
Value Emitter::reduceAdd(Value vector) {
  return reduceTree(*this, vector, [&](Value a, Value b) { return add(a, b); });
}
Value Emitter::reduceMax(Value vector) {
  return reduceTree(*this, vector, [&](Value a, Value b) { return max(a, b); });
}

Value Emitter::at(Value pointer, Type element, Value index) {
  return LLVM::GEPOp::create(builder_, location_, pointer_, element, pointer,
                             llvm::ArrayRef<LLVM::GEPArg>{LLVM::GEPArg(index)});
}
static unsigned alignmentOf(Type type) {
  Type element = mlir::getElementTypeOrSelf(type);
  return mlir::isa<LLVM::LLVMPointerType>(element) ? 8 : std::max(1u, element.getIntOrFloatBitWidth() / 8);
}
Value Emitter::load(Type type, Value pointer) {
  return LLVM::LoadOp::create(builder_, location_, type, pointer, alignmentOf(type));
}
void Emitter::store(Value value, Value pointer) {
  LLVM::StoreOp::create(builder_, location_, value, pointer, alignmentOf(value.getType()));
}
Value Emitter::field(Type type, Value structPointer, std::size_t offsetBytes) {
  return load(type, at(structPointer, builder_.getI8Type(), i64(static_cast<std::int64_t>(offsetBytes))));
}
Value Emitter::stackArray(Type element, int count) {
  return LLVM::AllocaOp::create(builder_, location_, pointer_, element, i64(count), 64);
}
void Emitter::prefetch(Value pointer) {
  LLVM::Prefetch::create(builder_, location_, pointer, /*rw=*/0, /*hint=*/2, /*cache=*/1);
}

Value Emitter::widen(Type type, Value bits) {
  const int lanes = laneCount(bits);
  auto shaped = [&](Type element) { return lanes ? Type(vectorOf(element, lanes)) : element; };
  const Type f16 = builder_.getF16Type();
  if (mlir::isa<mlir::Float8E5M2Type>(type)) { // f16's upper byte
    Value wide = shl(arith::ExtUIOp::create(builder_, location_, shaped(i32_), bits), 8);
    return widen(f16, arith::TruncIOp::create(builder_, location_, shaped(i16_), wide));
  }
  if (mlir::isa<mlir::Float8E4M3FNType>(type)) {
    // Shifted into the place of f16's exponent and mantissa it is 2^8 too small, subnormals included, and
    // nothing on the way is a subnormal of f32, which processors take long for.
    Value wide = arith::ExtSIOp::create(builder_, location_, shaped(i32_), bits);
    Value absolute = bitAnd(wide, i32Like(wide, 0x7f));
    Value shifted = bitOr(bitAnd(wide, i32Like(wide, 0x8000)), shl(absolute, 7)); // the sign is extended
    Value half = arith::TruncIOp::create(builder_, location_, shaped(i16_), shifted);
    Value value = widen(f16, half);
    value = mul(value, f32Like(value, 0x1p8f));
    Value isNan = compare(arith::CmpIPredicate::eq, absolute, i32Like(absolute, 0x7f));
    return select(isNan, f32Like(value, std::numeric_limits<float>::quiet_NaN()), value);
  }
  if (type.isF16())
    return arith::ExtFOp::create(builder_, location_, shaped(f32_), bitcast(type, bits));
  Value wide = arith::ExtUIOp::create(builder_, location_, shaped(i32_), bits);
  return bitcast(f32_, shl(wide, 16));
}

Value Emitter::narrow(Type half, Value value) {
  const int lanes = laneCount(value);
  auto shaped = [&](Type element) { return lanes ? Type(vectorOf(element, lanes)) : element; };
  if (half.isF16())
    return bitcast(i16_, arith::TruncFOp::create(builder_, location_, shaped(half), value));
  // By integers, so that every instruction set gives the same bits (AVX512_BF16 would flush subnormals).
  Value bits = bitcast(i32_, value);
  Value odd = bitAnd(shr(bits, 16), i32Like(bits, 1));
  Value rounded = shr(add(add(bits, i32Like(bits, 0x7fff)), odd), 16);
  Value quietNan = bitOr(shr(bits, 16), i32Like(bits, 0x40));
  Value isNan = compare(arith::CmpFPredicate::UNO, value, value);
  return arith::TruncIOp::create(builder_, location_, shaped(i16_), select(isNan, quietNan, rounded));
}

Value Emitter::absolute(Value value) {
  Value bits = bitcast(i32_, value);
  return bitcast(f32_, bitAnd(bits, i32Like(bits, 0x7fffffff)));
}

Value Emitter::roundToE4m3(Value value) {
  Value bits = bitcast(i32_, value);
  Value odd = bitAnd(shr(bits, 20), i32Like(bits, 1));
  Value rounded = add(add(bits, i32Like(bits, 0x7ffff)), odd);
  Value normal = bitcast(f32_, bitAnd(rounded, i32Like(bits, -(1 << 20))));
  // Below 2^-6 numbers are multiples of 2^-9, the unit of f32 at this one.
  Value shift = f32Like(value, 0x1.8p14f);
  Value subnormal = sub(add(value, shift), shift);
  Value isSmall = compare(arith::CmpFPredicate::OLT, absolute(value), f32Like(value, 0x1p-6f));
  return select(isSmall, subnormal, normal);
}

llvm::SmallVector<Value> Emitter::loop(Value low, Value high, std::int64_t step, mlir::ValueRange init,
                                       const Body &body) {
  auto op =
      mlir::scf::ForOp::create(builder_, location_, low, high, i64(step), init,
                               [&](mlir::OpBuilder &, mlir::Location, Value index, mlir::ValueRange carried) {
                                 auto results = body(index, carried);
                                 mlir::scf::YieldOp::create(builder_, location_, results);
                               });
  return llvm::SmallVector<Value>(op.getResults());
}
void Emitter::loop(Value low, Value high, std::int64_t step, const std::function<void(Value)> &body) {
  loop(low, high, step, {}, [&](Value index, mlir::ValueRange) {
    body(index);
    return llvm::SmallVector<Value>{};
  });
}
void Emitter::ifElse(Value condition, const std::function<void()> &thenBody,
                     const std::function<void()> &elseBody) {
  auto build = [this](const std::function<void()> &body) {
    return [this, &body](mlir::OpBuilder &, mlir::Location) {
      body();
      mlir::scf::YieldOp::create(builder_, location_);
    };
  };
  if (elseBody)
    mlir::scf::IfOp::create(builder_, location_, condition, build(thenBody), build(elseBody));
  else
    mlir::scf::IfOp::create(builder_, location_, condition, build(thenBody));
}

LLVM::LLVMFuncOp Emitter::function(mlir::ModuleOp module, llvm::StringRef name, Type result,
                                   llvm::ArrayRef<Type> arguments) {
  builder_.setInsertionPointToEnd(module.getBody());
  if (!result)
    result = LLVM::LLVMVoidType::get(builder_.getContext());
  auto op = LLVM::LLVMFuncOp::create(builder_, location_, name,
                                     LLVM::LLVMFunctionType::get(result, arguments), LLVM::Linkage::Internal);
  builder_.setInsertionPointToStart(op.addEntryBlock(builder_));
  return op;
}
void Emitter::ret(Value value) {
  LLVM::ReturnOp::create(builder_, location_, value ? mlir::ValueRange(value) : mlir::ValueRange());
}

} // namespace deft::codegen::cpu
