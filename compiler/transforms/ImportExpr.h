#pragma once

#include "compiler/transforms/Import.h"

#include "llvm/ADT/DenseMap.h"

namespace deft::transforms {

mlir::Type scalarType(mlir::MLIRContext *context, spec::ScalarType type);

/// Turns expressions of one variant into operations at the builder's place, each shared Expr once.
class ExprImporter {
public:
  ExprImporter(const spec::Variant &variant, mlir::OpBuilder &builder, mlir::Block &hook, Locate locate)
      : variant_(variant), builder_(builder), hook_(hook), locate_(locate) {}

  mlir::Value import(spec::ExprId root);

private:
  mlir::Value build(const spec::Expr &expr);
  mlir::Value buildLeaf(const spec::Expr &expr);
  /// The block argument for a name.
  mlir::Value argument(spec::Builtin builtin);
  mlir::Value buildConstant(const spec::Expr &expr);
  mlir::Value buildCompare(const spec::Expr &expr, mlir::Value lhs, mlir::Value rhs);
  mlir::Value buildRemainder(mlir::Value lhs, mlir::Value rhs);
  mlir::Value buildFloorDivision(mlir::Value lhs, mlir::Value rhs);
  mlir::Value buildTableElement(const spec::Expr &expr, mlir::Value place);
  mlir::Value buildSigmoid(mlir::Value x);
  /// A divisor for which every quotient is defined in IR: 1 replaces 0 and -1.
  struct Divisor {
    mlir::Value isZero, isMinusOne, value;
  };
  Divisor safeDivisor(mlir::Value rhs);
  mlir::Value integer(int32_t value);
  mlir::Value real(float value);
  /// The integer operation for i32 operands, the other for f32.
  template <typename IntOp, typename FloatOp> mlir::Value arithmetic(llvm::ArrayRef<mlir::Value> operands);
  template <typename Op> mlir::Value make(mlir::Value operand) {
    return Op::create(builder_, location_, operand);
  }
  template <typename Op> mlir::Value make(mlir::Value lhs, mlir::Value rhs) {
    return Op::create(builder_, location_, lhs, rhs);
  }

  const spec::Variant &variant_;
  mlir::OpBuilder &builder_;
  mlir::Block &hook_;
  Locate locate_;
  mlir::Location location_ = builder_.getUnknownLoc();
  llvm::DenseMap<spec::ExprId, mlir::Value> done_;
};

} // namespace deft::transforms
