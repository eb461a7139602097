#pragma once

#include "compiler/codegen/cpu/CpuCodegen.h"

#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"

namespace deft::codegen::cpu {

/// Optimised LLVM IR for one target, with its context and machine.
struct LlvmModule {
  std::unique_ptr<llvm::LLVMContext> context;
  std::unique_ptr<llvm::TargetMachine> machine;
  std::unique_ptr<llvm::Module> module;
};

/// Emits, lowers and optimises the kernel. Several threads may call it on different contexts.
support::Result<LlvmModule> lowerToLlvm(dialect::AttentionOp attention, const CpuTarget &target);

/// The lowering without the emission: for any module of llvm.func with scf, vector, arith and math ops.
/// Consumes the ops.
support::Result<LlvmModule> lowerModule(mlir::ModuleOp module, const CpuTarget &target);

/// Assembly or an object from optimised IR; consumes the module.
support::Result<std::string> generateCode(LlvmModule &llvm, llvm::CodeGenFileType fileType);

/// Loads an object without external symbols; the returned address of `symbol` keeps the code alive.
support::Result<std::shared_ptr<const void>> loadObject(const std::string &object, const std::string &symbol);

} // namespace deft::codegen::cpu
