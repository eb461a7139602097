#include "tools/deftc/common/SparseChoice.h"

#include "compiler/kernels/SparsePhase.h"
#include "runtime/config_cache/SparseFiles.h"
#include "tools/deftc/common/Numbers.h"
#include "tools/deftc/common/SelectText.h"

#include <nlohmann/json.hpp>

#include <ostream>

namespace deft::cli {

std::optional<SparseChoice> sparseChoice(const program::Program &program, const ChosenDevice &device,
                                         const config_cache::Places &places) {
  const spec::Variant &variant = program.variant();
  if (!variant.select || !device.target)
    return {};
  const target::Target &target = *device.target;
  const config_cache::SparseTuning tuning = config_cache::findSparse(places, device.key).tuning;
  SparseChoice choice;
  if (const auto packaged = program.packagedSparsePhase(target.major, target.minor)) {
    choice.tile = *packaged;
    choice.isPackaged = true;
  } else if (const auto *chosen = tuning.chosenFor(variant, target)) {
    choice.tile = *tuning.phaseFor(variant, target);
    choice.path = chosen->path;
  } else if (const auto byRule = kernels::sparsePhase(kernels::KernelShape::of(variant), target)) {
    choice.tile = *byRule;
  } else {
    return {};
  }
  for (const int budget : variant.select->budget.values) {
    SparseChoice::Lists &lists = choice.lists.emplace_back();
    lists.budget = budget;
    if (const auto *found = tuning.findFor(variant, budget, choice.tile)) {
      lists.cuts = found->entry.cuts;
      lists.path = found->path;
    }
  }
  return choice;
}

std::string cutsText(const std::vector<config_cache::TimedCut> &cuts) {
  std::string text;
  int byRule = 0;
  for (const config_cache::TimedCut &cut : cuts)
    if (cut.itemTokens == 0)
      ++byRule;
    else
      text += (text.empty() ? "items of " : ", ") + withSeparators(cut.itemTokens) + " tokens for " +
              counted(cut.queries, "query", "queries");
  if (byRule > 0)
    text += (text.empty() ? "the rule's for " : ", the rule's for ") +
            counted(byRule, "number of queries", "numbers of queries");
  return text;
}

void print(const SparseChoice &choice, std::ostream &out) {
  out << "sparse    " << sparseTileText(choice.tile) << ", "
      << (choice.isPackaged     ? "those of the package"
          : choice.path.empty() ? "by the rule"
                                : "as tuned")
      << '\n';
  for (const SparseChoice::Lists &lists : choice.lists) {
    out << "          budget " << lists.budget << ": ";
    if (lists.cuts.empty()) {
      out << "cut by the rule\n";
      continue;
    }
    out << cutsText(lists.cuts) << ": " << lists.path << '\n';
  }
}

nlohmann::json toJson(const SparseChoice &choice) {
  nlohmann::json lists = nlohmann::json::array();
  for (const SparseChoice::Lists &one : choice.lists) {
    nlohmann::json cuts = nlohmann::json::array();
    for (const config_cache::TimedCut &cut : one.cuts)
      cuts.push_back({{"queries", cut.queries}, {"item_tokens", cut.itemTokens}});
    lists.push_back({{"budget", one.budget}, {"cuts", std::move(cuts)}, {"file", one.path}});
  }
  return {{"tile_kv", choice.tile.tileKv},    {"stages", choice.tile.stages}, {"warps", choice.tile.warps},
          {"is_packaged", choice.isPackaged}, {"file", choice.path},          {"lists", std::move(lists)}};
}

} // namespace deft::cli
