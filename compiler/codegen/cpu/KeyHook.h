#pragma once

#include "compiler/codegen/cpu/KernelEmitter.h"

namespace deft::codegen::cpu {

/// The hook `key` for the tokens of a block, once for all rows. Construct it in the entry block.
class KeyRows {
public:
  explicit KeyRows(const KernelContext &context);

  /// The block of a call: its tokens below `count` (i64).
  struct Tokens {
    mlir::Value call, count;
  };
  /// Writes the transformed K to `keys` as f32, [token][keyDim], rounded to q's type.
  mlir::LogicalResult transform(const Tokens &tokens, mlir::Value keys) const;

private:
  void fetch(const Tokens &tokens) const;

  const KernelContext &context_;
  mlir::Value elements_; ///< K as f32, [token][rowRoom()]
  mlir::Value rms_;      ///< [token]

  static constexpr int kHalfLanes = 8; ///< lanes for copies of a half, whose size need not be a multiple
  /// A row, then its first half again, padded: the element half a row further on is then consecutive.
  std::int64_t rowRoom() const {
    const std::int64_t half = context_.keyDim() / 2;
    return context_.keyDim() + (half + kHalfLanes - 1) / kHalfLanes * kHalfLanes;
  }
};

} // namespace deft::codegen::cpu
