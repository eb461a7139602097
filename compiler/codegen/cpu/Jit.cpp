#include "compiler/codegen/cpu/Lowering.h"

#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/Support/MemoryBuffer.h"

namespace deft::codegen::cpu {

using support::Error;
using support::ErrorCode;

static Error failure(llvm::Error error) {
  return {ErrorCode::Internal, "cannot load the compiled CPU kernel: " + llvm::toString(std::move(error)), ""};
}

support::Result<std::shared_ptr<const abi::CpuKernel>> jit(dialect::AttentionOp attention) {
  auto target = CpuTarget::host();
  if (!target)
    return target.error();
  auto object = objectCode(attention, *target);
  if (!object)
    return object.error();

  // The object is complete: no process symbols, so that code cannot depend on what else is loaded.
  auto session = llvm::orc::LLJITBuilder().setLinkProcessSymbolsByDefault(false).create();
  if (!session)
    return failure(session.takeError());
  const std::string name = abi::kCpuKernelPrefix + attention.getSymName().str();
  if (auto error = (*session)->addObjectFile(llvm::MemoryBuffer::getMemBufferCopy(*object, name)))
    return failure(std::move(error));
  auto table = (*session)->lookup(name);
  if (!table)
    return failure(table.takeError());
  std::shared_ptr<llvm::orc::LLJIT> owner = std::move(*session);
  return std::shared_ptr<const abi::CpuKernel>(owner, table->toPtr<const abi::CpuKernel *>());
}

} // namespace deft::codegen::cpu
