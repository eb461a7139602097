#include "compiler/dialect/Deft.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringSet.h"

/// deft.attention: its text form, its verifiers and its folds.
namespace deft::dialect {

using llvm::StringRef;

/// Of an element of a row: its first arguments are those of ElementArg.
static bool isOfElement(AttentionOp op, mlir::Region &region) {
  return &region == &op.getQuery() || &region == &op.getKey() || &region == &op.getOutput();
}

llvm::ArrayRef<llvm::StringLiteral> argNames(AttentionOp op, mlir::Region &region) {
  return &region == &op.getTile()  ? tileArgNames()
         : &region == &op.getKey() ? keyArgNames()
         : isOfElement(op, region) ? elementArgNames()
                                   : hookArgNames();
}

void AttentionOp::getAsmBlockArgumentNames(mlir::Region &region, mlir::OpAsmSetValueNameFn setName) {
  for (auto [argument, name] : llvm::zip(region.getArguments(), argNames(*this, region)))
    setName(argument, name);
}

std::pair<ParamAttr, unsigned> AttentionOp::findParam(StringRef name) {
  for (auto [slot, attribute] : llvm::enumerate(getParams()))
    if (auto param = llvm::cast<ParamAttr>(attribute); param.getName() == name)
      return {param, static_cast<unsigned>(slot)};
  return {};
}

/// The words of the regions, as DeftOps.td has them.
static constexpr StringRef kRegionWords[] = {"query",        "key",  "mask",   "score",
                                             "value_factor", "sink", "output", "tile"};

/// `mask (%s: f32, ...) { ... }`, for each region that is not empty.
mlir::ParseResult parseRegions(mlir::OpAsmParser &parser, llvm::ArrayRef<mlir::Region *> regions) {
  for (auto [keyword, region] : llvm::zip_equal(kRegionWords, regions)) {
    if (parser.parseOptionalKeyword(keyword))
      continue;
    llvm::SmallVector<mlir::OpAsmParser::Argument> arguments;
    if (parser.parseArgumentList(arguments, mlir::OpAsmParser::Delimiter::Paren, /*allowType=*/true) ||
        parser.parseRegion(*region, arguments))
      return mlir::failure();
  }
  return mlir::success();
}

void printRegions(mlir::OpAsmPrinter &printer, llvm::ArrayRef<mlir::Region *> regions) {
  for (auto [keyword, region] : llvm::zip_equal(kRegionWords, regions)) {
    if (region->empty())
      continue;
    printer.printNewline();
    printer << keyword << '(';
    llvm::interleaveComma(region->getArguments(), printer,
                          [&](mlir::BlockArgument argument) { printer.printRegionArgument(argument); });
    printer << ") ";
    printer.printRegion(*region, /*printEntryBlockArgs=*/false);
  }
}

spec::Tensors AttentionOp::tensors() {
  const auto dtypeOf = [](mlir::Type element) {
#define DEFT_DTYPE_OF(ID, WORD, BYTES, DEVICE, TYPE, ...)                                                    \
  if (llvm::isa<mlir::TYPE>(element))                                                                        \
    return spec::DType::ID;
    DEFT_DTYPES(DEFT_DTYPE_OF)
#undef DEFT_DTYPE_OF
    llvm_unreachable("the operation's constraints let no other type come here");
  };
  const auto read = [&](mlir::VectorType row) {
    return spec::TensorType{dtypeOf(row.getElementType()), static_cast<int>(row.getDimSize(0))};
  };
  return {read(getQ()),    read(getK()),       read(getV()),     read(getOut()),
          getValueInKey(), /*scaleColumns=*/0, getByteProducts()};
}

bool isOfTokens(ParamShape shape) {
  return shape == ParamShape::PerToken || shape == ParamShape::PerTokenAndHead;
}

int AttentionOp::tokenParams() {
  return static_cast<int>(llvm::count_if(getParams().getAsRange<ParamAttr>(),
                                         [](ParamAttr param) { return isOfTokens(param.getShape()); }));
}

llvm::LogicalResult AttentionOp::verify() {
  int32_t queryHeads = getQueryHeads(), kvHeads = getKvHeads();
  if (queryHeads <= 0 || kvHeads <= 0 || queryHeads % kvHeads != 0)
    return emitOpError() << "query_heads is " << queryHeads << " and kv_heads is " << kvHeads
                         << ", the first must be a positive multiple of the second";
  if (const std::optional<std::string> fault = spec::faultOf(tensors()))
    return emitOpError() << *fault;
  if (!getScale().isFinite())
    return emitOpError() << "scale must be finite";
  if (getNormalize() == Normalize::Sigmoid && getLse())
    return emitOpError() << "normalize(sigmoid) has no lse";
  if (getNormalize() == Normalize::Sigmoid && hasSink())
    return emitOpError() << "normalize(sigmoid) has no sink";
  if (getByteProducts() &&
      (getNormalize() == Normalize::Sigmoid || hasKey() || hasValueFactor() || getSelect()))
    return emitOpError() << "has byte_products beside sigmoid, `key`, `value_factor` or a selection";
  if (getPath() && getSelect())
    return emitOpError() << "selects, and its mask is bound by `path`";
  llvm::StringSet<> names;
  for (auto param : getParams().getAsRange<ParamAttr>())
    if (!names.insert(param.getName()).second)
      return emitOpError() << "parameter `" << param.getName() << "` is declared twice";
  return mlir::success();
}

/// The argument that is the index of an array's elements.
static StringRef indexNameOf(ParamShape shape) {
  switch (shape) {
  case ParamShape::PerQueryHead:
    return "head";
  case ParamShape::PerQuery:
    return "query";
  default:
    return "kv_head";
  }
}

/// A token's element is read where there is a token: by masks, scores and factors of V.
static llvm::LogicalResult verifyTokenUse(AttentionOp attention, ParamOfTokenOp op, ParamShape shape) {
  if (!isOfTokens(shape))
    return op.emitOpError() << "reads parameter `" << op.getName()
                            << "` as an array over tokens, which it is not";
  mlir::Region *region = op->getParentRegion();
  if (region != &attention.getMask() && region != &attention.getScore() &&
      region != &attention.getValueFactor())
    return op.emitOpError() << "reads parameter `" << op.getName()
                            << "` of a token where there is none: outside of `mask`, `score` and "
                               "`value_factor`";
  return mlir::success();
}

/// A parameter is read with its own type and shape. In hooks the index is the head or the query that the
/// shape says; in `tile` any index is fine, as an analysis reads the elements of a whole group.
static llvm::LogicalResult verifyParamUse(AttentionOp attention, mlir::Operation &op) {
  auto element = llvm::dyn_cast<ParamElementOp>(op);
  auto scalar = llvm::dyn_cast<ParamOp>(op);
  auto ofToken = llvm::dyn_cast<ParamOfTokenOp>(op);
  if (!element && !scalar && !ofToken)
    return mlir::success();
  StringRef name = element ? element.getName() : scalar ? scalar.getName() : ofToken.getName();
  ParamAttr param = attention.findParam(name).first;
  if (!param)
    return op.emitOpError() << "reads `" << name << "`, which is not a parameter of @"
                            << attention.getSymName();
  if (op.getResult(0).getType() != param.getType())
    return op.emitOpError() << "reads parameter `" << name << "` as " << op.getResult(0).getType()
                            << ", it is " << param.getType();
  if (ofToken)
    return verifyTokenUse(attention, ofToken, param.getShape());
  if (scalar ? param.getShape() != ParamShape::Scalar : param.getShape() == ParamShape::Scalar)
    return op.emitOpError() << "reads parameter `" << name << "` as " << (scalar ? "a scalar" : "an array")
                            << ", it is " << (scalar ? "an array" : "a scalar");
  if (scalar || param.getShape() == ParamShape::Table || op.getParentRegion() == &attention.getTile())
    return mlir::success();
  if (isOfTokens(param.getShape()))
    return op.emitOpError() << "reads parameter `" << name << "`, an array over tokens, by an index";
  const StringRef index = indexNameOf(param.getShape());
  const auto names = argNames(attention, *op.getParentRegion());
  const auto wanted = static_cast<unsigned>(llvm::find(names, index) - names.begin());
  if (wanted == names.size())
    return op.emitOpError() << "reads parameter `" << name << "` by `" << index
                            << "`, which the region does not have";
  if (element.getIndex() != op.getBlock()->getArgument(wanted))
    return op.emitOpError() << "must index parameter `" << name << "` by `" << index << '`';
  return mlir::success();
}

static llvm::LogicalResult verifyHook(AttentionOp attention, mlir::Region &region, StringRef name,
                                      mlir::TypeRange yielded) {
  if (region.empty())
    return mlir::success();
  if (!region.hasOneBlock())
    return attention.emitOpError() << "region `" << name << "` has " << region.getBlocks().size()
                                   << " blocks, it must have one";
  bool isTile = &region == &attention.getTile(), isElement = isOfElement(attention, region);
  auto count = static_cast<unsigned>(argNames(attention, region).size());
  if (region.getNumArguments() != count)
    return attention.emitOpError() << "region `" << name << "` has " << region.getNumArguments()
                                   << " arguments, it must have " << count;
  for (mlir::BlockArgument argument : region.getArguments()) {
    bool wantsF32 =
        isElement ? argument.getArgNumber() < kElementDim : !isTile && argument.getArgNumber() == kArgS;
    if (wantsF32 ? !argument.getType().isF32() : !argument.getType().isSignlessInteger(32))
      return attention.emitOpError() << "argument " << argument.getArgNumber() << " of region `" << name
                                     << "` is " << argument.getType() << ", it must be "
                                     << (wantsF32 ? "f32" : "i32");
  }
  auto yield = llvm::dyn_cast<YieldOp>(region.front().back());
  if (!yield || yield.getValues().getTypes() != yielded)
    return region.front().back().emitOpError()
           << "must end region `" << name << "` by yielding (" << yielded << ")";
  if (name == "mask" && !region.getArgument(kArgS).use_empty())
    return (*region.getArgument(kArgS).user_begin())->emitOpError()
           << "reads `s` in region `mask`, which decides before scores are known";
  if (name == "output")
    for (unsigned number : {kElementXHalf, kElementXPair, kElementXRms})
      if (mlir::BlockArgument argument = region.getArgument(number); !argument.use_empty())
        return (*argument.user_begin())->emitOpError()
               << "reads `" << elementArgNames()[number]
               << "` in region `output`, which has one element of a row at a time";
  const auto usesOnly = [&](llvm::ArrayRef<unsigned> allowed, StringRef why) -> llvm::LogicalResult {
    for (mlir::BlockArgument argument : region.getArguments())
      if (unsigned number = argument.getArgNumber();
          !llvm::is_contained(allowed, number) && !argument.use_empty())
        return (*argument.user_begin())->emitOpError()
               << "reads `" << hookArgNames()[number] << "` in region `" << name << "`, which " << why;
    return mlir::success();
  };
  if (name == "sink" && mlir::failed(usesOnly({kArgHead, kArgKvHead}, "is the same for all rows of a head")))
    return mlir::failure();
  if (name == "value_factor" &&
      mlir::failed(usesOnly({kArgKvPos, kArgKvHead, kArgDepth}, "is the same for all rows of a KV head")))
    return mlir::failure();
  for (mlir::Operation &op : region.front()) {
    if (op.getNumRegions() != 0 || !mlir::isMemoryEffectFree(&op))
      return op.emitOpError() << "may not stand in region `" << name
                              << "`, which holds pure scalar operations only";
    if (mlir::failed(verifyParamUse(attention, op)))
      return mlir::failure();
  }
  return mlir::success();
}

llvm::LogicalResult AttentionOp::verifyRegions() {
  mlir::Type i1 = mlir::IntegerType::get(getContext(), 1), f32 = mlir::Float32Type::get(getContext());
  for (auto [region, word] : llvm::zip_equal(getOperation()->getRegions(), kRegionWords)) {
    llvm::SmallVector<mlir::Type, 2> yielded = {f32};
    if (&region == &getMask())
      yielded = {i1};
    if (&region == &getTile())
      yielded = {i1, i1};
    if (mlir::failed(verifyHook(*this, region, word, yielded)))
      return mlir::failure();
  }
  return mlir::success();
}

/// A mask that hides nothing and a score that is `s` are the same as none. Hooks of elements stay, also where
/// one has become `x`: whoever plans, makes room and loads kernels goes by the spec, which has it.
llvm::LogicalResult AttentionOp::canonicalize(AttentionOp op, mlir::PatternRewriter &rewriter) {
  auto yielded = [](mlir::Region &region) {
    return llvm::cast<YieldOp>(region.front().getTerminator()).getValues().front();
  };
  auto erase = [&](mlir::Region &region) {
    rewriter.modifyOpInPlace(op, [&] {
      if (!region.empty())
        rewriter.eraseBlock(&region.front());
    });
  };
  if (op.hasMask() && mlir::matchPattern(yielded(op.getMask()), mlir::m_One())) {
    erase(op.getTile());
    erase(op.getMask());
    return mlir::success();
  }
  if (op.hasScore() && yielded(op.getScore()) == op.getScore().getArgument(kArgS)) {
    erase(op.getScore());
    return mlir::success();
  }
  return mlir::failure();
}

} // namespace deft::dialect
