#include "compiler/codegen/cpu/ElementHook.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <utility>

namespace deft::codegen::cpu {

using mlir::Value;

mlir::FailureOr<ElementHook> ElementHook::prepare(const KernelContext &context, mlir::Region &region,
                                                  const RowFacts &row, Value rms) {
  Emitter &e = context.e;
  Value arguments[dialect::kElementArgCount] = {};
  arguments[dialect::kElementXRms] = rms;
  arguments[dialect::kElementQPos] = row.qPos;
  arguments[dialect::kElementHead] = row.head;
  arguments[dialect::kElementKvHead] = mlir::arith::DivSIOp::create(
      e.builder(), e.location(), row.head, e.i32(static_cast<int>(context.attention.ratio())));
  arguments[dialect::kElementQuery] = row.query;
  auto hook = InlinedHook::prepare(e, context.attention, region, arguments, row.params);
  if (failed(hook))
    return mlir::failure();
  return ElementHook(context, std::move(*hook));
}

mlir::FailureOr<Value> ElementHook::apply(Value dim, Value x, Value xHalf, Value xPair) const {
  Emitter &e = context_->e;
  Value arguments[dialect::kElementArgCount] = {};
  arguments[dialect::kElementX] = x;
  arguments[dialect::kElementXHalf] = xHalf;
  arguments[dialect::kElementXPair] = xPair;
  arguments[dialect::kElementDim] = e.add(e.laneNumbers(), e.toI32(dim));
  auto yielded = hook_.apply(e, arguments);
  if (failed(yielded))
    return mlir::failure();
  return e.spread(yielded->front()); // it may be the same for all elements
}

QueryRows::QueryRows(const KernelContext &context)
    : context_(context), elements_(context.e.stackArray(context.e.f32Type(), 2 * context.keyDim())),
      made_(context.e.stackArray(context.e.i16Type(), context.keyDim())) {}

Value QueryRows::transform(Value from, const RowFacts &row) const {
  Emitter &e = context_.e;
  const std::int64_t dim = context_.keyDim();
  const mlir::Type vector = e.vectorOf(e.f32Type());
  Value squares =
      e.loop(e.i64(0), e.i64(dim), e.lanes(), e.splat(e.f32(0)), [&](Value d, mlir::ValueRange carried) {
        Value x = e.widen(context_.queryType(), e.loadAt(e.vectorOf(e.i16Type()), from, d));
        e.store(x, e.at(elements_, e.f32Type(), d));
        e.store(x, e.at(elements_, e.f32Type(), e.add(d, e.i64(dim))));
        return llvm::SmallVector<Value>{e.fma(x, x, carried[0])};
      })[0];
  Value mean = e.mul(e.reduceAdd(squares), e.f32(1.0f / static_cast<float>(dim)));
  Value rms = mlir::math::SqrtOp::create(e.builder(), e.location(), mean);
  auto hook = ElementHook::prepare(context_, context_.attention.getQuery(), row, rms);
  if (failed(hook))
    return {};
  llvm::SmallVector<std::int64_t> neighbours;
  for (std::int64_t lane = 0; lane < e.lanes(); ++lane)
    neighbours.push_back(lane ^ 1);
  bool isBroken = false;
  e.loop(e.i64(0), e.i64(dim), e.lanes(), [&](Value d) {
    Value x = e.loadAt(vector, elements_, d);
    Value half = e.loadAt(vector, elements_, e.add(d, e.i64(dim / 2)));
    auto made = hook->apply(d, x, half, e.shuffle(x, x, neighbours));
    isBroken |= failed(made);
    if (!isBroken)
      e.store(e.narrow(context_.queryType(), *made), e.at(made_, e.i16Type(), d));
  });
  return isBroken ? Value() : made_;
}

} // namespace deft::codegen::cpu
