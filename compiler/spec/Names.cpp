#include "compiler/spec/Names.h"

#include <algorithm>
#include <array>

namespace deft::spec {
namespace {

template <typename E> struct Word {
  E value;
  const char *text;
};

constexpr Word<DType> kDTypes[] = {
    {DType::F16, "f16"}, {DType::BF16, "bf16"}, {DType::F8E4M3, "fp8_e4m3"}, {DType::F8E5M2, "fp8_e5m2"}};
constexpr Word<ScalarType> kScalarTypes[] = {
    {ScalarType::Bool, "bool"}, {ScalarType::I32, "i32"}, {ScalarType::F32, "f32"}};
constexpr Word<PageOrder> kPageOrders[] = {{PageOrder::Nhd, "nhd"}, {PageOrder::Hnd, "hnd"}};
constexpr Word<Normalize> kNormalizes[] = {{Normalize::Softmax, "softmax"}, {Normalize::Sigmoid, "sigmoid"}};
constexpr Word<MaskBound> kMaskBounds[] = {{MaskBound::Tree, "tree"}, {MaskBound::Path, "path"}};
constexpr Word<Partition> kPartitions[] = {
#define DEFT_PARTITION_WORD(ID, NAME) {Partition::ID, #NAME},
    DEFT_PARTITIONS(DEFT_PARTITION_WORD)
#undef DEFT_PARTITION_WORD
};
constexpr Word<SelectBy> kSelectBys[] = {
    {SelectBy::KvHead, "kv_head"}, {SelectBy::QueryHead, "query_head"}, {SelectBy::Query, "query"}};
constexpr Word<Builtin> kBuiltins[] = {{Builtin::S, "s"},
                                       {Builtin::QPos, "q_pos"},
                                       {Builtin::KvPos, "kv_pos"},
                                       {Builtin::Head, "head"},
                                       {Builtin::KvHead, "kv_head"},
                                       {Builtin::Depth, "depth"},
                                       {Builtin::Query, "query"},
                                       {Builtin::X, "x"},
                                       {Builtin::XHalf, "x_half"},
                                       {Builtin::XPair, "x_pair"},
                                       {Builtin::XRms, "x_rms"},
                                       {Builtin::Dim, "dim"},
                                       {Builtin::Pos, "pos"}};
constexpr Word<Param::Shape> kShapes[] = {{Param::Shape::Scalar, "scalar"},
                                          {Param::Shape::PerQueryHead, "query_heads"},
                                          {Param::Shape::PerKvHead, "kv_heads"},
                                          {Param::Shape::Table, "table"},
                                          {Param::Shape::PerToken, "tokens"},
                                          {Param::Shape::PerQuery, "queries"},
                                          {Param::Shape::PerTokenAndHead, "tokens, kv_heads"}};
constexpr Word<Param::Shape> kIndices[] = {
    {Param::Shape::PerQueryHead, "head"}, {Param::Shape::PerKvHead, "kv_head"},
    {Param::Shape::Table, "i"},           {Param::Shape::PerToken, "token"},
    {Param::Shape::PerQuery, "query"},    {Param::Shape::PerTokenAndHead, "token, kv_head"}};

struct OpWord {
  ExprOp value;
  const char *text;
  int operands;
  bool isFunction;
};
constexpr OpWord kOps[] = {{ExprOp::Constant, "constant", 0, false},
                           {ExprOp::Builtin, "builtin", 0, false},
                           {ExprOp::Param, "param", 0, false},
                           {ExprOp::ParamElement, "param_element", 0, false},
                           {ExprOp::Neg, "neg", 1, false},
                           {ExprOp::Not, "not", 1, false},
                           {ExprOp::ToF32, "to_f32", 1, false},
                           {ExprOp::Add, "add", 2, false},
                           {ExprOp::Sub, "sub", 2, false},
                           {ExprOp::Mul, "mul", 2, false},
                           {ExprOp::Div, "div", 2, false},
                           {ExprOp::Rem, "rem", 2, false},
                           {ExprOp::Lt, "lt", 2, false},
                           {ExprOp::Le, "le", 2, false},
                           {ExprOp::Gt, "gt", 2, false},
                           {ExprOp::Ge, "ge", 2, false},
                           {ExprOp::Eq, "eq", 2, false},
                           {ExprOp::Ne, "ne", 2, false},
                           {ExprOp::And, "and", 2, false},
                           {ExprOp::Or, "or", 2, false},
                           {ExprOp::Select, "select", 3, false},
                           {ExprOp::Min, "min", 2, true},
                           {ExprOp::Max, "max", 2, true},
                           {ExprOp::Abs, "abs", 1, true},
                           {ExprOp::Exp, "exp", 1, true},
                           {ExprOp::Exp2, "exp2", 1, true},
                           {ExprOp::Log, "log", 1, true},
                           {ExprOp::Log2, "log2", 1, true},
                           {ExprOp::Tanh, "tanh", 1, true},
                           {ExprOp::Sigmoid, "sigmoid", 1, true},
                           {ExprOp::Sqrt, "sqrt", 1, true},
                           {ExprOp::Rsqrt, "rsqrt", 1, true},
                           {ExprOp::Floor, "floor", 1, true},
                           {ExprOp::FloorDiv, "floor_div", 2, true},
                           {ExprOp::TableElement, "table_element", 1, false},
                           {ExprOp::Sin, "sin", 1, true},
                           {ExprOp::Cos, "cos", 1, true}};

template <typename Table, typename E> const char *textOf(const Table &table, E value) {
  for (const auto &word : table)
    if (word.value == value)
      return word.text;
  return "?";
}

template <typename E, typename Table> std::optional<E> valueOf(const Table &table, std::string_view text) {
  for (const auto &word : table)
    if (text == word.text)
      return word.value;
  return std::nullopt;
}

template <typename Table> std::vector<std::string> textsOf(const Table &table) {
  std::vector<std::string> texts;
  for (const auto &word : table)
    texts.push_back(word.text);
  return texts;
}

} // namespace

const char *toString(DType dtype) { return textOf(kDTypes, dtype); }
const char *toString(ScalarType type) { return textOf(kScalarTypes, type); }
const char *toString(PageOrder order) { return textOf(kPageOrders, order); }
const char *toString(Normalize normalize) { return textOf(kNormalizes, normalize); }
const char *toString(MaskBound bound) { return textOf(kMaskBounds, bound); }
const char *toString(Partition partition) { return textOf(kPartitions, partition); }
const char *toString(SelectBy by) { return textOf(kSelectBys, by); }
const char *toString(Builtin builtin) { return textOf(kBuiltins, builtin); }
const char *toString(Param::Shape shape) { return textOf(kShapes, shape); }
const char *indexName(Param::Shape shape) { return textOf(kIndices, shape); }
const char *toString(ExprOp op) { return textOf(kOps, op); }

std::optional<DType> parseDType(std::string_view text) { return valueOf<DType>(kDTypes, text); }
std::optional<ScalarType> parseScalarType(std::string_view text) {
  return valueOf<ScalarType>(kScalarTypes, text);
}
std::optional<PageOrder> parsePageOrder(std::string_view text) {
  return valueOf<PageOrder>(kPageOrders, text);
}
std::optional<Normalize> parseNormalize(std::string_view text) {
  return valueOf<Normalize>(kNormalizes, text);
}
std::optional<MaskBound> parseMaskBound(std::string_view text) {
  return valueOf<MaskBound>(kMaskBounds, text);
}
std::optional<Partition> parsePartition(std::string_view text) {
  return valueOf<Partition>(kPartitions, text);
}
std::optional<SelectBy> parseSelectBy(std::string_view text) { return valueOf<SelectBy>(kSelectBys, text); }
std::optional<Builtin> parseBuiltin(std::string_view text) { return valueOf<Builtin>(kBuiltins, text); }
std::optional<Param::Shape> parseShape(std::string_view text) { return valueOf<Param::Shape>(kShapes, text); }
std::optional<ExprOp> parseExprOp(std::string_view text) { return valueOf<ExprOp>(kOps, text); }

std::optional<ExprOp> parseFunction(std::string_view text) {
  for (const OpWord &word : kOps)
    if (word.isFunction && text == word.text)
      return word.value;
  return std::nullopt;
}

int operandCount(ExprOp op) {
  for (const OpWord &word : kOps)
    if (word.value == op)
      return word.operands;
  return 0;
}

std::vector<std::string> dtypeNames() { return textsOf(kDTypes); }
std::vector<std::string> partitionNames() { return textsOf(kPartitions); }
std::vector<std::string> selectByNames() { return textsOf(kSelectBys); }
std::vector<std::string> builtinNames() { return textsOf(kBuiltins); }

std::vector<std::string> functionNames() {
  std::vector<std::string> names;
  for (const OpWord &word : kOps)
    if (word.isFunction)
      names.push_back(word.text);
  return names;
}

const std::vector<std::string> &attentionKeys() {
  static const std::vector<std::string> keys = {
      "query_heads", "kv_heads", "head_dim", "dtype",     "kv_cache", "query",    "key",   "value",
      "scale",       "mask",     "score",    "normalize", "output",   "schedule", "select"};
  return keys;
}

bool isReservedWord(std::string_view text) {
  static constexpr std::array kKeywords = {"attention", "import", "param", "let", "tree", "true",
                                           "false",     "inf",    "f32",   "i32", "bool", "tune"};
  const std::optional<Builtin> builtin = parseBuiltin(text);
  if (text == "value") // which came later than many specs, and is a key where a property begins alone
    return false;
  auto is = [&](const auto &word) { return text == word; };
  return std::any_of(kKeywords.begin(), kKeywords.end(), is) ||
         std::any_of(attentionKeys().begin(), attentionKeys().end(), is) ||
         (builtin && !isOfElement(*builtin)) || parseFunction(text);
}

} // namespace deft::spec
