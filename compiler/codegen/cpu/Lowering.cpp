#include "compiler/codegen/cpu/Lowering.h"

#include "compiler/codegen/cpu/KernelEmitter.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVMPass.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/TargetParser/Host.h"

#include <mutex>

namespace deft::codegen::cpu {

using support::Error;
using support::ErrorCode;

namespace {

/// Collects what MLIR reports while it lives, as one text.
class DiagnosticText {
public:
  explicit DiagnosticText(mlir::MLIRContext *context)
      : handler_(context, [this](mlir::Diagnostic &diagnostic) {
          text_ += (text_.empty() ? "" : "; ") + diagnostic.str();
          return mlir::success();
        }) {}
  Error error(const std::string &what) const {
    return {ErrorCode::Internal, what + (text_.empty() ? "" : ": " + text_), ""};
  }

private:
  std::string text_;
  mlir::ScopedDiagnosticHandler handler_;
};

support::Result<std::unique_ptr<llvm::TargetMachine>> createMachine(const CpuTarget &cpu) {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    llvm::InitializeNativeTargetAsmParser();
  });
  const llvm::Triple triple(llvm::sys::getProcessTriple());
  std::string message;
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, message);
  if (!target)
    return Error{ErrorCode::Internal, message, ""};
  std::unique_ptr<llvm::TargetMachine> machine(
      target->createTargetMachine(triple, cpu.cpu, cpu.features, llvm::TargetOptions(), llvm::Reloc::PIC_,
                                  llvm::CodeModel::Small, llvm::CodeGenOptLevel::Default));
  if (!machine)
    return Error{ErrorCode::Internal, "LLVM has no code generator for " + cpu.cpu, ""};
  return machine;
}

bool lowerToLlvmDialect(mlir::ModuleOp module) {
  mlir::PassManager passes(module.getContext());
  passes.addPass(mlir::createSCFToControlFlowPass());
  passes.addPass(mlir::createConvertVectorToLLVMPass());
  passes.addPass(mlir::createConvertMathToLLVMPass());
  passes.addPass(mlir::createArithToLLVMConversionPass());
  passes.addPass(mlir::createConvertControlFlowToLLVMPass());
  passes.addPass(mlir::createReconcileUnrealizedCastsPass());
  return mlir::succeeded(passes.run(module));
}

/// The emitted loops are already vectors of the right width in the right order, so that LLVM's vectorisers
/// and unrollers would only cost time: a third of what the full O2 takes is enough for the same code.
bool optimise(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graph;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graph);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graph, modules);
  llvm::ModulePassManager passes;
  // By its name alone instcombine ends the process where one round leaves something to the next one, as it
  // does with conversions of 8-bit floats; LLVM's own pipelines do not ask for that either.
  if (llvm::Error error = builder.parsePassPipeline(
          passes, "function(early-cse,simplifycfg,instcombine<no-verify-fixpoint>,"
                  "loop-mssa(loop-simplifycfg,licm),gvn,instcombine<no-verify-fixpoint>,simplifycfg)")) {
    llvm::consumeError(std::move(error));
    return false;
  }
  passes.run(module, modules);
  return true;
}

} // namespace

support::Result<LlvmModule> lowerModule(mlir::ModuleOp module, const CpuTarget &target) {
  auto machine = createMachine(target);
  if (!machine)
    return machine.error();
  mlir::DialectRegistry registry;
  mlir::registerBuiltinDialectTranslation(registry);
  mlir::registerLLVMDialectTranslation(registry);
  module.getContext()->appendDialectRegistry(registry);

  DiagnosticText diagnostics(module.getContext());
  if (!lowerToLlvmDialect(module))
    return diagnostics.error("cannot lower CPU code");
  LlvmModule result;
  result.machine = std::move(*machine);
  result.context = std::make_unique<llvm::LLVMContext>();
  result.module = mlir::translateModuleToLLVMIR(module, *result.context, "deft");
  if (!result.module)
    return diagnostics.error("cannot translate CPU code");
  result.module->setDataLayout(result.machine->createDataLayout());
  result.module->setTargetTriple(result.machine->getTargetTriple());
  result.module->setPICLevel(llvm::PICLevel::BigPIC);
  for (llvm::Function &function : *result.module)
    if (!function.isDeclaration())
      function.addFnAttr(llvm::Attribute::NoUnwind);
  if (!optimise(*result.module, *result.machine))
    return Error{ErrorCode::Internal, "LLVM does not know a pass of the CPU pipeline", ""};
  return result;
}

support::Result<LlvmModule> lowerToLlvm(dialect::AttentionOp attention, const CpuTarget &target) {
  DiagnosticText diagnostics(attention.getContext());
  auto emitted = emitKernel(attention, target);
  if (failed(emitted))
    return diagnostics.error("cannot make CPU code of @" + attention.getSymName().str());
  return lowerModule(**emitted, target);
}

support::Result<std::string> generateCode(LlvmModule &llvm, llvm::CodeGenFileType fileType) {
  llvm::SmallString<0> code;
  llvm::raw_svector_ostream stream(code);
  llvm::legacy::PassManager passes;
  if (llvm.machine->addPassesToEmitFile(passes, stream, nullptr, fileType, /*DisableVerify=*/true))
    return Error{ErrorCode::Internal, "LLVM cannot write this kind of file", ""};
  passes.run(*llvm.module);
  return std::string(code.str());
}

support::Result<std::string> llvmText(dialect::AttentionOp attention, const CpuTarget &target) {
  auto llvm = lowerToLlvm(attention, target);
  if (!llvm)
    return llvm.error();
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm->module->print(stream, nullptr);
  return text;
}

support::Result<std::string> asmText(dialect::AttentionOp attention, const CpuTarget &target) {
  auto llvm = lowerToLlvm(attention, target);
  return llvm ? generateCode(*llvm, llvm::CodeGenFileType::AssemblyFile) : llvm.error();
}

support::Result<std::string> objectCode(dialect::AttentionOp attention, const CpuTarget &target) {
  auto llvm = lowerToLlvm(attention, target);
  return llvm ? generateCode(*llvm, llvm::CodeGenFileType::ObjectFile) : llvm.error();
}

} // namespace deft::codegen::cpu
