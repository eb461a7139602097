#pragma once

#include "compiler/codegen/cpu/Emitter.h"

namespace deft::codegen::cpu {

/// Tokens of one `attend`: K and V of a block stay in the first-level cache between the passes over them.
constexpr int kBlockTokens = 64;

/// What the functions of one kernel have in common.
struct KernelContext {
  // Ops are handles whose getters are not const.
  mutable dialect::AttentionOp attention;
  const CpuTarget &target;
  mutable mlir::ModuleOp module;
  Emitter &e;

  int headDim() const { return static_cast<int>(attention.getHeadDim()); }
  mlir::Type dtype() const { return attention.getDtype(); }
  mlir::Type outputType() const { return attention.getOutput(); }
  bool isSigmoid() const { return attention.getNormalize() == dialect::Normalize::Sigmoid; }
  /// Whether q.k is taken from pairs of bf16, with q packed as it is; else q is packed as f32.
  bool dotsPairs() const { return target.bf16Dot && dtype().isBF16(); }
  int packedRowBytes() const { return (headDim() * (dotsPairs() ? 2 : 4) + 63) / 64 * 64; }
};

// Each emits one function of the table, named as its member, or null after a reported diagnostic.
mlir::LLVM::LLVMFuncOp emitPack(const KernelContext &context);
mlir::LLVM::LLVMFuncOp emitAttend(const KernelContext &context);
mlir::LLVM::LLVMFuncOp emitTile(const KernelContext &context);
mlir::LLVM::LLVMFuncOp emitFinish(const KernelContext &context, bool partial);
mlir::LLVM::LLVMFuncOp emitMerge(const KernelContext &context);

/// The second pass over a block, between q.k and the sum over V: scores to weights, in place.
/// void weigh(const CpuAttendCall *call, float *weights, float *rescale, i64 rowBegin, i64 rowCount), where
/// `weights` is [rowCount][kBlockTokens] and `rescale` receives the factor of each row's earlier state.
mlir::LLVM::LLVMFuncOp emitWeigh(const KernelContext &context);

/// All of it: the module with the table deft_cpu_<variant>.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>> emitKernel(dialect::AttentionOp attention,
                                                              const CpuTarget &target);

} // namespace deft::codegen::cpu
