#include "compiler/codegen/cpu/KernelEmitter.h"

#include <bit>
#include <cstddef>
#include <optional>

namespace deft::codegen::cpu {

using mlir::Value;
using Values = llvm::SmallVector<Value>;

#define DEFT_FIELD(type, member) e.field(type, call, offsetof(abi::CpuAttendCall, member))

namespace {

/// q.k of a block of groups, two quads of tokens at a time. A step of the inner loop takes 128 bits of each
/// token for all rows of a vector, so K is neither transposed nor, where bf16 is multiplied in pairs,
/// converted; and of the sums only 128 bits a row are left to reduce. A single row leaves most lanes to
/// nobody, but its step waits for memory, not for them.
class ScoresEmitter {
public:
  ScoresEmitter(const KernelContext &context, int groups, mlir::LLVM::LLVMFuncOp function)
      : context_(context), e(context.e), groups_(groups), pass_(function) {}

  void emit() {
    Value call = pass_.call;
    k_ = DEFT_FIELD(e.pointerType(), k);
    offsets_ = DEFT_FIELD(e.pointerType(), keyOffsets);
    Value row = pass_.row;
    Value group = e.shr(row, context_.groupRows() == 4 ? 2 : 1);
    packed_ = e.at(DEFT_FIELD(e.pointerType(), packed), e.builder().getI8Type(),
                   e.mul(group, e.i64(context_.packedGroupBytes())));
    fetches_.emplace(context_, pass_, packed_);
    // Where all values are made before they are added there must be registers for them: 8 tokens and 2 groups
    // take 16 sums, of 32 vectors with AVX-512; without, 4 tokens and 8 sums of 16.
    const int quads = e.lanes() == 16 ? 2 : 1;
    e.loop(e.i64(0), pass_.quadCount, quads, [&](Value i) { emitTokens(i, quads); });
    e.ret();
  }

private:
  /// For step `d` of the inner loop over so many tokens from `token` on: its share of as many tokens of the
  /// next K, and of half as many of the next V, which the sums over V alone would have to ask for in too
  /// short a time.
  void listFetches(Value d, Value token, int tokens) {
    const int dims = context_.stepDims(), steps = context_.keyDim() / dims;
    Value step = e.shr(d, std::countr_zero(static_cast<unsigned>(dims)));
    fetches_->clear();
    fetches_->addShare(fetches_->keys(), token, tokens, step, steps);
    fetches_->addShare(fetches_->values(), e.shr(token, 1), tokens / 2, step, steps);
  }

  /// Where the tokens of so many quads have their keys.
  Values keysOf(Value i, int quads) {
    Values keys;
    for (int quad = 0; quad < quads; ++quad) {
      Value first = e.mul(e.toI64(e.loadAt(e.i32Type(), pass_.quads, e.add(i, e.i64(quad)))), e.i64(kQuad));
      for (int t = 0; t < kQuad; ++t) {
        Value token = e.add(first, e.i64(t));
        keys.push_back(context_.dotsKeyPairs()
                           ? e.at(k_, e.i16Type(), e.loadAt(e.i64Type(), offsets_, token))
                           : e.at(pass_.keys, e.f32Type(), e.mul(token, e.i64(context_.keyDim()))));
      }
    }
    return keys;
  }

  void emitTokens(Value i, int quads) {
    const Values keys = keysOf(i, quads);
    const auto count = keys.size();
    Values sums(static_cast<std::size_t>(groups_) * count, e.splat(e.f32(0)));
    sums = e.loop(e.i64(0), e.i64(context_.keyDim()), context_.stepDims(), sums,
                  [&](Value d, mlir::ValueRange carried) {
                    listFetches(d, e.mul(i, e.i64(kQuad)), quads * kQuad);
                    Values next(carried.begin(), carried.end()), q;
                    for (int group = 0; group < groups_; ++group)
                      q.push_back(packed(group, d));
                    for (std::size_t t = 0; t < count; ++t) {
                      fetches_->ask(static_cast<int>(t), static_cast<int>(count));
                      Value key = spread(keys[t], d);
                      for (int group = 0; group < groups_; ++group) {
                        Value &sum = next[static_cast<std::size_t>(group) * count + t];
                        sum = context_.dotsKeyPairs() ? e.dotPairs(q[group], key, sum)
                                                      : e.fma(key, q[group], sum);
                      }
                    }
                    return next;
                  });
    for (int group = 0; group < groups_; ++group)
      for (int quad = 0; quad < quads; ++quad) {
        Value scores = sumsOfFour(llvm::ArrayRef(sums).slice(
            static_cast<std::size_t>(group) * count + static_cast<std::size_t>(quad * kQuad), kQuad));
        store(scores, group, e.add(i, e.i64(quad)));
      }
  }

  /// `scores` is [row][token].
  void store(Value scores, int group, Value quad) {
    Value place = e.add(e.mul(quad, e.i64(e.lanes() * 4)), e.i64(group * context_.groupWeightBytes()));
    e.store(scores, e.at(pass_.weights, e.builder().getI8Type(), place));
  }

  /// The vector of a group's rows at dimension d.
  Value packed(int group, Value d) {
    const int elementBytes = context_.dotsKeyPairs() ? 2 : 4;
    Value byte = e.add(e.mul(d, e.i64(elementBytes * context_.groupRows())),
                       e.i64(group * context_.packedGroupBytes()));
    Value address = e.at(packed_, e.builder().getI8Type(), byte);
    if (!context_.dotsKeyPairs())
      return e.load(e.vectorOf(e.f32Type()), address);
    return e.bitcast(context_.keyType(), e.load(e.vectorOf(e.i16Type(), 2 * e.lanes()), address));
  }

  /// 128 bits of a token, for each row.
  Value spread(Value key, Value d) {
    const int dims = context_.stepDims();
    llvm::SmallVector<std::int64_t> lanes;
    for (int row = 0; row < context_.groupRows(); ++row)
      for (int i = 0; i < dims; ++i)
        lanes.push_back(i);
    const mlir::Type element = context_.dotsKeyPairs() ? e.i16Type() : e.f32Type();
    Value loaded = e.loadAt(e.vectorOf(element, dims), key, d);
    Value spread = e.shuffle(loaded, loaded, lanes);
    return context_.dotsKeyPairs() ? e.bitcast(context_.keyType(), spread) : spread;
  }

  /// Of four vectors, one a token, the sums over each row's four lanes as [row][token]: transposing while
  /// adding takes a third of the shuffles of four separate reductions.
  Value sumsOfFour(llvm::ArrayRef<Value> vectors) {
    const int lanes = e.lanes();
    // As the unpack instructions see four lanes.
    llvm::SmallVector<std::int64_t> low, high, lowPairs, highPairs;
    for (int group = 0; group < lanes; group += 4) {
      const int a = group, b = lanes + group;
      low.append({a, b, a + 1, b + 1});
      high.append({a + 2, b + 2, a + 3, b + 3});
      lowPairs.append({a, a + 1, b, b + 1});
      highPairs.append({a + 2, a + 3, b + 2, b + 3});
    }
    auto halve = [&](Value a, Value b) { return e.add(e.shuffle(a, b, low), e.shuffle(a, b, high)); };
    Value first = halve(vectors[0], vectors[1]), second = halve(vectors[2], vectors[3]);
    return e.add(e.shuffle(first, second, lowPairs), e.shuffle(first, second, highPairs));
  }

  const KernelContext &context_;
  Emitter &e;
  int groups_;
  Pass pass_;
  Value k_, offsets_, packed_;
  std::optional<Fetches> fetches_;
};

} // namespace

mlir::LLVM::LLVMFuncOp emitScores(const KernelContext &context, int groups) {
  auto function = passFunction(context, "scores_" + std::to_string(groups));
  ScoresEmitter(context, groups, function).emit();
  return function;
}

#undef DEFT_FIELD

} // namespace deft::codegen::cpu
