#pragma once

#include "compiler/spec/Operations.h"
#include "compiler/spec/Tensors.h"
#include "compiler/support/Source.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// The result of Sema for an `attention`: plain, checked values. Everything below the front end (dialect,
/// oracle, planner, packages) starts from here, and nothing here depends on MLIR.
namespace deft::spec {

// Explicit numbers are part of stored hashes (config_cache::VariantSignature), so they must never change: a
// new value takes the next free number, wherever it stands.

enum class ScalarType { Bool = 0, I32 = 1, F32 = 2 };

enum class PageOrder { Nhd, Hnd };

struct CacheSpec {
  int pageSize = 16; ///< 0: contiguous
  PageOrder order = PageOrder::Nhd;

  bool operator==(const CacheSpec &) const = default;
  bool isPaged() const { return pageSize > 0; }
};

struct Param {
  std::string name;
  ScalarType type = ScalarType::F32; ///< F32 or I32
  enum class Shape {
    Scalar = 0,
    PerQueryHead = 1,
    PerKvHead = 2,
    Table = 3,
    PerToken = 4,        ///< one value for each slot of the cache
    PerQuery = 5,        ///< one value for each query, in the caller's order
    PerTokenAndHead = 6, ///< for each slot of the cache, one value for each KV head
  } shape = Shape::Scalar;
  std::optional<double> defaultValue; ///< scalars only; none: a run must give it
  support::SourceRange range;
  int size = 0; ///< elements of a table

  /// Whether it has elements for each token.
  bool isOfTokens() const { return shape == Shape::PerToken || shape == Shape::PerTokenAndHead; }
  /// Whether a run decides its number of elements: those of the cache's slots or of the queries.
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
  // For an element of a row of q, of K or of the output (isOfElement):
  X = 7,     ///< the element itself
  XHalf = 8, ///< the element half a head further on, modulo the head: its rotary partner if halves are paired
  XPair = 9, ///< its neighbour, if 2i and 2i + 1 are paired
  XRms = 10, ///< the root mean square of its row
  Dim = 11,  ///< the index of the element in its row
  /// The row's position. Only in the language: in a Variant q_pos or kv_pos replaces it.
  Pos = 13,
};

inline bool isOfElement(Builtin builtin) {
  return (builtin >= Builtin::X && builtin <= Builtin::Dim) || builtin == Builtin::Pos;
}
inline ScalarType typeOf(Builtin builtin) {
  return builtin == Builtin::S || (builtin >= Builtin::X && builtin <= Builtin::XRms) ? ScalarType::F32
                                                                                      : ScalarType::I32;
}

using ExprId = std::uint32_t;

/// A node of a typed expression. In Variant::exprs, operands come before the nodes that use them. Sema has
/// substituted every `let` and function call (uses of a `let` share one node).
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

/// The most that a query may see, whatever the mask shows (LANGUAGE.md, rules V1 and V7).
enum class MaskBound {
  Tree = 0, ///< its path up to its own position
  Path = 1, ///< its path to the end of its node
};

/// A value of the schedule: a fixed number, or the alternatives of tune(...), in the order of the spec.
struct TuneList {
  std::vector<int> values; ///< at least one
  bool tunable = false;    ///< written as tune(...)
  support::SourceRange range;
};

struct PhaseSpec {
  std::string name;
  std::optional<int> rowsAbove; ///< from `when rows > N`; none: `otherwise`
  std::optional<TuneList> tileQ, tileKv, stages, warps;
  support::SourceRange range;
};

/// The ways to group tokens with queries (runtime/plan/Partitions.h): the id, the name in specs and config
/// files, and the number in C. `auto`, the last one, takes the cheapest other. docs/add-a-partition.md adds
/// one.
#define DEFT_PARTITIONS(X)                                                                                   \
  X(Query, query, DEFT_PARTITION_QUERY)                                                                      \
  X(Node, node, DEFT_PARTITION_NODE)                                                                         \
  X(NodeChunk, node_chunk, DEFT_PARTITION_NODE_CHUNK)                                                        \
  X(Flatten, flatten, DEFT_PARTITION_FLATTEN)                                                                \
  X(Cascade, cascade, DEFT_PARTITION_CASCADE)                                                                \
  X(Greedy, greedy, DEFT_PARTITION_GREEDY)                                                                   \
  X(Union, union, DEFT_PARTITION_UNION)                                                                      \
  X(Auto, auto, DEFT_PARTITION_AUTO)

enum class Partition {
#define DEFT_PARTITION_ID(ID, ...) ID,
  DEFT_PARTITIONS(DEFT_PARTITION_ID)
#undef DEFT_PARTITION_ID
};

struct ScheduleSpec {
  std::vector<Partition> partitions; ///< several only from tune(...)
  std::optional<TuneList> chunk;
  std::vector<PhaseSpec> phases;
};

/// Which rows of a query share a list of selected tokens. The numbers are those of the dialect's enumeration.
enum class SelectBy {
  KvHead = 0,    ///< all query heads of one KV head
  QueryHead = 1, ///< none: each query head has its own list
  Query = 2,     ///< all heads of the query
  Caller = 3,    ///< the same, but callers give the lists and nothing is selected (rule K7)
};

/// Which tokens of a query's path the sparse layers read (LANGUAGE.md, rules K).
struct SelectSpec {
  TuneList budget; ///< tokens of a list; a host uses one of the values
  SelectBy by = SelectBy::KvHead;
  int keepFirst = 0, keepLast = 0; ///< tokens of the path that every list contains, if they are visible
  support::SourceRange range;      ///< of the word `select`

  /// The budget of hosts that do not choose one.
  int defaultBudget() const { return budget.values.front(); }
  bool isOfAllHeads() const { return by == SelectBy::Query || by == SelectBy::Caller; }
};

/// The heads and tensors of an attention. Types that describe a variant for one purpose have it as their
/// base: the shape that kernels are made for, and the key of tuned configs.
struct AttentionShape {
  int queryHeads = 0;
  int kvHeads = 0;
  Tensors tensors;

  bool operator==(const AttentionShape &) const = default;
  int ratio() const { return queryHeads / kvHeads; }
};

// Which names each hook may read.
inline bool mayReadOfPair(Builtin builtin) { return !isOfElement(builtin); } ///< for a query and a token
inline bool mayReadInSink(Builtin builtin) { return builtin == Builtin::Head || builtin == Builtin::KvHead; }
inline bool mayReadInOutput(Builtin builtin) {
  return mayReadInSink(builtin) || builtin == Builtin::X || builtin == Builtin::Dim ||
         builtin == Builtin::QPos || builtin == Builtin::Query;
}
/// All names of an element, except Builtin::Pos, which Sema replaces.
inline bool mayReadInElement(Builtin builtin) { return isOfElement(builtin) && builtin != Builtin::Pos; }
inline bool mayReadInQuery(Builtin builtin) { return mayReadInOutput(builtin) || mayReadInElement(builtin); }
inline bool mayReadInKey(Builtin builtin) {
  return mayReadInElement(builtin) || builtin == Builtin::KvPos || builtin == Builtin::KvHead;
}
inline bool mayReadInValueFactor(Builtin builtin) {
  return builtin == Builtin::KvPos || builtin == Builtin::Depth || builtin == Builtin::KvHead;
}

// clang-format off: one row a line, in columns

/// The hooks of a variant, in the order of its JSON. Columns: the member, the region of the IR, the key in JSON, the
/// type, the check of names that it may read, and its place and word in the text of stored hashes
/// (config_cache::VariantSignature), where a new hook takes the next place. The rows under TOLD make up HookSet: the
/// templates' own code depends on them. The other hooks appear only in the text of hooks that a kernel includes.
///
/// `query` changes an element of q before q.k, `key` one of K, and `output` one of a normalised row; `value` is a factor
/// for a token and its KV head. Without `score`, the score is `s`; without `mask`, only the bound hides tokens. The bias
/// exists only for sigmoid and must not read `s`; the sink exists only for softmax.
//     member       region       JSON            type  may read
#define DEFT_HOOKS(X, TOLD)                                                                                  \
  TOLD(query,       Query,       "query",        F32,  mayReadInQuery,       4, "query ")                    \
  X(   mask,        Mask,        "mask",         Bool, mayReadOfPair,        0, "mask ")                     \
  X(   score,       Score,       "score",        F32,  mayReadOfPair,        1, "score ")                    \
  X(   sigmoidBias, Score,       "sigmoid_bias", F32,  mayReadOfPair,        2, "bias ")                     \
  TOLD(sink,        Sink,        "sink",         F32,  mayReadInSink,        3, "sink ")                     \
  TOLD(output,      Output,      "output",       F32,  mayReadInOutput,      5, "output ")                   \
  TOLD(key,         Key,         "key",          F32,  mayReadInKey,         7, "key ")                      \
  TOLD(valueFactor, ValueFactor, "value_factor", F32,  mayReadInValueFactor, 8, "value factor ")

// clang-format on

/// The root expressions of a variant's hooks. None: the variant does not have this hook.
struct Hooks {
#define DEFT_HOOK_ROOT(ID, ...) std::optional<ExprId> ID;
  DEFT_HOOKS(DEFT_HOOK_ROOT, DEFT_HOOK_ROOT)
#undef DEFT_HOOK_ROOT
  /// Whether a hook changes finished rows, so that only whole rows may be given to it.
  bool changesRows() const { return output.has_value(); }
};

#define DEFT_NO_HOOK(...)

/// The hooks that the templates' own code depends on.
struct HookSet {
#define DEFT_HOOK_FLAG(ID, ...) bool ID = false;
  DEFT_HOOKS(DEFT_NO_HOOK, DEFT_HOOK_FLAG)
#undef DEFT_HOOK_FLAG
  bool operator==(const HookSet &) const = default;
  bool changesRows() const { return output; } ///< as Hooks::changesRows()

  static HookSet of(const Hooks &hooks) {
    HookSet set;
#define DEFT_HAS_HOOK(ID, ...) set.ID = hooks.ID.has_value();
    DEFT_HOOKS(DEFT_NO_HOOK, DEFT_HAS_HOOK)
#undef DEFT_HAS_HOOK
    return set;
  }
};

struct Variant : AttentionShape, Hooks {
  std::string name;
  std::string title; ///< a caller's text for it, in messages; empty: its name
  bool withLse = false;
  CacheSpec cache;
  double scale = 0; ///< constant
  std::vector<Param> params;
  std::vector<Expr> exprs;
  MaskBound bound = MaskBound::Tree; ///< the bound that applies in addition to `mask`
  Normalize normalize = Normalize::Softmax;
  std::optional<ScheduleSpec> schedule;
  std::optional<SelectSpec> select; ///< none: every layer attends to all visible tokens
  support::SourceRange range;       ///< of the name in `attention NAME`

  /// What messages call it.
  std::string called() const { return title.empty() ? "`" + name + "`" : title; }
  /// The number of its arrays over tokens: a value for each slot, or for each KV head of each slot.
  int tokenParams() const {
    int count = 0;
    for (const Param &param : params)
      count += param.isOfTokens() ? 1 : 0;
    return count;
  }
  /// For a parameter whose size a run decides: the elements of each slot or query.
  int elementsOf(const Param &param) const {
    return param.shape == Param::Shape::PerTokenAndHead ? kvHeads : 1;
  }
  /// The number of lists of a query; listOf() gives the list that a query head reads.
  int lists() const {
    return !select || select->isOfAllHeads() ? 1 : select->by == SelectBy::KvHead ? kvHeads : queryHeads;
  }
  /// How many groups the heads of a query form. The worth of a token to a list is its largest score in a
  /// group.
  int worthGroups() const { return select && select->by == SelectBy::QueryHead ? queryHeads : kvHeads; }
  int listOf(int head) const {
    return !select || select->isOfAllHeads() ? 0 : select->by == SelectBy::KvHead ? head / ratio() : head;
  }
  /// A feature that does not work with products of 8 bits (rule A12); null: the variant has no such feature.
  const char *atOddsWithByteProducts() const {
    return key                               ? "a hook `key`"
           : valueFactor                     ? "a hook `value`"
           : normalize == Normalize::Sigmoid ? "sigmoid"
           : select                          ? "a selection"
                                             : nullptr;
  }
  /// Whether callers give the lists of sparse runs (rule K7).
  bool readsGivenLists() const { return select && select->by == SelectBy::Caller; }
  /// An expression that reads a token's place on its path, which given lists do not contain; null: none does.
  const Expr *readOfPlace() const {
    for (const Expr &expr : exprs)
      if (expr.op == ExprOp::Builtin && (expr.builtin == Builtin::KvPos || expr.builtin == Builtin::Depth))
        return &expr;
    return nullptr;
  }
};

} // namespace deft::spec
