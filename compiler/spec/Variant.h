#pragma once

#include "compiler/spec/Operations.h"
#include "compiler/spec/Tensors.h"
#include "compiler/support/Source.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// What Sema makes of an `attention`: plain, checked values. Everything below the front end (the
/// dialect, the oracle, the planner, packages) starts from here; nothing here knows MLIR.
namespace deft::spec {

// Numbers that are written out here are in hashes that are kept (config_cache::VariantSignature): a new value
// takes the next number that is free, wherever it stands.

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
  Caller = 3,    ///< likewise, and a run is handed the lists: nothing is selected (rule K7)
};

/// Which tokens of a query's path a later layer may read alone (LANGUAGE.md, rules K).
struct SelectSpec {
  TuneList budget; ///< tokens of a list; of several a host takes one
  SelectBy by = SelectBy::KvHead;
  int keepFirst = 0, keepLast = 0; ///< tokens of the path that are in every list, if they are seen
  support::SourceRange range;      ///< the word `select`

  /// What a host has that does not choose one.
  int defaultBudget() const { return budget.values.front(); }
  bool isOfAllHeads() const { return by == SelectBy::Query || by == SelectBy::Caller; }
};

/// What an attention is over. All that is made of a variant has it as its base: what kernels are made for,
/// the key of tuned configs.
struct AttentionShape {
  int queryHeads = 0;
  int kvHeads = 0;
  Tensors tensors;

  bool operator==(const AttentionShape &) const = default;
  int ratio() const { return queryHeads / kvHeads; }
};

// What hooks may read, of the names of an attention.
inline bool mayReadOfPair(Builtin builtin) { return !isOfElement(builtin); } ///< a query and a token
inline bool mayReadInSink(Builtin builtin) { return builtin == Builtin::Head || builtin == Builtin::KvHead; }
inline bool mayReadInOutput(Builtin builtin) {
  return mayReadInSink(builtin) || builtin == Builtin::X || builtin == Builtin::Dim ||
         builtin == Builtin::QPos || builtin == Builtin::Query;
}
/// All of an element except Builtin::Pos, which sema replaces by another builtin.
inline bool mayReadInElement(Builtin builtin) { return isOfElement(builtin) && builtin != Builtin::Pos; }
inline bool mayReadInQuery(Builtin builtin) { return mayReadInOutput(builtin) || mayReadInElement(builtin); }
inline bool mayReadInKey(Builtin builtin) {
  return mayReadInElement(builtin) || builtin == Builtin::KvPos || builtin == Builtin::KvHead;
}
inline bool mayReadInValueFactor(Builtin builtin) {
  return builtin == Builtin::KvPos || builtin == Builtin::Depth || builtin == Builtin::KvHead;
}

// clang-format off: one row a line, in columns

/// The hooks of a variant, in the order of its JSON: the member, the region of the IR, the key in JSON, the type, what
/// it may read, and its place and word in the text of hashes that are kept (config_cache::VariantSignature), where a
/// new one takes the next place. The rows under TOLD make up HookSet: the templates' own code depends on these hooks.
/// The other hooks appear only in the text of hooks that a kernel includes.
///
/// `query` is of an element of q before q.k, `key` of one of K, `output` of one of a normalised row; `value` factors are
/// of a token and its KV head. Where there is no score it is `s`, and without a mask only the bound hides. The bias,
/// which may not read `s`, is of sigmoid alone, the sink of softmax.
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

/// The roots of a variant's expressions. None: what the hook is of stays as it is.
struct Hooks {
#define DEFT_HOOK_ROOT(ID, ...) std::optional<ExprId> ID;
  DEFT_HOOKS(DEFT_HOOK_ROOT, DEFT_HOOK_ROOT)
#undef DEFT_HOOK_ROOT
};

#define DEFT_NO_HOOK(...)

/// The hooks that the templates' own code depends on.
struct HookSet {
#define DEFT_HOOK_FLAG(ID, ...) bool ID = false;
  DEFT_HOOKS(DEFT_NO_HOOK, DEFT_HOOK_FLAG)
#undef DEFT_HOOK_FLAG
  bool operator==(const HookSet &) const = default;

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
  bool withLse = false;
  CacheSpec cache;
  double scale = 0; ///< constant
  std::vector<Param> params;
  std::vector<Expr> exprs;
  MaskBound bound = MaskBound::Tree; ///< what `mask` stands beside
  Normalize normalize = Normalize::Softmax;
  std::optional<ScheduleSpec> schedule;
  std::optional<SelectSpec> select; ///< none: every layer attends to all that it sees
  support::SourceRange range;       ///< the name in `attention NAME`

  /// Its arrays over tokens: a value for each token that is read, for each KV head or for all.
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
  /// Lists of tokens that a query has, and the one that a query head reads.
  int lists() const {
    return !select || select->isOfAllHeads() ? 1 : select->by == SelectBy::KvHead ? kvHeads : queryHeads;
  }
  int listOf(int head) const {
    return !select || select->isOfAllHeads() ? 0 : select->by == SelectBy::KvHead ? head / ratio() : head;
  }
  /// What may not stand beside products of 8 bits (rule A12); null: nothing of that is here.
  const char *atOddsWithByteProducts() const {
    return key                               ? "a hook `key`"
           : valueFactor                     ? "a hook `value`"
           : normalize == Normalize::Sigmoid ? "sigmoid"
           : select                          ? "a selection"
                                             : nullptr;
  }
  /// Whether sparse runs are handed their lists (rule K7).
  bool readsGivenLists() const { return select && select->by == SelectBy::Caller; }
  /// An expression that asks where a token stands on a path, which such lists do not say; null: none does.
  const Expr *readOfPlace() const {
    for (const Expr &expr : exprs)
      if (expr.op == ExprOp::Builtin && (expr.builtin == Builtin::KvPos || expr.builtin == Builtin::Depth))
        return &expr;
    return nullptr;
  }
};

} // namespace deft::spec
