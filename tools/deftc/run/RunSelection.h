#pragma once

#include "runtime/reference/Check.h"
#include "runtime/reference/Selecting.h"
#include "tools/deftc/run/RunBackend.h"

#include <nlohmann/json_fwd.hpp>

#include <optional>
#include <string>

/// What `deftc run` does of an attention that selects, beside the full one: the run that selects, and the
/// sparse one over its lists (LANGUAGE.md, rules K).
namespace deft::cli {

struct SelectionRun {
  exec::Selection selection;
  exec::Outputs sparse;
  double selectingUs = 0, sparseUs = 0; ///< medians
  std::optional<SparseShape> shape;     ///< of the sparse run, on a GPU
  std::optional<reference::SelectionReport> lists;
  std::optional<reference::CheckReport> check; ///< of the sparse outputs, over these lists

  bool passed() const { return (!lists || lists->passed()) && (!check || check->passed()); }
  double meanTokens() const; ///< of a list
};

/// `checks`: null where nothing is to be checked. `full` is what the attention gave without selecting, which
/// the selecting run must give again; an error where it does not. Lists by `caller`, of so many tokens, are
/// drawn by lot.
support::Result<SelectionRun> runSelection(RunBackend &backend, const spec::Variant &variant,
                                           const tree::KvTree &tree, const plan::Plan &plan,
                                           const exec::Inputs &inputs, const exec::Outputs &full, int budget,
                                           int repeats, const reference::CheckOptions *checks);

/// Of the last step. One line each: what was chosen and how long it took; the check.
std::string selectionText(const SelectionRun &run, const spec::SelectSpec &select);
std::string sparseShapeText(const SparseShape &shape);
std::string selectionCheckText(const SelectionRun &run);
std::string explainFailure(const SelectionRun &run);
nlohmann::json toJson(const SelectionRun &run);

/// selected.npy, [query][list][budget], -1 behind the last token of a list, and sparse_out.npy, as out.npy.
/// float32, as all of a dump, which has all positions below 2^24.
support::Result<void> dumpSelection(const std::string &folder, const spec::Variant &variant,
                                    const SelectionRun &run);

} // namespace deft::cli
