#include "compiler/codegen/cuda/hooks/StaticRange.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"

#include <algorithm>

namespace deft::codegen::cuda {

using namespace mlir;
using namespace dialect;

static constexpr int64_t kLeast = std::numeric_limits<int32_t>::min();
static constexpr int64_t kMost = std::numeric_limits<int32_t>::max();

StaticRanges::StaticRanges(Region &region) {
  if (region.empty())
    return;
  auto attention = cast<AttentionOp>(region.getParentOp());
  for (auto [argument, name] : llvm::zip_equal(region.getArguments(), argNames(attention, region))) {
    Range range{0, kPositionLimit - 1};
    if (name.starts_with("q_"))
      range.min = -1;
    else if (name.starts_with("head"))
      range.max = attention.getQueryHeads() - 1;
    else if (name == "dim")
      range.max = std::max(attention.tensors().q.dim, attention.tensors().out.dim) - 1;
    else if (name == "kv_head")
      range.max = attention.getKvHeads() - 1;
    if (argument.getType().isInteger(32))
      ranges_[argument] = range;
  }
  for (Operation &op : region.front())
    for (Value result : op.getResults())
      if (result.getType().isInteger(32))
        if (Range range = exact(op); range.min >= kLeast && range.max <= kMost)
          ranges_[result] = range;
}

StaticRanges::Range StaticRanges::of(Value value) const {
  auto found = ranges_.find(value);
  return found != ranges_.end() ? found->second : Range{kLeast, kMost};
}

bool StaticRanges::cannotOverflow(Operation &op) const {
  if (!op.getResult(0).getType().isInteger(32))
    return true; // i64 holds every exact result of i32 operands, and nothing wider is computed in it
  Range range = exact(op);
  return range.min >= kLeast && range.max <= kMost;
}

StaticRanges::Range StaticRanges::exact(Operation &op) const {
  auto in = [&](unsigned operand) { return of(op.getOperand(operand)); };
  auto hull = [](Range a, Range b) { return Range{std::min(a.min, b.min), std::max(a.max, b.max)}; };
  return llvm::TypeSwitch<Operation *, Range>(&op)
      .Case([&](arith::ConstantOp constant) {
        int64_t value = cast<IntegerAttr>(constant.getValue()).getInt();
        return Range{value, value};
      })
      .Case([&](arith::AddIOp) { return Range{in(0).min + in(1).min, in(0).max + in(1).max}; })
      .Case([&](arith::SubIOp) { return Range{in(0).min - in(1).max, in(0).max - in(1).min}; })
      .Case([&](arith::MulIOp) {
        auto [a, b] = std::pair{in(0), in(1)};
        auto [min, max] = std::minmax({a.min * b.min, a.min * b.max, a.max * b.min, a.max * b.max});
        return Range{min, max};
      })
      .Case([&](arith::RemSIOp) {
        int64_t most = std::max({std::abs(in(1).min), std::abs(in(1).max), int64_t{1}}) - 1;
        return Range{in(0).min >= 0 ? 0 : -most, in(0).max <= 0 ? 0 : most};
      })
      .Case([&](arith::FloorDivSIOp) {
        if (in(1).min < 1)
          return Range{kLeast, kMost};
        return Range{std::min<int64_t>(in(0).min, 0), std::max<int64_t>(in(0).max, 0)};
      })
      .Case([&](arith::SelectOp) { return hull(in(1), in(2)); })
      .Case<arith::MinSIOp, arith::MaxSIOp>([&](auto) { return hull(in(0), in(1)); })
      .Case([&](math::AbsIOp) { return Range{0, std::max(-in(0).min, in(0).max)}; })
      .Case<arith::ExtUIOp, arith::ExtSIOp>([&](auto) { return Range{-1, 1}; })
      .Default([](Operation *) { return Range{kLeast, kMost}; });
}

} // namespace deft::codegen::cuda
