#include "compiler/spec/AttentionSema.h"
#include "compiler/spec/Limits.h"
#include "compiler/spec/Names.h"
#include "compiler/support/NearestName.h"

#include <algorithm>

/// The schedule block: its form only. Whether a tile fits a GPU is known where the target is known.
namespace deft::spec {
std::optional<int> AttentionSema::scheduleNumber(AstExprId expr, const std::string &key, const Range &legal) {
  std::optional<double> value = exprs_.evaluateConstant(expr, blockScope_, ScalarType::I32, "`" + key + "`");
  if (!value)
    return std::nullopt;
  int number = static_cast<int>(*value);
  std::string text = key + " = " + std::to_string(number);
  support::SourceRange range = parsed_.arena[expr].range;
  if (number < legal.least)
    reporter_.error(range, text + " is below " + std::to_string(legal.least));
  else if (number > legal.most)
    reporter_.error(range, text + " is above the limit of " + std::to_string(legal.most));
  else if (number % legal.multiple != 0)
    reporter_.error(range, text + " is not a multiple of " + std::to_string(legal.multiple));
  else
    return number;
  return std::nullopt;
}

std::optional<TuneList> AttentionSema::tuneList(const AstTune &tune, const std::string &key,
                                                const Range &legal) {
  TuneList list;
  list.tunable = tune.tunable;
  list.range = tune.range;
  for (AstExprId expr : tune.values) {
    std::optional<int> value = scheduleNumber(expr, key, legal);
    if (!value)
      continue;
    if (std::find(list.values.begin(), list.values.end(), *value) != list.values.end())
      reporter_.error(parsed_.arena[expr].range, key + " = " + std::to_string(*value) + " is listed twice");
    list.values.push_back(*value);
  }
  return list.values.empty() ? std::nullopt : std::optional(std::move(list));
}

std::vector<Partition> AttentionSema::partitionList(const AstPartition &partition) {
  std::vector<Partition> list;
  for (const Ident &name : partition.names) {
    std::optional<Partition> value = parsePartition(name.text);
    if (!value) {
      reporter_.error(name.range, "unknown partition `" + name.text + "`")
          .withHint(support::didYouMean(name.text, partitionNames()));
      continue;
    }
    if (std::find(list.begin(), list.end(), *value) != list.end())
      reporter_.error(name.range, "partition `" + name.text + "` is listed twice");
    list.push_back(*value);
  }
  return list;
}

PhaseSpec AttentionSema::phaseSpec(const AstPhase &phase) {
  PhaseSpec spec;
  spec.name = phase.name.text;
  spec.range = phase.name.range;
  if (phase.rowsAbove)
    spec.rowsAbove = scheduleNumber(*phase.rowsAbove, "rows", {1, kMaxScheduleNumber, 1});
  for (const auto &[key, tune] : phase.keys) {
    if (key.text == "tile_q")
      spec.tileQ = tuneList(tune, key.text, {kTileStep, kMaxTile, kTileStep});
    else if (key.text == "tile_kv")
      spec.tileKv = tuneList(tune, key.text, {kTileStep, kMaxTile, kTileStep});
    else if (key.text == "stages")
      spec.stages = tuneList(tune, key.text, {kMinStages, kMaxStages, 1});
    else
      spec.warps = tuneList(tune, key.text, {1, kMaxWarps, 1});
  }
  return spec;
}

/// Phases are tried in order, so each threshold is below the one before it, and the last takes what is left.
void AttentionSema::checkPhaseOrder(const AstSchedule &schedule, const std::vector<PhaseSpec> &phases) {
  for (std::size_t i = 0; i < phases.size(); ++i) {
    const AstPhase &ast = schedule.phases[i];
    for (std::size_t j = 0; j < i; ++j)
      if (phases[j].name == phases[i].name) {
        reporter_.error(ast.name.range, "phase `" + ast.name.text + "` is defined twice")
            .withNote(phases[j].range, "it is defined here first");
        break;
      }
    bool isLast = i + 1 == phases.size();
    if (isLast && ast.rowsAbove)
      reporter_.error(ast.condition, "the last phase must be `otherwise`, for all other items");
    if (!isLast && !ast.rowsAbove)
      reporter_.error(ast.condition, "no phase after `otherwise` is ever reached");
    const std::optional<int> rows = phases[i].rowsAbove,
                             before = i > 0 ? phases[i - 1].rowsAbove : std::nullopt;
    if (rows && before && *rows >= *before && ast.rowsAbove)
      reporter_
          .error(parsed_.arena[*ast.rowsAbove].range, "rows > " + std::to_string(*rows) +
                                                          " is never reached after rows > " +
                                                          std::to_string(*before))
          .withNote(schedule.phases[i - 1].condition, "the phase before takes these")
          .withHint("order the phases by falling rows");
  }
}

void AttentionSema::checkSchedule() {
  const AstProperty *property = enter("schedule");
  if (!property)
    return;
  blockScope_.owner = merged_.property("schedule").owner;
  const auto &ast = std::get<AstSchedule>(property->value);
  ScheduleSpec schedule;
  if (ast.partition)
    schedule.partitions = partitionList(*ast.partition);
  if (ast.chunk)
    schedule.chunk = tuneList(*ast.chunk, "chunk", {kTileStep, kMaxScheduleNumber, kTileStep});
  for (const AstPhase &phase : ast.phases)
    schedule.phases.push_back(phaseSpec(phase));
  checkPhaseOrder(ast, schedule.phases);
  variant_.schedule = std::move(schedule);
}

} // namespace deft::spec
