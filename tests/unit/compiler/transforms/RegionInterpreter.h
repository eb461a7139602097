#pragma once

#include "compiler/dialect/Deft.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace deft::test {

/// A value of the language: an i1, i32 or i64 in `integer`, an f32 in `real`.
struct Scalar {
  int64_t integer = 0;
  float real = 0;
};

using ParamValues = std::map<std::string, std::vector<Scalar>>;

/// Runs a region of deft.attention on the host, one operation after the other. What IR leaves undefined (a
/// division by zero, reading beyond an array) is noted instead of done.
class RegionInterpreter {
public:
  RegionInterpreter(mlir::Region &region, const ParamValues &params);

  /// What the region yields. `arguments` are its block's.
  const std::vector<Scalar> &run(llvm::ArrayRef<Scalar> arguments);
  const std::string &undefined() const { return undefined_; }

private:
  using Step = std::function<void(std::vector<Scalar> &)>;
  Step compile(mlir::Operation &op);
  unsigned slot(mlir::Value value) const { return slots_.lookup(value); }

  const ParamValues &params_;
  llvm::DenseMap<mlir::Value, unsigned> slots_;
  std::vector<Scalar> values_, yielded_;
  std::vector<Step> steps_;
  std::vector<unsigned> yieldedSlots_;
  std::string undefined_;
};

} // namespace deft::test
