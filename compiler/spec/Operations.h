#pragma once

#include <cstdint>
#include <span>

/// The operations of expressions, in one table. These derive from a row: the enumeration, the words of specs
/// and JSON, parsing, types, folding, the oracle, the IR, CUDA text, code for CPUs, bounds over tiles, and
/// Python's table (runtime/python/generate_ops.py). Where a value may differ (transforms::Uniformity) depends
/// only on the operands. docs/add-a-hook-function.md shows how to add a row.
namespace deft::spec {

/// The types of the operands and of the result.
enum class Typing {
  Leaf,     ///< no operands; it has the type of the thing it names
  Table,    ///< a number; the result is an element of the table
  ToF32,    ///< i32 to f32
  Choice,   ///< a bool and two values of one type; the result is one of these
  Bools,    ///< bools to a bool
  Compares, ///< two i32 or two f32 to a bool
  Integers, ///< i32 to i32
  Reals,    ///< f32 to f32
  Numbers,  ///< i32 or f32, all of one type, which is also the result's
};

// A row's number is part of stored hashes (config_cache::VariantSignature), so it must never change: a new
// row takes the next free number, wherever it stands. The meaning is an expression of the operands `a` and
// `b`, which are double or int64_t according to Typing; results of i32 wrap.

// clang-format off: one row a line, in columns

/// Nodes that are neither an operator nor a function of the language.
//  ID            number word          operands
#define DEFT_NODES(X)                                                                                        \
  X(Constant,     0,  "constant",      0, Leaf)      /* Expr::value */                                       \
  X(Builtin,      1,  "builtin",       0, Leaf)      /* Expr::builtin */                                     \
  X(Param,        2,  "param",         0, Leaf)      /* params[param], a scalar */                           \
  X(ParamElement, 3,  "param_element", 0, Leaf)      /* params[param][what its shape is indexed by] */       \
  X(ToF32,        6,  "to_f32",        1, ToF32)                                                             \
  X(Select,       20, "select",        3, Choice)    /* condition, then, else */                             \
  X(TableElement, 34, "table_element", 1, Table)     /* params[param][the operand, rounded down and clamped] */

/// Operators: their text in specs, and how tightly binary ones bind. Unary ones bind most tightly and have 0.
//  ID  number word   operands      written    meaning
#define DEFT_OPERATORS(X)                                                                                    \
  X(Neg, 4,  "neg", 1, Numbers,  "-",  0, -a)                                                                \
  X(Not, 5,  "not", 1, Bools,    "!",  0, a == 0)                                                            \
  X(Add, 7,  "add", 2, Numbers,  "+",  5, a + b)                                                             \
  X(Sub, 8,  "sub", 2, Numbers,  "-",  5, a - b)                                                             \
  X(Mul, 9,  "mul", 2, Numbers,  "*",  6, a * b)                                                             \
  X(Div, 10, "div", 2, Reals,    "/",  6, a / b)                                                             \
  X(Rem, 11, "rem", 2, Integers, "%",  6, b == 0 ? 0 : a % b)  /* the sign of the dividend, as in C */       \
  X(Lt,  12, "lt",  2, Compares, "<",  4, a < b)                                                             \
  X(Le,  13, "le",  2, Compares, "<=", 4, a <= b)                                                            \
  X(Gt,  14, "gt",  2, Compares, ">",  4, a > b)                                                             \
  X(Ge,  15, "ge",  2, Compares, ">=", 4, a >= b)                                                            \
  X(Eq,  16, "eq",  2, Compares, "==", 3, a == b)                                                            \
  X(Ne,  17, "ne",  2, Compares, "!=", 3, a != b)                                                            \
  X(And, 18, "and", 2, Bools,    "&&", 2, a != 0 && b != 0)                                                  \
  X(Or,  19, "or",  2, Bools,    "||", 1, a != 0 || b != 0)

/// Functions that need several operations of MLIR's dialect `math`; transforms::ExprImporter builds each.
/// `natural`: the result is never below 0.
//  ID       number word        operands   natural meaning
#define DEFT_FUNCTIONS(X)                                                                                    \
  X(Min,      21, "min",       2, Numbers,  false, lesser(a, b))                                             \
  X(Max,      22, "max",       2, Numbers,  false, greater(a, b))                                            \
  X(Abs,      23, "abs",       1, Numbers,  true,  std::abs(a))                                              \
  X(Sigmoid,  29, "sigmoid",   1, Reals,    true,  1 / (1 + std::exp(-a)))                                   \
  X(FloorDiv, 33, "floor_div", 2, Integers, false, b == 0 ? 0 : a / b - (a % b != 0 && (a < 0) != (b < 0)))

/// Functions of one f32 that are one operation of `math`. After the meaning come this operation and the function
/// of codegen/cpu/VectorMath.h that emits its arithmetic. The second line has the device's functions for exact,
/// fused and fast arithmetic (codegen::cuda::Rounding), and the bounds over an interval `x`, where `f` applies the
/// operation to one number (transforms::IntervalBuilder).
//  ID    number word   natural meaning         math     on CPUs
#define DEFT_MATH_FUNCTIONS(X)                                                                               \
  X(Exp,   24, "exp",   true,  std::exp(a),     ExpOp,   emitExp,                                            \
    "expf",       "expf",           "expf",           increasing(f, x, 0, kInf))                             \
  X(Exp2,  25, "exp2",  true,  std::exp2(a),    Exp2Op,  emitExp2,                                           \
    "exp2f",      "exp2f",          "exp2f",          increasing(f, x, 0, kInf))                             \
  X(Log,   26, "log",   false, std::log(a),     LogOp,   emitLog,                                            \
    "logf",       "logf",           "logf",           logarithm(f, x))                                       \
  X(Log2,  27, "log2",  false, std::log2(a),    Log2Op,  emitLog2,                                           \
    "log2f",      "log2f",          "log2f",          logarithm(f, x))                                       \
  X(Tanh,  28, "tanh",  false, std::tanh(a),    TanhOp,  emitTanh,                                           \
    "tanhf",      "deft::tanhFast", "deft::tanhFast", increasing(f, x, -1, 1))                               \
  X(Sqrt,  30, "sqrt",  true,  std::sqrt(a),    SqrtOp,  instruction,                                        \
    "__fsqrt_rn", "sqrtf",          "sqrtf",          squareRoot(x))                                         \
  X(Rsqrt, 31, "rsqrt", true,  1 / std::sqrt(a), RsqrtOp, emitRsqrt,                                         \
    "rsqrtf",     "rsqrtf",         "rsqrtf",         reciprocalSquareRoot(x))                               \
  X(Floor, 32, "floor", false, std::floor(a),   FloorOp, instruction,                                        \
    "floorf",     "floorf",         "floorf",         floor(x))                                              \
  X(Sin,   35, "sin",   false, std::sin(a),     SinOp,   emitSin,                                            \
    "sinf",       "sinf",           "deft::sinFast",  unknownFloat())                                        \
  X(Cos,   36, "cos",   false, std::cos(a),     CosOp,   emitCos,                                            \
    "cosf",       "cosf",           "deft::cosFast",  unknownFloat())

// clang-format on

enum class ExprOp {
#define DEFT_OPERATION_ID(ID, NUMBER, ...) ID = NUMBER,
  DEFT_NODES(DEFT_OPERATION_ID) DEFT_OPERATORS(DEFT_OPERATION_ID) DEFT_FUNCTIONS(DEFT_OPERATION_ID)
      DEFT_MATH_FUNCTIONS(DEFT_OPERATION_ID)
#undef DEFT_OPERATION_ID
};

/// One row of the table as values.
struct Operation {
  ExprOp op = ExprOp::Constant;
  const char *word = nullptr; ///< in JSON; also the name of functions in specs
  int operands = 0;
  Typing typing = Typing::Leaf;
  bool isFunction = false;
  const char *symbol = nullptr; ///< of an operator, as in specs
  int precedence = 0;           ///< of a binary operator, from 1
  /// The meaning for f32, and for i32 or bool (0 or 1), before the result wraps. Null if Typing excludes
  /// these operands. Operations with one operand ignore `b`.
  double (*ofReals)(double a, double b) = nullptr;
  std::int64_t (*ofIntegers)(std::int64_t a, std::int64_t b) = nullptr;
};

/// All operations, indexed by number.
std::span<const Operation> operations();
inline const Operation &operationOf(ExprOp op) { return operations()[static_cast<std::size_t>(op)]; }

} // namespace deft::spec
