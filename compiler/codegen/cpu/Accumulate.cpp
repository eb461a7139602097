#include "compiler/codegen/cpu/KernelEmitter.h"

#include <algorithm>
#include <cstddef>
#include <optional>

namespace deft::codegen::cpu {

using mlir::Value;
using mlir::arith::CmpIPredicate;
using Values = llvm::SmallVector<Value>;

#define DEFT_FIELD(type, member) e.field(type, call, offsetof(abi::CpuAttendCall, member))

namespace {

/// The sum over V of one, two, four or eight rows. Each loaded vector of V serves all rows; columns come in
/// strips whose sums stay in registers.
class AccumulateEmitter {
public:
  AccumulateEmitter(const KernelContext &context, int rows, mlir::LLVM::LLVMFuncOp function)
      : context_(context), e(context.e), rows_(rows), pass_(function) {}

  void emit() {
    Value call = pass_.call;
    v_ = DEFT_FIELD(e.pointerType(), v);
    offsets_ = DEFT_FIELD(e.pointerType(), valueOffsets);
    acc_ = e.at(DEFT_FIELD(e.pointerType(), acc), e.f32Type(), e.mul(pass_.row, e.i64(context_.valueDim())));
    fetches_.emplace(context_, pass_, acc_);
    turn_ = e.stackArray(e.i64Type(), 1);
    e.store(e.i64(0), turn_);
    const int paired = context_.pairedColumns();
    emitColumns(0, paired / (2 * e.lanes()), 2);
    emitColumns(paired, (context_.valueDim() - paired) / e.lanes(), 1);
    e.ret();
  }

private:
  /// `count` columns of `vectors` vectors each: in strips as few as do, as even as can be.
  void emitColumns(int first, int count, int vectors) {
    if (count == 0)
      return;
    const int sums = e.lanes() == 16 ? 16 : 8; // of 32 registers with AVX-512, of 16 without
    const int most = std::max(1, sums / (rows_ * vectors));
    const int strips = (count + most - 1) / most, wide = count % strips, width = count / strips;
    // The strips ask for the second half of the next block in turns, a token or two of each quad: the pass
    // over K has asked for the first.
    const int turns = first > 0 ? 0 : strips >= 2 ? 2 : 1;
    emitStrips(first, wide, width + 1, vectors, turns);
    emitStrips(first + wide * (width + 1) * vectors * e.lanes(), strips - wide, width, vectors, turns);
  }

  void emitStrips(int first, int count, int width, int vectors, int turns) {
    if (count == 0)
      return;
    const int strip = width * vectors * e.lanes();
    e.loop(e.i64(first), e.i64(first + count * strip), strip, [&](Value d) {
      Values init;
      for (int r = 0; r < rows_; ++r) {
        Value rescale = e.loadAt(e.f32Type(), pass_.rescale, e.i64(r));
        for (int j = 0; j < width * vectors; ++j) {
          Value before = e.load(e.vectorOf(e.f32Type()), accAddress(r, d, j));
          init.push_back(context_.isSigmoid() ? before : e.mul(before, rescale));
        }
      }
      Value turn = e.loadAt(e.i64Type(), turn_, e.i64(0));
      e.store(e.add(turn, e.i64(1)), turn_);
      Value isTurn = e.compare(CmpIPredicate::slt, turn, e.i64(turns));
      Value fetch = e.select(isTurn, pass_.fetch, e.i64(0));
      const int perQuad = turns > 0 ? kQuad / 2 / turns : 0;
      Value fetchBegin = e.mul(pass_.quadCount, e.add(e.mul(turn, e.i64(perQuad)), e.i64(kQuad / 2)));
      Values sums = e.loop(e.i64(0), pass_.quadCount, 1, init, [&](Value i, mlir::ValueRange carried) {
        fetches_->clear();
        fetches_->add(fetches_->values(), e.add(fetchBegin, e.mul(i, e.i64(perQuad))), perQuad, fetch);
        Values next(carried.begin(), carried.end());
        return context_.dotsValuePairs() ? addQuadOfPairs(i, d, width, vectors, next)
                                         : addQuad(i, d, width, vectors, next);
      });
      auto sum = sums.begin();
      for (int r = 0; r < rows_; ++r)
        for (int j = 0; j < width * vectors; ++j)
          e.store(*sum++, accAddress(r, d, j));
    });
  }

  /// The address of token t of a quad, at column d.
  Value valueAt(Value i, int t, Value d) {
    Value first = e.mul(e.toI64(e.loadAt(e.i32Type(), pass_.quads, i)), e.i64(kQuad));
    Value token = e.loadAt(e.i64Type(), offsets_, e.add(first, e.i64(t)));
    return e.at(v_, context_.valueBits(), e.add(token, d));
  }
  /// The address of the weights of row r and token t on.
  Value weightAt(Value i, int r, int t) {
    const int group = r / context_.groupRows(), inGroup = r % context_.groupRows();
    Value byte =
        e.add(e.mul(i, e.i64(e.lanes() * context_.weightBytes())),
              e.i64(group * context_.groupWeightBytes() + (inGroup * kQuad + t) * context_.weightBytes()));
    return e.at(pass_.weights, e.builder().getI8Type(), byte);
  }

  Values addQuad(Value i, Value d, int width, int vectors, Values sums) {
    for (int t = 0; t < kQuad; ++t) {
      Value address = valueAt(i, t, d);
      Values columns;
      for (int column = 0; column < width; ++column) {
        fetches_->ask(t * width + column, kQuad * width);
        loadColumn(e.at(address, context_.valueBits(), e.i64(column * vectors * e.lanes())), vectors,
                   columns);
      }
      for (int r = 0; r < rows_; ++r) {
        Value weight = e.splat(e.load(e.f32Type(), weightAt(i, r, t)));
        for (std::size_t j = 0; j < columns.size(); ++j) {
          Value &sum = sums[static_cast<std::size_t>(r) * columns.size() + j];
          sum = e.fma(columns[j], weight, sum);
        }
      }
    }
    return sums;
  }

  /// Two tokens at a time, their numbers interleaved to pairs: exact products, half the multiply-adds, and
  /// nothing to widen.
  Values addQuadOfPairs(Value i, Value d, int width, int vectors, Values sums) {
    auto asPairs = [&](Value value) {
      return mlir::LLVM::BitcastOp::create(e.builder(), e.location(),
                                           e.vectorOf(context_.valueType(), 2 * e.lanes()), value);
    };
    for (int t = 0; t < kQuad; t += 2) {
      Value first = valueAt(i, t, d), second = valueAt(i, t + 1, d);
      Values columns;
      for (int column = 0; column < width; ++column) {
        fetches_->ask(t / 2 * width + column, kQuad / 2 * width);
        Value at = e.i64(column * vectors * e.lanes());
        const mlir::VectorType bits = e.vectorOf(e.i16Type(), vectors * e.lanes());
        Value a = e.loadAt(bits, first, at), b = e.loadAt(bits, second, at);
        for (int vector = 0; vector < vectors; ++vector) {
          llvm::SmallVector<std::int64_t> lanes;
          for (int place = 0; place < e.lanes(); ++place) {
            const std::int64_t c = vectors == 1 ? place : columnAt(vector * e.lanes() + place);
            lanes.append({c, vectors * e.lanes() + c});
          }
          columns.push_back(asPairs(e.shuffle(a, b, lanes)));
        }
      }
      for (int r = 0; r < rows_; ++r) {
        Value weights = asPairs(e.splat(e.load(e.i32Type(), weightAt(i, r, t))));
        for (std::size_t j = 0; j < columns.size(); ++j) {
          Value &sum = sums[static_cast<std::size_t>(r) * columns.size() + j];
          sum = e.dotPairs(columns[j], weights, sum);
        }
      }
    }
    return sums;
  }
  /// The column whose sum stands at `place` of a pair of vectors.
  int columnAt(int place) const {
    for (int c = 0;; ++c)
      if (context_.placeInPair(c) == place)
        return c;
  }

  /// One vector of numbers as f32, or two: of pairs of bf16 the odd number is the upper half as it
  /// stands.
  void loadColumn(Value address, int vectors, Values &columns) {
    if (vectors == 1) {
      columns.push_back(e.widen(context_.valueType(), e.load(e.vectorOf(context_.valueBits()), address)));
      return;
    }
    Value pairs = mlir::LLVM::LoadOp::create(e.builder(), e.location(), e.vectorOf(e.i32Type()), address, 2);
    columns.push_back(e.bitcast(e.f32Type(), e.shl(pairs, 16)));
    Value upper = e.bitAnd(pairs, e.i32Like(pairs, static_cast<std::int32_t>(0xffff0000u)));
    columns.push_back(e.bitcast(e.f32Type(), upper));
  }

  Value accAddress(int r, Value d, int j) {
    Value element = e.add(e.i64(r * context_.valueDim() + j * e.lanes()), d);
    return e.at(acc_, e.f32Type(), element);
  }

  const KernelContext &context_;
  Emitter &e;
  int rows_;
  Pass pass_;
  Value v_, offsets_, acc_, turn_;
  std::optional<Fetches> fetches_;
};

} // namespace

mlir::LLVM::LLVMFuncOp emitAccumulate(const KernelContext &context, int rows) {
  auto function = passFunction(context, "accumulate_" + std::to_string(rows));
  AccumulateEmitter(context, rows, function).emit();
  return function;
}

#undef DEFT_FIELD

} // namespace deft::codegen::cpu
