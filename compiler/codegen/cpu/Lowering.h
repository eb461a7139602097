#pragma once

#include "compiler/codegen/cpu/CpuCodegen.h"

#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"

namespace deft::codegen::cpu {

/// Optimised LLVM IR for one target, with all that it lives in.
struct LlvmModule {
  std::unique_ptr<llvm::LLVMContext> context;
  std::unique_ptr<llvm::TargetMachine> machine;
  std::unique_ptr<llvm::Module> module;
};

/// Emits the kernel, lowers it and optimises it. Safe to call from several threads on different contexts.
support::Result<LlvmModule> lowerToLlvm(dialect::AttentionOp attention, const CpuTarget &target);

/// The part below the emission: any module of llvm.func with scf, vector, arith and math ops. Consumes its
/// ops.
support::Result<LlvmModule> lowerModule(mlir::ModuleOp module, const CpuTarget &target);

/// Assembly or an object out of optimised IR; consumes the module.
support::Result<std::string> generateCode(LlvmModule &llvm, llvm::CodeGenFileType fileType);

/// Loads an object that needs no symbol from outside; the address of `symbol` keeps the code alive.
support::Result<std::shared_ptr<const void>> loadObject(const std::string &object, const std::string &symbol);

} // namespace deft::codegen::cpu
