#include "compiler/codegen/cpu/ElementHook.h"
#include "compiler/codegen/cpu/KernelEmitter.h"
#include "compiler/codegen/cpu/VectorMath.h"

#include <cstddef>
#include <limits>

namespace deft::codegen::cpu {

using mlir::Value;
using mlir::arith::CmpFPredicate;

namespace {

/// 1 / weight and the lse of a row whose weights, taken relative to e^m, sum to `weight`; (0, -inf) without
/// any.
struct Normalised {
  Value inverse, lse;
};
Normalised normalise(Emitter &e, Value m, Value weight) {
  Value some = e.compare(CmpFPredicate::OGT, weight, e.f32(0));
  Value inverse = e.select(some, e.div(e.f32(1), weight), e.f32(0));
  return {inverse, e.select(some, e.add(m, emitLog(e, weight)), e.f32(-kInf))};
}

/// Joins the sink of a row's head: as two parts of a row are merged, the second of which is 0 everywhere.
mlir::LogicalResult joinSink(const KernelContext &context, Normalised &row, Value head, Value params) {
  Emitter &e = context.e;
  Value arguments[dialect::kHookArgCount] = {};
  arguments[dialect::kArgHead] = head;
  arguments[dialect::kArgKvHead] = mlir::arith::DivSIOp::create(
      e.builder(), e.location(), head, e.i32(static_cast<int>(context.attention.ratio())));
  auto yielded = inlineHook(e, context.attention, context.attention.getSink(), arguments, params);
  if (failed(yielded))
    return mlir::failure();
  Value sink = yielded->front();
  Value top = e.max(row.lse, sink);
  // No token, and a sink of -inf.
  Value shift = e.select(e.compare(CmpFPredicate::OEQ, top, e.f32(-kInf)), e.f32(0), top);
  Value own = emitExpWeight(e, e.sub(row.lse, shift));
  Normalised whole = normalise(e, shift, e.add(own, emitExpWeight(e, e.sub(sink, shift))));
  row = {e.mul(row.inverse, e.mul(own, whole.inverse)), whole.lse};
  return mlir::success();
}

void storeLse(Emitter &e, Value lse, Value row, Value value) {
  Value null = mlir::LLVM::ZeroOp::create(e.builder(), e.location(), e.pointerType());
  Value wanted =
      mlir::LLVM::ICmpOp::create(e.builder(), e.location(), mlir::LLVM::ICmpPredicate::ne, lse, null);
  e.ifElse(wanted, [&] { e.store(value, e.at(lse, e.f32Type(), row)); }, nullptr);
}

/// The hook of the output for a row, where there is one; `call` has the facts of the row at these places, its
/// head that of the first row.
struct OutputPlaces {
  std::size_t qPos, query, head, params;
};
mlir::FailureOr<std::optional<ElementHook>> outputHook(const KernelContext &context, Value call,
                                                       const OutputPlaces &places, Value row) {
  Emitter &e = context.e;
  if (!context.attention.hasOutput())
    return std::optional<ElementHook>();
  const auto number = [&](std::size_t offset) { return e.field(e.i32Type(), call, offset); };
  auto hook = ElementHook::prepare(context, context.attention.getOutput(),
                                   {number(places.qPos), number(places.query),
                                    e.add(number(places.head), e.toI32(row)),
                                    e.field(e.pointerType(), call, places.params)});
  if (failed(hook))
    return mlir::failure();
  return std::optional<ElementHook>(std::move(*hook));
}

/// out[row] = in * factor, by way of `hook`, rounded to `type` unless that is f32. The first `paired` columns
/// of `in` stand as `attend` left them.
mlir::LogicalResult storeRow(const KernelContext &context, mlir::Type type, Value in, Value out, Value row,
                             Value factor, int paired, const std::optional<ElementHook> &hook) {
  Emitter &e = context.e;
  bool isBroken = false;
  Value begin = e.mul(row, e.i64(context.valueDim()));
  auto store = [&](Value value, Value d) {
    if (factor)
      value = e.mul(value, factor);
    if (hook) {
      auto made = hook->apply(d, value);
      isBroken |= failed(made);
      if (isBroken)
        return;
      value = *made;
    }
    Value element = e.add(begin, d);
    if (type.isF32())
      e.store(value, e.at(out, e.f32Type(), element));
    else
      e.store(e.narrow(type, value), e.at(out, e.i16Type(), element));
  };
  const int lanes = e.lanes();
  llvm::SmallVector<std::int64_t> low, high;
  for (int lane = 0; lane < lanes; ++lane) {
    low.push_back(context.placeInPair(lane));
    high.push_back(context.placeInPair(lanes + lane));
  }
  if (paired > 0)
    e.loop(e.i64(0), e.i64(paired), 2 * lanes, [&](Value d) {
      Value next = e.add(d, e.i64(lanes));
      Value first = e.loadAt(e.vectorOf(e.f32Type()), in, d);
      Value second = e.loadAt(e.vectorOf(e.f32Type()), in, next);
      store(e.shuffle(first, second, low), d);
      store(e.shuffle(first, second, high), next);
    });
  if (paired < context.valueDim())
    e.loop(e.i64(paired), e.i64(context.valueDim()), lanes,
           [&](Value d) { store(e.loadAt(e.vectorOf(e.f32Type()), in, d), d); });
  return mlir::failure(isBroken);
}

} // namespace

mlir::LLVM::LLVMFuncOp emitFinish(const KernelContext &context, bool partial) {
  Emitter &e = context.e;
  auto function = e.function(context.module, partial ? "finish_partial" : "finish", {}, {e.pointerType()});
  Value call = function.getArgument(0);
  auto pointer = [&](std::size_t offset) { return e.field(e.pointerType(), call, offset); };
  Value acc = pointer(offsetof(abi::CpuFinishCall, acc)), m = pointer(offsetof(abi::CpuFinishCall, m));
  Value l = pointer(offsetof(abi::CpuFinishCall, l)), out = pointer(offsetof(abi::CpuFinishCall, out));
  Value lse = pointer(offsetof(abi::CpuFinishCall, lse));
  Value rows = e.toI64(e.field(e.i32Type(), call, offsetof(abi::CpuFinishCall, rows)));
  const mlir::Type type = partial ? e.f32Type() : context.outputType();
  bool isBroken = false;
  e.loop(e.i64(0), rows, 1, [&](Value row) {
    Value in = e.at(acc, e.f32Type(), e.mul(row, e.i64(context.valueDim())));
    std::optional<ElementHook> hook;
    if (!partial) {
      auto made = outputHook(context, call,
                             {offsetof(abi::CpuFinishCall, qPos), offsetof(abi::CpuFinishCall, query),
                              offsetof(abi::CpuFinishCall, head), offsetof(abi::CpuFinishCall, params)},
                             row);
      isBroken |= failed(made);
      if (isBroken)
        return;
      hook = std::move(*made);
    }
    if (context.isSigmoid()) {
      isBroken |= failed(storeRow(context, type, in, out, row, {}, context.pairedColumns(), hook));
      return;
    }
    Normalised done = normalise(e, e.loadAt(e.f32Type(), m, row), e.loadAt(e.f32Type(), l, row));
    if (!partial && context.attention.hasSink()) {
      Value head = e.add(e.field(e.i32Type(), call, offsetof(abi::CpuFinishCall, head)), e.toI32(row));
      isBroken |= failed(joinSink(context, done, head, pointer(offsetof(abi::CpuFinishCall, params))));
    }
    isBroken |= failed(storeRow(context, type, in, out, row, done.inverse, context.pairedColumns(), hook));
    storeLse(e, lse, row, done.lse);
  });
  e.ret();
  return isBroken ? mlir::LLVM::LLVMFuncOp() : function;
}

mlir::LLVM::LLVMFuncOp emitMerge(const KernelContext &context) {
  Emitter &e = context.e;
  const int dim = context.valueDim();
  const auto queryHeads = static_cast<std::int64_t>(context.attention.getQueryHeads());
  auto function = e.function(context.module, "merge", {}, {e.pointerType()});
  Value call = function.getArgument(0);
  auto pointer = [&](std::size_t offset) { return e.field(e.pointerType(), call, offset); };
  Value partialOut = pointer(offsetof(abi::CpuMergeCall, partialOut));
  Value partialLse = pointer(offsetof(abi::CpuMergeCall, partialLse));
  Value slots = pointer(offsetof(abi::CpuMergeCall, slots));
  Value out = pointer(offsetof(abi::CpuMergeCall, out)), lse = pointer(offsetof(abi::CpuMergeCall, lse));
  Value slotCount = e.toI64(e.field(e.i32Type(), call, offsetof(abi::CpuMergeCall, slotCount)));
  Value rows = e.toI64(e.field(e.i32Type(), call, offsetof(abi::CpuMergeCall, rows)));
  Value sum = e.stackArray(e.f32Type(), dim);
  bool isBroken = false;

  e.loop(e.i64(0), rows, 1, [&](Value row) {
    // The place of a slot's partial of this row, counted in rows.
    auto place = [&](Value i) {
      Value slot = e.toI64(e.loadAt(e.i32Type(), slots, i));
      return e.add(e.mul(slot, e.i64(queryHeads)), row);
    };
    e.loop(e.i64(0), e.i64(dim), e.lanes(),
           [&](Value d) { e.store(e.splat(e.f32(0)), e.at(sum, e.f32Type(), d)); });
    Value m;
    if (!context.isSigmoid()) {
      Value largest = e.loop(e.i64(0), slotCount, 1, e.f32(-kInf), [&](Value i, mlir::ValueRange carried) {
        Value partial = e.loadAt(e.f32Type(), partialLse, place(i));
        return llvm::SmallVector<Value>{e.max(partial, carried[0])};
      })[0];
      // Only empty partials: their weights e^(-inf - 0) are 0.
      m = e.select(e.compare(CmpFPredicate::OEQ, largest, e.f32(-kInf)), e.f32(0), largest);
    }
    Value total = e.loop(e.i64(0), slotCount, 1, e.f32(0), [&](Value i, mlir::ValueRange carried) {
      Value at = place(i);
      Value in = e.at(partialOut, e.f32Type(), e.mul(at, e.i64(dim)));
      Value weight = e.f32(1);
      if (!context.isSigmoid())
        weight = emitExpWeight(e, e.sub(e.loadAt(e.f32Type(), partialLse, at), m));
      e.loop(e.i64(0), e.i64(dim), e.lanes(), [&](Value d) {
        Value address = e.at(sum, e.f32Type(), d);
        Value value = e.loadAt(e.vectorOf(e.f32Type()), in, d);
        e.store(e.fma(value, weight, e.load(e.vectorOf(e.f32Type()), address)), address);
      });
      return llvm::SmallVector<Value>{e.add(carried[0], weight)};
    })[0];
    auto hook = outputHook(context, call,
                           {offsetof(abi::CpuMergeCall, qPos), offsetof(abi::CpuMergeCall, query),
                            offsetof(abi::CpuMergeCall, head), offsetof(abi::CpuMergeCall, params)},
                           row);
    isBroken |= failed(hook);
    if (isBroken)
      return;
    if (context.isSigmoid()) {
      isBroken |= failed(storeRow(context, context.outputType(), sum, out, row, {}, 0, *hook));
      return;
    }
    Normalised done = normalise(e, m, total);
    if (context.attention.hasSink()) {
      Value head = e.add(e.field(e.i32Type(), call, offsetof(abi::CpuMergeCall, head)), e.toI32(row));
      isBroken |= failed(joinSink(context, done, head, pointer(offsetof(abi::CpuMergeCall, params))));
    }
    isBroken |= failed(storeRow(context, context.outputType(), sum, out, row, done.inverse, 0, *hook));
    storeLse(e, lse, row, done.lse);
  });
  e.ret();
  return isBroken ? mlir::LLVM::LLVMFuncOp() : function;
}

} // namespace deft::codegen::cpu
