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

/// Arguments of the regions `query` and `output`, in their order, for an element of a row. `output` uses no
/// element except its own.
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

/// Arguments of the region `key`, in their order, for an element of a token's row. The first ones equal those
/// of `query`.
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

/// The limit of positions, depths and query indices, which the tree guarantees. So a difference of two
/// positions fits i32, and the usual masks need no wider arithmetic.
constexpr int64_t kPositionLimit = int64_t{1} << 30;

/// Whether such a parameter has elements for each token.
bool isOfTokens(ParamShape shape);

/// The names in the text form and in the emitters.
llvm::ArrayRef<llvm::StringLiteral> hookArgNames();
llvm::ArrayRef<llvm::StringLiteral> elementArgNames();
llvm::ArrayRef<llvm::StringLiteral> keyArgNames();
llvm::ArrayRef<llvm::StringLiteral> tileArgNames();
/// The names for a region of `op`.
llvm::ArrayRef<llvm::StringLiteral> argNames(AttentionOp op, mlir::Region &region);

/// Adds a block with its arguments to an empty region of `op`.
mlir::Block &addBlock(AttentionOp op, mlir::Region &region, mlir::Location location);

} // namespace deft::dialect
