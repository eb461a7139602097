#pragma once

#include "tests/support/VariantBuilder.h"

#include <random>
#include <vector>

namespace deft::test {

/// The functions with one argument that a spec may call.
std::vector<spec::ExprOp> functionsOfOne();

/// Random typed expressions over the whole language, for tests that hold for any expression. Constants are
/// mostly small, sometimes at the limits of their type.
class RandomExpr {
public:
  /// The values that an expression may depend on: a row is a query and a head, a token is its position and
  /// depth. Constants, the KV head and its parameters belong to neither.
  enum class On { RowAndToken, Row, Token, Neither };

  RandomExpr(VariantBuilder &builder, std::mt19937 &random, bool withScore)
      : builder_(builder), random_(random) {
    withScore_ = withScore;
  }

  /// False: no functions whose last bit differs between implementations.
  bool withFunctions = true;
  bool withParams = true;
  bool withExtremes = true;
  int realsOfThree = 1; ///< how many of three comparisons compare f32
  On on = On::RowAndToken;

  spec::ExprId boolean(int depth);
  spec::ExprId integer(int depth);
  spec::ExprId real(int depth);
  /// The same value, combined with an arbitrary one of its type in a way that only constant folding reveals
  /// as irrelevant.
  spec::ExprId behindConstant(spec::ExprId value, int depth);

private:
  int pick(int count) { return std::uniform_int_distribution<int>(0, count - 1)(random_); }
  spec::ExprId param(spec::ScalarType type);
  spec::ExprId table(spec::ScalarType type, int depth);

  VariantBuilder &builder_;
  std::mt19937 &random_;
  bool withScore_;
};

} // namespace deft::test
