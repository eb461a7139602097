#include "compiler/dialect/Deft.h"

/// What every attribute promises, checked where it is made. Messages state the value and the limit.
namespace deft::dialect {

using EmitError = llvm::function_ref<mlir::InFlightDiagnostic()>;

llvm::LogicalResult CacheAttr::verify(EmitError emitError, int64_t pageSize, PageOrder) {
  if (pageSize < 0)
    return emitError() << "page_size is " << pageSize
                       << ", it must be at least 1, or 0 for a contiguous cache";
  return mlir::success();
}

llvm::LogicalResult ParamAttr::verify(EmitError emitError, llvm::StringRef name, mlir::Type type,
                                      ParamShape shape, mlir::FloatAttr defaultValue) {
  if (name.empty())
    return emitError() << "a parameter needs a name";
  if (!type.isF32() && !type.isSignlessInteger(32))
    return emitError() << "parameter `" << name << "` is " << type << ", it must be f32 or i32";
  if (defaultValue && shape != ParamShape::Scalar)
    return emitError() << "parameter `" << name << "` is an array, only a scalar has a default";
  return mlir::success();
}

llvm::LogicalResult TuneAttr::verify(EmitError emitError, llvm::ArrayRef<int64_t> values) {
  if (values.empty())
    return emitError() << "a tune list needs at least one value";
  for (int64_t value : values)
    if (value <= 0)
      return emitError() << "a tune list holds " << value << ", its values must be positive";
  return mlir::success();
}

llvm::LogicalResult SelectAttr::verify(EmitError emitError, TuneAttr budget, SelectBy, int64_t keepFirst,
                                       int64_t keepLast) {
  if (keepFirst < 0 || keepLast < 0)
    return emitError() << "keep_first is " << keepFirst << " and keep_last " << keepLast
                       << ", neither may be negative";
  for (int64_t value : budget.getValues())
    if (value < keepFirst + keepLast)
      return emitError() << "budget is " << value
                         << ", it must be at least keep_first + keep_last = " << keepFirst + keepLast;
  return mlir::success();
}

llvm::LogicalResult PhaseAttr::verify(EmitError emitError, llvm::StringRef name, int64_t rowsAbove, TuneAttr,
                                      TuneAttr, TuneAttr, TuneAttr) {
  if (name.empty())
    return emitError() << "a phase needs a name";
  if (rowsAbove < -1)
    return emitError() << "phase `" << name << "` has rows_above " << rowsAbove << ", it must be at least -1";
  return mlir::success();
}

llvm::LogicalResult ScheduleAttr::verify(EmitError emitError, mlir::ArrayAttr partitions, TuneAttr,
                                         mlir::ArrayAttr phases) {
  if (partitions && !llvm::all_of(partitions, llvm::IsaPred<PartitionAttr>))
    return emitError() << "partitions must be an array of #deft.partition";
  if (!phases)
    return mlir::success();
  for (auto [index, attribute] : llvm::enumerate(phases)) {
    auto phase = llvm::dyn_cast<PhaseAttr>(attribute);
    if (!phase)
      return emitError() << "phases must be an array of #deft.phase";
    bool last = index + 1 == phases.size();
    if (last != (phase.getRowsAbove() == -1))
      return emitError() << "phase `" << phase.getName() << "` has rows_above " << phase.getRowsAbove()
                         << ", the last phase and no other has -1";
    if (index > 0 && phase.getRowsAbove() >= llvm::cast<PhaseAttr>(phases[index - 1]).getRowsAbove())
      return emitError() << "phase `" << phase.getName() << "` has rows_above " << phase.getRowsAbove()
                         << ", it must be below that of the phase before it";
  }
  return mlir::success();
}

} // namespace deft::dialect
