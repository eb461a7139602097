#pragma once

#include <cstdint>
#include <span>

/// The operations of expressions, in one table. Of a row are made: the enumeration, the words of specs and of
/// JSON, parsing, types, folding, the oracle, the IR, CUDA text, code for CPUs, the bounds over tiles, and
/// what Python knows (runtime/python/generate_ops.py). Where a value may differ (transforms::Uniformity)
/// follows from its operands alone. docs/add-a-hook-function.md adds a row.
namespace deft::spec {

/// What an operation takes, and what it gives.
enum class Typing {
  Leaf,     ///< nothing; it has the type of what it names
  Table,    ///< a number; gives an element of the table
  ToF32,    ///< i32; gives f32
  Choice,   ///< a bool and two of one type; gives one of these
  Bools,    ///< bools; gives a bool
  Compares, ///< two i32 or two f32; gives a bool
  Integers, ///< i32; gives i32
  Reals,    ///< f32; gives f32
  Numbers,  ///< i32 or f32, all of one type; gives that type
};

// A row's number is in hashes that are kept (config_cache::VariantSignature): a new one takes the next number
// that is free, wherever it stands. A meaning is said of the operands `a` and `b`, which are double or
// int64_t, as Typing has it; of i32 the result wraps.

// clang-format off: one row a line, in columns

/// What is neither an operator nor a function of the language.
//  ID            number word          operands
#define DEFT_NODES(X)                                                                                        \
  X(Constant,     0,  "constant",      0, Leaf)      /* Expr::value */                                       \
  X(Builtin,      1,  "builtin",       0, Leaf)      /* Expr::builtin */                                     \
  X(Param,        2,  "param",         0, Leaf)      /* params[param], a scalar */                           \
  X(ParamElement, 3,  "param_element", 0, Leaf)      /* params[param][what its shape is indexed by] */       \
  X(ToF32,        6,  "to_f32",        1, ToF32)                                                             \
  X(Select,       20, "select",        3, Choice)    /* condition, then, else */                             \
  X(TableElement, 34, "table_element", 1, Table)     /* params[param][the operand, rounded down and clamped] */

/// Operators: as specs write them, and how tightly a binary one binds. Unary ones bind most tightly and have 0.
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

/// Functions that are more than one operation of MLIR's dialect `math`: how each is built is said in
/// transforms::ExprImporter. `NATURAL`: never below 0.
//  ID       number word        operands   natural meaning
#define DEFT_FUNCTIONS(X)                                                                                    \
  X(Min,      21, "min",       2, Numbers,  false, lesser(a, b))                                             \
  X(Max,      22, "max",       2, Numbers,  false, greater(a, b))                                            \
  X(Abs,      23, "abs",       1, Numbers,  true,  std::abs(a))                                              \
  X(Sigmoid,  29, "sigmoid",   1, Reals,    true,  1 / (1 + std::exp(-a)))                                   \
  X(FloorDiv, 33, "floor_div", 2, Integers, false, b == 0 ? 0 : a / b - (a % b != 0 && (a < 0) != (b < 0)))

/// Functions of one f32 that are one operation of `math`. Behind the meaning stand that operation and the
/// function of codegen/cpu/VectorMath.h that makes its arithmetic; in the second line the device's functions where
/// arithmetic is exact, fused and fast (codegen::cuda::Rounding), and the bounds over an interval `x`, where `f`
/// applies the operation to one number (transforms::IntervalBuilder).
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

/// A row as values.
struct Operation {
  ExprOp op = ExprOp::Constant;
  const char *word = nullptr; ///< in JSON; specs call functions by it
  int operands = 0;
  Typing typing = Typing::Leaf;
  bool isFunction = false;
  const char *symbol = nullptr; ///< of an operator, as specs write it
  int precedence = 0;           ///< of a binary operator, from 1
  /// The meaning where operands are f32, and where they are i32 or bool, which gives what has not wrapped
  /// yet. Null where Typing excludes it. A bool is 0 or 1. With one operand `b` is not looked at.
  double (*ofReals)(double a, double b) = nullptr;
  std::int64_t (*ofIntegers)(std::int64_t a, std::int64_t b) = nullptr;
};

/// All, by their numbers.
std::span<const Operation> operations();
inline const Operation &operationOf(ExprOp op) { return operations()[static_cast<std::size_t>(op)]; }

} // namespace deft::spec
