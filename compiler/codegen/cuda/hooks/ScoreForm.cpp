#include "compiler/codegen/cuda/hooks/ScoreForm.h"

#include "compiler/codegen/cuda/hooks/StaticRange.h"
#include "compiler/transforms/Uniformity.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace deft::codegen::cuda {

using namespace mlir;
using namespace dialect;
using transforms::Uniformity;

namespace {

class Matcher {
public:
  explicit Matcher(Region &score)
      : uniformity_(score), ranges_(score), s_(score.getArgument(kArgS)),
        kvPos_(score.getArgument(kArgKvPos)) {}

  std::optional<ScoreForm> match(Value score) {
    if (capped(score) || sum(score))
      return form_;
    return std::nullopt;
  }

private:
  bool isRowLevel(Value value) const {
    const Uniformity of = uniformity_.of(value);
    return of == Uniformity::Launch || of == Uniformity::Row;
  }

  /// A product of a value of rows and another; false where it is none.
  template <class Product> bool factors(Value product, Value &ofRow, Value &other) const {
    auto op = product.getDefiningOp<Product>();
    if (!op || isRowLevel(op.getLhs()) == isRowLevel(op.getRhs()))
      return false;
    const bool isFirst = isRowLevel(op.getLhs());
    ofRow = isFirst ? op.getLhs() : op.getRhs();
    other = isFirst ? op.getRhs() : op.getLhs();
    return true;
  }

  bool capped(Value value) {
    Value cap, rate, inner = value;
    factors<arith::MulFOp>(value, cap, inner);
    auto tanh = inner.getDefiningOp<math::TanhOp>();
    if (!tanh)
      return false;
    Value argument = tanh.getOperand();
    factors<arith::MulFOp>(tanh.getOperand(), rate, argument);
    if (argument != s_)
      return false;
    form_.isCapped = true;
    auto isLaunchLevel = [&](Value part) { return !part || uniformity_.of(part) == Uniformity::Launch; };
    form_.hasOneCap = isLaunchLevel(cap) && isLaunchLevel(rate);
    form_.cap = cap;
    form_.rate = rate;
    return true;
  }

  bool sum(Value value) {
    auto isScore = [&](Value part) { return part == s_ || capped(part); };
    if (auto add = value.getDefiningOp<arith::AddFOp>())
      return (isScore(add.getLhs()) && sloped(add.getRhs())) ||
             (isScore(add.getRhs()) && sloped(add.getLhs()));
    auto difference = value.getDefiningOp<arith::SubFOp>();
    if (!difference || !isScore(difference.getLhs()) || !sloped(difference.getRhs()))
      return false;
    form_.isFalling = !form_.isFalling;
    return true;
  }

  /// slope * float(kv_pos - origin), or the difference the other way round.
  bool sloped(Value value) {
    Value slope, distance = value;
    factors<arith::MulFOp>(value, slope, distance);
    auto real = distance.getDefiningOp<arith::SIToFPOp>();
    auto difference = real ? real.getIn().getDefiningOp<arith::SubIOp>() : nullptr;
    if (!difference || !ranges_.cannotOverflow(*difference))
      return false;
    form_.isFalling = difference.getRhs() == kvPos_;
    form_.origin = form_.isFalling ? difference.getLhs() : difference.getRhs();
    if ((!form_.isFalling && difference.getLhs() != kvPos_) || !isRowLevel(form_.origin))
      return false;
    form_.isSloped = true;
    form_.slope = slope;
    return true;
  }

  transforms::UniformityAnalysis uniformity_;
  StaticRanges ranges_;
  Value s_, kvPos_;
  ScoreForm form_;
};

} // namespace

std::optional<ScoreForm> scoreForm(Region &score) {
  if (score.empty())
    return std::nullopt;
  return Matcher(score).match(cast<YieldOp>(score.front().getTerminator()).getValues().front());
}

} // namespace deft::codegen::cuda
