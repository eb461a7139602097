#include "compiler/dialect/Deft.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

#include "compiler/dialect/DeftDialect.cpp.inc"
#include "compiler/dialect/DeftEnums.cpp.inc"

namespace deft::dialect {
// The text form of the regions, in Attention.cpp; the generated operations call it.
mlir::ParseResult parseHooks(mlir::OpAsmParser &parser, mlir::Region &query, mlir::Region &key,
                             mlir::Region &mask, mlir::Region &score, mlir::Region &valueFactor,
                             mlir::Region &sink, mlir::Region &output, mlir::Region &tile);
void printHooks(mlir::OpAsmPrinter &printer, AttentionOp, mlir::Region &query, mlir::Region &key,
                mlir::Region &mask, mlir::Region &score, mlir::Region &valueFactor, mlir::Region &sink,
                mlir::Region &output, mlir::Region &tile);
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

mlir::Block &addHookBlock(mlir::Region &region, mlir::Location location) {
  mlir::Block &block = region.emplaceBlock();
  mlir::Builder builder(region.getContext());
  for (unsigned arg = 0; arg < kHookArgCount; ++arg)
    block.addArgument(arg == kArgS ? mlir::Type(builder.getF32Type()) : builder.getI32Type(), location);
  return block;
}

static mlir::Block &addRowBlock(mlir::Region &region, unsigned count, mlir::Location location) {
  mlir::Block &block = region.emplaceBlock();
  mlir::Builder builder(region.getContext());
  for (unsigned arg = 0; arg < count; ++arg)
    block.addArgument(arg < kElementDim ? mlir::Type(builder.getF32Type()) : builder.getI32Type(), location);
  return block;
}

mlir::Block &addElementBlock(mlir::Region &region, mlir::Location location) {
  return addRowBlock(region, kElementArgCount, location);
}

mlir::Block &addKeyBlock(mlir::Region &region, mlir::Location location) {
  return addRowBlock(region, kKeyArgCount, location);
}

mlir::Block &addTileBlock(mlir::Region &region, mlir::Location location) {
  mlir::Block &block = region.emplaceBlock();
  mlir::Type i32 = mlir::IntegerType::get(region.getContext(), 32);
  for (unsigned arg = 0; arg < kTileArgCount; ++arg)
    block.addArgument(i32, location);
  return block;
}

} // namespace deft::dialect
