#include "compiler/codegen/cpu/HookInliner.h"
#include "compiler/codegen/cpu/KernelEmitter.h"
#include "compiler/codegen/cpu/VectorMath.h"

#include <cstddef>
#include <limits>
#include <optional>

namespace deft::codegen::cpu {

using mlir::Value;
using mlir::arith::CmpFPredicate;
using mlir::arith::CmpIPredicate;

namespace {

#define DEFT_FIELD(type, member) e.field(type, call, offsetof(abi::CpuAttendCall, member))

/// A group's scores to weights. All values are vectors [row][token of a quad]; what belongs to a row is
/// repeated over its four lanes.
class WeighEmitter {
public:
  WeighEmitter(const KernelContext &context, mlir::LLVM::LLVMFuncOp function)
      : context_(context), e(context.e), pass_(function) {}

  bool emit() {
    Value call = pass_.call;
    params_ = DEFT_FIELD(e.pointerType(), params);
    kvHead_ = DEFT_FIELD(e.i32Type(), kvHead);
    kvPos_ = DEFT_FIELD(e.pointerType(), kvPos);
    depth_ = DEFT_FIELD(e.pointerType(), depth);
    rowLow_ = DEFT_FIELD(e.pointerType(), rowLow);
    rowHigh_ = DEFT_FIELD(e.pointerType(), rowHigh);
    if (context_.attention.hasTokenParams())
      slots_ = DEFT_FIELD(e.pointerType(), slots);
    // With tokens missing in the last quad, whose intervals are empty, the intervals have to be looked at,
    // too.
    Value tokens = DEFT_FIELD(e.i32Type(), tokens);
    Value special = e.bitOr(DEFT_FIELD(e.i32Type(), masked), DEFT_FIELD(e.i32Type(), cut));
    special = e.bitOr(special, e.bitAnd(tokens, e.i32(kQuad - 1)));
    isSpecial_ = e.compare(CmpIPredicate::ne, special, e.i32(0));
    if (context_.attention.getSelect()) {
      Value null = mlir::LLVM::ZeroOp::create(e.builder(), e.location(), e.pointerType());
      keepsScores_ = mlir::LLVM::ICmpOp::create(e.builder(), e.location(), mlir::LLVM::ICmpPredicate::ne,
                                                DEFT_FIELD(e.pointerType(), scores), null);
    }
    e.loop(e.i64(0), pass_.groups, 1, [&](Value group) { emitGroup(group); });
    e.ret();
    return !failed_;
  }

private:
  /// Of one group.
  struct Group {
    Value weights;   ///< address
    Value rowNumber; ///< within the call, i32 vector
    Value kept;      ///< address of its scores, where they are kept
    std::optional<InlinedHook> mask, score, valueFactor;
  };

  void emitGroup(Value index) {
    Value call = pass_.call;
    Value row = e.add(pass_.row, e.mul(index, e.i64(context_.groupRows())));
    Group group;
    group.weights =
        e.at(pass_.weights, e.builder().getI8Type(), e.mul(index, e.i64(context_.groupWeightBytes())));
    llvm::SmallVector<std::int32_t> rowOfLane;
    for (int lane = 0; lane < e.lanes(); ++lane)
      rowOfLane.push_back(lane / kQuad);
    Value inGroup = mlir::arith::ConstantOp::create(
        e.builder(), e.location(),
        mlir::DenseElementsAttr::get(e.vectorOf(e.i32Type()), llvm::ArrayRef<std::int32_t>(rowOfLane)));
    group.rowNumber = e.add(e.toI32(row), inGroup);
    if (keepsScores_) {
      Value first = e.shr(row, context_.groupRows() == 4 ? 2 : 1);
      group.kept = e.at(DEFT_FIELD(e.pointerType(), scores), e.f32Type(),
                        e.mul(first, e.i64(kBlockQuads * e.lanes())));
    }

    Value arguments[dialect::kHookArgCount] = {};
    arguments[dialect::kArgQPos] = loadRows(e.i32Type(), DEFT_FIELD(e.pointerType(), qPos), row);
    arguments[dialect::kArgHead] = loadRows(e.i32Type(), DEFT_FIELD(e.pointerType(), head), row);
    arguments[dialect::kArgQuery] = loadRows(e.i32Type(), DEFT_FIELD(e.pointerType(), query), row);
    arguments[dialect::kArgKvHead] = kvHead_;
    if (context_.attention.hasMask())
      group.mask = prepare(context_.attention.getMask(), arguments);
    if (context_.attention.hasScore())
      group.score = prepare(context_.attention.getScore(), arguments);
    if (context_.attention.hasValueFactor())
      group.valueFactor = prepare(context_.attention.getValueFactor(), arguments);
    if (failed_)
      return;
    if (context_.isSigmoid())
      emitSigmoid(group);
    else
      emitSoftmax(group, row, e.mul(index, e.i64(context_.groupRows())));
  }

  std::optional<InlinedHook> prepare(mlir::Region &region, llvm::ArrayRef<Value> arguments) {
    auto hook = InlinedHook::prepare(e, context_.attention, region, arguments, params_);
    failed_ |= failed(hook);
    return failed_ ? std::nullopt : std::optional<InlinedHook>(*hook);
  }

  /// A quad of tokens: the first, and what hooks read of them all.
  struct Quad {
    Value token, kvPos, depth;
  };

  /// For every row and token, also where the hook depends on neither.
  Value apply(const InlinedHook &hook, Value s, const Quad &quad) {
    Value arguments[dialect::kHookArgCount] = {};
    arguments[dialect::kArgS] = s;
    arguments[dialect::kArgKvPos] = quad.kvPos;
    arguments[dialect::kArgDepth] = quad.depth;
    auto yielded = hook.apply(e, arguments, [&](mlir::Type element, Value array, bool isOfHeads) {
      return elementsOfTokens(element, array, isOfHeads, quad.token);
    });
    failed_ |= failed(yielded);
    return failed_ ? s : e.spread(yielded->front());
  }

  /// An entry a row, spread over the row's lanes.
  Value loadRows(mlir::Type type, Value pointer, Value row) {
    llvm::SmallVector<std::int64_t> lanes;
    for (int lane = 0; lane < e.lanes(); ++lane)
      lanes.push_back(lane / kQuad);
    Value rows = e.loadAt(e.vectorOf(type, context_.groupRows()), pointer, row);
    return e.shuffle(rows, rows, lanes);
  }
  void storeRows(Value value, Value pointer, Value row) {
    llvm::SmallVector<std::int64_t> lanes;
    for (int lane = 0; lane < e.lanes(); lane += kQuad)
      lanes.push_back(lane);
    e.store(e.shuffle(value, value, lanes), e.at(pointer, e.f32Type(), row));
  }
  /// An i32 entry a token of the quad that begins at `token`, for each row.
  Value loadTokens(Value pointer, Value token) {
    llvm::SmallVector<std::int64_t> lanes;
    for (int lane = 0; lane < e.lanes(); ++lane)
      lanes.push_back(lane % kQuad);
    Value tokens = e.loadAt(e.vectorOf(e.i32Type(), kQuad), pointer, token);
    return e.shuffle(tokens, tokens, lanes);
  }

  /// Of an array over tokens those of the quad that begins at `token`, and of the call's KV head where each
  /// has one, for each row.
  Value elementsOfTokens(mlir::Type element, Value array, bool isOfHeads, Value token) {
    llvm::SmallVector<std::int64_t> lanes;
    for (int lane = 0; lane < e.lanes(); ++lane)
      lanes.push_back(lane % kQuad);
    Value elements = mlir::arith::ConstantOp::create(e.builder(), e.location(),
                                                     e.builder().getZeroAttr(e.vectorOf(element, kQuad)));
    for (std::int64_t t = 0; t < kQuad; ++t) {
      Value place = e.loadAt(e.i64Type(), slots_, e.add(token, e.i64(t)));
      if (isOfHeads)
        place = e.add(e.mul(place, e.i64(context_.attention.getKvHeads())), e.toI64(kvHead_));
      elements = mlir::vector::InsertOp::create(e.builder(), e.location(), e.loadAt(element, array, place),
                                                elements, t);
    }
    return e.shuffle(elements, elements, lanes);
  }

  /// `combine` over each row's four lanes, in all four.
  Value overQuad(Value value, llvm::function_ref<Value(Value, Value)> combine) {
    for (int distance : {2, 1}) {
      llvm::SmallVector<std::int64_t> lanes;
      for (int lane = 0; lane < e.lanes(); ++lane)
        lanes.push_back(lane ^ distance);
      value = combine(value, e.shuffle(value, value, lanes));
    }
    return value;
  }

  Value weightsAt(const Group &group, Value i) {
    return e.at(group.weights, e.f32Type(), e.mul(i, e.i64(e.lanes())));
  }

  /// What is left of entry i of the list to whom multiplies V: `weights`, by which V is averaged, and factors
  /// that tokens have. What weighs nothing stays so: no one need have written its factor.
  void storeWeights(const Group &group, Value i, Value weights) {
    if (group.valueFactor) {
      Value factors = apply(*group.valueFactor, weights, quadOf(i));
      Value none = e.f32Like(weights, 0.0f);
      weights = e.select(e.compare(CmpFPredicate::OEQ, weights, none), none, e.mul(weights, factors));
    }
    storeRoundedWeights(group, i, weights);
  }

  /// As bf16 the weights of a quad take half the room of its scores, so they never reach scores still unread.
  void storeRoundedWeights(const Group &group, Value i, Value weights) {
    if (context_.tensors.byteProducts) { // rule A12: of at most 1, they are numbers of e4m3 times 2^-8
      Value rounded = e.roundToE4m3(e.mul(weights, e.f32Like(weights, 0x1p8f)));
      weights = e.mul(rounded, e.f32Like(weights, 0x1p-8f));
    }
    if (!context_.dotsValuePairs()) {
      e.store(weights, weightsAt(group, i));
      return;
    }
    e.store(e.narrowWeights(weights), e.at(group.weights, e.i16Type(), e.mul(i, e.i64(e.lanes()))));
  }

  /// Entry i of the list.
  Quad quadOf(Value i) {
    Value token = e.mul(e.toI64(e.loadAt(e.i32Type(), pass_.quads, i)), e.i64(kQuad));
    return {token, loadTokens(kvPos_, token), loadTokens(depth_, token)};
  }

  /// The final scores of entry i of the list; -inf where a row does not see a token.
  Value finalScores(const Group &group, Value i, bool special) {
    Value s = e.mul(e.load(e.vectorOf(e.f32Type()), weightsAt(group, i)),
                    e.f32(static_cast<float>(context_.attention.getScale().convertToDouble())));
    const Quad quad = quadOf(i);
    Value visible;
    if (special) {
      visible = e.bitAnd(e.compare(CmpIPredicate::sge, group.rowNumber, loadTokens(rowLow_, quad.token)),
                         e.compare(CmpIPredicate::slt, group.rowNumber, loadTokens(rowHigh_, quad.token)));
      if (group.mask)
        visible = e.bitAnd(visible, apply(*group.mask, s, quad));
    }
    if (group.score)
      s = apply(*group.score, s, quad);
    return visible ? e.select(visible, s, e.f32(-kInf)) : s;
  }

  /// Leaves the scores of entry i of the list to who selects tokens by them.
  void keepScores(const Group &group, Value i, Value scores) {
    if (!keepsScores_)
      return;
    e.ifElse(
        keepsScores_,
        [&] {
          Value quad = e.toI64(e.loadAt(e.i32Type(), pass_.quads, i));
          e.store(scores, e.at(group.kept, e.f32Type(), e.mul(quad, e.i64(e.lanes()))));
        },
        nullptr);
  }

  /// Runs over the list of quads, `carried` being one vector.
  Value overQuads(Value init, const std::function<Value(Value i, Value carried)> &body) {
    return e.loop(e.i64(0), pass_.quadCount, 1, init, [&](Value i, mlir::ValueRange carried) {
      return llvm::SmallVector<Value>{body(i, carried[0])};
    })[0];
  }

  /// `body` with visibility evaluated, and, where all is known to be seen, without.
  Value specialOrNot(const std::function<Value(bool special)> &body) {
    auto branch = [&](bool special) {
      return [&body, special, this](mlir::OpBuilder &, mlir::Location) {
        mlir::scf::YieldOp::create(e.builder(), e.location(), body(special));
      };
    };
    return mlir::scf::IfOp::create(e.builder(), e.location(), isSpecial_, branch(true), branch(false))
        .getResult(0);
  }

  void emitSoftmax(const Group &group, Value row, Value inBlock) {
    Value largest = specialOrNot([&](bool special) {
      return overQuads(e.splat(e.f32(-kInf)), [&](Value i, Value carried) {
        Value scores = finalScores(group, i, special);
        keepScores(group, i, scores);
        e.store(scores, weightsAt(group, i));
        return e.max(carried, scores);
      });
    });
    Value call = pass_.call;
    Value mPointer = DEFT_FIELD(e.pointerType(), m), lPointer = DEFT_FIELD(e.pointerType(), l);
    Value before = loadRows(e.f32Type(), mPointer, row);
    Value m = e.max(overQuad(largest, [&](Value a, Value b) { return e.max(a, b); }), before);
    // A row that has seen no token keeps m = -inf; its exponents refer to 0, since -inf - -inf would be NaN.
    Value reference = e.select(e.compare(CmpFPredicate::OEQ, m, e.f32(-kInf)), e.f32(0), m);
    Value factor = emitExpWeight(e, e.sub(before, reference));
    Value sum = overQuads(e.splat(e.f32(0)), [&](Value i, Value carried) {
      Value address = weightsAt(group, i);
      Value weights = emitExpWeight(e, e.sub(e.load(e.vectorOf(e.f32Type()), address), reference));
      storeWeights(group, i, weights);
      return e.add(carried, weights);
    });
    Value total = overQuad(sum, [&](Value a, Value b) { return e.add(a, b); });
    storeRows(e.fma(loadRows(e.f32Type(), lPointer, row), factor, total), lPointer, row);
    storeRows(m, mPointer, row);
    storeRows(factor, pass_.rescale, inBlock);
  }

  void emitSigmoid(const Group &group) {
    specialOrNot([&](bool special) {
      return overQuads(e.splat(e.f32(0)), [&](Value i, Value carried) {
        Value score = finalScores(group, i, special);
        keepScores(group, i, score);
        Value one = e.f32Like(score, 1.0f);
        Value weights = e.div(one, e.add(one, emitExp(e, e.sub(e.f32Like(score, 0.0f), score))));
        storeWeights(group, i, weights);
        return carried;
      });
    });
  }

  const KernelContext &context_;
  Emitter &e;
  Pass pass_;
  bool failed_ = false;
  Value params_, kvHead_, kvPos_, depth_, rowLow_, rowHigh_, isSpecial_;
  Value slots_;       ///< null: the attention has no arrays over tokens
  Value keepsScores_; ///< i1, whether a call asks for them; null: kernels of this attention have none to give
};

} // namespace

mlir::LLVM::LLVMFuncOp emitWeigh(const KernelContext &context) {
  auto function = passFunction(context, "weigh");
  return WeighEmitter(context, function).emit() ? function : mlir::LLVM::LLVMFuncOp();
}

#undef DEFT_FIELD

} // namespace deft::codegen::cpu
