#pragma once

#include "tests/support/VariantBuilder.h"

#include <random>
#include <vector>

namespace deft::test {

/// The functions of one number that a spec may call.
std::vector<spec::ExprOp> functionsOfOne();

/// Random typed expressions over everything the language has, for tests that hold for any expression.
/// Constants are mostly small, sometimes at the ends of their type.
class RandomExpr {
public:
  /// What a value may depend on: the row alone is a query and a head, the token alone its position and depth.
  /// On neither are constants, the KV head and its parameters.
  enum class On { RowAndToken, Row, Token, Neither };

  RandomExpr(VariantBuilder &builder, std::mt19937 &random, bool withScore)
      : builder_(builder), random_(random) {
    withScore_ = withScore;
  }

  /// Functions whose last bit differs between implementations are left out when false.
  bool withFunctions = true;
  bool withParams = true;
  bool withExtremes = true;
  int realsOfThree = 1; ///< how many of three comparisons are of f32
  On on = On::RowAndToken;

  spec::ExprId boolean(int depth);
  spec::ExprId integer(int depth);
  spec::ExprId real(int depth);
  /// The same value, beside something of the same type that depends on anything: only who folds constants
  /// sees that it does not matter.
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
