#include "compiler/codegen/cpu/HookInliner.h"
#include "compiler/codegen/cpu/KernelEmitter.h"

#include <cstddef>

namespace deft::codegen::cpu {

using mlir::Value;

mlir::LLVM::LLVMFuncOp emitTile(const KernelContext &context) {
  Emitter &e = context.e;
  auto function = e.function(context.module, "tile", e.i32Type(), {e.pointerType()});
  Value call = function.getArgument(0);
  dialect::AttentionOp attention = context.attention;
  if (!attention.hasTile()) {
    // Without an analysis nothing is known of a mask, and everything of no mask.
    e.ret(e.i32(attention.hasMask() ? abi::kCpuTileAny : abi::kCpuTileAny | abi::kCpuTileAll));
    return function;
  }
  auto field = [&](std::size_t offset) { return e.field(e.i32Type(), call, offset); };
  Value bounds[dialect::kTileArgCount];
  bounds[dialect::kTileQLo] = field(offsetof(abi::CpuTileCall, qPosLow));
  bounds[dialect::kTileQHi] = field(offsetof(abi::CpuTileCall, qPosHigh));
  bounds[dialect::kTileKvLo] = field(offsetof(abi::CpuTileCall, kvPosLow));
  bounds[dialect::kTileKvHi] = field(offsetof(abi::CpuTileCall, kvPosHigh));
  bounds[dialect::kTileDepthLo] = field(offsetof(abi::CpuTileCall, depthLow));
  bounds[dialect::kTileDepthHi] = field(offsetof(abi::CpuTileCall, depthHigh));
  bounds[dialect::kTileQueryLo] = field(offsetof(abi::CpuTileCall, queryLow));
  bounds[dialect::kTileQueryHi] = field(offsetof(abi::CpuTileCall, queryHigh));
  bounds[dialect::kTileHeadLo] = field(offsetof(abi::CpuTileCall, headLow));
  bounds[dialect::kTileHeadHi] = field(offsetof(abi::CpuTileCall, headHigh));
  bounds[dialect::kTileKvHead] = field(offsetof(abi::CpuTileCall, kvHead));
  Value params = e.field(e.pointerType(), call, offsetof(abi::CpuTileCall, params));
  auto seen = inlineHook(e, attention, attention.getTile(), bounds, params);
  if (failed(seen))
    return {};
  Value any = e.select((*seen)[0], e.i32(abi::kCpuTileAny), e.i32(0));
  Value all = e.select((*seen)[1], e.i32(abi::kCpuTileAll), e.i32(0));
  e.ret(e.bitOr(any, all));
  return function;
}

namespace {

/// The constant of type abi::CpuKernel: numbers in the order of the struct, then functions.
void emitTable(const KernelContext &context, llvm::ArrayRef<mlir::LLVM::LLVMFuncOp> functions) {
  Emitter &e = context.e;
  mlir::OpBuilder &b = e.builder();
  dialect::AttentionOp attention = context.attention;
  const int numbers[] = {abi::kCpuKernelVersion,
                         static_cast<int>(sizeof(abi::CpuKernel)),
                         static_cast<int>(attention.getQueryHeads()),
                         static_cast<int>(attention.getKvHeads()),
                         context.keyDim(),
                         context.valueDim(),
                         static_cast<int>(context.tensors.q.dtype),
                         static_cast<int>(context.tensors.k.dtype),
                         static_cast<int>(context.tensors.v.dtype),
                         static_cast<int>(context.tensors.out.dtype),
                         context.isSigmoid() ? 1 : 0,
                         attention.hasMask() ? 1 : 0,
                         static_cast<int>(attention.getParams().size()),
                         kBlockTokens,
                         context.groupRows(),
                         context.packedGroupBytes(),
                         context.target.isaLevel,
                         attention.getSelect() ? 1 : 0,
                         attention.hasTokenParams() ? 1 : 0,
                         context.tensors.byteProducts ? 1 : 0};
  static_assert(offsetof(abi::CpuKernel, pack) == sizeof(numbers));
  llvm::SmallVector<mlir::Type> members(std::size(numbers), e.i32Type());
  members.append(functions.size(), e.pointerType());
  auto type = mlir::LLVM::LLVMStructType::getLiteral(b.getContext(), members);

  b.setInsertionPointToEnd(context.module.getBody());
  const std::string name = abi::kCpuKernelPrefix + attention.getSymName().str();
  auto table =
      mlir::LLVM::GlobalOp::create(b, e.location(), type, /*isConstant=*/true, mlir::LLVM::Linkage::External,
                                   name, mlir::Attribute(), alignof(abi::CpuKernel));
  b.setInsertionPointToStart(b.createBlock(&table.getInitializerRegion()));
  Value value = mlir::LLVM::UndefOp::create(b, e.location(), type);
  std::int64_t member = 0;
  auto insert = [&](Value next) {
    value = mlir::LLVM::InsertValueOp::create(b, e.location(), value, next, member++);
  };
  for (int number : numbers)
    insert(mlir::LLVM::ConstantOp::create(b, e.location(), e.i32Type(), b.getI32IntegerAttr(number)));
  for (mlir::LLVM::LLVMFuncOp function : functions)
    insert(mlir::LLVM::AddressOfOp::create(b, e.location(), function));
  e.ret(value);
}

} // namespace

mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>> emitKernel(dialect::AttentionOp attention,
                                                              const CpuTarget &target) {
  mlir::MLIRContext *context = attention.getContext();
  context->loadDialect<mlir::arith::ArithDialect, mlir::LLVM::LLVMDialect, mlir::scf::SCFDialect,
                       mlir::vector::VectorDialect>();
  mlir::OpBuilder builder(context);
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(builder, attention.getLoc());
  Emitter emitter(builder, attention.getLoc(), lanesFor(attention.tensors(), target));
  KernelContext kernel{attention, target, *module, emitter};

  llvm::SmallVector<mlir::LLVM::LLVMFuncOp> functions{emitPack(kernel),         emitAttend(kernel),
                                                      emitTile(kernel),         emitFinish(kernel, false),
                                                      emitFinish(kernel, true), emitMerge(kernel)};
  if (llvm::any_of(functions, [](mlir::LLVM::LLVMFuncOp function) { return !function; }))
    return mlir::failure();
  emitTable(kernel, functions);
  return module;
}

} // namespace deft::codegen::cpu
