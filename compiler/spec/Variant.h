#pragma once

#include "compiler/spec/Tensors.h"
#include "compiler/support/Source.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// What Sema makes of an `attention`: plain, checked values. Everything below the front end (the
/// dialect, the oracle, the planner, packages) starts from here; nothing here knows MLIR.
namespace deft::spec {

enum class ScalarType { Bool = 0, I32 = 1, F32 = 2 };

enum class PageOrder { Nhd, Hnd };

struct CacheSpec {
  bool paged = true;
  int pageSize = 16; ///< 0 when contiguous
  PageOrder order = PageOrder::Nhd;
};

struct Param {
  std::string name;
  ScalarType type = ScalarType::F32; ///< F32 or I32
  enum class Shape {
    Scalar = 0,
    PerQueryHead = 1,
    PerKvHead = 2,
    Table = 3,
    PerToken = 4,        ///< one for each slot of the cache
    PerQuery = 5,        ///< one for each query, in the caller's order
    PerTokenAndHead = 6, ///< for each slot of the cache, one for each KV head
  } shape = Shape::Scalar;
  std::optional<double> defaultValue; ///< scalars only; none: must be given at run time
  support::SourceRange range;
  int size = 0; ///< elements of a table

  /// Whether a token has elements of it.
  bool isOfTokens() const { return shape == Shape::PerToken || shape == Shape::PerTokenAndHead; }
  /// Whether it has as many elements as a run has slots or queries, which no spec says.
  bool isSizedByRun() const { return isOfTokens() || shape == Shape::PerQuery; }
};

/// The names an expression may read.
enum class Builtin {
  S = 0,
  QPos = 1,
  KvPos = 2,
  Head = 3,
  KvHead = 4,
  Depth = 5,
  Query = 6,
  // Of an element of a row of q, of K or of the output (isOfElement):
  X = 7,     ///< the element
  XHalf = 8, ///< the one half a head further on, around the end: its rotary partner where halves are paired
  XPair = 9, ///< its neighbour, where 2i and 2i + 1 are paired
  XRms = 10, ///< the root mean square of the row
  Dim = 11,  ///< which of the row's elements it is
  /// Where the row stands. Of the language alone: in a Variant q_pos or kv_pos has its place.
  Pos = 13,
};

inline bool isOfElement(Builtin builtin) {
  return (builtin >= Builtin::X && builtin <= Builtin::Dim) || builtin == Builtin::Pos;
}
inline ScalarType typeOf(Builtin builtin) {
  return builtin == Builtin::S || (builtin >= Builtin::X && builtin <= Builtin::XRms) ? ScalarType::F32
                                                                                      : ScalarType::I32;
}

/// Their numbers and those of the enumerations above are in hashes that are kept
/// (config_cache::VariantSignature): a new one takes the next number that is free, wherever it stands.
enum class ExprOp {
  Constant = 0,     ///< value
  Builtin = 1,      ///< builtin
  Param = 2,        ///< params[param], a scalar
  ParamElement = 3, ///< params[param][what its shape is indexed by]
  Neg = 4,
  Not = 5,
  ToF32 = 6, ///< one operand; ToF32 converts i32
  Add = 7,
  Sub = 8,
  Mul = 9,
  Div = 10,
  Rem = 11, ///< both i32 or both f32; Div is f32 only, Rem is i32 only (C's: sign of the dividend; x % 0 = 0)
  Lt = 12,
  Le = 13,
  Gt = 14,
  Ge = 15,
  Eq = 16,
  Ne = 17, ///< bool of two i32 or two f32
  And = 18,
  Or = 19,
  Select = 20, ///< condition, then, else
  Min = 21,
  Max = 22,
  Abs = 23, ///< i32 or f32
  Exp = 24,
  Exp2 = 25,
  Log = 26,
  Log2 = 27,
  Tanh = 28,
  Sigmoid = 29,
  Sqrt = 30,
  Rsqrt = 31,
  Floor = 32,        ///< f32
  FloorDiv = 33,     ///< i32: the quotient rounded down; x by 0 = 0
  TableElement = 34, ///< params[param][the operand, rounded down and clamped to the table]
  Sin = 35,
  Cos = 36, ///< radians
};

using ExprId = std::uint32_t;

/// A node of a typed expression; operands come before their users in Variant::exprs.
/// `let` and function calls are gone: Sema has substituted them (a `let` is shared, not copied).
struct Expr {
  ExprOp op = ExprOp::Constant;
  ScalarType type = ScalarType::F32;
  std::vector<ExprId> operands;
  double value = 0; ///< Constant: exact for i32; bool as 0 or 1
  Builtin builtin = Builtin::S;
  int param = -1;
  support::SourceRange range;
};

enum class Normalize { Softmax = 0, Sigmoid = 1 };

/// What a query may see at most, whatever the mask shows (LANGUAGE.md, rules V1 and V7).
enum class MaskBound {
  Tree = 0, ///< its path up to its own position
  Path = 1, ///< its path to the end of its node
};

/// A value of the schedule: a fixed number, or the alternatives of tune(...), in written order.
struct TuneList {
  std::vector<int> values; ///< at least one
  bool tunable = false;    ///< written as tune(...)
  support::SourceRange range;
};

struct PhaseSpec {
  std::string name;
  std::optional<int> rowsAbove; ///< `when rows > N`; none: `otherwise`
  std::optional<TuneList> tileQ, tileKv, stages, warps;
  support::SourceRange range;
};

/// The ways to group tokens with queries (runtime/plan/Partitions.h): the id, and the name in specs and
/// config files. `auto`, the last one, takes the cheapest of the others. docs/add-a-partition.md adds one.
#define DEFT_PARTITIONS(X)                                                                                   \
  X(Query, query)                                                                                            \
  X(Node, node)                                                                                              \
  X(NodeChunk, node_chunk)                                                                                   \
  X(Flatten, flatten)                                                                                        \
  X(Cascade, cascade)                                                                                        \
  X(Greedy, greedy)                                                                                          \
  X(Union, union)                                                                                            \
  X(Auto, auto)

enum class Partition {
#define DEFT_PARTITION_ID(ID, NAME) ID,
  DEFT_PARTITIONS(DEFT_PARTITION_ID)
#undef DEFT_PARTITION_ID
};

struct ScheduleSpec {
  std::vector<Partition> partitions; ///< several when written as tune(...)
  std::optional<TuneList> chunk;
  std::vector<PhaseSpec> phases;
};

/// Which rows of a query share a list of selected tokens. The numbers are those of the dialect's enumeration.
enum class SelectBy {
  KvHead = 0,    ///< the query heads of a KV head
  QueryHead = 1, ///< nobody: each query head has its own
  Query = 2,     ///< all heads of the query
};

/// Which tokens of a query's path a later layer may read alone (LANGUAGE.md, rules K).
struct SelectSpec {
  TuneList budget; ///< tokens of a list; of several a host takes one
  SelectBy by = SelectBy::KvHead;
  int keepFirst = 0, keepLast = 0; ///< tokens of the path that are in every list, if they are seen
  support::SourceRange range;      ///< the word `select`

  /// What a host has that does not choose one.
  int defaultBudget() const { return budget.values.front(); }
};

struct Variant {
  std::string name;
  int queryHeads = 0;
  int kvHeads = 0;
  Tensors tensors;
  bool withLse = false;
  CacheSpec cache;
  double scale = 0; ///< constant
  std::vector<Param> params;
  std::vector<Expr> exprs;
  MaskBound bound = MaskBound::Tree; ///< what `mask` stands beside
  std::optional<ExprId> mask;        ///< bool; none: only the bound hides
  std::optional<ExprId> score;       ///< f32; none: the score is `s`
  std::optional<ExprId> query;       ///< f32, of an element of q before q.k; none: as it is
  std::optional<ExprId> output;      ///< f32, of an element of a normalised row; none: as it is
  std::optional<ExprId> key;         ///< f32, of an element of K before q.k; none: as it is
  /// f32 of a token and its KV head, by which the token's V is multiplied; none: V is as it is.
  std::optional<ExprId> valueFactor;
  Normalize normalize = Normalize::Softmax;
  std::optional<ExprId> sigmoidBias; ///< f32, may not read s; none: 0. Sigmoid only
  std::optional<ExprId> sink; ///< f32 of head, kv_head and parameters; none: there is none. Softmax only
  std::optional<ScheduleSpec> schedule;
  std::optional<SelectSpec> select; ///< none: every layer attends to all that it sees
  support::SourceRange range;       ///< the name in `attention NAME`

  int ratio() const { return queryHeads / kvHeads; }
  /// Its arrays over tokens, of which each token that is read has a value, for each KV head or for all.
  int tokenParams() const {
    int count = 0;
    for (const Param &param : params)
      count += param.isOfTokens() ? 1 : 0;
    return count;
  }
  /// Of a parameter that is sized by a run, the elements that a slot or a query has.
  int elementsOf(const Param &param) const {
    return param.shape == Param::Shape::PerTokenAndHead ? kvHeads : 1;
  }
  /// Lists of selected tokens that a query has, and the one that a query head reads.
  int lists() const {
    return !select || select->by == SelectBy::Query ? 1
           : select->by == SelectBy::KvHead         ? kvHeads
                                                    : queryHeads;
  }
  int listOf(int head) const {
    return !select || select->by == SelectBy::Query ? 0
           : select->by == SelectBy::KvHead         ? head / ratio()
                                                    : head;
  }
};

} // namespace deft::spec
