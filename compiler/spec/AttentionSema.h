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
  void checkHeads();
  void checkCache();
  void checkTypes();
  void checkScale();
  void declareParams();
  void checkDefaults();
  void checkOwnDeclarations();
  void checkQuery();
  void checkKey();
  void checkValue();
  /// What a hook of rows gives in the place of their elements; none: it gives them back, or is wrong.
  std::optional<ExprId> rowHook(const char *key, const char *what, bool (*mayRead)(Builtin),
                                const char *problem, const char *hint);
  void checkMask();
  void checkScore();
  void checkNormalize();
  void checkOutput();
  void checkSchedule();
  void checkSelect(); // SelectSema.cpp
  void finishExprs();
  bool isElement(ExprId value) const; ///< as it was: `x` alone

  std::optional<int> headConstant(const std::string &key);
  /// The value of a key that is an expression, and whose text that is; none when the key is absent.
  struct Keyed {
    AstExprId expr = 0;
    const AstProperty *property = nullptr;
    ExprSema::Scope scope;
  };
  std::optional<Keyed> keyed(const char *key);
  /// The property, with the reporter set to name the heir when it is inherited.
  const AstProperty *enter(const char *key);
  std::optional<DType> dtypeOf(const Ident &word);
  void noteOrigin(support::Diagnostic &report, const Inherited<AstProperty> &property,
                  support::SourceRange range, const std::string &what);

  // ScheduleSema.cpp
  /// Numbers of a schedule that may be.
  struct Range {
    int least, most, multiple;
  };
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

  enum class HeadState { Unknown, Active, Known };
  struct Head {
    HeadState state = HeadState::Unknown;
    std::optional<int> value;
  };
  std::map<std::string, Head> heads_;
};

} // namespace deft::spec
