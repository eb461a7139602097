#pragma once

#include "compiler/codegen/cpu/KernelEmitter.h"

namespace deft::codegen::cpu {

/// `key` for the tokens of a block, once for all rows. Made in the function's entry block.
class KeyRows {
public:
  explicit KeyRows(const KernelContext &context);

  /// The block of a call; it has the tokens below `count` (i64).
  struct Tokens {
    mlir::Value call, count;
  };
  /// Leaves what becomes of K in `keys` as f32, [token][keyDim], in numbers of q's type.
  mlir::LogicalResult transform(const Tokens &tokens, mlir::Value keys) const;

private:
  void fetch(const Tokens &tokens) const;

  const KernelContext &context_;
  mlir::Value elements_; ///< K as f32, [token][rowRoom()]
  mlir::Value rms_;      ///< [token]

  static constexpr int kHalfLanes = 8; ///< of vectors in which a half is copied: it need not be whole ones
  /// A row, and its first half once more, in whole vectors: what is half a row further on stands in a line.
  std::int64_t rowRoom() const {
    const std::int64_t half = context_.keyDim() / 2;
    return context_.keyDim() + (half + kHalfLanes - 1) / kHalfLanes * kHalfLanes;
  }
};

} // namespace deft::codegen::cpu
