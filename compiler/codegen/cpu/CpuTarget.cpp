#include "compiler/codegen/cpu/CpuCodegen.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"

namespace deft::codegen::cpu {

using support::Error;
using support::ErrorCode;

// What x86-64-v3 and x86-64-v4 add, as far as the emitted code or LLVM's choices for it rest on it.
static constexpr const char *kLevel3[] = {"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"};
static constexpr const char *kLevel4[] = {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"};

support::Result<CpuTarget> CpuTarget::host() {
  if (!llvm::Triple(llvm::sys::getProcessTriple()).isX86())
    return Error{ErrorCode::Environment, "the CPU back end makes code for x86-64 only",
                 "use the cuda backend on this machine"};
  const llvm::StringMap<bool> has = llvm::sys::getHostCPUFeatures();
  for (const char *feature : kLevel3)
    if (!has.lookup(feature))
      return Error{ErrorCode::Environment,
                   std::string("this processor lacks ") + feature + ", and the CPU back end needs x86-64-v3",
                   "a machine with AVX2, FMA and F16C (2013 and later) will do"};
  CpuTarget target;
  target.cpu = llvm::sys::getHostCPUName().str();
  target.isaLevel = llvm::all_of(kLevel4, [&](const char *feature) { return has.lookup(feature); }) ? 4 : 3;
  target.bf16Dot = target.isaLevel == 4 && has.lookup("avx512bf16");
  // Spelled out, because a hypervisor may hide what the model has.
  for (const auto &feature : has)
    target.features += (target.features.empty() ? "" : ",") + std::string(feature.second ? "+" : "-") +
                       feature.first().str();
  return target;
}

support::Result<CpuTarget> CpuTarget::level(int isaLevel) {
  if (isaLevel != 3 && isaLevel != 4)
    return Error{ErrorCode::Usage, "x86-64-v" + std::to_string(isaLevel) + " is not 3 or 4", ""};
  CpuTarget target;
  target.cpu = "x86-64-v" + std::to_string(isaLevel);
  target.isaLevel = isaLevel;
  return target;
}

} // namespace deft::codegen::cpu
