#include "compiler/codegen/cuda/hooks/HookEmitter.h"

#include "compiler/codegen/cuda/hooks/ExprPrinter.h"
#include "compiler/codegen/cuda/hooks/Literals.h"
#include "compiler/codegen/cuda/hooks/RowValues.h"
#include "compiler/codegen/cuda/hooks/ScoreForm.h"

namespace deft::codegen::cuda {

using namespace mlir;
using namespace dialect;

namespace {

constexpr const char *kInlined = "  static __device__ __forceinline__ ";

class HookEmitter {
public:
  explicit HookEmitter(AttentionOp op) : op_(op) {}

  std::string emit() {
    emitParams();
    std::string row = rowHook(), score = scoreHook() + formHook(), mask = maskHook(), tile = tileHook(),
                value = valueHook(), sink = sinkHook(), elements = elementHooks(), token = tokenHooks();
    text_ += "struct Variant {\n";
    text_ += "  using Params = ::Params;\n";
    constant("bool", "kHasMask", op_.hasMask() ? "true" : "false");
    constant("bool", "kHasScore", op_.hasScore() ? "true" : "false");
    constant("bool", "kSigmoid", op_.getNormalize() == Normalize::Sigmoid ? "true" : "false");
    constant("float", "kScale", floatLiteral(static_cast<float>(op_.getScale().convertToDouble())));
    if (op_.hasMask()) {
      auto reads = [&](TileArg lo, TileArg hi) {
        return op_.getTile().getArgument(lo).use_empty() && op_.getTile().getArgument(hi).use_empty()
                   ? "false"
                   : "true";
      };
      constant("bool", "kReadsDepth", reads(kTileDepthLo, kTileDepthHi));
      constant("bool", "kReadsQuery", reads(kTileQueryLo, kTileQueryHi));
    }
    if (op_.hasScore()) {
      constant("bool", "kIsCapped", form_.isCapped ? "true" : "false");
      constant("bool", "kHasOneCap", form_.hasOneCap ? "true" : "false");
      constant("bool", "kIsSloped", form_.isSloped ? "true" : "false");
    }
    if (op_.hasQuery())
      constant("bool", "kQueryReadsRms", readsRms(op_.getQuery()));
    if (op_.hasKey())
      constant("bool", "kKeyReadsRms", readsRms(op_.getKey()));
    text_ += token + row + score + mask + value + tile + sink + elements + "};\n";
    return std::move(text_);
  }

  Operation *unsupported() const { return unsupported_; }

private:
  void constant(const std::string &type, const std::string &name, const std::string &value) {
    text_ += "  static constexpr " + type + " " + name + " = " + value + ";\n";
  }

  /// Whether a hook of elements asks for the root mean square of its row.
  static const char *readsRms(Region &region) {
    return region.getArgument(kElementXRms).use_empty() ? "false" : "true";
  }

  /// A slot of 8 bytes, as abi::ParamSlot.
  static std::string slotText(ParamAttr param, std::size_t slot) {
    const std::string type = typeName(param.getType()), name = memberName(param.getName());
    if (param.getShape() == ParamShape::Scalar)
      return "  " + type + " " + name + ";\n  unsigned pad" + std::to_string(slot) + ";\n";
    return "  const " + type + " *" + name + ";\n";
  }

  void emitParams() {
    text_ += "struct Params {\n";
    for (auto [slot, param] : llvm::enumerate(op_.getParams().getAsRange<ParamAttr>()))
      text_ += slotText(param, slot);
    text_ += "};\n\n";
  }

  void bindArguments(ExprPrinter &printer, Region &region) {
    for (auto [argument, name] : llvm::zip(region.getArguments(), argNames(op_, region)))
      printer.bind(argument, name.str());
  }

  Rounding roundingOf(Region &region) {
    const bool isExact = &region == &op_.getMask() || &region == &op_.getTile(),
               isOfElements = &region == &op_.getQuery() || &region == &op_.getKey();
    return isExact ? Rounding::Exact : isOfElements ? Rounding::Fast : Rounding::Fused;
  }

  /// `struct Row` and the hook that fills it. What both regions compute alike is kept once.
  std::string rowHook() {
    ExprPrinter printer;
    std::string members;
    std::map<std::string, std::string> memberOf; // by expression
    for (Region *region : {&op_.getMask(), &op_.getScore()}) {
      llvm::SmallVector<Value> values = rowValues(*region);
      if (values.empty())
        continue;
      bindArguments(printer, *region);
      std::vector<std::string> expressions = printer.print(*region, values, roundingOf(*region));
      for (auto [value, expression] : llvm::zip(values, expressions)) {
        auto [entry, isNew] = memberOf.try_emplace(expression, expression);
        if (isNew) {
          // An argument keeps its name; the `r` of the others is no argument's.
          if (!isa<BlockArgument>(value))
            entry->second = "r" + std::to_string(memberOf.size() - 1);
          members += "    " + typeName(value.getType()) + " " + entry->second + ";\n";
          rowValues_.push_back({value, expression, entry->second});
        }
        memberOfValue_[value] = entry->second;
      }
    }
    std::string text = "\n  struct Row {\n" + members + "  };\n\n";
    text += kInlined;
    text += "Row row(const Params &p, int q_pos, int head, int kv_head, int query) {\n";
    text += "    Row row;\n";
    finish(printer);
    text += printer.statements();
    for (const RowValue &value : rowValues_) {
      ExprPrinter line;
      line.statement(value.value.getLoc(), "row." + value.member + " = " + value.expression + ";");
      text += line.statements();
    }
    return text + "    return row;\n  }\n";
  }

  std::string scoreHook() {
    return hook(op_.getScore(),
                "float score(const Params &p, const Row &row, float s, int kv_pos, int depth, int kv_head" +
                    tokenFormal() + ")");
  }

  /// What is in the score where it has a form that the kernels know.
  std::string formHook() {
    Region &region = op_.getScore();
    const std::optional<ScoreForm> form = scoreForm(region);
    if (!form)
      return "";
    form_ = *form;
    ExprPrinter printer;
    bindArguments(printer, region);
    for (Value value : rowValues(region))
      printer.bind(value, "row." + memberOfValue_.lookup(value));
    auto text = [&](bool isThere, Value value) -> std::string {
      if (!isThere || !value)
        return isThere ? "1.f" : "0";
      return printer.print(region, {value}, roundingOf(region)).front();
    };
    std::string slope = text(form->isSloped, form->slope);
    if (form->isFalling)
      slope = "-(" + slope + ")";
    printer.statement(region.front().getTerminator()->getLoc(),
                      "return {" + text(form->isCapped, form->cap) + ", " + text(form->isCapped, form->rate) +
                          ", " + slope + ", " + text(form->isSloped, form->origin) + "};");
    finish(printer);
    return "\n" + std::string(kInlined) +
           "deft::ScoreForm form(const Params &p, const Row &row, int kv_head) {\n" + printer.statements() +
           "  }\n";
  }

  std::string maskHook() {
    return hook(op_.getMask(),
                "bool mask(const Params &p, const Row &row, int kv_pos, int depth, int kv_head" +
                    tokenFormal() + ")");
  }

  /// Asked for where no row is: it is the same for all.
  std::string valueHook() {
    return hookWithoutRow(op_.getValueFactor(),
                          "float valueFactor(const Params &p, int kv_pos, int depth, int kv_head" +
                              tokenFormal() + ")");
  }

  /// What hooks read of a token of arrays over tokens, last among their arguments.
  std::string tokenFormal() { return op_.hasTokenParams() ? ", const Token &token" : ""; }

  /// `struct Token`, made of words that kernels have copied from each of the arrays.
  std::string tokenHooks() {
    if (!op_.hasTokenParams())
      return "";
    std::string members, words, arrays;
    int count = 0;
    for (auto param : op_.getParams().getAsRange<ParamAttr>()) {
      if (!isOfTokens(param.getShape()))
        continue;
      const std::string name = memberName(param.getName()), number = std::to_string(count++);
      const std::string word = "words[" + number + " * stride]";
      members += "    " + typeName(param.getType()) + " " + name + ";\n";
      words +=
          (words.empty() ? "" : ", ") + (param.getType().isF32() ? "__int_as_float(" + word + ")" : word);
      const bool isOfHeads = param.getShape() == ParamShape::PerTokenAndHead;
      const std::string place =
          isOfHeads ? "slot * " + std::to_string(op_.getKvHeads()) + " + kv_head" : "slot";
      arrays += "    visit(" + number + ", p." + name + " + " + place + ");\n";
    }
    return "\n  struct Token {\n" + members + "  };\n\n" + kInlined +
           "Token token(const int *words, int stride) {\n    return {" + words + "};\n  }\n\n" +
           "  template <class Visit>\n" + kInlined +
           "void forEachElement(const Params &p, long long slot, int kv_head, const Visit &visit) {\n" +
           arrays + "  }\n";
  }

  /// Asked for once a row, by kernels that keep no `Row` for it.
  std::string sinkHook() {
    return hookWithoutRow(op_.getSink(), "float sink(const Params &p, int head, int kv_head)");
  }

  /// Of q, by the kernel before the others, of K, and of what is written.
  std::string elementHooks() {
    return hookWithoutRow(op_.getQuery(),
                          "float query(const Params &p, float x, float x_half, float x_pair, float x_rms, "
                          "int dim, int q_pos, int head, int kv_head, int query)") +
           hookWithoutRow(op_.getKey(),
                          "float key(const Params &p, float x, float x_half, float x_pair, float x_rms, "
                          "int dim, int kv_pos, int kv_head)") +
           hookWithoutRow(op_.getOutput(),
                          "float output(const Params &p, float x, int dim, int q_pos, int head, "
                          "int kv_head, int query)");
  }

  std::string hookWithoutRow(Region &region, const std::string &signature) {
    if (region.empty())
      return "";
    ExprPrinter printer;
    bindArguments(printer, region);
    return "\n" + (kInlined + signature) + " {\n" + returned(printer, region) + "  }\n";
  }

  std::string hook(Region &region, const std::string &signature) {
    if (region.empty())
      return "";
    ExprPrinter printer;
    bindArguments(printer, region);
    for (Value value : rowValues(region))
      printer.bind(value, "row." + memberOfValue_.lookup(value));
    return "\n" + (kInlined + signature) + " {\n" + returned(printer, region) + "  }\n";
  }

  /// Statements that end by returning what the region yields.
  std::string returned(ExprPrinter &printer, Region &region) {
    auto yield = cast<YieldOp>(region.front().getTerminator());
    std::string result = printer.print(region, {yield.getValues().front()}, roundingOf(region)).front();
    printer.statement(yield.getLoc(), "return " + result + ";");
    finish(printer);
    return printer.statements();
  }

  std::string tileHook() {
    Region &region = op_.getTile();
    if (region.empty())
      return "";
    static constexpr const char *kBounds[] = {"qLo",     "qHi",     "kvLo",   "kvHi",   "depthLo", "depthHi",
                                              "queryLo", "queryHi", "headLo", "headHi", "kvHead"};
    static_assert(std::size(kBounds) == kTileArgCount);
    ExprPrinter printer;
    for (auto [argument, name] : llvm::zip(region.getArguments(), kBounds))
      printer.bind(argument, std::string("b.") + name);
    auto yield = cast<YieldOp>(region.front().getTerminator());
    llvm::SmallVector<Value> roots(yield.getValues());
    std::vector<std::string> results = printer.print(region, roots, Rounding::Exact);
    printer.statement(yield.getLoc(), "return {" + results[0] + ", " + results[1] + "};");
    finish(printer);
    return "\n" + std::string(kInlined) +
           "deft::TileVisibility tile(const Params &p, const deft::TileBounds &b) {\n" +
           printer.statements() + "  }\n";
  }

  void finish(const ExprPrinter &printer) {
    if (!unsupported_)
      unsupported_ = printer.unsupported();
  }

  struct RowValue {
    Value value;
    std::string expression, member;
  };

  AttentionOp op_;
  std::string text_;
  std::vector<RowValue> rowValues_;
  ScoreForm form_;
  llvm::DenseMap<Value, std::string> memberOfValue_;
  Operation *unsupported_ = nullptr;
};

} // namespace

support::Result<std::string> emitHooks(AttentionOp attention) {
  HookEmitter emitter(attention);
  std::string hooks = emitter.emit();
  if (Operation *op = emitter.unsupported())
    return support::Error{support::ErrorCode::Internal,
                          "no CUDA form of `" + op->getName().getStringRef().str() + "` in attention `" +
                              attention.getSymName().str() + "`",
                          {}};
  return hooks;
}

} // namespace deft::codegen::cuda
