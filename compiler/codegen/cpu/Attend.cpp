#include "compiler/codegen/cpu/KernelEmitter.h"

#include <cstddef>

namespace deft::codegen::cpu {

using mlir::Value;
using mlir::arith::CmpIPredicate;

#define DEFT_FIELD(type, member) e.field(type, call, offsetof(abi::CpuAttendCall, member))

mlir::LLVM::LLVMFuncOp passFunction(const KernelContext &context, llvm::StringRef name) {
  Emitter &e = context.e;
  const mlir::Type pointer = e.pointerType(), index = e.i64Type();
  auto function =
      e.function(context.module, name, {}, {pointer, pointer, pointer, index, index, pointer, pointer});
  // Called from several places; inlined there they would only cost compile time.
  function.setPassthroughAttr(e.builder().getStrArrayAttr({"noinline"}));
  return function;
}

void emitPrefetchNext(const KernelContext &context, Value isFirst, Value base, Value nextOffsets,
                      Value nextTokens, Value token, int count) {
  Emitter &e = context.e;
  Value wanted = e.bitAnd(isFirst, e.compare(CmpIPredicate::slt, token, nextTokens));
  e.ifElse(
      wanted,
      [&] {
        for (int i = 0; i < count; ++i) {
          Value address = e.at(base, e.i16Type(), e.loadAt(e.i64Type(), nextOffsets, e.add(token, e.i64(i))));
          for (int element = 0; element < context.headDim(); element += 32)
            e.prefetch(e.at(address, e.i16Type(), e.i64(element)));
        }
      },
      nullptr);
}

namespace {

/// The control of a call: rows in blocks of two groups, each block in three passes over the tokens that some of
/// its rows may see.
class AttendEmitter {
public:
  explicit AttendEmitter(const KernelContext &context) : context_(context), e(context.e) {}

  mlir::LLVM::LLVMFuncOp emit() {
    const int groupRows = context_.groupRows();
    weigh_ = emitWeigh(context_);
    if (!weigh_)
      return {};
    for (int groups = 1; groups <= kBlockGroups; ++groups)
      scores_.push_back(emitScores(context_, groups));
    for (int rows = 1; rows <= kBlockGroups * groupRows; rows *= 2)
      accumulate_.push_back(emitAccumulate(context_, rows));

    auto function = e.function(context_.module, "attend", {}, {e.pointerType()});
    Value call = call_ = function.getArgument(0);
    tokens_ = e.toI64(DEFT_FIELD(e.i32Type(), tokens));
    quadCount_ = e.shr(e.add(tokens_, e.i64(kQuad - 1)), 2);
    static_assert(kQuad == 4);
    isCut_ = e.compare(CmpIPredicate::ne, DEFT_FIELD(e.i32Type(), cut), e.i32(0));
    weights_ = e.stackArray(e.f32Type(), kBlockGroups * context_.groupWeights());
    rescale_ = e.stackArray(e.f32Type(), kBlockGroups * groupRows);
    quads_ = e.stackArray(e.i32Type(), kBlockQuads + 2);
    keys_ = mlir::LLVM::ZeroOp::create(e.builder(), e.location(), e.pointerType());
    if (!context_.dotsPairs())
      emitKeys();
    e.loop(e.i64(0), e.i64(kBlockQuads), 1,
           [&](Value i) { e.store(e.toI32(i), e.at(quads_, e.i32Type(), i)); });
    e.store(e.toI32(e.sub(quadCount_, e.i64(1))), e.at(quads_, e.i32Type(), quadCount_));

    const int blockRows = kBlockGroups * groupRows;
    Value rows = e.toI64(DEFT_FIELD(e.i32Type(), rows));
    e.loop(e.i64(0), rows, blockRows, [&](Value row) {
      Value count = emitQuads(row, blockRows);
      e.ifElse(
          e.compare(CmpIPredicate::sgt, count, e.i64(0)), [&] { emitBlock(row, e.sub(rows, row), count); },
          nullptr);
    });
    e.ret();
    return function;
  }

private:
  /// keys = K as f32, once for all rows.
  void emitKeys() {
    Value call = call_;
    keys_ = e.stackArray(e.f32Type(), kBlockTokens * context_.headDim());
    Value k = DEFT_FIELD(e.pointerType(), k), offsets = DEFT_FIELD(e.pointerType(), offsets);
    e.loop(e.i64(0), e.mul(quadCount_, e.i64(kQuad)), 1, [&](Value t) {
      Value from = e.at(k, e.i16Type(), e.loadAt(e.i64Type(), offsets, t));
      Value to = e.at(keys_, e.f32Type(), e.mul(t, e.i64(context_.headDim())));
      e.loop(e.i64(0), e.i64(context_.headDim()), e.lanes(), [&](Value d) {
        Value bits = e.loadAt(e.vectorOf(e.i16Type()), from, d);
        e.store(e.widen(context_.dtype(), bits), e.at(to, e.f32Type(), d));
      });
    });
  }

  /// How many quads a block of rows may see; where the block of tokens is cut, their list is made anew.
  Value emitQuads(Value row, int blockRows) {
    auto whole = [&](mlir::OpBuilder &, mlir::Location) {
      mlir::scf::YieldOp::create(e.builder(), e.location(), quadCount_);
    };
    auto selected = [&](mlir::OpBuilder &, mlir::Location) {
      Value call = call_;
      Value low = DEFT_FIELD(e.pointerType(), rowLow), high = DEFT_FIELD(e.pointerType(), rowHigh);
      Value begin = e.toI32(row), end = e.toI32(e.add(row, e.i64(blockRows)));
      Value count = e.loop(e.i64(0), quadCount_, 1, e.i64(0), [&](Value quad, mlir::ValueRange carried) {
        // Along a path neighbours overlap mostly: the bounds of the quad are as good as its tokens.
        Value seen = e.i1(false);
        for (int t = 0; t < kQuad; ++t) {
          Value token = e.add(e.mul(quad, e.i64(kQuad)), e.i64(t));
          seen = e.bitOr(
              seen, e.bitAnd(e.compare(CmpIPredicate::slt, e.loadAt(e.i32Type(), low, token), end),
                             e.compare(CmpIPredicate::sgt, e.loadAt(e.i32Type(), high, token), begin)));
        }
        Value next = e.add(carried[0], e.select(seen, e.i64(1), e.i64(0)));
        // Twice, so that the list ends with a repetition whatever comes.
        e.store(e.toI32(quad), e.at(quads_, e.i32Type(), e.select(seen, carried[0], e.i64(kBlockQuads + 1))));
        e.store(e.loadAt(e.i32Type(), quads_, carried[0]), e.at(quads_, e.i32Type(), next));
        return llvm::SmallVector<Value>{next};
      })[0];
      mlir::scf::YieldOp::create(e.builder(), e.location(), count);
    };
    return mlir::scf::IfOp::create(e.builder(), e.location(), isCut_, selected, whole).getResult(0);
  }

  void callPass(mlir::LLVM::LLVMFuncOp function, Value count, Value row, Value weights, Value rescale) {
    mlir::LLVM::CallOp::create(e.builder(), e.location(), function,
                               mlir::ValueRange{call_, keys_, quads_, count, row, weights, rescale});
  }

  /// The block of rows from `row` on, of which `left` are left.
  void emitBlock(Value row, Value left, Value count) {
    const int groupRows = context_.groupRows();
    e.ifElse(
        e.compare(CmpIPredicate::sgt, left, e.i64(groupRows)),
        [&] {
          callPass(scores_[1], count, row, weights_, rescale_);
          callPass(weigh_, count, row, weights_, rescale_);
          e.ifElse(
              e.compare(CmpIPredicate::sge, left, e.i64(kBlockGroups * groupRows)),
              [&] { callPass(accumulate_.back(), count, row, weights_, rescale_); },
              [&] {
                callPass(accumulate_[accumulate_.size() - 2], count, row, weights_, rescale_);
                emitRest(row, e.sub(left, e.i64(groupRows)), count, 1);
              });
        },
        [&] {
          callPass(scores_[0], count, row, weights_, rescale_);
          callPass(weigh_, count, row, weights_, rescale_);
          emitRest(row, left, count, 0);
        });
  }

  /// The sums over V of the `left` rows of a group, in powers of two.
  void emitRest(Value block, Value left, Value count, int group) {
    const int groupRows = context_.groupRows();
    Value row = e.add(block, e.i64(group * groupRows));
    Value weights = e.at(weights_, e.f32Type(), e.i64(group * context_.groupWeights()));
    Value rescale = e.at(rescale_, e.f32Type(), e.i64(group * groupRows));
    Value begin = e.i64(0);
    for (std::size_t i = accumulate_.size() - 1; i-- > 0;) {
      const int rows = 1 << i;
      Value has = e.compare(CmpIPredicate::ne, e.bitAnd(left, e.i64(rows)), e.i64(0));
      e.ifElse(
          has,
          [&] {
            callPass(accumulate_[i], count, e.add(row, begin),
                     e.at(weights, e.f32Type(), e.mul(begin, e.i64(kQuad))),
                     e.at(rescale, e.f32Type(), begin));
          },
          nullptr);
      begin = e.add(begin, e.select(has, e.i64(rows), e.i64(0)));
    }
  }

  const KernelContext &context_;
  Emitter &e;
  mlir::LLVM::LLVMFuncOp weigh_;
  llvm::SmallVector<mlir::LLVM::LLVMFuncOp> scores_, accumulate_;
  Value call_, tokens_, quadCount_, isCut_, weights_, rescale_, quads_, keys_;
};

} // namespace

mlir::LLVM::LLVMFuncOp emitAttend(const KernelContext &context) { return AttendEmitter(context).emit(); }

mlir::LLVM::LLVMFuncOp emitPack(const KernelContext &context) {
  Emitter &e = context.e;
  auto function = e.function(context.module, "pack", {}, {e.pointerType()});
  Value call = function.getArgument(0);
  Value q = e.field(e.pointerType(), call, offsetof(abi::CpuPackCall, q));
  Value packed = e.field(e.pointerType(), call, offsetof(abi::CpuPackCall, packed));
  Value first = e.toI64(e.field(e.i32Type(), call, offsetof(abi::CpuPackCall, rowBegin)));
  Value rows = e.toI64(e.field(e.i32Type(), call, offsetof(abi::CpuPackCall, rows)));
  const int dims = context.stepDims(), shift = context.groupRows() == 4 ? 2 : 1;
  e.loop(e.i64(0), rows, 1, [&](Value r) {
    Value from = e.at(q, e.i16Type(), e.mul(r, e.i64(context.headDim())));
    Value row = e.add(first, r);
    Value group = e.mul(e.shr(row, shift), e.i64(context.packedGroupBytes()));
    Value place = e.mul(e.bitAnd(row, e.i64(context.groupRows() - 1)), e.i64(16));
    Value to = e.at(packed, e.builder().getI8Type(), e.add(group, place));
    e.loop(e.i64(0), e.i64(context.headDim() / dims), 1, [&](Value step) {
      Value bits = e.loadAt(e.vectorOf(e.i16Type(), dims), from, e.mul(step, e.i64(dims)));
      Value at = e.at(to, e.builder().getI8Type(), e.mul(step, e.i64(e.lanes() * 4)));
      e.store(context.dotsPairs() ? bits : e.widen(context.dtype(), bits), at);
    });
  });
  e.ret();
  return function;
}

} // namespace deft::codegen::cpu
