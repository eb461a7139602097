#pragma once

#include "compiler/spec/ExprSema.h"

namespace deft::spec {

/// Checks one attention, including what it inherits, and makes a Variant of it.
class AttentionSema {
public:
  AttentionSema(const ParsedFiles &parsed, const MergedAttention &merged,
                const std::set<const AstFunction *> &badFunctions, Reporter &reporter);

  /// The variant; valid only if nothing was reported.
  Variant run();

private:
  void checkRequired();
  void checkScale();
  void declareParams();
  void checkDefaults();
  void checkOwnDeclarations();
  void checkRows(); ///< of q and of K, before their product
  void checkValue();
  /// The expression that a hook gives for elements of rows; none: it returns them unchanged, or is wrong.
  std::optional<ExprId> rowHook(const char *key, const char *what, bool (*mayRead)(Builtin),
                                const char *problem, const char *hint);
  void checkMask();
  void checkScore();
  void checkNormalize();
  void checkOutput();
  void checkSchedule();
  void checkSelect();   // SelectSema.cpp
  void checkProducts(); // TensorsSema.cpp
  void finishExprs();
  void checkGivenLists();             // SelectSema.cpp
  bool isElement(ExprId value) const; ///< unchanged: just `x`

  /// The value of a key that is an expression, and the property that contains it; none if the key is absent.
  struct Keyed {
    AstExprId expr = 0;
    const AstProperty *property = nullptr;
    ExprSema::Scope scope;
  };
  std::optional<Keyed> keyed(const char *key);
  /// The property. Prepares the reporter to name the heir if the property is inherited.
  const AstProperty *enter(const char *key);
  void noteOrigin(support::Diagnostic &report, const Inherited<AstProperty> &property,
                  support::SourceRange range, const std::string &what);

  // TensorsSema.cpp
  std::vector<const char *> requiredKeys() const;
  void checkHeads();
  void checkTypes();
  void checkCache();
  void checkPages(const AstCacheValue &cache);
  void checkCacheDType(const Ident &word);
  void checkScales(const AstCacheValue &cache);
  void checkRatio(int queryHeads, int kvHeads);
  void checkOneSaysDims();
  void checkNeedsNoScale();
  void checkMayChangeKeys();
  /// The cache, if K contains V; else null.
  const AstCacheValue *latentCache() const;
  std::optional<DType> dtypeOf(const Ident &word);
  /// The value of a name for a number of heads or dims in an expression; `use` is its place.
  std::optional<int> headConstant(const std::string &key, support::SourceRange use);
  /// A number written as `key`, or as an argument of `latent`, that must lie in `legal`.
  struct WrittenNumber {
    std::string name;
    AstExprId expr;
    const AstAttention *owner;
  };
  struct Range {
    int least, most, multiple;
  };
  std::optional<int> numberOf(const WrittenNumber &written, const Range &legal);
  std::optional<int> propertyNumber(const std::string &key, const Range &legal);

  // ScheduleSema.cpp
  std::optional<TuneList> tuneList(const AstTune &tune, const std::string &key, const Range &legal);
  std::optional<int> scheduleNumber(AstExprId expr, const std::string &key, const Range &legal);
  std::vector<Partition> partitionList(const AstPartition &partition);
  PhaseSpec phaseSpec(const AstPhase &phase);
  void checkPhaseOrder(const AstSchedule &schedule, const std::vector<PhaseSpec> &phases);

  const ParsedFiles &parsed_;
  const MergedAttention &merged_;
  Reporter &reporter_;
  Variant variant_;
  ExprSema exprs_;
  ExprSema::Scope blockScope_; ///< of the current block (schedule or select)

  /// A number of heads or dims, stored by its name.
  struct Number {
    enum class State { Unknown, Active, Known } state = State::Unknown;
    std::optional<int> value;
  };
  std::map<std::string, Number> numbers_;
};

} // namespace deft::spec
