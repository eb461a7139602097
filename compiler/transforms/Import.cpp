#include "compiler/transforms/Import.h"

#include "compiler/transforms/ImportExpr.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace deft::transforms {

using namespace dialect;

/// Builds the attributes of one variant.
class AttributeImporter {
public:
  explicit AttributeImporter(mlir::MLIRContext *context) : context_(context) {}

  mlir::VectorType row(const spec::TensorType &tensor) const {
    return mlir::VectorType::get({tensor.dim}, element(tensor.dtype));
  }

  CacheAttr cache(const spec::CacheSpec &cache) const {
    PageOrder order = cache.order == spec::PageOrder::Nhd ? PageOrder::Nhd : PageOrder::Hnd;
    return CacheAttr::get(context_, cache.pageSize, order);
  }

  mlir::ArrayAttr params(const std::vector<spec::Param> &params) const {
    llvm::SmallVector<mlir::Attribute> attributes;
    for (const spec::Param &param : params) {
      mlir::FloatAttr value;
      if (param.defaultValue)
        value = mlir::FloatAttr::get(mlir::Float64Type::get(context_), *param.defaultValue);
      attributes.push_back(
          ParamAttr::get(context_, param.name, scalarType(context_, param.type), shape(param), value));
    }
    return mlir::ArrayAttr::get(context_, attributes);
  }

  ScheduleAttr schedule(const spec::ScheduleSpec &schedule) const {
    llvm::SmallVector<mlir::Attribute> partitions, phases;
    for (spec::Partition partition : schedule.partitions)
      partitions.push_back(PartitionAttr::get(context_, static_cast<Partition>(partition)));
    for (const spec::PhaseSpec &phase : schedule.phases)
      phases.push_back(PhaseAttr::get(context_, phase.name, phase.rowsAbove.value_or(-1), tune(phase.tileQ),
                                      tune(phase.tileKv), tune(phase.stages), tune(phase.warps)));
    auto array = [&](auto &list) {
      return list.empty() ? mlir::ArrayAttr() : mlir::ArrayAttr::get(context_, list);
    };
    return ScheduleAttr::get(context_, array(partitions), tune(schedule.chunk), array(phases));
  }

  SelectAttr select(const spec::SelectSpec &select) const {
    return SelectAttr::get(context_, tune(select.budget), static_cast<SelectBy>(select.by), select.keepFirst,
                           select.keepLast);
  }

private:
  mlir::Type element(spec::DType dtype) const {
    switch (dtype) {
#define DEFT_TYPE_OF(ID, WORD, BYTES, DEVICE, TYPE, ...)                                                     \
  case spec::DType::ID:                                                                                      \
    return mlir::TYPE::get(context_);
      DEFT_DTYPES(DEFT_TYPE_OF)
#undef DEFT_TYPE_OF
    }
    llvm_unreachable("unknown dtype");
  }

  static ParamShape shape(const spec::Param &param) {
    switch (param.shape) {
    case spec::Param::Shape::Scalar:
      return ParamShape::Scalar;
    case spec::Param::Shape::PerQueryHead:
      return ParamShape::PerQueryHead;
    case spec::Param::Shape::PerKvHead:
      return ParamShape::PerKvHead;
    case spec::Param::Shape::Table:
      return ParamShape::Table;
    case spec::Param::Shape::PerToken:
      return ParamShape::PerToken;
    case spec::Param::Shape::PerQuery:
      return ParamShape::PerQuery;
    case spec::Param::Shape::PerTokenAndHead:
      return ParamShape::PerTokenAndHead;
    }
    llvm_unreachable("unknown parameter shape");
  }

  TuneAttr tune(const std::optional<spec::TuneList> &list) const {
    if (!list)
      return {};
    return TuneAttr::get(context_, llvm::SmallVector<int64_t>(list->values.begin(), list->values.end()));
  }

  mlir::MLIRContext *context_;
};

#define DEFT_IS_SAME_PARTITION(ID, ...)                                                                      \
  static_assert(static_cast<int>(spec::Partition::ID) == static_cast<int>(Partition::ID));
DEFT_PARTITIONS(DEFT_IS_SAME_PARTITION)
#undef DEFT_IS_SAME_PARTITION

AttentionOp importVariant(mlir::ModuleOp module, const spec::Variant &variant, Locate locate) {
  mlir::MLIRContext *context = module.getContext();
  AttributeImporter attributes(context);
  mlir::OpBuilder builder = mlir::OpBuilder::atBlockEnd(module.getBody());
  bool isSigmoid = variant.normalize == spec::Normalize::Sigmoid;
  mlir::Location location = locate(variant.range);
  const spec::Tensors tensors = variant.tensors.scaled(); // scales are no business of the IR
  auto op = AttentionOp::create(
      builder, location, variant.name, variant.queryHeads, variant.kvHeads, attributes.row(tensors.q),
      attributes.row(tensors.k), attributes.row(tensors.v), tensors.valueInKey, tensors.byteProducts,
      attributes.row(tensors.out), variant.withLse, attributes.cache(variant.cache),
      llvm::APFloat(variant.scale), isSigmoid ? Normalize::Sigmoid : Normalize::Softmax,
      attributes.params(variant.params),
      variant.schedule ? attributes.schedule(*variant.schedule) : ScheduleAttr(),
      variant.select ? attributes.select(*variant.select) : SelectAttr(),
      variant.bound == spec::MaskBound::Path);

  // One block that yields what `build` makes of it.
  const auto addHook = [&](mlir::Region &region, auto &&build) {
    mlir::Block &block = addBlock(op, region, location);
    builder.setInsertionPointToStart(&block);
    ExprImporter exprs(variant, builder, block, locate);
    mlir::Value value = build(exprs, block);
    YieldOp::create(builder, value.getLoc(), value);
  };
  const auto importing = [](spec::ExprId root) {
    return [root](ExprImporter &exprs, mlir::Block &) { return exprs.import(root); };
  };
#define DEFT_IMPORT_HOOK(ID, REGION, ...)                                                                    \
  if (variant.ID)                                                                                            \
    addHook(op.get##REGION(), importing(*variant.ID));
  DEFT_HOOKS(DEFT_NO_HOOK, DEFT_IMPORT_HOOK)
#undef DEFT_IMPORT_HOOK
  if (variant.mask)
    addHook(op.getMask(), importing(*variant.mask));
  if (variant.score || (isSigmoid && variant.sigmoidBias))
    addHook(op.getScore(), [&](ExprImporter &exprs, mlir::Block &block) {
      mlir::Value score = variant.score ? exprs.import(*variant.score) : block.getArgument(kArgS);
      if (isSigmoid && variant.sigmoidBias) {
        mlir::Value bias = exprs.import(*variant.sigmoidBias);
        score = mlir::arith::AddFOp::create(builder, bias.getLoc(), score, bias);
      }
      return score;
    });
  return op;
}

void loadDialects(mlir::MLIRContext &context) {
  context.loadDialect<DeftDialect, mlir::arith::ArithDialect, mlir::math::MathDialect>();
}

} // namespace deft::transforms
