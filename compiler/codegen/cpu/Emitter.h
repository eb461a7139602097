#pragma once

#include "compiler/codegen/cpu/CpuCodegen.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Builders.h"

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>

namespace deft::codegen::cpu {

inline constexpr float kInf = std::numeric_limits<float>::infinity();

/// Builds the ops of the kernel in short form. Arithmetic takes scalars and vectors; a scalar operand is
/// broadcast to the lanes of a vector one. Addresses are raw pointers, because strides come from the caller's
/// tables, which a memref cannot express.
class Emitter {
public:
  using Value = mlir::Value;
  using Type = mlir::Type;

  Emitter(mlir::OpBuilder &builder, mlir::Location location, int lanes);

  mlir::OpBuilder &builder() { return builder_; }
  mlir::Location location() const { return location_; }
  int lanes() const { return lanes_; }

  Type f32Type() const { return f32_; }
  Type i16Type() const { return i16_; }
  Type i32Type() const { return i32_; }
  Type i64Type() const { return i64_; }
  Type pointerType() const { return pointer_; }
  mlir::VectorType vectorOf(Type element) const { return vectorOf(element, lanes_); }
  mlir::VectorType vectorOf(Type element, int lanes) const { return mlir::VectorType::get({lanes}, element); }

  Value i1(bool value);
  Value i32(std::int32_t value);
  Value i64(std::int64_t value);
  Value f32(float value);
  /// A constant of the type of `like`, a scalar or vector of i32 or f32.
  Value f32Like(Value like, float value);
  Value i32Like(Value like, std::int32_t value);
  Value splat(Value scalar) { return splat(scalar, lanes_); }
  Value splat(Value scalar, int lanes);
  /// Leaves a vector unchanged, and broadcasts a scalar to all lanes.
  Value spread(Value value);
  /// 0, 1, 2, ... in i32 lanes.
  Value laneNumbers();

  Value add(Value a, Value b);
  Value sub(Value a, Value b);
  Value mul(Value a, Value b);
  Value div(Value a, Value b); ///< f32
  /// a * b + c, rounded once.
  Value fma(Value a, Value b, Value c);
  /// c[i] + a[2i] * b[2i] + a[2i + 1] * b[2i + 1], for 32 bf16 and 16 f32 lanes (AVX512_BF16).
  Value dotPairs(Value a, Value b, Value c);
  /// Converts 16 f32 that are not negative to bf16, to nearest even; subnormals become 0 (AVX512_BF16).
  Value narrowWeights(Value a);
  Value shl(Value a, int bits);
  Value shr(Value a, int bits); ///< logical
  Value bitAnd(Value a, Value b);
  Value bitOr(Value a, Value b);
  /// The larger (smaller) operand by one comparison: `b` if either is NaN.
  Value max(Value a, Value b);
  Value min(Value a, Value b);
  Value select(Value condition, Value a, Value b);
  Value compare(mlir::arith::CmpFPredicate predicate, Value a, Value b);
  Value compare(mlir::arith::CmpIPredicate predicate, Value a, Value b);
  Value bitcast(Type element, Value value);
  Value toI64(Value value); ///< signed
  Value toI32(Value value); ///< truncates
  Value toF32(Value value); ///< from signed integers
  Value shuffle(Value a, Value b, llvm::ArrayRef<std::int64_t> lanes);
  Value reduceAdd(Value vector);
  Value reduceMax(Value vector);

  /// The address of element `index` (i64) of an array of `element`.
  Value at(Value pointer, Type element, Value index);
  Value load(Type type, Value pointer);
  void store(Value value, Value pointer);
  /// Loads from element `index` on; the index counts elements for vectors as well.
  Value loadAt(Type type, Value pointer, Value index) {
    return load(type, at(pointer, mlir::getElementTypeOrSelf(type), index));
  }
  /// A member of a struct of cpu_abi.h.
  Value field(Type type, Value structPointer, std::size_t offsetBytes);
  /// Room for `count` elements on the stack, aligned to a cache line. Only in a function's entry block.
  Value stackArray(Type element, int count);
  /// Prefetches into the second-level cache.
  void prefetch(Value pointer);

  /// Bit patterns of 16 or 8 bits, given as integers, to f32.
  Value widen(Type type, Value bits);
  /// f32 to 16-bit patterns, to nearest even.
  Value narrow(Type half, Value value);
  /// Rounds f32 to the nearest number of e4m3, ties to even, as f32; for magnitudes up to 448.
  Value roundToE4m3(Value value);
  Value absolute(Value value); ///< f32

  using Body = std::function<llvm::SmallVector<Value>(Value index, mlir::ValueRange carried)>;
  /// for (i64 index = low; index < high; index += step), with loop-carried values.
  llvm::SmallVector<Value> loop(Value low, Value high, std::int64_t step, mlir::ValueRange init,
                                const Body &body);
  void loop(Value low, Value high, std::int64_t step, const std::function<void(Value)> &body);
  void ifElse(Value condition, const std::function<void()> &thenBody, const std::function<void()> &elseBody);

  /// A function of the module with its entry block, where the builder continues. End it with ret().
  mlir::LLVM::LLVMFuncOp function(mlir::ModuleOp module, llvm::StringRef name, Type result,
                                  llvm::ArrayRef<Type> arguments);
  void ret(Value value = {});

private:
  /// Broadcasts the scalar operand if only one is a vector.
  void unify(Value &a, Value &b);
  static bool isFloat(Value value);

  mlir::OpBuilder &builder_;
  mlir::Location location_;
  int lanes_;
  Type f32_, i16_, i32_, i64_, pointer_;
};

} // namespace deft::codegen::cpu
