#pragma once

#include "compiler/codegen/cpu/KernelEmitter.h"

namespace deft::codegen::cpu {

/// `key` for the tokens of a block, once for all rows. Made in the function's entry block.
class KeyRows {
public:
  explicit KeyRows(const KernelContext &context);

  /// The block of a call, of which tokens below `count` (i64) are there.
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

  /// A row, and its first half once more: what is half a row further on stands in a line.
  std::int64_t rowRoom() const { return context_.keyDim() + context_.keyDim() / 2; }
};

} // namespace deft::codegen::cpu
