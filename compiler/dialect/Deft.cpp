#include "compiler/dialect/Deft.h"

#include "compiler/spec/Names.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

#include "compiler/dialect/DeftDialect.cpp.inc"
#include "compiler/dialect/DeftEnums.cpp.inc"

namespace deft::dialect {
// The text form of the regions, in Attention.cpp. The generated operation calls it with each of them.
mlir::ParseResult parseRegions(mlir::OpAsmParser &parser, llvm::ArrayRef<mlir::Region *> regions);
void printRegions(mlir::OpAsmPrinter &printer, llvm::ArrayRef<mlir::Region *> regions);
template <typename... Regions>
static mlir::ParseResult parseHooks(mlir::OpAsmParser &parser, Regions &...regions) {
  return parseRegions(parser, {&regions...});
}
template <typename... Regions>
static void printHooks(mlir::OpAsmPrinter &printer, AttentionOp, Regions &...regions) {
  printRegions(printer, {&regions...});
}
} // namespace deft::dialect

#define GET_ATTRDEF_CLASSES
#include "compiler/dialect/DeftAttrs.cpp.inc"
#define GET_OP_CLASSES
#include "compiler/dialect/DeftOps.cpp.inc"

namespace deft::dialect {

void DeftDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "compiler/dialect/DeftAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "compiler/dialect/DeftOps.cpp.inc"
      >();
}

llvm::ArrayRef<llvm::StringLiteral> hookArgNames() {
  static constexpr llvm::StringLiteral kNames[] = {"s",       "q_pos", "kv_pos", "head",
                                                   "kv_head", "depth", "query"};
  static_assert(std::size(kNames) == kHookArgCount);
  return kNames;
}

llvm::ArrayRef<llvm::StringLiteral> elementArgNames() {
  static constexpr llvm::StringLiteral kNames[] = {"x",     "x_half", "x_pair",  "x_rms", "dim",
                                                   "q_pos", "head",   "kv_head", "query"};
  static_assert(std::size(kNames) == kElementArgCount);
  return kNames;
}

llvm::ArrayRef<llvm::StringLiteral> keyArgNames() {
  static constexpr llvm::StringLiteral kNames[] = {"x",   "x_half", "x_pair", "x_rms",
                                                   "dim", "kv_pos", "kv_head"};
  static_assert(std::size(kNames) == kKeyArgCount);
  return kNames;
}

llvm::ArrayRef<llvm::StringLiteral> tileArgNames() {
  static constexpr llvm::StringLiteral kNames[] = {"q_lo",     "q_hi",     "kv_lo",    "kv_hi",
                                                   "depth_lo", "depth_hi", "query_lo", "query_hi",
                                                   "head_lo",  "head_hi",  "kv_head"};
  static_assert(std::size(kNames) == kTileArgCount);
  return kNames;
}

mlir::Block &addBlock(AttentionOp op, mlir::Region &region, mlir::Location location) {
  mlir::Block &block = region.emplaceBlock();
  mlir::Builder builder(op.getContext());
  for (llvm::StringRef name : argNames(op, region)) {
    const auto builtin = spec::parseBuiltin(name);
    const bool isReal = builtin && spec::typeOf(*builtin) == spec::ScalarType::F32;
    block.addArgument(isReal ? mlir::Type(builder.getF32Type()) : builder.getI32Type(), location);
  }
  return block;
}

} // namespace deft::dialect
