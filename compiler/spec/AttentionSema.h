#pragma once

#include "compiler/spec/ExprSema.h"

namespace deft::spec {

/// Checks one attention, inheritance included, and makes a Variant of it.
class AttentionSema {
public:
  AttentionSema(const ParsedFiles &parsed, const MergedAttention &merged,
                const std::set<const AstFunction *> &badFunctions, Reporter &reporter);

  /// The variant; only to be used when nothing was reported.
  Variant run();

private:
  void checkRequired();
  void checkScale();
  void declareParams();
  void checkDefaults();
  void checkOwnDeclarations();
  void checkRows(); ///< of q and of K, before they are multiplied
  void checkValue();
  /// What a hook of rows gives in the place of their elements; none: it gives them back, or is wrong.
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
  bool isElement(ExprId value) const; ///< as it was: `x` alone

  /// The value of a key that is an expression, and whose text that is; none when the key is absent.
  struct Keyed {
    AstExprId expr = 0;
    const AstProperty *property = nullptr;
    ExprSema::Scope scope;
  };
  std::optional<Keyed> keyed(const char *key);
  /// The property, with the reporter set to name the heir when it is inherited.
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
  /// The cache, where K holds V.
  const AstCacheValue *latentCache() const;
  std::optional<DType> dtypeOf(const Ident &word);
  /// Of a name of numbers in expressions; `use` is where it stands.
  std::optional<int> headConstant(const std::string &key, support::SourceRange use);
  /// What is written as `key`, or as an argument of `latent`, and must be one of `legal`.
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
  ExprSema::Scope blockScope_; ///< of the block (schedule, select) at hand

  /// A number of the heads or the dims, by the name that it is written with.
  struct Number {
    enum class State { Unknown, Active, Known } state = State::Unknown;
    std::optional<int> value;
  };
  std::map<std::string, Number> numbers_;
};

} // namespace deft::spec
