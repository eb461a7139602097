#pragma once

#include "compiler/dialect/Deft.h"
#include "compiler/support/Result.h"
#include "templates/deft/cpu_abi.h"

#include <memory>
#include <string>
#include <vector>

/// Native code for one `deft.attention`: its regions, vectorised over tokens, inside an attend micro-kernel
/// of vector, scf, arith and llvm ops.
namespace deft::codegen::cpu {

/// The instruction set of the generated code.
struct CpuTarget {
  std::string cpu;      ///< LLVM's name, such as x86-64-v4 or znver4
  std::string features; ///< LLVM's list, "+avx512f,..."; empty: the features of `cpu`
  int isaLevel = 3;     ///< 3 or 4: x86-64-v3 or v4; determines the vector width
  bool bf16Dot = false; ///< AVX512_BF16: products of bf16 pairs, exact, accumulated in f32

  /// This machine. An error below x86-64-v3 (AVX2, FMA, F16C) and on other architectures.
  static support::Result<CpuTarget> host();
  /// x86-64-v3 (level 3) or x86-64-v4 (level 4), for code that other machines run.
  static support::Result<CpuTarget> level(int isaLevel);

  int lanes() const { return isaLevel >= 4 ? 16 : 8; }
};

/// Optimised LLVM IR, assembly, and a relocatable position-independent ELF object.
support::Result<std::string> llvmText(dialect::AttentionOp attention, const CpuTarget &target);
support::Result<std::string> asmText(dialect::AttentionOp attention, const CpuTarget &target);
support::Result<std::string> objectCode(dialect::AttentionOp attention, const CpuTarget &target);

/// Compiles for this machine and loads the code. The result keeps the code alive.
support::Result<std::shared_ptr<const abi::CpuKernel>> jit(dialect::AttentionOp attention);

/// Links objects from objectCode() into one shared object that depends on no library.
support::Result<std::string> linkSharedObject(const std::vector<std::string> &objects);

} // namespace deft::codegen::cpu
