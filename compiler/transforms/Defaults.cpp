#include "compiler/dialect/Deft.h"
#include "compiler/transforms/Passes.h"

namespace deft::transforms {

using namespace dialect;

namespace {
/// What the space holds where a spec leaves it open. Shared memory bounds the tiles of large heads: 128
/// tokens of head_dim 256 in two stages would be 256 KiB, more than any target has.
class DefaultSchedule {
public:
  explicit DefaultSchedule(AttentionOp op)
      : context_(op.getContext()), ratio_(op.ratio()), headDim_(op.getHeadDim()) {}

  ScheduleAttr complete(ScheduleAttr given) const {
    mlir::ArrayAttr partitions = given ? given.getPartitions() : mlir::ArrayAttr();
    TuneAttr chunk = given ? given.getChunk() : TuneAttr();
    mlir::ArrayAttr phases = given ? given.getPhases() : mlir::ArrayAttr();
    if (!partitions)
      partitions = mlir::ArrayAttr::get(context_, {PartitionAttr::get(context_, Partition::Auto)});
    if (!chunk)
      chunk = tune({128, 256, 512, 1024});
    if (!phases)
      phases = mlir::ArrayAttr::get(context_, {PhaseAttr::get(context_, "wide", kNarrowRows, {}, {}, {}, {}),
                                               PhaseAttr::get(context_, "narrow", -1, {}, {}, {}, {})});
    llvm::SmallVector<mlir::Attribute> completed;
    for (auto phase : phases.getAsRange<PhaseAttr>())
      completed.push_back(complete(phase));
    return ScheduleAttr::get(context_, partitions, chunk, mlir::ArrayAttr::get(context_, completed));
  }

private:
  static constexpr int64_t kNarrowRows = 16; ///< rows of one matrix instruction

  TuneAttr tune(llvm::ArrayRef<int64_t> values) const { return TuneAttr::get(context_, values); }

  PhaseAttr complete(PhaseAttr phase) const {
    bool isWide = phase.getRowsAbove() >= kNarrowRows, isLarge = headDim_ > 128;
    // A tile holds at least one query, which is ratio rows.
    int64_t oneQuery = (ratio_ + 15) / 16 * 16;
    auto ifAbsent = [&](TuneAttr given, llvm::ArrayRef<int64_t> values) {
      return given ? given : tune(values);
    };
    llvm::SmallVector<int64_t> rows;
    for (int64_t value : isWide ? llvm::SmallVector<int64_t>{64, 128} : llvm::SmallVector<int64_t>{16})
      if (rows.empty() || value > rows.back())
        rows.push_back(std::max(value, oneQuery));
    TuneAttr tileKv = isLarge  ? ifAbsent(phase.getTileKv(), {32, 64})
                      : isWide ? ifAbsent(phase.getTileKv(), {64, 128})
                               : ifAbsent(phase.getTileKv(), {32, 64, 128});
    TuneAttr stages =
        isWide || isLarge ? ifAbsent(phase.getStages(), {2, 3}) : ifAbsent(phase.getStages(), {2, 3, 4});
    return PhaseAttr::get(context_, phase.getName(), phase.getRowsAbove(), ifAbsent(phase.getTileQ(), rows),
                          tileKv, stages, ifAbsent(phase.getWarps(), {4}));
  }

  mlir::MLIRContext *context_;
  int64_t ratio_, headDim_;
};

struct DefaultsPass : mlir::PassWrapper<DefaultsPass, mlir::OperationPass<AttentionOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(DefaultsPass)
  llvm::StringRef getArgument() const override { return "deft-defaults"; }
  llvm::StringRef getDescription() const override { return "complete the schedule"; }

  void runOnOperation() override {
    AttentionOp op = getOperation();
    op.setScheduleAttr(DefaultSchedule(op).complete(op.getScheduleAttr()));
  }
};
} // namespace

std::unique_ptr<mlir::Pass> createDefaultsPass() { return std::make_unique<DefaultsPass>(); }

} // namespace deft::transforms
