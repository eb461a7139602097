#pragma once

#include "compiler/spec/Tensors.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "compiler/dialect/DeftDialect.h.inc"
#include "compiler/dialect/DeftEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "compiler/dialect/DeftAttrs.h.inc"
#define GET_OP_CLASSES
#include "compiler/dialect/DeftOps.h.inc"

namespace deft::dialect {

/// Arguments of the regions `mask`, `score`, `value_factor` and `sink`, in their order.
enum HookArg : unsigned {
  kArgS,
  kArgQPos,
  kArgKvPos,
  kArgHead,
  kArgKvHead,
  kArgDepth,
  kArgQuery,
  kHookArgCount
};

/// Arguments of the regions `query` and `output`, in their order: of an element of a row. `output` uses no
/// other element than its own.
enum ElementArg : unsigned {
  kElementX,
  kElementXHalf,
  kElementXPair,
  kElementXRms,
  kElementDim,
  kElementQPos,
  kElementHead,
  kElementKvHead,
  kElementQuery,
  kElementArgCount
};

/// Arguments of the region `key`, in their order: of an element of a token's row. The first are those of
/// `query`.
enum KeyArg : unsigned {
  kKeyX = kElementX,
  kKeyXHalf = kElementXHalf,
  kKeyXPair = kElementXPair,
  kKeyXRms = kElementXRms,
  kKeyDim = kElementDim,
  kKeyKvPos,
  kKeyKvHead,
  kKeyArgCount
};

/// Arguments of the region `tile`, in their order: inclusive bounds, and the KV head.
enum TileArg : unsigned {
  kTileQLo,
  kTileQHi,
  kTileKvLo,
  kTileKvHi,
  kTileDepthLo,
  kTileDepthHi,
  kTileQueryLo,
  kTileQueryHi,
  kTileHeadLo,
  kTileHeadHi,
  kTileKvHead,
  kTileArgCount
};

/// Positions, depths and query indices stay below this, which the tree promises. So a difference of two
/// positions never leaves i32, and the usual masks need no wider arithmetic.
constexpr int64_t kPositionLimit = int64_t{1} << 30;

/// Whether a token has elements of such a parameter.
bool isOfTokens(ParamShape shape);

/// The names that the text form and the emitters use.
llvm::ArrayRef<llvm::StringLiteral> hookArgNames();
llvm::ArrayRef<llvm::StringLiteral> elementArgNames();
llvm::ArrayRef<llvm::StringLiteral> keyArgNames();
llvm::ArrayRef<llvm::StringLiteral> tileArgNames();
/// Those of a region of `op`.
llvm::ArrayRef<llvm::StringLiteral> argNames(AttentionOp op, mlir::Region &region);

/// Adds the block of a region of `op` with its arguments to it, which is empty.
mlir::Block &addBlock(AttentionOp op, mlir::Region &region, mlir::Location location);

} // namespace deft::dialect
