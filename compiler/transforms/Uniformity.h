#pragma once

#include "compiler/dialect/Deft.h"

#include "llvm/ADT/DenseMap.h"

namespace deft::transforms {

/// The dependencies of a value of `mask` or `score`, as bits, so that a join is an or.
enum class Uniformity : unsigned {
  Launch = 0, ///< neither: constants, scalar parameters, the KV head
  Row = 1,    ///< the query and the query head
  Column = 2, ///< the token
  Pair = 3,
};

/// The uniformity of every value of a hook region: always an or over its operands, also for values of other
/// regions.
class UniformityAnalysis {
public:
  explicit UniformityAnalysis(mlir::Region &hook);
  Uniformity of(mlir::Value value) const { return values_.lookup(value); }

private:
  llvm::DenseMap<mlir::Value, Uniformity> values_;
};

llvm::StringRef uniformityName(Uniformity uniformity);

} // namespace deft::transforms
