#include "compiler/codegen/cpu/Lowering.h"

#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/Support/MemoryBuffer.h"

namespace deft::codegen::cpu {

using support::Error;
using support::ErrorCode;

static Error failure(llvm::Error error) {
  return {ErrorCode::Internal, "cannot load the compiled CPU kernel: " + llvm::toString(std::move(error)),
          ""};
}

support::Result<std::shared_ptr<const void>> loadObject(const std::string &object,
                                                        const std::string &symbol) {
  // The object is complete: no process symbols, so that code cannot depend on what else is loaded.
  auto session = llvm::orc::LLJITBuilder()
                     .setLinkProcessSymbolsByDefault(false)
                     .setPlatformSetUp(llvm::orc::setUpInactivePlatform) // no static constructors to run
                     .create();
  if (!session)
    return failure(session.takeError());
  if (auto error = (*session)->addObjectFile(llvm::MemoryBuffer::getMemBufferCopy(object, symbol)))
    return failure(std::move(error));
  auto address = (*session)->lookup(symbol);
  if (!address)
    return failure(address.takeError());
  std::shared_ptr<llvm::orc::LLJIT> owner = std::move(*session);
  return std::shared_ptr<const void>(owner, address->toPtr<const void *>());
}

support::Result<std::shared_ptr<const abi::CpuKernel>> jit(dialect::AttentionOp attention) {
  auto target = CpuTarget::host();
  if (!target)
    return target.error();
  auto object = objectCode(attention, *target);
  if (!object)
    return object.error();
  auto table = loadObject(*object, abi::kCpuKernelPrefix + attention.getSymName().str());
  if (!table)
    return table.error();
  return std::static_pointer_cast<const abi::CpuKernel>(*table);
}

} // namespace deft::codegen::cpu
