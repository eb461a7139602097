#include "compiler/codegen/cpu/HookInliner.h"

#include "compiler/codegen/cpu/VectorMath.h"
#include "compiler/spec/Operations.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

namespace deft::codegen::cpu {

using mlir::Value;
namespace math = mlir::math;

namespace {

/// The slot of a parameter is 8 bytes: a scalar in its low half, or the address of an array.
mlir::FailureOr<Value> slotAddress(Emitter &e, dialect::AttentionOp attention, mlir::Operation &op,
                                   llvm::StringRef name, Value params) {
  auto [param, slot] = attention.findParam(name);
  if (!param)
    return op.emitOpError() << "names no parameter of @" << attention.getSymName();
  return e.at(params, e.i64Type(), e.i64(slot));
}

mlir::FailureOr<Value> emitParam(Emitter &e, dialect::AttentionOp attention, mlir::Operation &op,
                                 const mlir::IRMapping &mapping, Value params) {
  if (auto scalar = mlir::dyn_cast<dialect::ParamOp>(op)) {
    auto address = slotAddress(e, attention, op, scalar.getName(), params);
    if (failed(address))
      return mlir::failure();
    return e.load(scalar.getType(), *address);
  }
  auto element = mlir::cast<dialect::ParamElementOp>(op);
  auto address = slotAddress(e, attention, op, element.getName(), params);
  if (failed(address))
    return mlir::failure();
  Value index = mapping.lookup(element.getIndex());
  Value array = e.load(e.pointerType(), *address);
  auto wide = mlir::dyn_cast<mlir::VectorType>(index.getType());
  if (!wide)
    return e.loadAt(element.getType(), array, e.toI64(index));
  // One by one: indices by head are few, before the loop over tokens, and those of a table may be any.
  Value values = e.splat(
      mlir::arith::ConstantOp::create(e.builder(), e.location(), e.builder().getZeroAttr(element.getType())));
  for (std::int64_t lane = 0; lane < wide.getNumElements(); ++lane) {
    Value one = mlir::vector::ExtractOp::create(e.builder(), e.location(), index, lane);
    values = mlir::vector::InsertOp::create(e.builder(), e.location(),
                                            e.loadAt(element.getType(), array, e.toI64(one)), values, lane);
  }
  return values;
}

mlir::FailureOr<Value> emitOfToken(Emitter &e, dialect::AttentionOp attention, dialect::ParamOfTokenOp op,
                                   Value params, InlinedHook::TokenElements tokens) {
  if (!tokens)
    return op.emitOpError("is read where there is no token");
  auto address = slotAddress(e, attention, *op, op.getName(), params);
  if (failed(address))
    return mlir::failure();
  const bool isOfHeads =
      attention.findParam(op.getName()).first.getShape() == dialect::ParamShape::PerTokenAndHead;
  return tokens(op.getType(), e.load(e.pointerType(), *address), isOfHeads);
}

/// Of what LLVM has a vector instruction for.
Value instruction(Emitter &, Value) { return {}; }

/// The arithmetic of a math op, or null when the op has an instruction of its own.
Value emitMath(Emitter &e, mlir::Operation &op, Value x) {
#define DEFT_EMIT(ID, NUMBER, WORD, NATURAL, MEANING, OP, CPU, ...)                                          \
  if (mlir::isa<math::OP>(op))                                                                               \
    return CPU(e, x);
  DEFT_MATH_FUNCTIONS(DEFT_EMIT)
#undef DEFT_EMIT
  return {};
}

/// The quotient rounded down. A shift where the divisor is a power of two, as it is where specs say it.
Value emitFloorDivision(Emitter &e, Value a, Value b) {
  namespace arith = mlir::arith;
  llvm::APInt divisor;
  if (mlir::matchPattern(b, mlir::m_ConstantInt(&divisor)) && divisor.isStrictlyPositive() &&
      divisor.isPowerOf2()) {
    Value shift = e.i32Like(a, static_cast<int>(divisor.logBase2()));
    return arith::ShRSIOp::create(e.builder(), e.location(), a, shift);
  }
  Value quotient = arith::DivSIOp::create(e.builder(), e.location(), a, b);
  Value rest = arith::RemSIOp::create(e.builder(), e.location(), a, b);
  using P = arith::CmpIPredicate;
  Value isApart =
      e.compare(P::slt, arith::XOrIOp::create(e.builder(), e.location(), rest, b), e.i32Like(a, 0));
  Value isUneven = e.compare(P::ne, rest, e.i32Like(a, 0));
  return e.select(e.bitAnd(isApart, isUneven), e.sub(quotient, e.i32Like(a, 1)), quotient);
}

bool isKnown(mlir::Operation &op) {
  if (op.getNumRegions() != 0 || op.getNumResults() != 1)
    return false;
  if (mlir::isa<mlir::arith::ArithDialect>(op.getDialect()) || mlir::isa<math::AbsFOp, math::AbsIOp>(op))
    return true;
#define DEFT_IS(ID, NUMBER, WORD, NATURAL, MEANING, OP, ...) || mlir::isa<math::OP>(op)
  return false DEFT_MATH_FUNCTIONS(DEFT_IS);
#undef DEFT_IS
}

/// One op of a region with its operands mapped.
mlir::FailureOr<Value> inlineOp(Emitter &e, mlir::Operation &op, const mlir::IRMapping &mapping) {
  llvm::SmallVector<Value> operands;
  for (Value operand : op.getOperands())
    operands.push_back(mapping.lookup(operand));
  if (operands.size() == 1)
    if (Value value = emitMath(e, op, operands[0]))
      return value;
  if (!isKnown(op))
    return op.emitOpError("has no CPU code");
  const bool wide =
      llvm::any_of(operands, [](Value value) { return mlir::isa<mlir::VectorType>(value.getType()); });
  mlir::Type type = op.getResult(0).getType();
  if (wide) {
    type = e.vectorOf(type);
    for (Value &operand : operands)
      if (!mlir::isa<mlir::VectorType>(operand.getType()))
        operand = e.splat(operand);
  }
  if (mlir::isa<mlir::arith::FloorDivSIOp>(op))
    return emitFloorDivision(e, operands[0], operands[1]);
  mlir::OperationState state(e.location(), op.getName().getStringRef(), operands, type, op.getAttrs());
  return e.builder().create(state)->getResult(0);
}

bool isMapped(mlir::Operation &op, const mlir::IRMapping &mapping) {
  return llvm::all_of(op.getOperands(), [&](Value operand) { return mapping.contains(operand); });
}

} // namespace

mlir::FailureOr<InlinedHook> InlinedHook::prepare(Emitter &e, dialect::AttentionOp attention,
                                                  mlir::Region &region, llvm::ArrayRef<Value> arguments,
                                                  Value params) {
  InlinedHook hook;
  hook.region_ = &region;
  hook.attention_ = attention;
  hook.params_ = params;
  for (auto [argument, value] : llvm::zip_equal(region.front().getArguments(), arguments))
    if (value)
      hook.mapping_.map(argument, value);
  for (mlir::Operation &op : region.front().without_terminator()) {
    const bool isParam = mlir::isa<dialect::ParamOp, dialect::ParamElementOp>(op);
    if (!isMapped(op, hook.mapping_) || mlir::isa<dialect::ParamOfTokenOp>(op))
      continue;
    auto value =
        isParam ? emitParam(e, attention, op, hook.mapping_, params) : inlineOp(e, op, hook.mapping_);
    if (failed(value))
      return mlir::failure();
    hook.mapping_.map(op.getResult(0), *value);
  }
  return hook;
}

mlir::FailureOr<llvm::SmallVector<Value>> InlinedHook::apply(Emitter &e, llvm::ArrayRef<Value> arguments,
                                                             TokenElements tokens) const {
  mlir::IRMapping mapping = mapping_;
  for (auto [argument, value] : llvm::zip_equal(region_->front().getArguments(), arguments))
    if (value)
      mapping.map(argument, value);
  for (mlir::Operation &op : region_->front().without_terminator()) {
    if (mapping.contains(op.getResult(0)))
      continue;
    auto value = mlir::isa<dialect::ParamElementOp>(op) ? emitParam(e, attention_, op, mapping, params_)
                 : mlir::isa<dialect::ParamOfTokenOp>(op)
                     ? emitOfToken(e, attention_, mlir::cast<dialect::ParamOfTokenOp>(op), params_, tokens)
                     : inlineOp(e, op, mapping);
    if (failed(value))
      return mlir::failure();
    mapping.map(op.getResult(0), *value);
  }
  llvm::SmallVector<Value> yielded;
  for (Value value : region_->front().getTerminator()->getOperands())
    yielded.push_back(mapping.lookup(value));
  return yielded;
}

mlir::FailureOr<llvm::SmallVector<Value>> inlineHook(Emitter &e, dialect::AttentionOp attention,
                                                     mlir::Region &region, llvm::ArrayRef<Value> arguments,
                                                     Value params) {
  auto hook = InlinedHook::prepare(e, attention, region, arguments, params);
  if (failed(hook))
    return mlir::failure();
  return hook->apply(e, llvm::SmallVector<Value>(arguments.size()));
}

} // namespace deft::codegen::cpu
