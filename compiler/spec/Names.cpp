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
#define DEFT_DTYPE_WORD(ID, WORD, ...) {DType::ID, WORD},
    DEFT_DTYPES(DEFT_DTYPE_WORD)
#undef DEFT_DTYPE_WORD
};
constexpr Word<ScalarType> kScalarTypes[] = {
    {ScalarType::Bool, "bool"}, {ScalarType::I32, "i32"}, {ScalarType::F32, "f32"}};
constexpr Word<PageOrder> kPageOrders[] = {{PageOrder::Nhd, "nhd"}, {PageOrder::Hnd, "hnd"}};
constexpr Word<Normalize> kNormalizes[] = {{Normalize::Softmax, "softmax"}, {Normalize::Sigmoid, "sigmoid"}};
constexpr Word<MaskBound> kMaskBounds[] = {{MaskBound::Tree, "tree"}, {MaskBound::Path, "path"}};
constexpr Word<Partition> kPartitions[] = {
#define DEFT_PARTITION_WORD(ID, NAME, ...) {Partition::ID, #NAME},
    DEFT_PARTITIONS(DEFT_PARTITION_WORD)
#undef DEFT_PARTITION_WORD
};
constexpr Word<SelectBy> kSelectBys[] = {{SelectBy::KvHead, "kv_head"},
                                         {SelectBy::QueryHead, "query_head"},
                                         {SelectBy::Query, "query"},
                                         {SelectBy::Caller, "caller"}};
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
const char *toString(ExprOp op) { return operationOf(op).word; }

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
std::optional<ExprOp> parseExprOp(std::string_view text) {
  for (const Operation &operation : operations())
    if (text == operation.word)
      return operation.op;
  return std::nullopt;
}

std::optional<ExprOp> parseFunction(std::string_view text) {
  const std::optional<ExprOp> op = parseExprOp(text);
  return op && operationOf(*op).isFunction ? op : std::nullopt;
}

std::vector<std::string> dtypeNames() { return textsOf(kDTypes); }
std::string oneOfDTypes(const std::string &quote) {
  std::string text;
  for (std::size_t i = 0; i < std::size(kDTypes); ++i)
    text += (i == 0 ? "" : i + 1 == std::size(kDTypes) ? " or " : ", ") + quote + kDTypes[i].text + quote;
  return text;
}
std::vector<std::string> partitionNames() { return textsOf(kPartitions); }
std::vector<std::string> selectByNames() { return textsOf(kSelectBys); }
std::vector<std::string> builtinNames() { return textsOf(kBuiltins); }

std::vector<std::string> functionNames() {
  std::vector<std::string> names;
  for (const Operation &operation : operations())
    if (operation.isFunction)
      names.push_back(operation.word);
  return names;
}

const std::vector<std::string> &attentionKeys() {
  static const std::vector<std::string> keys = {"query_heads", "kv_heads", "head_dim", "key_dim", "value_dim",
                                                "dtype",       "kv_cache", "products", "query",   "key",
                                                "value",       "scale",    "mask",     "score",   "normalize",
                                                "output",      "schedule", "select"};
  return keys;
}

const std::vector<std::string> &functionKinds() {
  static const std::vector<std::string> kinds = {"mask", "score", "query", "key", "value", "output"};
  return kinds;
}

bool isReservedWord(std::string_view text) {
  static constexpr std::array kKeywords = {"attention", "import", "param", "let", "tree", "true",
                                           "false",     "inf",    "f32",   "i32", "bool", "tune"};
  const std::optional<Builtin> builtin = parseBuiltin(text);
  // These came later than many specs, and are keys where a property begins alone.
  if (text == "value" || text == "key_dim" || text == "value_dim" || text == "products")
    return false;
  auto is = [&](const auto &word) { return text == word; };
  return std::any_of(kKeywords.begin(), kKeywords.end(), is) ||
         std::any_of(attentionKeys().begin(), attentionKeys().end(), is) ||
         (builtin && !isOfElement(*builtin)) || parseFunction(text);
}

} // namespace deft::spec
