#pragma once

#include "compiler/spec/Variant.h"

#include <initializer_list>
#include <string>

namespace deft::test {

/// Builds variants for tests below the front end: a small attention, and expressions by function calls.
class VariantBuilder {
public:
  VariantBuilder(int queryHeads = 2, int kvHeads = 1, int headDim = 4) {
    variant.name = "test";
    variant.queryHeads = queryHeads;
    variant.kvHeads = kvHeads;
    variant.tensors = spec::Tensors::alike(headDim);
    variant.scale = 1;
  }

  spec::ExprId op(spec::ExprOp op, spec::ScalarType type, std::initializer_list<spec::ExprId> operands) {
    spec::Expr expr;
    expr.op = op;
    expr.type = type;
    expr.operands = operands;
    return add(expr);
  }

  spec::ExprId constant(double value, spec::ScalarType type = spec::ScalarType::F32) {
    spec::Expr expr;
    expr.type = type;
    expr.value = value;
    return add(expr);
  }

  spec::ExprId integer(int value) { return constant(value, spec::ScalarType::I32); }

  spec::ExprId read(spec::Builtin builtin) {
    spec::Expr expr;
    expr.op = spec::ExprOp::Builtin;
    expr.type = spec::typeOf(builtin);
    expr.builtin = builtin;
    return add(expr);
  }

  /// Declares a parameter; readParam reads it.
  int param(const std::string &name, spec::ScalarType type, spec::Param::Shape shape) {
    spec::Param param;
    param.name = name;
    param.type = type;
    param.shape = shape;
    variant.params.push_back(param);
    return static_cast<int>(variant.params.size()) - 1;
  }

  /// Declares a table; readTable reads it.
  int table(const std::string &name, spec::ScalarType type, int size) {
    const int index = param(name, type, spec::Param::Shape::Table);
    variant.params.back().size = size;
    return index;
  }

  spec::ExprId readTable(int index, spec::ExprId place) {
    spec::Expr expr;
    expr.op = spec::ExprOp::TableElement;
    expr.type = variant.params[index].type;
    expr.param = index;
    expr.operands = {place};
    return add(expr);
  }

  spec::ExprId readParam(int index) {
    spec::Expr expr;
    expr.op = variant.params[index].shape == spec::Param::Shape::Scalar ? spec::ExprOp::Param
                                                                        : spec::ExprOp::ParamElement;
    expr.type = variant.params[index].type;
    expr.param = index;
    return add(expr);
  }

  spec::Variant variant;

private:
  spec::ExprId add(const spec::Expr &expr) {
    variant.exprs.push_back(expr);
    return static_cast<spec::ExprId>(variant.exprs.size() - 1);
  }
};

} // namespace deft::test
