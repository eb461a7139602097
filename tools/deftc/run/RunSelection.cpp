#include "tools/deftc/run/RunSelection.h"

#include "compiler/spec/Names.h"
#include "runtime/exec/DrawnLists.h"
#include "runtime/exec/Half.h"
#include "runtime/exec/NpyWriter.h"
#include "tools/deftc/common/Numbers.h"
#include "tools/deftc/common/SelectText.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace deft::cli {

using support::Error;
using support::ErrorCode;
using support::Result;

double SelectionRun::meanTokens() const {
  return selection.counts.empty()
             ? 0
             : static_cast<double>(std::accumulate(selection.counts.begin(), selection.counts.end(), 0LL)) /
                   static_cast<double>(selection.counts.size());
}

namespace {

/// The run that selects, and the sparse one behind it.
Result<void> runChosen(RunBackend &backend, const plan::Plan &plan, const exec::Outputs &full, int repeats,
                       SelectionRun &run) {
  exec::Outputs again;
  const auto selecting = backend.runSelecting(plan, again, run.selection, repeats);
  if (!selecting)
    return selecting.error();
  run.selectingUs = selecting->medianUs;
  if (again.out != full.out)
    return Error{ErrorCode::Internal, "the attention's outputs differ when it selects", ""};
  const auto sparse = backend.runSparse(run.selection, run.sparse, repeats);
  if (!sparse)
    return sparse.error();
  run.sparseUs = sparse->medianUs;
  return {};
}

/// A sparse run over lists that are drawn by lot, as a caller would hand them over.
Result<void> runGiven(RunBackend &backend, const spec::Variant &variant, const plan::Plan &plan,
                      const exec::Inputs &inputs, int budget, int repeats, SelectionRun &run) {
  constexpr std::uint64_t kSeed = 1;
  plan::Paths paths;
  paths.read(plan);
  const exec::DrawnLists drawn =
      exec::drawLists(paths, inputs, variant.cache.pageSize, budget, /*holes=*/false, kSeed);
  run.selection = drawn.selection;
  const auto sparse = backend.runGiven(plan, drawn.given(), run.sparse, repeats);
  if (!sparse)
    return sparse.error();
  run.sparseUs = sparse->medianUs;
  return {};
}

} // namespace

Result<SelectionRun> runSelection(RunBackend &backend, const spec::Variant &variant, const tree::KvTree &tree,
                                  const plan::Plan &plan, const exec::Inputs &inputs,
                                  const exec::Outputs &full, int budget, int repeats,
                                  const reference::CheckOptions *checks) {
  SelectionRun run;
  const auto ran = variant.readsGivenLists() ? runGiven(backend, variant, plan, inputs, budget, repeats, run)
                                             : runChosen(backend, plan, full, repeats, run);
  if (!ran)
    return ran.error();
  run.shape = backend.sparseShape();
  if (!checks)
    return run;
  if (!variant.readsGivenLists()) {
    const std::vector<int> queries = reference::queriesToCheck(variant, tree, checks->mostRowTokens);
    run.lists = reference::checkSelection(variant, tree, inputs, run.selection, queries, checks->threads);
  }
  reference::CheckOptions ofSparse = *checks;
  ofSparse.progress = {};
  ofSparse.selection = &run.selection;
  run.check = reference::check(variant, tree, inputs, run.sparse, ofSparse);
  return run;
}

std::string selectionText(const SelectionRun &run, const spec::SelectSpec &select) {
  return withSeparators(run.selection.budget) + " tokens a list at most, " + rounded(run.meanTokens(), 0) +
         " on average, " +
         (select.by == spec::SelectBy::Caller
              ? std::string("drawn at random; ")
              : std::string("by ") + spec::toString(select.by) + "; " +
                    withSeparators(std::llround(run.selectingUs)) + " us with the full attention, then ") +
         withSeparators(std::llround(run.sparseUs)) + " us for a sparse layer";
}

std::string sparseShapeText(const SparseShape &shape) {
  return sparseTileText(shape.tile) + "; items of " + withSeparators(shape.itemTokens) + " tokens, " +
         (shape.isTunedCut ? "as tuned" : "by the rule");
}

std::string selectionCheckText(const SelectionRun &run) {
  const std::string lists = run.lists ? withSeparators(run.lists->lists) + " lists, " +
                                            rounded(100 * run.lists->recall(), 3) +
                                            " % of their tokens equal an exact sort's; "
                                      : std::string();
  return std::string(run.passed() ? "right: " : "WRONG: ") + lists + "sparse error " +
         significant(run.check->error, 2) + ", allowed " + significant(run.check->allowed, 2);
}

std::string explainFailure(const SelectionRun &run) {
  return run.lists && !run.lists->passed() ? run.lists->fault
                                           : "sparse attention: " + reference::explainFailure(*run.check);
}

nlohmann::json toJson(const SelectionRun &run) {
  nlohmann::json json = {{"budget", run.selection.budget},
                         {"lists", run.selection.counts.size()},
                         {"mean_tokens", run.meanTokens()},
                         {"selecting_us", run.selectingUs},
                         {"sparse_us", run.sparseUs}};
  if (run.shape)
    json["sparse"] = {{"tile_kv", run.shape->tile.tileKv},
                      {"stages", run.shape->tile.stages},
                      {"warps", run.shape->tile.warps},
                      {"item_tokens", run.shape->itemTokens},
                      {"is_tuned_cut", run.shape->isTunedCut}};
  if (run.check)
    json["check"] = {
        {"passed", run.passed()}, {"sparse_error", run.check->error}, {"sparse_allowed", run.check->allowed}};
  if (run.lists)
    json["check"].update({{"lists", run.lists->lists},
                          {"wrong_lists", run.lists->wrongLists},
                          {"recall", run.lists->recall()}});
  return json;
}

Result<void> dumpSelection(const std::string &folder, const spec::Variant &variant, const SelectionRun &run) {
  const exec::Selection &selection = run.selection;
  auto lists = exec::NpyWriter::create(folder + "/selected.npy",
                                       {selection.queries, selection.lists, selection.budget});
  if (!lists)
    return lists.error();
  const std::vector<float> positions(selection.positions.begin(), selection.positions.end());
  lists->append(positions);
  if (auto closed = lists->close(); !closed)
    return closed;
  const spec::TensorType &type = variant.tensors.out;
  auto out =
      exec::NpyWriter::create(folder + "/sparse_out.npy", {selection.queries, variant.queryHeads, type.dim});
  if (!out)
    return out.error();
  std::vector<float> values(run.sparse.out.size());
  std::transform(run.sparse.out.begin(), run.sparse.out.end(), values.begin(),
                 [&](std::uint16_t bits) { return exec::toFloat(bits, type.dtype); });
  out->append(values);
  return out->close();
}

} // namespace deft::cli
