#include "compiler/transforms/ImportExpr.h"

#include "compiler/spec/Names.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace deft::transforms {

using namespace mlir;
using spec::ExprOp;

Type scalarType(MLIRContext *context, spec::ScalarType type) {
  switch (type) {
  case spec::ScalarType::Bool:
    return IntegerType::get(context, 1);
  case spec::ScalarType::I32:
    return IntegerType::get(context, 32);
  case spec::ScalarType::F32:
    return Float32Type::get(context);
  }
  llvm_unreachable("unknown scalar type");
}

/// Operands come before their users in the arena, so one sweep over what `root` reaches is enough and no
/// expression, however deep, can overflow the stack.
Value ExprImporter::import(spec::ExprId root) {
  std::vector<bool> reached(root + 1, false);
  reached[root] = true;
  for (spec::ExprId id = root + 1; id-- > 0;)
    if (reached[id])
      for (spec::ExprId operand : variant_.exprs[id].operands)
        reached[operand] = true;
  for (spec::ExprId id = 0; id <= root; ++id)
    if (reached[id] && !done_.contains(id)) {
      location_ = locate_(variant_.exprs[id].range);
      Value value = build(variant_.exprs[id]);
      done_[id] = value;
    }
  return done_[root];
}

Value ExprImporter::integer(int32_t value) {
  return arith::ConstantOp::create(builder_, location_, builder_.getI32IntegerAttr(value));
}

Value ExprImporter::real(float value) {
  return arith::ConstantOp::create(builder_, location_, builder_.getF32FloatAttr(value));
}

Value ExprImporter::buildConstant(const spec::Expr &expr) {
  switch (expr.type) {
  case spec::ScalarType::Bool:
    return arith::ConstantOp::create(builder_, location_, builder_.getBoolAttr(expr.value != 0));
  case spec::ScalarType::I32:
    return integer(static_cast<int32_t>(expr.value));
  case spec::ScalarType::F32:
    return real(static_cast<float>(expr.value));
  }
  llvm_unreachable("unknown scalar type");
}

/// The block's argument of that name.
Value ExprImporter::argument(spec::Builtin builtin) {
  auto attention = llvm::cast<dialect::AttentionOp>(hook_.getParentOp());
  const auto names = dialect::argNames(attention, *hook_.getParent());
  const auto at = llvm::find(names, llvm::StringRef(spec::toString(builtin)));
  if (at == names.end())
    llvm_unreachable("sema, and who reads variants of files, let no other name come here");
  return hook_.getArgument(static_cast<unsigned>(at - names.begin()));
}

Value ExprImporter::buildLeaf(const spec::Expr &expr) {
  if (expr.op == ExprOp::Constant)
    return buildConstant(expr);
  if (expr.op == ExprOp::Builtin)
    return argument(expr.builtin);
  const spec::Param &param = variant_.params[expr.param];
  Type type = scalarType(builder_.getContext(), expr.type);
  if (expr.op == ExprOp::Param)
    return dialect::ParamOp::create(builder_, location_, type, param.name);
  if (param.isOfTokens())
    return dialect::ParamOfTokenOp::create(builder_, location_, type, param.name);
  Value index = argument(param.shape == spec::Param::Shape::PerQueryHead ? spec::Builtin::Head
                         : param.shape == spec::Param::Shape::PerQuery   ? spec::Builtin::Query
                                                                         : spec::Builtin::KvHead);
  return dialect::ParamElementOp::create(builder_, location_, type, param.name, index);
}

Value ExprImporter::buildCompare(const spec::Expr &expr, Value lhs, Value rhs) {
  using I = arith::CmpIPredicate;
  using F = arith::CmpFPredicate;
  auto compare = [&](I integer, F real) -> Value {
    if (lhs.getType().isF32())
      return arith::CmpFOp::create(builder_, location_, real, lhs, rhs);
    return arith::CmpIOp::create(builder_, location_, integer, lhs, rhs);
  };
  switch (expr.op) {
  case ExprOp::Lt:
    return compare(I::slt, F::OLT);
  case ExprOp::Le:
    return compare(I::sle, F::OLE);
  case ExprOp::Gt:
    return compare(I::sgt, F::OGT);
  case ExprOp::Ge:
    return compare(I::sge, F::OGE);
  case ExprOp::Eq:
    return compare(I::eq, F::OEQ);
  default:
    return compare(I::ne, F::UNE);
  }
}

/// Division by 0 and of the least integer by -1 are undefined in IR and in C. Both divisors become 1, whose
/// remainder is the 0 that the language promises.
Value ExprImporter::buildRemainder(Value lhs, Value rhs) {
  return make<arith::RemSIOp>(lhs, safeDivisor(rhs).value);
}

/// By 0 it is 0, and by -1 the negative, which wraps around.
Value ExprImporter::buildFloorDivision(Value lhs, Value rhs) {
  const Divisor divisor = safeDivisor(rhs);
  Value quotient = make<arith::FloorDivSIOp>(lhs, divisor.value);
  Value negative = make<arith::SubIOp>(integer(0), lhs);
  quotient = arith::SelectOp::create(builder_, location_, divisor.isMinusOne, negative, quotient);
  return arith::SelectOp::create(builder_, location_, divisor.isZero, integer(0), quotient);
}

ExprImporter::Divisor ExprImporter::safeDivisor(Value rhs) {
  auto is = [&](int32_t divisor) -> Value {
    return arith::CmpIOp::create(builder_, location_, arith::CmpIPredicate::eq, rhs, integer(divisor));
  };
  Value isZero = is(0), isMinusOne = is(-1);
  Value isBad = make<arith::OrIOp>(isZero, isMinusOne);
  return {isZero, isMinusOne, arith::SelectOp::create(builder_, location_, isBad, integer(1), rhs)};
}

/// 1 / (1 + exp(-x)): right at both infinities, and never a NaN of a number.
Value ExprImporter::buildSigmoid(Value x) {
  Value one = real(1);
  Value power = make<math::ExpOp>(make<arith::NegFOp>(x));
  return make<arith::DivFOp>(one, make<arith::AddFOp>(one, power));
}

template <typename IntOp, typename FloatOp> Value ExprImporter::arithmetic(llvm::ArrayRef<Value> operands) {
  if (operands[0].getType().isF32())
    return make<FloatOp>(operands[0], operands[1]);
  return make<IntOp>(operands[0], operands[1]);
}

/// Kernels read what the index says, so it is brought into the table here.
Value ExprImporter::buildTableElement(const spec::Expr &expr, Value place) {
  const spec::Param &param = variant_.params[expr.param];
  Value index;
  if (place.getType().isF32()) { // of a number and a NaN, the larger is the number
    Value within = make<arith::MinNumFOp>(make<arith::MaxNumFOp>(make<math::FloorOp>(place), real(0)),
                                          real(static_cast<float>(param.size - 1)));
    index = arith::FPToSIOp::create(builder_, location_, builder_.getI32Type(), within);
  } else {
    index = make<arith::MinSIOp>(make<arith::MaxSIOp>(place, integer(0)), integer(param.size - 1));
  }
  Type type = scalarType(builder_.getContext(), expr.type);
  return dialect::ParamElementOp::create(builder_, location_, type, param.name, index);
}

Value ExprImporter::build(const spec::Expr &expr) {
  llvm::SmallVector<Value, 3> in;
  for (spec::ExprId operand : expr.operands)
    in.push_back(done_.lookup(operand));
  switch (expr.op) {
  case ExprOp::Constant:
  case ExprOp::Builtin:
  case ExprOp::Param:
  case ExprOp::ParamElement:
    return buildLeaf(expr);
  case ExprOp::Neg:
    return in[0].getType().isF32() ? make<arith::NegFOp>(in[0]) : make<arith::SubIOp>(integer(0), in[0]);
  case ExprOp::Not:
    return make<arith::XOrIOp>(in[0],
                               arith::ConstantOp::create(builder_, location_, builder_.getBoolAttr(true)));
  case ExprOp::ToF32:
    return arith::SIToFPOp::create(builder_, location_, builder_.getF32Type(), in[0]);
  case ExprOp::Add:
    return arithmetic<arith::AddIOp, arith::AddFOp>(in);
  case ExprOp::Sub:
    return arithmetic<arith::SubIOp, arith::SubFOp>(in);
  case ExprOp::Mul:
    return arithmetic<arith::MulIOp, arith::MulFOp>(in);
  case ExprOp::Div:
    return make<arith::DivFOp>(in[0], in[1]);
  case ExprOp::Rem:
    return buildRemainder(in[0], in[1]);
  case ExprOp::Lt:
  case ExprOp::Le:
  case ExprOp::Gt:
  case ExprOp::Ge:
  case ExprOp::Eq:
  case ExprOp::Ne:
    return buildCompare(expr, in[0], in[1]);
  case ExprOp::And:
    return make<arith::AndIOp>(in[0], in[1]);
  case ExprOp::Or:
    return make<arith::OrIOp>(in[0], in[1]);
  case ExprOp::Select:
    return arith::SelectOp::create(builder_, location_, in[0], in[1], in[2]);
  case ExprOp::Min:
    return arithmetic<arith::MinSIOp, arith::MinNumFOp>(in);
  case ExprOp::Max:
    return arithmetic<arith::MaxSIOp, arith::MaxNumFOp>(in);
  case ExprOp::Abs:
    return in[0].getType().isF32() ? make<math::AbsFOp>(in[0]) : make<math::AbsIOp>(in[0]);
  case ExprOp::Sigmoid:
    return buildSigmoid(in[0]);
  case ExprOp::FloorDiv:
    return buildFloorDivision(in[0], in[1]);
  case ExprOp::TableElement:
    return buildTableElement(expr, in[0]);
#define DEFT_BUILD(ID, NUMBER, WORD, NATURAL, MEANING, OP, ...)                                              \
  case ExprOp::ID:                                                                                           \
    return make<math::OP>(in[0]);
    DEFT_MATH_FUNCTIONS(DEFT_BUILD)
#undef DEFT_BUILD
  }
  llvm_unreachable("unknown expression");
}

} // namespace deft::transforms
