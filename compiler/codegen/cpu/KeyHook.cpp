#include "compiler/codegen/cpu/KeyHook.h"

#include "compiler/codegen/cpu/HookInliner.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <cstddef>

namespace deft::codegen::cpu {

using mlir::Value;

#define DEFT_FIELD(type, member) e.field(type, tokens.call, offsetof(abi::CpuAttendCall, member))

KeyRows::KeyRows(const KernelContext &context)
    : context_(context), elements_(context.e.stackArray(context.e.f32Type(), kBlockTokens * rowRoom())),
      rms_(context.e.stackArray(context.e.f32Type(), kBlockTokens)) {}

/// K as numbers, and of each row what its elements have in common.
void KeyRows::fetch(const Tokens &tokens) const {
  Emitter &e = context_.e;
  const std::int64_t dim = context_.keyDim();
  Value k = DEFT_FIELD(e.pointerType(), k), offsets = DEFT_FIELD(e.pointerType(), keyOffsets);
  e.loop(e.i64(0), tokens.count, 1, [&](Value t) {
    Value from = e.at(k, context_.keyBits(), e.loadAt(e.i64Type(), offsets, t));
    Value to = e.at(elements_, e.f32Type(), e.mul(t, e.i64(rowRoom())));
    Value squares =
        e.loop(e.i64(0), e.i64(dim), e.lanes(), e.splat(e.f32(0)), [&](Value d, mlir::ValueRange carried) {
          Value x = e.widen(context_.keyType(), e.loadAt(e.vectorOf(context_.keyBits()), from, d));
          e.store(x, e.at(to, e.f32Type(), d));
          return llvm::SmallVector<Value>{e.fma(x, x, carried[0])};
        })[0];
    e.loop(e.i64(0), e.i64(dim / 2), kHalfLanes, [&](Value d) {
      Value half = e.loadAt(e.vectorOf(e.f32Type(), kHalfLanes), to, d);
      e.store(half, e.at(to, e.f32Type(), e.add(d, e.i64(dim))));
    });
    Value mean = e.mul(e.reduceAdd(squares), e.f32(1.0f / static_cast<float>(dim)));
    e.store(mlir::math::SqrtOp::create(e.builder(), e.location(), mean), e.at(rms_, e.f32Type(), t));
  });
}

/// Dim by dim, so that what follows from those alone, such as the frequency of a rotation, is computed once
/// for all tokens.
mlir::LogicalResult KeyRows::transform(const Tokens &tokens, Value keys) const {
  Emitter &e = context_.e;
  const std::int64_t dim = context_.keyDim();
  const mlir::Type vector = e.vectorOf(e.f32Type());
  fetch(tokens);
  Value positions = DEFT_FIELD(e.pointerType(), kvPos), params = DEFT_FIELD(e.pointerType(), params);
  Value kvHead = DEFT_FIELD(e.i32Type(), kvHead);
  llvm::SmallVector<std::int64_t> neighbours;
  for (std::int64_t lane = 0; lane < e.lanes(); ++lane)
    neighbours.push_back(lane ^ 1);
  bool isBroken = false;
  e.loop(e.i64(0), e.i64(dim), e.lanes(), [&](Value d) {
    Value ofDim[dialect::kKeyArgCount] = {};
    ofDim[dialect::kKeyDim] = e.add(e.laneNumbers(), e.toI32(d));
    ofDim[dialect::kKeyKvHead] = kvHead;
    auto hook = InlinedHook::prepare(e, context_.attention, context_.attention.getKey(), ofDim, params);
    isBroken |= failed(hook);
    if (isBroken)
      return;
    e.loop(e.i64(0), tokens.count, 1, [&](Value t) {
      Value row = e.at(elements_, e.f32Type(), e.mul(t, e.i64(rowRoom())));
      Value x = e.loadAt(vector, row, d);
      Value ofToken[dialect::kKeyArgCount] = {};
      ofToken[dialect::kKeyX] = x;
      ofToken[dialect::kKeyXHalf] = e.loadAt(vector, row, e.add(d, e.i64(dim / 2)));
      ofToken[dialect::kKeyXPair] = e.shuffle(x, x, neighbours);
      ofToken[dialect::kKeyXRms] = e.loadAt(e.f32Type(), rms_, t);
      ofToken[dialect::kKeyKvPos] = e.loadAt(e.i32Type(), positions, t);
      auto made = hook->apply(e, ofToken);
      isBroken |= failed(made);
      if (isBroken)
        return;
      const mlir::Type type = context_.queryType();
      Value rounded = e.widen(type, e.narrow(type, e.spread(made->front())));
      e.store(rounded, e.at(keys, e.f32Type(), e.add(e.mul(t, e.i64(dim)), d)));
    });
  });
  return mlir::failure(isBroken);
}

#undef DEFT_FIELD

} // namespace deft::codegen::cpu
