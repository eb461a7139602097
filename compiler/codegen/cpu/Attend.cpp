#include "compiler/codegen/cpu/KernelEmitter.h"

#include <algorithm>
#include <cstddef>

namespace deft::codegen::cpu {

using mlir::Value;
using mlir::arith::CmpIPredicate;
using Values = llvm::SmallVector<Value>;

namespace {

/// Tokens whose products with the rows are summed side by side.
constexpr int kGroupTokens = 4;

#define DEFT_FIELD(type, member) e.field(type, call, offsetof(abi::CpuAttendCall, member))

class AttendEmitter {
public:
  explicit AttendEmitter(const KernelContext &context, mlir::LLVM::LLVMFuncOp weigh)
      : context_(context), e(context.e), weigh_(weigh), headDim_(context.headDim()) {}

  mlir::LLVM::LLVMFuncOp emit() {
    auto function = e.function(context_.module, "attend", {}, {e.pointerType()});
    Value call = call_ = function.getArgument(0);
    packed_ = DEFT_FIELD(e.pointerType(), packed);
    acc_ = DEFT_FIELD(e.pointerType(), acc);
    k_ = DEFT_FIELD(e.pointerType(), k);
    v_ = DEFT_FIELD(e.pointerType(), v);
    offsets_ = DEFT_FIELD(e.pointerType(), offsets);
    nextOffsets_ = DEFT_FIELD(e.pointerType(), nextOffsets);
    tokens_ = e.toI64(DEFT_FIELD(e.i32Type(), tokens));
    nextTokens_ = e.toI64(DEFT_FIELD(e.i32Type(), nextTokens));
    Value rows = e.toI64(DEFT_FIELD(e.i32Type(), rows));
    const int most = rowBlock();
    weights_ = e.stackArray(e.f32Type(), most * kBlockTokens);
    rescale_ = e.stackArray(e.f32Type(), most);

    // Blocks of `most` rows, then of halves of it, so that every count of rows is made of few passes.
    Value begin = e.i64(0);
    for (int block = most; block >= 1; block /= 2) {
      Value left = e.sub(rows, begin);
      Value whole = mlir::arith::AndIOp::create(e.builder(), e.location(), left, e.i64(-block));
      Value end = e.add(begin, whole);
      e.loop(begin, end, block, [&](Value row) { emitBlock(row, block); });
      begin = end;
    }
    e.ret();
    return function;
  }

private:
  // Rows share each loaded vector of K and V; block * kGroupTokens sums must stay in registers, of which
  // there are 32 with AVX-512 and 16 without.
  int rowBlock() const { return e.lanes() == 16 ? 4 : 2; }

  void emitBlock(Value row, int block) {
    emitScores(row, block);
    mlir::LLVM::CallOp::create(e.builder(), e.location(), weigh_,
                               mlir::ValueRange{call_, weights_, rescale_, row, e.i64(block)});
    emitWeightedSum(row, block);
  }

  /// weights[r][t] = q[row + r] . k[t]
  void emitScores(Value row, int block) {
    Value last = e.sub(tokens_, e.i64(1));
    e.loop(e.i64(0), tokens_, kGroupTokens, [&](Value t) {
      Values keys;
      for (int i = 0; i < kGroupTokens; ++i) {
        // Beyond the last token the group repeats it; what comes of that is never looked at.
        Value token = i == 0 ? t : e.min(e.add(t, e.i64(i)), last);
        keys.push_back(e.at(k_, e.i16Type(), e.loadAt(e.i64Type(), offsets_, token)));
      }
      for (int i = 0; i < kGroupTokens; ++i)
        prefetchNext(k_, row, e.add(t, e.i64(i)));
      Values sums(static_cast<std::size_t>(block * kGroupTokens), e.splat(e.f32(0)));
      // Pairs of bf16 are multiplied two lanes at a time; half a vector may be left for the plain way.
      const int paired = context_.dotsPairs() ? headDim_ / 32 * 32 : 0;
      if (paired)
        sums = e.loop(e.i64(0), e.i64(paired), 32, sums, [&](Value d, mlir::ValueRange carried) {
          return addProducts(row, block, keys, d, carried, /*pairs=*/true);
        });
      if (paired < headDim_)
        sums =
            e.loop(e.i64(paired), e.i64(headDim_), e.lanes(), sums, [&](Value d, mlir::ValueRange carried) {
              return addProducts(row, block, keys, d, carried, /*pairs=*/false);
            });
      for (int r = 0; r < block; ++r)
        e.store(sumsOfFour(llvm::ArrayRef(sums).slice(r * kGroupTokens, kGroupTokens)),
                e.at(weights_, e.f32Type(), e.add(t, e.i64(r * kBlockTokens))));
    });
  }

  /// While the first pass over K (over V) is at token `t`, asks for that token of the next block. Hardware
  /// prefetchers stop at the ends of pages and strides; asking gains a quarter out of DRAM and costs nothing
  /// in L3.
  void prefetchNext(Value base, Value pass, Value t) {
    Value isFirst = e.compare(CmpIPredicate::eq, pass, e.i64(0));
    Value wanted = e.bitAnd(isFirst, e.compare(CmpIPredicate::slt, t, nextTokens_));
    e.ifElse(
        wanted,
        [&] {
          Value address = e.at(base, e.i16Type(), e.loadAt(e.i64Type(), nextOffsets_, t));
          for (int element = 0; element < headDim_; element += 32)
            e.prefetch(e.at(address, e.i16Type(), e.i64(element)));
        },
        nullptr);
  }

  /// sums[r][i] += q[row + r][d ...] * keys[i][d ...] over one vector of dimensions.
  Values addProducts(Value row, int block, const Values &keys, Value d, mlir::ValueRange sums, bool pairs) {
    const mlir::Type bits = e.vectorOf(e.i16Type(), pairs ? 32 : e.lanes());
    auto operand = [&](Value loaded) {
      return pairs ? e.bitcast(context_.dtype(), loaded) : e.widen(context_.dtype(), loaded);
    };
    Values next(sums.begin(), sums.end()), k;
    for (Value key : keys)
      k.push_back(operand(e.loadAt(bits, key, d)));
    for (int r = 0; r < block; ++r) {
      Value q = context_.dotsPairs() ? operand(e.loadAt(bits, packedRow(row, r), d))
                                     : e.loadAt(e.vectorOf(e.f32Type()), packedRow(row, r), d);
      for (int i = 0; i < kGroupTokens; ++i) {
        Value &sum = next[static_cast<std::size_t>(r * kGroupTokens + i)];
        sum = pairs ? e.dotPairs(k[i], q, sum) : e.fma(k[i], q, sum);
      }
    }
    return next;
  }

  Value packedRow(Value row, int r) {
    Value byte = e.mul(e.add(row, e.i64(r)), e.i64(context_.packedRowBytes()));
    return e.at(packed_, e.builder().getI8Type(), byte);
  }

  /// The sums over the lanes of four vectors, as one vector of four: transposing while adding takes a third
  /// of the shuffles of four separate reductions.
  Value sumsOfFour(llvm::ArrayRef<Value> vectors) {
    const int lanes = e.lanes();
    // Groups of four lanes, as the unpack instructions see them.
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
    Value sums = e.add(e.shuffle(first, second, lowPairs), e.shuffle(first, second, highPairs));
    for (int width = lanes; width > 4; width /= 2) {
      llvm::SmallVector<std::int64_t> lower, upper;
      for (int lane = 0; lane < width / 2; ++lane) {
        lower.push_back(lane);
        upper.push_back(lane + width / 2);
      }
      sums = e.add(e.shuffle(sums, sums, lower), e.shuffle(sums, sums, upper));
    }
    return sums;
  }

  /// acc[row + r] = acc[row + r] * rescale[r] + sum over t of weights[r][t] * v[t]
  void emitWeightedSum(Value row, int block) {
    // Columns in strips whose sums stay in registers: as few as do, as even as can be.
    const int vectors = headDim_ / e.lanes(), most = e.lanes() == 16 ? 6 : 4;
    const int strips = (vectors + most - 1) / most, wide = vectors % strips, width = vectors / strips;
    emitStrips(row, block, 0, wide, width + 1);
    emitStrips(row, block, wide * (width + 1), strips - wide, width);
  }

  void emitStrips(Value row, int block, int firstVector, int count, int width) {
    if (count == 0)
      return;
    const int strip = width * e.lanes();
    Value begin = e.i64(firstVector * e.lanes()), end = e.i64(firstVector * e.lanes() + count * strip);
    e.loop(begin, end, strip, [&](Value d) {
      Values init;
      for (int r = 0; r < block; ++r) {
        Value rescale = e.loadAt(e.f32Type(), rescale_, e.i64(r));
        for (int j = 0; j < width; ++j) {
          Value before = e.load(e.vectorOf(e.f32Type()), accAddress(row, r, d, j));
          init.push_back(context_.isSigmoid() ? before : e.mul(before, rescale));
        }
      }
      Values sums = e.loop(e.i64(0), tokens_, 1, init, [&](Value t, mlir::ValueRange carried) {
        prefetchNext(v_, e.add(row, d), t);
        Values next(carried.begin(), carried.end());
        Value value = e.at(v_, e.i16Type(), e.add(e.loadAt(e.i64Type(), offsets_, t), d));
        for (int j = 0; j < width; ++j) {
          Value v = e.widen(context_.dtype(), e.loadAt(e.vectorOf(e.i16Type()), value, e.i64(j * e.lanes())));
          for (int r = 0; r < block; ++r) {
            Value weight = e.loadAt(e.f32Type(), weights_, e.add(t, e.i64(r * kBlockTokens)));
            next[r * width + j] = e.fma(v, weight, next[r * width + j]);
          }
        }
        return next;
      });
      for (int r = 0; r < block; ++r)
        for (int j = 0; j < width; ++j)
          e.store(sums[r * width + j], accAddress(row, r, d, j));
    });
  }

  Value accAddress(Value row, int r, Value d, int j) {
    Value element = e.add(e.mul(e.add(row, e.i64(r)), e.i64(headDim_)), e.add(d, e.i64(j * e.lanes())));
    return e.at(acc_, e.f32Type(), element);
  }

  const KernelContext &context_;
  Emitter &e;
  mlir::LLVM::LLVMFuncOp weigh_;
  int headDim_;
  Value call_, packed_, acc_, k_, v_, offsets_, nextOffsets_, tokens_, nextTokens_, weights_, rescale_;
};

} // namespace

mlir::LLVM::LLVMFuncOp emitAttend(const KernelContext &context) {
  auto weigh = emitWeigh(context);
  return weigh ? AttendEmitter(context, weigh).emit() : weigh;
}

mlir::LLVM::LLVMFuncOp emitPack(const KernelContext &context) {
  Emitter &e = context.e;
  auto function = e.function(context.module, "pack", {}, {e.pointerType()});
  Value call = function.getArgument(0);
  Value q = e.field(e.pointerType(), call, offsetof(abi::CpuPackCall, q));
  Value packed = e.field(e.pointerType(), call, offsetof(abi::CpuPackCall, packed));
  Value rows = e.toI64(e.field(e.i32Type(), call, offsetof(abi::CpuPackCall, rows)));
  e.loop(e.i64(0), rows, 1, [&](Value row) {
    Value from = e.at(q, e.i16Type(), e.mul(row, e.i64(context.headDim())));
    Value to = e.at(packed, e.builder().getI8Type(), e.mul(row, e.i64(context.packedRowBytes())));
    e.loop(e.i64(0), e.i64(context.headDim()), e.lanes(), [&](Value d) {
      Value bits = e.loadAt(e.vectorOf(e.i16Type()), from, d);
      if (context.dotsPairs())
        e.store(bits, e.at(to, e.i16Type(), d));
      else
        e.store(e.widen(context.dtype(), bits), e.at(to, e.f32Type(), d));
    });
  });
  e.ret();
  return function;
}

} // namespace deft::codegen::cpu
