#include "compiler/codegen/cpu/ElementHook.h"
#include "compiler/codegen/cpu/KernelEmitter.h"
#include "compiler/codegen/cpu/KeyHook.h"

#include <cstddef>
#include <optional>

namespace deft::codegen::cpu {

using mlir::Value;
using mlir::arith::CmpIPredicate;

#define DEFT_FIELD(type, member) e.field(type, call, offsetof(abi::CpuAttendCall, member))

mlir::LLVM::LLVMFuncOp passFunction(const KernelContext &context, llvm::StringRef name) {
  Emitter &e = context.e;
  const mlir::Type pointer = e.pointerType(), index = e.i64Type();
  auto function = e.function(context.module, name, {},
                             {pointer, pointer, pointer, index, index, index, pointer, pointer, index});
  // Called from several places; inlined there they would only cost compile time.
  function.setPassthroughAttr(e.builder().getStrArrayAttr({"noinline"}));
  return function;
}

namespace {

/// The control of a call: rows in blocks of two groups, each block in three passes over the tokens that some
/// of its rows may see.
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
    weights_ = e.stackArray(e.builder().getI8Type(), kBlockGroups * context_.groupWeightBytes());
    rescale_ = e.stackArray(e.f32Type(), kBlockGroups * groupRows);
    quads_ = e.stackArray(e.i32Type(), kBlockQuads + 2);
    keys_ = mlir::LLVM::ZeroOp::create(e.builder(), e.location(), e.pointerType());
    if (!context_.dotsKeyPairs() && failed(emitKeys()))
      return {};
    e.loop(e.i64(0), e.i64(kBlockQuads), 1,
           [&](Value i) { e.store(e.toI32(i), e.at(quads_, e.i32Type(), i)); });
    e.store(e.toI32(e.sub(quadCount_, e.i64(1))), e.at(quads_, e.i32Type(), quadCount_));

    const int blockRows = kBlockGroups * groupRows;
    Value rows = e.toI64(DEFT_FIELD(e.i32Type(), rows));
    Value fetch = e.toI64(DEFT_FIELD(e.i32Type(), nextTokens));
    // The first pass over the block asks for the next one.
    e.loop(e.i64(0), rows, blockRows, fetch, [&](Value row, mlir::ValueRange carried) {
      Seen seen = emitSeen(row, e.min(e.sub(rows, row), e.i64(blockRows)));
      Value some = e.compare(CmpIPredicate::sgt, seen.quads, e.i64(0));
      e.ifElse(some, [&] { emitBlock(row, seen, carried[0]); }, nullptr);
      return llvm::SmallVector<Value>{e.select(some, e.i64(0), carried[0])};
    });
    e.ret();
    return function;
  }

private:
  /// keys = K as f32, once for all rows.
  mlir::LogicalResult emitKeys() {
    Value call = call_;
    keys_ = e.stackArray(e.f32Type(), kBlockTokens * context_.keyDim());
    Value tokens = e.mul(quadCount_, e.i64(kQuad));
    if (context_.attention.hasKey())
      return KeyRows(context_).transform({call, tokens}, keys_);
    Value k = DEFT_FIELD(e.pointerType(), k), offsets = DEFT_FIELD(e.pointerType(), keyOffsets);
    e.loop(e.i64(0), tokens, 1, [&](Value t) {
      Value from = e.at(k, context_.keyBits(), e.loadAt(e.i64Type(), offsets, t));
      Value to = e.at(keys_, e.f32Type(), e.mul(t, e.i64(context_.keyDim())));
      e.loop(e.i64(0), e.i64(context_.keyDim()), e.lanes(), [&](Value d) {
        Value bits = e.loadAt(e.vectorOf(context_.keyBits()), from, d);
        e.store(e.widen(context_.keyType(), bits), e.at(to, e.f32Type(), d));
      });
    });
    return mlir::success();
  }

  /// Of a block of rows: how many quads some of them may see, and which rows may see any, [low, high).
  struct Seen {
    Value quads, low, high;
  };

  /// Where the block of tokens is cut, the list of quads is made anew.
  Seen emitSeen(Value row, Value count) {
    auto whole = [&](mlir::OpBuilder &, mlir::Location) {
      mlir::scf::YieldOp::create(e.builder(), e.location(), mlir::ValueRange{quadCount_, e.i64(0), count});
    };
    auto selected = [&](mlir::OpBuilder &, mlir::Location) {
      Value call = call_;
      Value lows = DEFT_FIELD(e.pointerType(), rowLow), highs = DEFT_FIELD(e.pointerType(), rowHigh);
      Value first = e.toI32(row), most = e.toI32(count), none = e.i32(0);
      auto found =
          e.loop(e.i64(0), quadCount_, 1, {e.i64(0), most, none}, [&](Value quad, mlir::ValueRange carried) {
            Value isSeen = e.i1(false), low = carried[1], high = carried[2];
            for (int t = 0; t < kQuad; ++t) {
              Value token = e.add(e.mul(quad, e.i64(kQuad)), e.i64(t));
              Value tokenLow = e.max(e.sub(e.loadAt(e.i32Type(), lows, token), first), none);
              Value tokenHigh = e.min(e.sub(e.loadAt(e.i32Type(), highs, token), first), most);
              Value sees = e.compare(CmpIPredicate::slt, tokenLow, tokenHigh);
              isSeen = e.bitOr(isSeen, sees);
              low = e.select(sees, e.min(low, tokenLow), low);
              high = e.select(sees, e.max(high, tokenHigh), high);
            }
            Value next = e.add(carried[0], e.select(isSeen, e.i64(1), e.i64(0)));
            // What is not seen goes to a place of its own; the entry behind the list repeats the last one.
            Value place = e.select(isSeen, carried[0], e.i64(kBlockQuads + 1));
            e.store(e.toI32(quad), e.at(quads_, e.i32Type(), place));
            e.store(e.loadAt(e.i32Type(), quads_, carried[0]), e.at(quads_, e.i32Type(), next));
            return llvm::SmallVector<Value>{next, low, high};
          });
      mlir::scf::YieldOp::create(e.builder(), e.location(),
                                 mlir::ValueRange{found[0], e.toI64(found[1]), e.toI64(found[2])});
    };
    auto op = mlir::scf::IfOp::create(e.builder(), e.location(), isCut_, selected, whole);
    return {op.getResult(0), op.getResult(1), op.getResult(2)};
  }

  /// Where the rows of a block that are worked on begin, and what is theirs.
  struct Place {
    Value row, quads, groups, weights, rescale, fetch;
  };
  void callPass(mlir::LLVM::LLVMFuncOp function, const Place &at) {
    mlir::LLVM::CallOp::create(e.builder(), e.location(), function,
                               mlir::ValueRange{call_, keys_, quads_, at.quads, at.row, at.groups, at.weights,
                                                at.rescale, at.fetch});
  }

  /// The block of rows from `row` on.
  void emitBlock(Value row, const Seen &seen, Value fetch) {
    const int groupRows = context_.groupRows(), shift = groupRows == 4 ? 2 : 1;
    // One group, the first or the second, or both.
    Value low = e.shr(seen.low, shift), high = e.shr(e.add(seen.high, e.i64(groupRows - 1)), shift);
    Value skipped = e.mul(low, e.i64(groupRows));
    Place at{e.add(row, skipped), seen.quads, e.sub(high, low), weights_, rescale_, fetch};
    Value begin = e.sub(seen.low, skipped), end = e.sub(seen.high, skipped);
    Value hasTwo = e.compare(CmpIPredicate::eq, at.groups, e.i64(2));
    static_assert(kBlockGroups == 2);
    e.ifElse(hasTwo, [&] { callPass(scores_[1], at); }, [&] { callPass(scores_[0], at); });
    callPass(weigh_, at);
    Value isWhole = e.compare(CmpIPredicate::eq, e.sub(end, begin), e.i64(2 * groupRows));
    e.ifElse(
        isWhole, [&] { callPass(accumulate_.back(), at); },
        [&] {
          e.loop(e.i64(0), at.groups, 1, fetch, [&](Value group, mlir::ValueRange carried) {
            Place its = at;
            its.fetch = carried[0];
            its.weights =
                e.at(at.weights, e.builder().getI8Type(), e.mul(group, e.i64(context_.groupWeightBytes())));
            Value first = e.mul(group, e.i64(groupRows));
            its.row = e.add(at.row, first);
            its.rescale = e.at(at.rescale, e.f32Type(), first);
            emitGroup(its, e.max(e.sub(begin, first), e.i64(0)), e.min(e.sub(end, first), e.i64(groupRows)));
            return llvm::SmallVector<Value>{e.i64(0)};
          });
        });
  }

  /// The sums over V of rows [begin, end) of a group: all at once, or two by two.
  void emitGroup(const Place &at, Value begin, Value end) {
    const int groupRows = context_.groupRows();
    auto part = [&](Value row) {
      Place its = at;
      its.row = e.add(at.row, row);
      its.weights =
          e.at(at.weights, e.builder().getI8Type(), e.mul(row, e.i64(kQuad * context_.weightBytes())));
      its.rescale = e.at(at.rescale, e.f32Type(), row);
      return its;
    };
    e.ifElse(
        e.compare(CmpIPredicate::eq, e.sub(end, begin), e.i64(groupRows)),
        [&] { callPass(accumulate_[accumulate_.size() - 2], at); },
        [&] {
          e.loop(e.i64(0), e.i64(groupRows), 2, at.fetch, [&](Value pair, mlir::ValueRange carried) {
            Value low = e.max(begin, pair), high = e.min(end, e.add(pair, e.i64(2)));
            Value rows = e.sub(high, low), some = e.compare(CmpIPredicate::sgt, rows, e.i64(0));
            Place its = part(low);
            its.fetch = carried[0];
            e.ifElse(
                some,
                [&] {
                  e.ifElse(
                      e.compare(CmpIPredicate::eq, rows, e.i64(2)), [&] { callPass(accumulate_[1], its); },
                      [&] { callPass(accumulate_[0], its); });
                },
                nullptr);
            return llvm::SmallVector<Value>{e.select(some, e.i64(0), carried[0])};
          });
        });
  }

  const KernelContext &context_;
  Emitter &e;
  mlir::LLVM::LLVMFuncOp weigh_;
  llvm::SmallVector<mlir::LLVM::LLVMFuncOp> scores_, accumulate_;
  Value call_, tokens_, quadCount_, isCut_, weights_, rescale_, quads_, keys_;
};

} // namespace

mlir::LLVM::LLVMFuncOp emitAttend(const KernelContext &context) { return AttendEmitter(context).emit(); }

namespace {

/// A row of q as products of 8 bits take it (rule A12).
class ByteRow {
public:
  /// The row lies at `from`, in q's dtype.
  ByteRow(const KernelContext &context, Value from) : e(context.e) {
    Value vector = e.loop(e.i64(0), e.i64(context.keyDim()), e.lanes(), e.splat(e.f32(0)),
                          [&](Value d, mlir::ValueRange carried) {
                            Value bits = e.loadAt(e.vectorOf(e.i16Type()), from, d);
                            Value size = e.absolute(e.widen(context.queryType(), bits));
                            return llvm::SmallVector<Value>{e.max(size, carried[0])};
                          })[0];
    // The exponent of the least power of two that is not below 2^8 / 448 of the largest element, 1.75 being
    // the largest mantissa that 448 leaves room for.
    Value largest = e.bitcast(e.i32Type(), e.reduceMax(vector));
    Value exponent = e.shr(e.add(largest, e.i32(0x1fffff)), 23);
    exponent = e.max(exponent, e.i32(kLeastScale + 8));
    scale_ = e.bitcast(e.f32Type(), e.shl(e.sub(exponent, e.i32(8)), 23));
    inverse_ = e.bitcast(e.f32Type(), e.shl(e.sub(e.i32(2 * 127 + 8), exponent), 23));
  }

  /// Some elements, as f32.
  Value round(Value elements) const { return e.mul(e.roundToE4m3(e.mul(elements, inverse_)), scale_); }

private:
  static constexpr int kLeastScale = 1; ///< the exponent in the bits of 2^-126

  Emitter &e;
  Value scale_, inverse_; ///< f32, powers of two
};

} // namespace

mlir::LLVM::LLVMFuncOp emitPack(const KernelContext &context) {
  Emitter &e = context.e;
  auto function = e.function(context.module, "pack", {}, {e.pointerType()});
  Value call = function.getArgument(0);
  Value q = e.field(e.pointerType(), call, offsetof(abi::CpuPackCall, q));
  Value packed = e.field(e.pointerType(), call, offsetof(abi::CpuPackCall, packed));
  Value first = e.toI64(e.field(e.i32Type(), call, offsetof(abi::CpuPackCall, rowBegin)));
  Value rows = e.toI64(e.field(e.i32Type(), call, offsetof(abi::CpuPackCall, rows)));
  const int dims = context.stepDims(), shift = context.groupRows() == 4 ? 2 : 1;
  std::optional<QueryRows> hook;
  RowFacts facts;
  if (context.attention.hasQuery()) {
    hook.emplace(context);
    facts = {e.field(e.i32Type(), call, offsetof(abi::CpuPackCall, qPos)),
             e.field(e.i32Type(), call, offsetof(abi::CpuPackCall, query)),
             e.field(e.i32Type(), call, offsetof(abi::CpuPackCall, head)),
             e.field(e.pointerType(), call, offsetof(abi::CpuPackCall, params))};
  }
  bool isBroken = false;
  e.loop(e.i64(0), rows, 1, [&](Value r) {
    Value from = e.at(q, e.i16Type(), e.mul(r, e.i64(context.keyDim())));
    if (hook) {
      RowFacts rowFacts = facts;
      rowFacts.head = e.add(facts.head, e.toI32(r));
      from = hook->transform(from, rowFacts);
      isBroken |= !from;
      if (isBroken)
        return;
    }
    Value row = e.add(first, r);
    Value group = e.mul(e.shr(row, shift), e.i64(context.packedGroupBytes()));
    Value place = e.mul(e.bitAnd(row, e.i64(context.groupRows() - 1)), e.i64(16));
    Value to = e.at(packed, e.builder().getI8Type(), e.add(group, place));
    std::optional<ByteRow> bytes;
    if (context.tensors.byteProducts)
      bytes.emplace(context, from);
    e.loop(e.i64(0), e.i64(context.keyDim() / dims), 1, [&](Value step) {
      Value elements = e.loadAt(e.vectorOf(e.i16Type(), dims), from, e.mul(step, e.i64(dims)));
      if (!context.dotsKeyPairs())
        elements = e.widen(context.queryType(), elements);
      if (bytes)
        elements = bytes->round(elements);
      e.store(elements, e.at(to, e.builder().getI8Type(), e.mul(step, e.i64(e.lanes() * 4))));
    });
  });
  e.ret();
  return isBroken ? mlir::LLVM::LLVMFuncOp() : function;
}

#undef DEFT_FIELD

} // namespace deft::codegen::cpu
