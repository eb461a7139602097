#pragma once

#include "compiler/spec/Variant.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The words of the language, for the parser, the checker, JSON and messages. Operations.h has those of
/// operations.
namespace deft::spec {

const char *toString(DType dtype);
const char *toString(ScalarType type);
const char *toString(PageOrder order);
const char *toString(Normalize normalize);
const char *toString(MaskBound bound);
const char *toString(Partition partition);
const char *toString(SelectBy by);
const char *toString(Builtin builtin);
const char *toString(Param::Shape shape); ///< scalar, query_heads, kv_heads, table, tokens, queries
/// The index of an array: head, kv_head, token, query; for a table, which takes any number, `i`.
const char *indexName(Param::Shape shape);
/// A JSON word (`to_f32`, `select`); for a named function, its name in the language.
const char *toString(ExprOp op);

std::optional<DType> parseDType(std::string_view text);
std::optional<ScalarType> parseScalarType(std::string_view text);
std::optional<PageOrder> parsePageOrder(std::string_view text);
std::optional<Normalize> parseNormalize(std::string_view text);
std::optional<MaskBound> parseMaskBound(std::string_view text);
std::optional<Partition> parsePartition(std::string_view text);
std::optional<SelectBy> parseSelectBy(std::string_view text);
std::optional<Builtin> parseBuiltin(std::string_view text);
std::optional<Param::Shape> parseShape(std::string_view text);
std::optional<ExprOp> parseExprOp(std::string_view text);

/// The functions that a spec calls by name: `min`, `tanh` and others.
std::optional<ExprOp> parseFunction(std::string_view text);

std::vector<std::string> dtypeNames();
/// "f16, bf16, ... or fp8_e5m2", each between quotes.
std::string oneOfDTypes(const std::string &quote);
std::vector<std::string> partitionNames();
std::vector<std::string> selectByNames();
std::vector<std::string> builtinNames();
std::vector<std::string> functionNames();

/// The keys of an attention, in the order of the documents.
const std::vector<std::string> &attentionKeys();
/// The kinds of functions: mask, score, and the hooks of elements.
const std::vector<std::string> &functionKinds();
/// Words that cannot be declared: keywords, built-in names (except those of an element), and functions.
bool isReservedWord(std::string_view text);

} // namespace deft::spec
