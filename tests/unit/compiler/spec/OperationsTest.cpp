#include "compiler/spec/Names.h"

#include <gtest/gtest.h>

namespace deft::spec {
namespace {

bool takesReals(Typing typing) {
  return typing == Typing::Reals || typing == Typing::Numbers || typing == Typing::Compares;
}
bool takesIntegers(Typing typing) {
  return typing == Typing::Integers || typing == Typing::Numbers || typing == Typing::Compares ||
         typing == Typing::Bools;
}

TEST(OperationsTest, ARowStandsAtItsNumberAndIsFoundByItsWord) {
  for (std::size_t number = 0; number < operations().size(); ++number) {
    const Operation &row = operations()[number];
    EXPECT_EQ(static_cast<std::size_t>(row.op), number);
    EXPECT_EQ(parseExprOp(row.word), row.op) << row.word;
    EXPECT_EQ(parseFunction(row.word).has_value(), row.isFunction) << row.word;
    EXPECT_TRUE(isReservedWord(row.word) || !row.isFunction) << row.word;
  }
}

// They are in hashes that are kept.
TEST(OperationsTest, NumbersStay) {
  EXPECT_EQ(static_cast<int>(ExprOp::ParamElement), 3);
  EXPECT_EQ(static_cast<int>(ExprOp::Rem), 11);
  EXPECT_EQ(static_cast<int>(ExprOp::Select), 20);
  EXPECT_EQ(static_cast<int>(ExprOp::Sigmoid), 29);
  EXPECT_EQ(static_cast<int>(ExprOp::FloorDiv), 33);
  EXPECT_EQ(static_cast<int>(ExprOp::Cos), 36);
}

TEST(OperationsTest, ARowHasAMeaningForWhatItTakes) {
  for (const Operation &row : operations()) {
    EXPECT_EQ(row.ofReals != nullptr, takesReals(row.typing)) << row.word;
    EXPECT_EQ(row.ofIntegers != nullptr, takesIntegers(row.typing)) << row.word;
    EXPECT_EQ(row.operands == 0, row.typing == Typing::Leaf) << row.word;
  }
}

TEST(OperationsTest, OperatorsBindAsInC) {
  int precedence = 0;
  for (const char *level : {"||", "&&", "== !=", "< <= > >=", "+ -", "* / %"}) {
    ++precedence;
    const std::string symbols = std::string(" ") + level + " ";
    for (const Operation &row : operations())
      if (row.symbol && row.operands == 2) {
        EXPECT_EQ(symbols.find(std::string(" ") + row.symbol + " ") != std::string::npos,
                  row.precedence == precedence)
            << row.word;
      }
  }
}

TEST(OperationsTest, IntegersDivideWithoutWhatIsUndefined) {
  const auto of = [](ExprOp op, std::int64_t a, std::int64_t b) { return operationOf(op).ofIntegers(a, b); };
  EXPECT_EQ(of(ExprOp::Rem, -7, 3), -1);
  EXPECT_EQ(of(ExprOp::Rem, 7, 0), 0);
  EXPECT_EQ(of(ExprOp::FloorDiv, -7, 3), -3);
  EXPECT_EQ(of(ExprOp::FloorDiv, 7, 0), 0);
  EXPECT_EQ(of(ExprOp::FloorDiv, INT32_MIN, -1), std::int64_t{1} << 31); // wraps with whoever asks
}

} // namespace
} // namespace deft::spec
