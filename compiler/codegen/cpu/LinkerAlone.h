#pragma once

#include "llvm/Plugins/PassPlugin.h"

/// Stubs for functions that LLD needs from LLVM's archives but this program never calls: link-time
/// optimisation for every target of LLVM (tools/package: 92 MB instead of 56). Each stub replaces an
/// archive's function, except for X86. Include this file only once.

#define DEFT_SECOND_OF(first, second, ...) second
#define DEFT_SECOND(...) DEFT_SECOND_OF(__VA_ARGS__, )
#define DEFT_NOTHING(word, target)
#define DEFT_STUB(word, target)                                                                              \
  extern "C" __attribute__((visibility("hidden"))) void LLVMInitialize##target##word() {}
// A target with a definition of its own here is left out.
#define DEFT_KEPT_X86 , DEFT_NOTHING
#define DEFT_UNLESS_KEPT(word, target) DEFT_SECOND(DEFT_KEPT_##target, DEFT_STUB)(word, target)

#define LLVM_TARGET(target)                                                                                  \
  DEFT_UNLESS_KEPT(TargetInfo, target)                                                                       \
  DEFT_UNLESS_KEPT(Target, target)                                                                           \
  DEFT_UNLESS_KEPT(TargetMC, target)
#include <llvm/Config/Targets.def>
#define LLVM_ASM_PRINTER(target) DEFT_UNLESS_KEPT(AsmPrinter, target)
#include <llvm/Config/AsmPrinters.def>
#define LLVM_ASM_PARSER(target) DEFT_UNLESS_KEPT(AsmParser, target)
#include <llvm/Config/AsmParsers.def>

/// The optimiser also references Polly.
// NOLINTNEXTLINE(misc-definitions-in-headers): to be included once
__attribute__((visibility("hidden"))) llvm::PassPluginLibraryInfo getPollyPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "none", "", [](llvm::PassBuilder &) {}};
}
