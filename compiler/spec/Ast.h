#pragma once

#include "compiler/spec/Variant.h"

#include <deque>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

/// The syntax of a spec as written. Nothing is resolved: names are text, values are expressions.
namespace deft::spec {

using AstExprId = std::uint32_t;

struct Ident {
  std::string text;
  support::SourceRange range;
};

enum class AstExprKind { Integer, Float, Name, Unary, Binary, Conditional, Call, Index };

/// One node of an expression. The nodes of all files share one arena: an index names a node of any file, and
/// freeing a deep tree needs no recursion.
struct AstExpr {
  AstExprKind kind = AstExprKind::Integer;
  support::SourceRange range; ///< from the first operand to the last, without parentheses
  Ident name;                 ///< Name, Call (the callee), Index (the array); Unary and Binary: the operator
  ExprOp op = ExprOp::Add;    ///< Unary, Binary
  double number = 0;          ///< Integer, Float
  int depth = 1;
  std::vector<AstExprId> operands;
};

struct AstType {
  ScalarType scalar = ScalarType::F32;
  Param::Shape shape = Param::Shape::Scalar;
  support::SourceRange range;
  int size = 0; ///< elements of a table
};

struct AstFormal {
  Ident name;
  AstType type;
};

/// A function: one of kind `mask` yields bool, all other kinds yield f32.
struct AstFunction {
  Ident kind;
  ScalarType result() const { return kind.text == "mask" ? ScalarType::Bool : ScalarType::F32; }
  Ident name;
  std::vector<AstFormal> formals;
  AstExprId body = 0;
};

struct AstLet {
  Ident name;
  AstExprId value = 0;
};

struct AstParam {
  Ident name;
  AstType type;
  std::optional<AstExprId> defaultValue;
};

struct AstExprValue {
  AstExprId expr = 0;
};
struct AstWordValue {
  Ident word;
};
struct AstCacheValue {
  Ident kind; ///< paged, latent, contiguous
  std::optional<AstExprId> pageSize;
  std::optional<Ident> order;
  std::optional<Ident> dtype;
  std::optional<AstExprId> dim, rope, scales; ///< only for latent
};
struct AstNormalizeValue {
  Ident kind;
  std::optional<AstExprId> bias; ///< only for sigmoid
  std::optional<AstExprId> sink; ///< only for softmax
};
struct AstOutputValue {
  std::optional<AstExprId> value; ///< for an element; an undeclared name here is taken for a dtype
  std::optional<Ident> dtype;
  std::optional<support::SourceRange> withLse; ///< the word `lse`
};

struct AstTune {
  bool tunable = false;
  std::vector<AstExprId> values;
  support::SourceRange range;
};
struct AstPartition {
  bool tunable = false;
  std::vector<Ident> names;
};
struct AstPhase {
  Ident name;
  std::optional<AstExprId> rowsAbove; ///< none: otherwise
  support::SourceRange condition;     ///< `when rows > N` or `otherwise`
  std::vector<std::pair<Ident, AstTune>> keys;
};
struct AstSchedule {
  std::optional<AstPartition> partition;
  std::optional<AstTune> chunk;
  std::vector<AstPhase> phases;
};

struct AstSelect {
  std::optional<AstTune> budget;
  std::optional<Ident> by;
  std::optional<AstExprId> keepFirst, keepLast;
};

using AstValue = std::variant<AstExprValue, AstWordValue, AstCacheValue, AstNormalizeValue, AstOutputValue,
                              AstSchedule, AstSelect>;

struct AstProperty {
  Ident key;
  AstValue value;
  support::SourceRange valueRange;
};

/// A declaration with a name inside an attention.
using AstDeclaration = std::variant<AstParam, AstLet, AstFunction>;

struct AstAttention {
  Ident name;
  std::optional<Ident> base;
  std::vector<AstProperty> properties;
  std::deque<AstDeclaration> declarations;
  bool isBroken = false; ///< a part could not be parsed, so something may wrongly seem to be missing
};

struct AstImport {
  std::string path;
  support::SourceRange range; ///< the string with its quotes
};

struct AstFile {
  std::uint32_t file = 0;
  std::vector<AstImport> imports;
  std::deque<AstDeclaration> declarations; ///< functions and lets
  std::deque<AstAttention> attentions;
  std::set<std::string> brokenNames; ///< declarations that could not be parsed: uses are not reported again
};

using AstArena = std::vector<AstExpr>;

const Ident &declaredName(const AstDeclaration &declaration);

/// The shortest text that reads as this number.
std::string numberText(double value);
/// As it is written: `f32[8]`.
std::string typeText(const AstType &type);

/// The text of `deftc emit --as ast`: an indented tree, with the operator of each expression first.
std::string printAst(const AstFile &file, const AstArena &arena);
std::string printAst(const AstArena &arena, AstExprId expr);

} // namespace deft::spec
