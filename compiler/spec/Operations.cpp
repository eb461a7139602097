#include "compiler/spec/Operations.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>

namespace deft::spec {
namespace {

// Of a number and a NaN, the number.
double lesser(double a, double b) { return std::fmin(a, b); }
double greater(double a, double b) { return std::fmax(a, b); }
std::int64_t lesser(std::int64_t a, std::int64_t b) { return std::min(a, b); }
std::int64_t greater(std::int64_t a, std::int64_t b) { return std::max(a, b); }

/// A row's meaning where `typing` lets operands be numbers of type T.
template <typename T, Typing typing, typename Meaning> constexpr auto meaningOf(Meaning) -> T (*)(T, T) {
  constexpr bool isOfBoth = typing == Typing::Numbers || typing == Typing::Compares;
  constexpr bool isOfReals = isOfBoth || typing == Typing::Reals;
  constexpr bool isOfIntegers = isOfBoth || typing == Typing::Integers || typing == Typing::Bools;
  if constexpr (std::is_same_v<T, double> ? isOfReals : isOfIntegers)
    return [](T a, T b) { return static_cast<T>(Meaning{}(a, b)); };
  else
    return nullptr;
}

// A generic lambda, so that a meaning is compiled for the types that it is asked of alone.
#define DEFT_MEANINGS(TYPING, MEANING)                                                                       \
  meaningOf<double, Typing::TYPING>([](auto a, [[maybe_unused]] auto b) { return MEANING; }),                \
      meaningOf<std::int64_t, Typing::TYPING>([](auto a, [[maybe_unused]] auto b) { return MEANING; })
#define DEFT_NODE_ROW(ID, NUMBER, WORD, OPERANDS, TYPING) {ExprOp::ID, WORD, OPERANDS, Typing::TYPING},
#define DEFT_OPERATOR_ROW(ID, NUMBER, WORD, OPERANDS, TYPING, SYMBOL, PRECEDENCE, MEANING)                   \
  {ExprOp::ID, WORD, OPERANDS, Typing::TYPING, false, SYMBOL, PRECEDENCE, DEFT_MEANINGS(TYPING, (MEANING))},
#define DEFT_FUNCTION_ROW(ID, NUMBER, WORD, OPERANDS, TYPING, NATURAL, MEANING)                              \
  {ExprOp::ID, WORD, OPERANDS, Typing::TYPING, true, nullptr, 0, DEFT_MEANINGS(TYPING, (MEANING))},
#define DEFT_MATH_FUNCTION_ROW(ID, NUMBER, WORD, NATURAL, MEANING, ...)                                      \
  DEFT_FUNCTION_ROW(ID, NUMBER, WORD, 1, Reals, NATURAL, MEANING)
constexpr Operation kRows[] = {DEFT_NODES(DEFT_NODE_ROW) DEFT_OPERATORS(DEFT_OPERATOR_ROW) DEFT_FUNCTIONS(
    DEFT_FUNCTION_ROW) DEFT_MATH_FUNCTIONS(DEFT_MATH_FUNCTION_ROW)};

constexpr auto kByNumber = [] {
  std::array<Operation, std::size(kRows)> rows;
  for (const Operation &row : kRows)
    rows.at(static_cast<std::size_t>(row.op)) = row;
  return rows;
}();
static_assert(std::all_of(kByNumber.begin(), kByNumber.end(), [](const Operation &row) { return row.word; }),
              "a number is left out, and another is there twice");

} // namespace

std::span<const Operation> operations() { return kByNumber; }

} // namespace deft::spec
