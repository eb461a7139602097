#pragma once

#include "compiler/dialect/Deft.h"

#include "llvm/ADT/DenseMap.h"

namespace deft::codegen::cuda {

/// Bounds of the i32 values of a region that hold for every input. C++ leaves signed overflow undefined and
/// the language wraps: where these bounds rule an overflow out, the plain operator is right and reads well.
class StaticRanges {
public:
  explicit StaticRanges(mlir::Region &region);

  /// Whether the exact result of an addi, subi, muli or absi fits its type.
  bool cannotOverflow(mlir::Operation &op) const;

private:
  struct Range {
    int64_t min, max;
  };
  Range of(mlir::Value value) const;
  /// Of the exact result, before it wraps; all of i32 for what is not followed.
  Range exact(mlir::Operation &op) const;

  llvm::DenseMap<mlir::Value, Range> ranges_;
};

} // namespace deft::codegen::cuda
