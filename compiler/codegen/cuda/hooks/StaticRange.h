#pragma once

#include "compiler/dialect/Deft.h"

#include "llvm/ADT/DenseMap.h"

namespace deft::codegen::cuda {

/// Bounds of a region's i32 values that hold for every input. Signed overflow is undefined in C++ but wraps
/// in the language: if the bounds exclude it, the plain operator is correct and easier to read.
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
  /// The range of the exact result, before it wraps; all of i32 for operations that are not analysed.
  Range exact(mlir::Operation &op) const;

  llvm::DenseMap<mlir::Value, Range> ranges_;
};

} // namespace deft::codegen::cuda
