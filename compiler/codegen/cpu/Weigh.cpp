#include "compiler/codegen/cpu/HookInliner.h"
#include "compiler/codegen/cpu/KernelEmitter.h"
#include "compiler/codegen/cpu/VectorMath.h"

#include <cstddef>
#include <limits>

namespace deft::codegen::cpu {

using mlir::Value;
using mlir::arith::CmpFPredicate;
using mlir::arith::CmpIPredicate;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

#define DEFT_FIELD(type, member) e.field(type, call, offsetof(abi::CpuAttendCall, member))

/// One row's scalars, loaded once.
struct Row {
  Value qPos, head, query;
  Value scores; ///< address of its stretch of `weights`
};

class WeighEmitter {
public:
  explicit WeighEmitter(const KernelContext &context) : context_(context), e(context.e) {}

  mlir::LLVM::LLVMFuncOp emit() {
    const mlir::Type pointer = e.pointerType();
    auto function =
        e.function(context_.module, "weigh", {}, {pointer, pointer, pointer, e.i64Type(), e.i64Type()});
    // Called for each block of rows from places of different row counts; inlined there it would only cost
    // compile time.
    function.setPassthroughAttr(e.builder().getStrArrayAttr({"noinline"}));
    call_ = function.getArgument(0);
    Value weights = function.getArgument(1), rescale = function.getArgument(2);
    Value rowBegin = function.getArgument(3), rowCount = function.getArgument(4);
    loadCall();
    e.loop(e.i64(0), rowCount, 1, [&](Value r) {
      Value row = e.add(rowBegin, r);
      Row values{e.loadAt(e.i32Type(), qPos_, row), e.loadAt(e.i32Type(), head_, row),
                 e.loadAt(e.i32Type(), query_, row),
                 e.at(weights, e.f32Type(), e.mul(r, e.i64(kBlockTokens)))};
      if (context_.isSigmoid())
        emitSigmoidRow(values);
      else
        emitSoftmaxRow(values, row, e.at(rescale, e.f32Type(), r));
    });
    e.ret();
    return failed_ ? mlir::LLVM::LLVMFuncOp() : function;
  }

private:
  void loadCall() {
    Value call = call_;
    qPos_ = DEFT_FIELD(e.pointerType(), qPos);
    head_ = DEFT_FIELD(e.pointerType(), head);
    query_ = DEFT_FIELD(e.pointerType(), query);
    params_ = DEFT_FIELD(e.pointerType(), params);
    m_ = DEFT_FIELD(e.pointerType(), m);
    l_ = DEFT_FIELD(e.pointerType(), l);
    tokens_ = DEFT_FIELD(e.i32Type(), tokens);
    kvPos_ = DEFT_FIELD(e.i32Type(), kvPos);
    depth_ = DEFT_FIELD(e.i32Type(), depth);
    kvHead_ = DEFT_FIELD(e.i32Type(), kvHead);
    masked_ = e.compare(CmpIPredicate::ne, DEFT_FIELD(e.i32Type(), masked), e.i32(0));
  }

  Value hook(mlir::Region &region, const Row &row, Value s, Value kvPos) {
    Value arguments[dialect::kHookArgCount];
    arguments[dialect::kArgS] = s;
    arguments[dialect::kArgQPos] = row.qPos;
    arguments[dialect::kArgKvPos] = kvPos;
    arguments[dialect::kArgHead] = row.head;
    arguments[dialect::kArgKvHead] = kvHead_;
    arguments[dialect::kArgDepth] = depth_;
    arguments[dialect::kArgQuery] = row.query;
    auto yielded = inlineHook(e, context_.attention, region, arguments, params_);
    if (failed(yielded)) {
      failed_ = true;
      return s;
    }
    return yielded->front();
  }

  /// The final scores of lanes() tokens from `t` on; -inf where the mask hides and beyond the last token.
  Value finalScores(const Row &row, Value t, bool masked) {
    Value s = e.mul(e.loadAt(e.vectorOf(e.f32Type()), row.scores, t),
                    e.f32(static_cast<float>(context_.attention.getScale().convertToDouble())));
    Value lane = e.add(e.toI32(t), e.laneNumbers());
    Value kvPos = e.add(lane, kvPos_);
    Value visible = e.compare(CmpIPredicate::slt, lane, tokens_);
    if (masked) {
      Value mask = hook(context_.attention.getMask(), row, s, kvPos);
      visible = e.bitAnd(visible, mask);
    }
    if (context_.attention.hasScore())
      s = hook(context_.attention.getScore(), row, s, kvPos);
    return e.select(visible, s, e.f32(-kInf));
  }

  /// Runs over the block's scores in steps of the vector width, `carried` being one vector.
  Value overTokens(Value init, const std::function<Value(Value t, Value carried)> &body) {
    return e.loop(e.i64(0), e.toI64(tokens_), e.lanes(), init, [&](Value t, mlir::ValueRange carried) {
      return llvm::SmallVector<Value>{body(t, carried[0])};
    })[0];
  }

  /// `body` with the mask evaluated, and, where the caller knows that it holds, without.
  Value maskedOrNot(const std::function<Value(bool masked)> &body) {
    if (!context_.attention.hasMask())
      return body(false);
    auto branch = [&](bool masked) {
      return [&body, masked, this](mlir::OpBuilder &, mlir::Location) {
        mlir::scf::YieldOp::create(e.builder(), e.location(), body(masked));
      };
    };
    return mlir::scf::IfOp::create(e.builder(), e.location(), masked_, branch(true), branch(false))
        .getResult(0);
  }

  void emitSoftmaxRow(const Row &row, Value index, Value rescale) {
    Value largest = maskedOrNot([&](bool masked) {
      return overTokens(e.splat(e.f32(-kInf)), [&](Value t, Value carried) {
        Value scores = finalScores(row, t, masked);
        e.store(scores, e.at(row.scores, e.f32Type(), t));
        return e.max(carried, scores);
      });
    });
    Value mAddress = e.at(m_, e.f32Type(), index), lAddress = e.at(l_, e.f32Type(), index);
    Value before = e.load(e.f32Type(), mAddress);
    Value m = e.max(e.reduceMax(largest), before);
    // A row that has seen no token keeps m = -inf; its exponents refer to 0, since -inf - -inf would be NaN.
    Value reference = e.select(e.compare(CmpFPredicate::OEQ, m, e.f32(-kInf)), e.f32(0), m);
    Value factor = emitExpWeight(e, e.sub(before, reference));
    Value sum = overTokens(e.splat(e.f32(0)), [&](Value t, Value carried) {
      Value address = e.at(row.scores, e.f32Type(), t);
      Value weights = emitExpWeight(e, e.sub(e.load(e.vectorOf(e.f32Type()), address), reference));
      e.store(weights, address);
      return e.add(carried, weights);
    });
    e.store(e.fma(e.load(e.f32Type(), lAddress), factor, e.reduceAdd(sum)), lAddress);
    e.store(m, mAddress);
    e.store(factor, rescale);
  }

  void emitSigmoidRow(const Row &row) {
    maskedOrNot([&](bool masked) {
      return overTokens(e.splat(e.f32(0)), [&](Value t, Value carried) {
        Value score = finalScores(row, t, masked);
        Value one = e.f32Like(score, 1.0f);
        Value weights = e.div(one, e.add(one, emitExp(e, e.sub(e.f32Like(score, 0.0f), score))));
        e.store(weights, e.at(row.scores, e.f32Type(), t));
        return carried;
      });
    });
  }

  const KernelContext &context_;
  Emitter &e;
  bool failed_ = false;
  Value call_, qPos_, head_, query_, params_, m_, l_, tokens_, kvPos_, depth_, kvHead_, masked_;
};

} // namespace

mlir::LLVM::LLVMFuncOp emitWeigh(const KernelContext &context) { return WeighEmitter(context).emit(); }

} // namespace deft::codegen::cpu
