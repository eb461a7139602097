#include "compiler/transforms/Interval.h"
#include "compiler/transforms/Passes.h"

#include "compiler/dialect/Deft.h"
#include "compiler/spec/Operations.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"

#include <variant>

namespace deft::transforms {

using namespace mlir;
using namespace dialect;

#define GEN_PASS_DEF_TILEANALYSISPASS
#include "compiler/transforms/Passes.h.inc"

namespace {

using Interval = std::variant<BoolInterval, IntInterval, FloatInterval>;

/// Walks a mask once and emits, operation by operation, what it is over a set of pairs.
class TileBuilder {
public:
  TileBuilder(AttentionOp op, OpBuilder &builder)
      : op_(op), builder_(builder), intervals_(builder, op.getLoc()) {}

  void build() {
    Block &tile = addBlock(op_, op_.getTile(), op_.getLoc());
    builder_.setInsertionPointToStart(&tile);
    bindArguments(tile);
    Block &mask = op_.getMask().front();
    for (Operation &op : mask.without_terminator()) {
      intervals_.setLocation(op.getLoc());
      values_[op.getResult(0)] = evaluate(op);
    }
    auto yield = cast<YieldOp>(mask.getTerminator());
    BoolInterval visible = truth(yield.getValues().front());
    YieldOp::create(builder_, yield.getLoc(), ValueRange{visible.any, visible.all});
  }

private:
  /// The static bounds are the caller's promise: q_pos of an empty path is -1, all else counts from 0.
  void bindArguments(Block &tile) {
    Block &mask = op_.getMask().front();
    auto bind = [&](HookArg hook, TileArg lo, TileArg hi, int64_t min, int64_t max) {
      values_[mask.getArgument(hook)] = IntInterval{tile.getArgument(lo), tile.getArgument(hi), min, max};
    };
    constexpr int64_t kMax = kPositionLimit - 1;
    if (mlir::Value s = mask.getArgument(kArgS); !s.use_empty()) // a mask of the language has none
      values_[s] = intervals_.unknownFloat();
    bind(kArgQPos, kTileQLo, kTileQHi, -1, kMax);
    bind(kArgKvPos, kTileKvLo, kTileKvHi, 0, kMax);
    bind(kArgHead, kTileHeadLo, kTileHeadHi, 0, int64_t(op_.getQueryHeads()) - 1);
    bind(kArgKvHead, kTileKvHead, kTileKvHead, 0, int64_t(op_.getKvHeads()) - 1);
    bind(kArgDepth, kTileDepthLo, kTileDepthHi, 0, kMax);
    bind(kArgQuery, kTileQueryLo, kTileQueryHi, 0, kMax);
  }

  const BoolInterval &truth(Value value) const { return std::get<BoolInterval>(values_.find(value)->second); }
  const IntInterval &integer(Value value) const { return std::get<IntInterval>(values_.find(value)->second); }
  const FloatInterval &real(Value value) const {
    return std::get<FloatInterval>(values_.find(value)->second);
  }

  Interval unknown(Type type) {
    if (type.isInteger(1))
      return intervals_.unknownBool();
    if (type.isInteger(32))
      return intervals_.unknownInt();
    return intervals_.unknownFloat();
  }

  Interval runTimeValue(Value value) {
    if (value.getType().isF32())
      return intervals_.real(value);
    return intervals_.integer(value);
  }

  Interval join(const Interval &a, const Interval &b) {
    if (const auto *ints = std::get_if<IntInterval>(&a))
      return intervals_.join(*ints, std::get<IntInterval>(b));
    return intervals_.join(std::get<FloatInterval>(a), std::get<FloatInterval>(b));
  }

  Interval evaluateElement(ParamElementOp element);
  Interval evaluateConstant(arith::ConstantOp constant);
  Interval evaluateCompare(arith::CmpIOp compare);
  Interval evaluateCompare(arith::CmpFOp compare);
  Interval evaluateSubtract(Value lhs, Value rhs);
  Interval evaluate(Operation &op);

  AttentionOp op_;
  OpBuilder &builder_;
  IntervalBuilder intervals_;
  DenseMap<Value, Interval> values_;
};

/// The elements of one KV head's group are few and their indices follow from the KV head, so all are read:
/// a window for each head is as precise as one for all where they are alike.
Interval TileBuilder::evaluateElement(ParamElementOp element) {
  constexpr int64_t kMostElements = 8;
  Type type = element.getType();
  const ParamShape shape = op_.findParam(element.getName()).first.getShape();
  if (shape == ParamShape::Table || shape == ParamShape::PerQuery)
    return unknown(type);
  Value kvHead = op_.getTile().getArgument(kTileKvHead);
  auto read = [&](Value index) {
    return runTimeValue(ParamElementOp::create(builder_, element.getLoc(), type, element.getName(), index));
  };
  if (shape == ParamShape::PerKvHead)
    return read(kvHead);
  int64_t ratio = op_.ratio();
  if (ratio > kMostElements)
    return unknown(type);
  Value first = intervals_.emit<arith::MulIOp>(kvHead, intervals_.constantInt(ratio));
  Interval all = read(first);
  for (int64_t offset = 1; offset < ratio; ++offset)
    all = join(all, read(intervals_.emit<arith::AddIOp>(first, intervals_.constantInt(offset))));
  return all;
}

Interval TileBuilder::evaluateConstant(arith::ConstantOp constant) {
  if (auto real = dyn_cast<FloatAttr>(constant.getValue()))
    return intervals_.real(real.getValue().convertToFloat());
  auto integer = cast<IntegerAttr>(constant.getValue());
  if (integer.getType().isInteger(1))
    return intervals_.boolean(intervals_.constantBool(!integer.getValue().isZero()));
  return intervals_.integer(static_cast<int32_t>(integer.getInt()));
}

Interval TileBuilder::evaluateCompare(arith::CmpIOp compare) {
  using P = arith::CmpIPredicate;
  P predicate = compare.getPredicate();
  if (compare.getLhs().getType().isInteger(1)) {
    if (predicate != P::eq && predicate != P::ne)
      return intervals_.unknownBool();
    BoolInterval differ = intervals_.logicalXor(truth(compare.getLhs()), truth(compare.getRhs()));
    return predicate == P::ne ? differ : intervals_.logicalNot(differ);
  }
  const IntInterval &a = integer(compare.getLhs()), &b = integer(compare.getRhs());
  switch (predicate) {
  case P::eq:
    return intervals_.equal(a, b);
  case P::ne:
    return intervals_.logicalNot(intervals_.equal(a, b));
  case P::slt:
    return intervals_.less(a, b);
  case P::sgt:
    return intervals_.less(b, a);
  case P::sle:
    return intervals_.logicalNot(intervals_.less(b, a));
  case P::sge:
    return intervals_.logicalNot(intervals_.less(a, b));
  default: // no unsigned comparison comes from the language
    return intervals_.unknownBool();
  }
}

Interval TileBuilder::evaluateCompare(arith::CmpFOp compare) {
  using P = arith::CmpFPredicate;
  const FloatInterval &a = real(compare.getLhs()), &b = real(compare.getRhs());
  auto orUnordered = [&](BoolInterval ordered) { return intervals_.orUnordered(ordered, a, b); };
  switch (compare.getPredicate()) {
  case P::AlwaysFalse:
    return intervals_.boolean(intervals_.constantBool(false));
  case P::AlwaysTrue:
    return intervals_.boolean(intervals_.constantBool(true));
  case P::OEQ:
    return intervals_.orderedEqual(a, b);
  case P::OLT:
    return intervals_.orderedLess(a, b, false);
  case P::OLE:
    return intervals_.orderedLess(a, b, true);
  case P::OGT:
    return intervals_.orderedLess(b, a, false);
  case P::OGE:
    return intervals_.orderedLess(b, a, true);
  case P::ONE:
    return intervals_.logicalAnd(intervals_.logicalNot(intervals_.orderedEqual(a, b)),
                                 intervals_.logicalNot(intervals_.unordered(a, b)));
  case P::UEQ:
    return orUnordered(intervals_.orderedEqual(a, b));
  case P::ULT:
    return orUnordered(intervals_.orderedLess(a, b, false));
  case P::ULE:
    return orUnordered(intervals_.orderedLess(a, b, true));
  case P::UGT:
    return orUnordered(intervals_.orderedLess(b, a, false));
  case P::UGE:
    return orUnordered(intervals_.orderedLess(b, a, true));
  case P::UNE:
    return intervals_.logicalNot(intervals_.orderedEqual(a, b));
  case P::UNO:
    return intervals_.unordered(a, b);
  case P::ORD:
    return intervals_.logicalNot(intervals_.unordered(a, b));
  }
  llvm_unreachable("unknown predicate");
}

/// The block of a position is written `x - x % size`. Taken as two intervals, the two x would be free of each
/// other and a tile within one block could not be told whole.
Interval TileBuilder::evaluateSubtract(Value lhs, Value rhs) {
  auto remainder = rhs.getDefiningOp<arith::RemSIOp>();
  if (remainder && remainder.getLhs() == lhs) {
    const IntInterval &divisor = integer(remainder.getRhs());
    if (divisor.min == divisor.max && divisor.min != 0 && divisor.min != -1)
      return intervals_.roundToMultiple(integer(lhs), static_cast<int32_t>(divisor.min));
  }
  return intervals_.subtract(integer(lhs), integer(rhs));
}

Interval TileBuilder::evaluate(Operation &op) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  auto *i = &intervals_;
  auto in = [&](unsigned operand) { return op.getOperand(operand); };
  auto isBool = [&] { return op.getResult(0).getType().isInteger(1); };
  // A bool as a number: 0 where it is false, `yes` where it is true.
  auto number = [&](int32_t yes) { return i->select(truth(in(0)), i->integer(yes), i->integer(0)); };
#define DEFT_BOUNDS(ID, NUMBER, WORD, NATURAL, MEANING, OP, CPU, EXACT, FUSED, FAST, BOUNDS)                 \
  .Case([&](math::OP) {                                                                                      \
    [[maybe_unused]] const auto f = [&](Value value) { return i->emit<math::OP>(value); };                   \
    [[maybe_unused]] const FloatInterval &x = real(in(0));                                                   \
    return i->BOUNDS;                                                                                        \
  })
  return llvm::TypeSwitch<Operation *, Interval>(&op)
      .Case([&](arith::ConstantOp constant) { return evaluateConstant(constant); })
      .Case([&](ParamOp param) { return runTimeValue(builder_.clone(*param)->getResult(0)); })
      .Case([&](ParamElementOp element) { return evaluateElement(element); })
      .Case<arith::CmpIOp, arith::CmpFOp>([&](auto compare) { return evaluateCompare(compare); })
      .Case([&](arith::SelectOp) -> Interval {
        BoolInterval condition = truth(in(0));
        if (isBool())
          return i->select(condition, truth(in(1)), truth(in(2)));
        if (in(1).getType().isF32())
          return i->select(condition, real(in(1)), real(in(2)));
        return i->select(condition, integer(in(1)), integer(in(2)));
      })
      .Case([&](arith::AndIOp) {
        return isBool() ? i->logicalAnd(truth(in(0)), truth(in(1))) : unknown(in(0).getType());
      })
      .Case([&](arith::OrIOp) {
        return isBool() ? i->logicalOr(truth(in(0)), truth(in(1))) : unknown(in(0).getType());
      })
      .Case([&](arith::XOrIOp) {
        return isBool() ? i->logicalXor(truth(in(0)), truth(in(1))) : unknown(in(0).getType());
      })
      .Case([&](arith::ExtUIOp) { return number(1); })
      .Case([&](arith::ExtSIOp) { return number(-1); })
      .Case([&](arith::UIToFPOp cast) {
        return in(0).getType().isInteger(1) ? i->fromInt(number(1)) : unknown(cast.getType());
      })
      .Case([&](arith::SIToFPOp) {
        return in(0).getType().isInteger(1) ? i->fromInt(number(-1)) : i->fromInt(integer(in(0)));
      })
      .Case([&](arith::AddIOp) { return i->add(integer(in(0)), integer(in(1))); })
      .Case([&](arith::SubIOp) { return evaluateSubtract(in(0), in(1)); })
      .Case([&](arith::MulIOp) { return i->multiply(integer(in(0)), integer(in(1))); })
      .Case([&](arith::RemSIOp) { return i->remainder(integer(in(0)), integer(in(1))); })
      .Case([&](arith::FloorDivSIOp) { return i->floorDivide(integer(in(0)), integer(in(1))); })
      .Case([&](arith::MinSIOp) { return i->minimum(integer(in(0)), integer(in(1))); })
      .Case([&](arith::MaxSIOp) { return i->maximum(integer(in(0)), integer(in(1))); })
      .Case([&](math::AbsIOp) { return i->absolute(integer(in(0))); })
      .Case([&](arith::AddFOp) { return i->add(real(in(0)), real(in(1))); })
      .Case([&](arith::SubFOp) { return i->subtract(real(in(0)), real(in(1))); })
      .Case([&](arith::MulFOp) { return i->multiply(real(in(0)), real(in(1))); })
      .Case([&](arith::DivFOp) { return i->divide(real(in(0)), real(in(1))); })
      .Case([&](arith::NegFOp) { return i->negate(real(in(0))); })
      .Case([&](arith::MinNumFOp) { return i->minimum(real(in(0)), real(in(1))); })
      .Case([&](arith::MaxNumFOp) { return i->maximum(real(in(0)), real(in(1))); })
      .Case([&](math::AbsFOp) { return i->absolute(real(in(0))); }) DEFT_MATH_FUNCTIONS(DEFT_BOUNDS)
      .Default([&](Operation *other) { return unknown(other->getResult(0).getType()); });
#undef DEFT_BOUNDS
}

struct TileAnalysisPass : impl::TileAnalysisPassBase<TileAnalysisPass> {
  void runOnOperation() override {
    AttentionOp op = getOperation();
    op.getTile().getBlocks().clear();
    if (!op.hasMask())
      return;
    OpBuilder builder(op);
    TileBuilder(op, builder).build();
  }
};

} // namespace

} // namespace deft::transforms
