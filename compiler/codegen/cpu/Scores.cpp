#include "compiler/codegen/cpu/KernelEmitter.h"

#include <bit>
#include <cstddef>

namespace deft::codegen::cpu {

using mlir::Value;
using mlir::arith::CmpIPredicate;
using Values = llvm::SmallVector<Value>;

#define DEFT_FIELD(type, member) e.field(type, call, offsetof(abi::CpuAttendCall, member))

namespace {

/// q.k of a block of groups, two quads of tokens at a time. A step of the inner loop takes 128 bits of each
/// token for all rows of a vector, so K is neither transposed nor, where bf16 is multiplied in pairs,
/// converted; and of the sums only 128 bits a row are left to reduce. Of a single row a step takes a whole
/// vector of each token instead, or most lanes would work for nobody.
class ScoresEmitter {
public:
  /// `groups` is 0 for the first row of a group alone.
  ScoresEmitter(const KernelContext &context, int groups, mlir::LLVM::LLVMFuncOp function)
      : context_(context), e(context.e), groups_(groups), pass_(function) {}

  void emit() {
    Value call = pass_.call;
    k_ = DEFT_FIELD(e.pointerType(), k);
    offsets_ = DEFT_FIELD(e.pointerType(), offsets);
    Value row = pass_.row;
    Value group = e.shr(row, context_.groupRows() == 4 ? 2 : 1);
    packed_ = e.at(DEFT_FIELD(e.pointerType(), packed), e.builder().getI8Type(),
                   e.mul(group, e.i64(context_.packedGroupBytes())));
    nextK_ = DEFT_FIELD(e.pointerType(), nextK);
    nextV_ = DEFT_FIELD(e.pointerType(), nextV);
    nextOffsets_ = DEFT_FIELD(e.pointerType(), nextOffsets);
    // Where all values are made before they are added there must be registers for them: 8 tokens and 2 groups
    // take 16 sums, of 32 vectors with AVX-512; without, 4 tokens and 8 sums of 16.
    const int quads = e.lanes() == 16 ? 2 : 1;
    if (isOfRow())
      copyRow();
    e.loop(e.i64(0), pass_.quadCount, quads, [&](Value i) {
      if (isOfRow())
        emitTokensOfRow(i, quads);
      else
        emitTokens(i, quads);
    });
    e.ret();
  }

private:
  bool isOfRow() const { return groups_ == 0; }

  /// In step `d` of the inner loop over so many tokens from `token` on: asks for the step's share of as many
  /// tokens of the next K, and of half as many of the next V, which the sums over V alone would have to ask
  /// for in too short a time. Requests beyond what the core keeps under way are dropped or stop it, so they
  /// are spread as evenly as can be.
  void emitFetches(Value d, Value token, int tokens) {
    const int dims = isOfRow() ? context_.keyLanes() : context_.stepDims();
    const int steps = context_.headDim() / dims;
    Value step = e.shr(d, std::countr_zero(static_cast<unsigned>(dims)));
    emitFetchStep(nextK_, token, tokens, step, steps);
    emitFetchStep(nextV_, e.shr(token, 1), tokens / 2, step, steps);
  }
  void emitFetchStep(Value base, Value token, int tokens, Value step, int steps) {
    const int lines = context_.linesPerToken(), all = tokens * lines, each = (all + steps - 1) / steps;
    // What nobody wants is a line that is there: cheaper than a branch.
    Value isWanted = e.compare(CmpIPredicate::slt, token, pass_.fetch);
    for (int i = 0; i < each; ++i) {
      Value line = e.min(e.add(e.mul(step, e.i64(each)), e.i64(i)), e.i64(all - 1));
      // line / lines, exact for numbers this small
      Value nth = e.shr(e.mul(line, e.i64((1 << 16) / lines + 1)), 16);
      Value offset = e.loadAt(e.i64Type(), nextOffsets_, e.add(token, nth));
      Value element = e.mul(e.sub(line, e.mul(nth, e.i64(lines))), e.i64(kLineElements));
      Value address = e.at(base, e.i16Type(), e.add(offset, element));
      e.prefetch(e.select(isWanted, address, packed_));
    }
  }

  /// Where the tokens of so many quads have their keys.
  Values keysOf(Value i, int quads) {
    Values keys;
    for (int quad = 0; quad < quads; ++quad) {
      Value first = e.mul(e.toI64(e.loadAt(e.i32Type(), pass_.quads, e.add(i, e.i64(quad)))), e.i64(kQuad));
      for (int t = 0; t < kQuad; ++t) {
        Value token = e.add(first, e.i64(t));
        keys.push_back(context_.dotsPairs()
                           ? e.at(k_, e.i16Type(), e.loadAt(e.i64Type(), offsets_, token))
                           : e.at(pass_.keys, e.f32Type(), e.mul(token, e.i64(context_.headDim()))));
      }
    }
    return keys;
  }

  void emitTokens(Value i, int quads) {
    const Values keys = keysOf(i, quads);
    const auto count = keys.size();
    Values sums(static_cast<std::size_t>(groups_) * count, e.splat(e.f32(0)));
    sums = e.loop(e.i64(0), e.i64(context_.headDim()), context_.stepDims(), sums,
                  [&](Value d, mlir::ValueRange carried) {
                    emitFetches(d, e.mul(i, e.i64(kQuad)), quads * kQuad);
                    Values next(carried.begin(), carried.end()), q;
                    for (int group = 0; group < groups_; ++group)
                      q.push_back(packed(group, d));
                    for (std::size_t t = 0; t < count; ++t) {
                      Value key = spread(keys[t], d);
                      for (int group = 0; group < groups_; ++group) {
                        Value &sum = next[static_cast<std::size_t>(group) * count + t];
                        sum =
                            context_.dotsPairs() ? e.dotPairs(q[group], key, sum) : e.fma(key, q[group], sum);
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

  mlir::Type keyElement() const { return context_.dotsPairs() ? e.i16Type() : e.f32Type(); }

  /// row_ = the row in one piece.
  void copyRow() {
    const int dims = context_.stepDims(), elementBytes = 16 / dims;
    row_ = e.stackArray(keyElement(), context_.headDim());
    e.loop(e.i64(0), e.i64(context_.headDim()), dims, [&](Value d) {
      Value byte = e.mul(d, e.i64(elementBytes * context_.groupRows()));
      Value from = e.at(packed_, e.builder().getI8Type(), byte);
      e.store(e.load(e.vectorOf(keyElement(), dims), from), e.at(row_, keyElement(), d));
    });
  }

  /// The other rows of the group, which are none, get the same scores.
  void emitTokensOfRow(Value i, int quads) {
    const Values keys = keysOf(i, quads);
    const int lanes = context_.keyLanes();
    auto vectorAt = [&](Value pointer, Value d) {
      Value loaded = e.loadAt(e.vectorOf(keyElement(), lanes), pointer, d);
      return context_.dotsPairs() ? e.bitcast(context_.dtype(), loaded) : loaded;
    };
    Values sums(keys.size(), e.splat(e.f32(0)));
    sums = e.loop(e.i64(0), e.i64(context_.headDim()), lanes, sums, [&](Value d, mlir::ValueRange carried) {
      emitFetches(d, e.mul(i, e.i64(kQuad)), quads * kQuad);
      Values next;
      Value q = vectorAt(row_, d);
      for (std::size_t t = 0; t < keys.size(); ++t) {
        Value key = vectorAt(keys[t], d);
        next.push_back(context_.dotsPairs() ? e.dotPairs(q, key, carried[t]) : e.fma(key, q, carried[t]));
      }
      return next;
    });
    for (int quad = 0; quad < quads; ++quad)
      store(
          sumOfPieces(sumsOfFour(llvm::ArrayRef(sums).slice(static_cast<std::size_t>(quad * kQuad), kQuad))),
          0, e.add(i, e.i64(quad)));
  }

  /// The sum over a vector's pieces of 128 bits, in each of them.
  Value sumOfPieces(Value vector) {
    for (int distance = kQuad; distance < e.lanes(); distance *= 2) {
      llvm::SmallVector<std::int64_t> turned;
      for (int lane = 0; lane < e.lanes(); ++lane)
        turned.push_back((lane + distance) % e.lanes());
      vector = e.add(vector, e.shuffle(vector, vector, turned));
    }
    return vector;
  }

  /// The vector of a group's rows at dimension d.
  Value packed(int group, Value d) {
    const int elementBytes = context_.dotsPairs() ? 2 : 4;
    Value byte = e.add(e.mul(d, e.i64(elementBytes * context_.groupRows())),
                       e.i64(group * context_.packedGroupBytes()));
    Value address = e.at(packed_, e.builder().getI8Type(), byte);
    if (!context_.dotsPairs())
      return e.load(e.vectorOf(e.f32Type()), address);
    return e.bitcast(context_.dtype(), e.load(e.vectorOf(e.i16Type(), 2 * e.lanes()), address));
  }

  /// 128 bits of a token, for each row.
  Value spread(Value key, Value d) {
    const int dims = context_.stepDims();
    llvm::SmallVector<std::int64_t> lanes;
    for (int row = 0; row < context_.groupRows(); ++row)
      for (int i = 0; i < dims; ++i)
        lanes.push_back(i);
    const mlir::Type element = context_.dotsPairs() ? e.i16Type() : e.f32Type();
    Value loaded = e.loadAt(e.vectorOf(element, dims), key, d);
    Value spread = e.shuffle(loaded, loaded, lanes);
    return context_.dotsPairs() ? e.bitcast(context_.dtype(), spread) : spread;
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
  Value k_, offsets_, packed_, nextK_, nextV_, nextOffsets_, row_;
};

} // namespace

mlir::LLVM::LLVMFuncOp emitScores(const KernelContext &context, int groups) {
  auto function = passFunction(context, "scores_" + std::to_string(groups));
  ScoresEmitter(context, groups, function).emit();
  return function;
}

mlir::LLVM::LLVMFuncOp emitScoresOfRow(const KernelContext &context) {
  auto function = passFunction(context, "scores_of_row");
  ScoresEmitter(context, 0, function).emit();
  return function;
}

} // namespace deft::codegen::cpu
