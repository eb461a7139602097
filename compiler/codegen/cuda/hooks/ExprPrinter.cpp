#include "compiler/codegen/cuda/hooks/ExprPrinter.h"

#include "compiler/codegen/cuda/hooks/Literals.h"
#include "compiler/spec/Operations.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/TypeSwitch.h"

namespace deft::codegen::cuda {

using namespace mlir;
using namespace dialect;

static constexpr int kMostInline = 6; ///< operations of one expression

std::string memberName(StringRef param) {
  return param.starts_with("_") ? ("p" + param + "_p").str() : (param + "_").str();
}

std::string typeName(Type type) {
  if (type.isF32())
    return "float";
  if (type.isInteger(1))
    return "bool";
  return type.isInteger(64) ? "long long" : "int";
}

void ExprPrinter::statement(Location location, const std::string &text) {
  if (auto place = specLine(location))
    statements_ += "#line " + std::to_string(place->line) + " \"" + place->file + "\"\n";
  statements_ += "    " + text + "\n";
}

/// Comparisons that C++ has no operator for name an operand twice.
static bool readsOperandsTwice(Operation &op) {
  auto compare = dyn_cast<arith::CmpFOp>(op);
  if (!compare)
    return isa<math::AbsIOp>(op);
  using P = arith::CmpFPredicate;
  return llvm::is_contained({P::ONE, P::UEQ, P::ORD, P::UNO}, compare.getPredicate());
}

std::vector<std::string> ExprPrinter::print(Region &region, ArrayRef<Value> roots, Rounding rounding) {
  StaticRanges ranges(region);
  llvm::DenseMap<Value, int> uses;
  for (Value root : roots)
    ++uses[root];
  for (Operation &op : llvm::reverse(region.front())) {
    if (op.getNumResults() == 0 || !uses.contains(op.getResult(0)) || bound_.contains(op.getResult(0)))
      continue;
    for (Value operand : op.getOperands())
      uses[operand] += readsOperandsTwice(op) ? 2 : 1;
  }
  for (Operation &op : region.front()) {
    if (op.getNumResults() == 0)
      continue;
    Value result = op.getResult(0);
    if (!uses.contains(result) || bound_.contains(result))
      continue;
    Text text = operation(op, rounding, ranges);
    bool isLeaf = isa<arith::ConstantOp, ParamOp, ParamOfTokenOp>(op);
    if (!isLeaf && (uses[result] > 1 || text.weight > kMostInline)) {
      std::string name = "v" + std::to_string(names_++);
      statement(op.getLoc(), "const " + typeName(result.getType()) + " " + name + " = " + text.text + ";");
      text = {name, kAtom, 0};
    }
    bound_[result] = text;
  }
  std::vector<std::string> expressions;
  for (Value root : roots)
    expressions.push_back(textOf(root).text);
  return expressions;
}

std::string ExprPrinter::operand(Value value, Precedence least) const {
  const Text &text = textOf(value);
  return text.precedence >= least ? text.text : "(" + text.text + ")";
}

ExprPrinter::Text ExprPrinter::binary(Operation &op, const char *symbol, Precedence precedence) {
  Precedence left = precedence, right = static_cast<Precedence>(precedence + 1);
  if (precedence == kEquality || precedence == kRelational)
    left = right = kSum; // relations of relations are right without parentheses, and hard to read
  if (precedence == kOr)
    right = kEquality; // as is `a && b || c`
  if (precedence == kOr && textOf(op.getOperand(0)).precedence == kAnd)
    left = kEquality;
  return {operand(op.getOperand(0), left) + " " + symbol + " " + operand(op.getOperand(1), right), precedence,
          0};
}

/// Signed overflow is undefined in C++ and wraps in the language; unsigned arithmetic wraps in both.
ExprPrinter::Text ExprPrinter::wrapping(Operation &op, const char *symbol, Precedence precedence,
                                        const StaticRanges &ranges) {
  if (ranges.cannotOverflow(op))
    return binary(op, symbol, precedence);
  auto asUnsigned = [&](Value value) { return "unsigned(" + textOf(value).text + ")"; };
  return {"int(" + asUnsigned(op.getOperand(0)) + " " + symbol + " " + asUnsigned(op.getOperand(1)) + ")",
          kAtom, 0};
}

ExprPrinter::Text ExprPrinter::call(Operation &op, const std::string &function) {
  std::string text = function + "(";
  for (auto [index, value] : llvm::enumerate(op.getOperands()))
    text += (index == 0 ? "" : ", ") + textOf(value).text;
  return {text + ")", kAtom, 0};
}

ExprPrinter::Text ExprPrinter::rounded(Operation &op, Rounding rounding, const char *symbol,
                                       Precedence precedence, const char *intrinsic) {
  return rounding == Rounding::Exact ? call(op, intrinsic) : binary(op, symbol, precedence);
}

ExprPrinter::Text ExprPrinter::comparison(Operation &op) {
  if (auto compare = dyn_cast<arith::CmpIOp>(op)) {
    using P = arith::CmpIPredicate;
    switch (compare.getPredicate()) {
    case P::eq:
      return binary(op, "==", kEquality);
    case P::ne:
      return binary(op, "!=", kEquality);
    case P::slt:
      return binary(op, "<", kRelational);
    case P::sle:
      return binary(op, "<=", kRelational);
    case P::sgt:
      return binary(op, ">", kRelational);
    case P::sge:
      return binary(op, ">=", kRelational);
    default: // no unsigned comparison comes from the language
      unsupported_ = &op;
      return {};
    }
  }
  auto compare = cast<arith::CmpFOp>(op);
  std::string a = operand(compare.getLhs(), kSum), b = operand(compare.getRhs(), kSum);
  auto negated = [&](const char *symbol) { return Text{"!(" + a + " " + symbol + " " + b + ")", kUnary, 0}; };
  using P = arith::CmpFPredicate;
  switch (compare.getPredicate()) {
  case P::AlwaysFalse:
    return {"false", kAtom, 0};
  case P::AlwaysTrue:
    return {"true", kAtom, 0};
  case P::OEQ:
    return binary(op, "==", kEquality);
  case P::UNE:
    return binary(op, "!=", kEquality);
  case P::OLT:
    return binary(op, "<", kRelational);
  case P::OLE:
    return binary(op, "<=", kRelational);
  case P::OGT:
    return binary(op, ">", kRelational);
  case P::OGE:
    return binary(op, ">=", kRelational);
  case P::ULT:
    return negated(">=");
  case P::ULE:
    return negated(">");
  case P::UGT:
    return negated("<=");
  case P::UGE:
    return negated("<");
  case P::ONE:
    return {a + " < " + b + " || " + a + " > " + b, kOr, 0};
  case P::UEQ:
    return {"!(" + a + " < " + b + " || " + a + " > " + b + ")", kUnary, 0};
  case P::ORD:
    return {a + " == " + a + " && " + b + " == " + b, kAnd, 0};
  case P::UNO:
    return {a + " != " + a + " || " + b + " != " + b, kOr, 0};
  }
  llvm_unreachable("unknown predicate");
}

ExprPrinter::Text ExprPrinter::operation(Operation &op, Rounding rounding, const StaticRanges &ranges) {
  auto in = [&](unsigned index) { return op.getOperand(index); };
  // Not kUnary: `- -x` would become a decrement.
  auto prefix = [&](const char *symbol) { return Text{symbol + operand(in(0), kAtom), kUnary, 0}; };
  auto isBool = [&] { return op.getResult(0).getType().isInteger(1); };
  auto fail = [&](Operation *other) {
    unsupported_ = other;
    return Text{};
  };
  auto logical = [&](const char *symbol, Precedence precedence) {
    return isBool() ? binary(op, symbol, precedence) : fail(&op);
  };
#define DEFT_CALL(ID, NUMBER, WORD, NATURAL, MEANING, OP, CPU, EXACT, FUSED, FAST, BOUNDS)                   \
  .Case([&](math::OP) {                                                                                      \
    return call(op, rounding == Rounding::Exact ? EXACT : rounding == Rounding::Fast ? FAST : FUSED);        \
  })
  Text text =
      llvm::TypeSwitch<Operation *, Text>(&op)
          .Case([&](arith::ConstantOp constant) -> Text {
            if (auto real = dyn_cast<FloatAttr>(constant.getValue())) {
              float value = real.getValue().convertToFloat();
              return {floatLiteral(value), std::signbit(value) ? kUnary : kAtom, 0};
            }
            if (isBool())
              return {matchPattern(constant.getResult(), m_One()) ? "true" : "false", kAtom, 0};
            auto integer = cast<IntegerAttr>(constant.getValue());
            return {intLiteral(integer.getInt(), integer.getType().getIntOrFloatBitWidth()),
                    integer.getInt() < 0 ? kUnary : kAtom, 0};
          })
          .Case([&](ParamOp param) { return Text{"p." + memberName(param.getName()), kAtom, 0}; })
          .Case([&](ParamOfTokenOp param) { return Text{"token." + memberName(param.getName()), kAtom, 0}; })
          .Case([&](ParamElementOp element) {
            return Text{"p." + memberName(element.getName()) + "[" + textOf(in(0)).text + "]", kAtom, 0};
          })
          .Case([&](arith::AddIOp) { return wrapping(op, "+", kSum, ranges); })
          .Case([&](arith::SubIOp) { return wrapping(op, "-", kSum, ranges); })
          .Case([&](arith::MulIOp) { return wrapping(op, "*", kProduct, ranges); })
          .Case([&](arith::RemSIOp) { return binary(op, "%", kProduct); })
          .Case([&](arith::FloorDivSIOp) {
            APInt divisor;
            if (matchPattern(in(1), m_ConstantInt(&divisor)) && divisor.isStrictlyPositive() &&
                divisor.isPowerOf2())
              return Text{"(" + operand(in(0), kUnary) + " >> " + std::to_string(divisor.logBase2()) + ")",
                          kAtom, 0};
            return call(op, "deft::floorDiv");
          })
          .Case<arith::CmpIOp, arith::CmpFOp>([&](auto) { return comparison(op); })
          .Case([&](arith::AndIOp) { return logical("&&", kAnd); })
          .Case([&](arith::OrIOp) { return logical("||", kOr); })
          .Case([&](arith::XOrIOp) {
            return matchPattern(in(1), m_One()) && isBool() ? prefix("!") : logical("!=", kEquality);
          })
          .Case([&](arith::SelectOp) {
            return Text{operand(in(0), kOr) + " ? " + operand(in(1), kOr) + " : " + operand(in(2), kOr),
                        kTernary, 0};
          })
          .Case([&](arith::MinSIOp) { return call(op, "min"); })
          .Case([&](arith::MaxSIOp) { return call(op, "max"); })
          .Case([&](arith::ExtSIOp) {
            return in(0).getType().isInteger(1) ? Text{"-int(" + textOf(in(0)).text + ")", kUnary, 0}
                                                : call(op, "(long long)");
          })
          .Case([&](arith::ExtUIOp) { return in(0).getType().isInteger(1) ? call(op, "int") : fail(&op); })
          .Case([&](arith::TruncIOp) { return call(op, "int"); })
          .Case([&](math::AbsIOp) -> Text {
            if (ranges.cannotOverflow(op))
              return call(op, "abs");
            std::string a = operand(in(0), kUnary);
            return {a + " < 0 ? int(0u - unsigned(" + a + ")) : " + a, kTernary, 0};
          })
          .Case<arith::SIToFPOp, arith::UIToFPOp>([&](auto cast) {
            bool isSignedBool = isa<arith::SIToFPOp>(op) && in(0).getType().isInteger(1);
            bool isUnsignedInt = isa<arith::UIToFPOp>(op) && !in(0).getType().isInteger(1);
            if (isUnsignedInt)
              return fail(&op);
            Text text = call(op, "float");
            return isSignedBool ? Text{"-" + text.text, kUnary, 0} : text;
          })
          .Case([&](arith::FPToSIOp) { return call(op, "int"); })
          .Case([&](arith::AddFOp) { return rounded(op, rounding, "+", kSum, "__fadd_rn"); })
          .Case([&](arith::SubFOp) { return rounded(op, rounding, "-", kSum, "__fsub_rn"); })
          .Case([&](arith::MulFOp) { return rounded(op, rounding, "*", kProduct, "__fmul_rn"); })
          .Case([&](arith::DivFOp) { return rounded(op, rounding, "/", kProduct, "__fdiv_rn"); })
          .Case([&](arith::NegFOp) { return prefix("-"); })
          .Case([&](arith::MinNumFOp) { return call(op, "fminf"); })
          .Case([&](arith::MaxNumFOp) { return call(op, "fmaxf"); })
          .Case([&](math::AbsFOp) { return call(op, "fabsf"); }) DEFT_MATH_FUNCTIONS(DEFT_CALL)
          .Default(fail);
#undef DEFT_CALL
  text.weight = isa<arith::ConstantOp, ParamOp, ParamOfTokenOp>(op) ? 0 : 1;
  for (Value value : op.getOperands())
    text.weight += textOf(value).weight;
  return text;
}

} // namespace deft::codegen::cuda
