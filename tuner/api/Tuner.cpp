#include "compiler/config/ConfigJson.h"
#include "compiler/support/Utf8.h"
#include "runtime/api/Checks.h"
#include "runtime/api/Params.h"
#include "runtime/api/Sized.h"
#include "runtime/api/Tree.h"
#include "runtime/exec/Params.h"
#include "runtime/tree/CachePlacement.h"
#include "tuner/api/TuneSparse.h"
#include "tuner/session/MergeShards.h"
#include "tuner/session/NamedSamples.h"
#include "tuner/workload/Families.h"

#include <algorithm>
#include <limits>

using namespace deft;
using namespace deft::api;

struct deft_tuner {
  deft_attention attention; ///< the session reads its program
  deft_tune_options options;
  std::string configFile, journal, recordsFolder, note; ///< texts for the pointers in `options`
  int threads = 1;
  session::TuneInput input = {}; ///< without its backend
  int trees = 0;                 ///< given without a name

  deft_tuner(const deft_attention &of, const deft_tune_options &given);
};

deft_tuner::deft_tuner(const deft_attention &of, const deft_tune_options &given)
    : attention(of), options(given), threads(given.threads > 0 ? given.threads : exec::usableProcessors()) {
  for (auto [own, text] : {std::pair(&configFile, &options.config_file),
                           {&journal, &options.journal},
                           {&recordsFolder, &options.records_folder},
                           {&note, &options.note}}) {
    *own = textOr(*text, "");
    *text = own->c_str();
  }
  if (options.seed == 0)
    options.seed = 1;
  input.variant = of.variant();
}

namespace {

Result<void> checkOptions(const deft_tune_options &options) {
  constexpr double kMostSeconds = 1e9; // thirty years
  if (!(options.budget_seconds >= 0 && options.budget_seconds <= kMostSeconds))
    return wrong("deft_tune_options::budget_seconds",
                 "is " + std::to_string(options.budget_seconds) + ", not between 0 and 1e9", "0 sets no end");
  if (auto checked = checkRange("deft_tune_options::device", options.device, DEFT_TUNE_ANY, DEFT_TUNE_GPU);
      !checked)
    return checked;
  if (auto checked = checkRange("deft_tune_options::candidates", options.candidates, 0,
                                std::numeric_limits<int>::max(), "0 takes 64");
      !checked)
    return checked;
  if (!support::isUtf8(textOr(options.note, "")))
    return wrong("deft_tune_options::note", "is not UTF-8");
  if (auto checked = checkRange("deft_tune_options::shard_count", options.shard_count, 0,
                                session::kMostShards, "0 tunes all");
      !checked)
    return checked;
  if (auto checked = checkRange("deft_tune_options::shard", options.shard, 0,
                                std::max(options.shard_count - 1, 0), "shards count from 0");
      !checked)
    return checked;
  if (options.shard_count > 0 && !textOr(options.config_file, "").empty())
    return wrong("deft_tune_options::config_file", "is set, but a shard writes only its journal",
                 "name the file where the shards are merged");
  return checkThreads("deft_tune_options::threads", options.threads);
}

session::TuneOptions sessionOptions(const deft_tuner &tuner) {
  session::TuneOptions own;
  own.budgetSeconds = tuner.options.budget_seconds;
  own.mostCandidates = tuner.options.candidates;
  own.threads = tuner.threads;
  own.seed = tuner.options.seed;
  own.journal = tuner.journal;
  own.isFresh = tuner.options.is_fresh != 0;
  own.fromRelated = tuner.options.from_related != 0;
  if (tuner.options.shard_count > 0)
    own.shard = session::Shard{tuner.options.shard, tuner.options.shard_count};
  own.places = config_cache::defaultPlaces();
  own.configPath = tuner.configFile;
  own.note = tuner.note;
  return own;
}

Result<session::Backend> backendOf(const program::Program &program, std::int32_t device, int threads) {
  if (device == DEFT_TUNE_GPU || (device == DEFT_TUNE_ANY && measure::hasCuda()))
    return session::cudaBackend(program);
  return session::cpuBackend(program, threads);
}

/// It calls the caller's functions; `to` must outlive it.
session::Listener listenerOf(const deft_tune_listener &to) {
  session::Listener own;
  if (to.note)
    own.note = [&to](const std::string &line) { to.note(to.context, line.c_str()); };
  if (to.is_cancelled)
    own.isCancelled = [&to] { return to.is_cancelled(to.context) != 0; };
  if (to.progress)
    own.progress = [&to](const session::Status &status) {
      deft_tune_progress known{};
      known.size = sizeof known;
      known.tree_class = status.treeClass.c_str();
      known.stage = status.stage.c_str();
      known.best_us = status.bestUs;
      known.untuned_us = status.untunedUs;
      known.seconds_left = status.secondsLeft;
      known.class_index = status.classIndex;
      known.classes = status.classes;
      known.measured = status.measured;
      known.left = status.left;
      to.progress(to.context, &known);
    };
  return own;
}

Result<Tuned> run(deft_tuner &tuner, const deft_tune_listener &listener) {
  session::TuneInput input = tuner.input;
  if (input.params.empty()) {
    auto defaults = exec::bindParams(input.variant, {});
    if (!defaults)
      return defaults.error();
    input.params = std::move(*defaults);
  }
  const program::Program &program = tuner.attention.of->program;
  auto backend = backendOf(program, tuner.options.device, tuner.threads);
  if (!backend)
    return backend.error();
  input.backend = std::move(*backend);
  const bool selects = input.variant.select && !input.variant.readsGivenLists() && input.backend.isGpu();
  sparse::TuneOptions ofSparse = sparseOptions(tuner.options, tuner.threads);
  const bool isShard = tuner.options.shard_count > 0;
  if (selects && input.samples.empty() && !isShard)
    return tuneSparseAlone(program, input.params, ofSparse, listener);
  session::TuneOptions options = sessionOptions(tuner);
  const bool hasSparse = selects && options.configPath.empty() && !isShard;
  ofSparse.seconds = sparse::shareOfBudget(options.budgetSeconds);
  if (hasSparse)
    options.budgetSeconds -= ofSparse.seconds;
  auto report = session::tune(input, options, listenerOf(listener));
  if (!report)
    return report.error();
  if (report->notSaved)
    return *report->notSaved;
  Tuned tuned{.device = report->device.text(),
              .configFile = report->configPath,
              .journal = report->journal,
              .classes = std::move(report->classes),
              .sparse = {},
              .warnings = std::move(report->warnings),
              .ended = report->ended,
              .measured = report->made,
              .reused = report->reused,
              .seconds = report->seconds};
  if (!report->written.setAside.empty())
    tuned.warnings.push_back("the broken file that was there is kept in " + report->written.setAside);
  if (hasSparse && report->ended != measure::Ended::Interrupted)
    tuneSparseBehind(tuned, program, input.params, ofSparse, listener);
  return tuned;
}

/// The file for the results of all shards.
Result<std::string> fileOfShards(const config_cache::DeviceKey &device, const std::string &named) {
  if (!named.empty())
    return named;
  const std::string folder = config_cache::defaultPlaces().userFolder;
  if (folder.empty())
    return support::Error{support::ErrorCode::Environment, "no place for configs: HOME is not set",
                          "set DEFT_CACHE_DIR, or name a file"};
  return folder + "/" + device.fileName();
}

Result<Tuned> mergeShards(const std::vector<std::string> &journals, const std::string &configFile,
                          bool isPartial) {
  auto merged = session::mergeShards(journals, isPartial);
  if (!merged)
    return merged.error();
  const auto path = fileOfShards(merged->device, configFile);
  if (!path)
    return path.error();
  config_cache::ConfigFile file;
  file.device = merged->device;
  file.entries = merged->entries();
  using config_cache::Owner;
  const auto written = mergeWrite(*path, configFile.empty() ? Owner::Deftc : Owner::User, file);
  if (!written)
    return written.error();
  Tuned tuned;
  tuned.device = merged->device.text();
  tuned.configFile = *path;
  tuned.classes = std::move(merged->classes);
  tuned.warnings = std::move(merged->warnings);
  tuned.measured = merged->measured;
  if (!written->setAside.empty())
    tuned.warnings.push_back("the broken file that was there is kept in " + written->setAside);
  return tuned;
}

std::int32_t endOf(measure::Ended ended) {
  switch (ended) {
  case measure::Ended::Budget:
    return DEFT_TUNE_BUDGET;
  case measure::Ended::Interrupted:
    return DEFT_TUNE_CANCELLED;
  case measure::Ended::Complete:
    break;
  }
  return DEFT_TUNE_COMPLETE;
}

using Summary = Made<deft_tune_summary>;

deft_tuned_class *makeClass(Summary &made, const session::ClassReport &of) {
  auto *const to = made.add<deft_tuned_class>();
  to->size = sizeof *to;
  to->tree_class = made.text(of.treeClass.text());
  to->config = made.text(of.isDone ? config::toJson(of.entry.config).dump() : "");
  to->note = made.text(of.note);
  to->trees = of.trees;
  to->is_done = of.isDone;
  to->candidates = of.candidates;
  to->rejected = of.rejected;
  to->gain = 1;
  to->is_complete = 1;
  if (!of.isDone)
    return to;
  to->untuned_us = of.entry.measurement.untunedUs;
  to->tuned_us = of.entry.measurement.tunedUs;
  to->gain = of.gain;
  to->held_out_gain = of.heldOutGain.value_or(0);
  to->keeps_untuned = of.entry.keepsDefault;
  to->is_complete = of.entry.isComplete;
  return to;
}

deft_tuned_sparse *makeSparse(Summary &made, const sparse::TuneReport &of) {
  auto *const to = made.add<deft_tuned_sparse>();
  to->size = sizeof *to;
  to->file = made.text(of.path);
  auto **const lists = made.add<deft_tuned_lists *>(of.lists.size());
  for (std::size_t i = 0; i < of.lists.size(); ++i) {
    const sparse::TunedLists &one = of.lists[i];
    auto *const list = lists[i] = made.add<deft_tuned_lists>();
    list->size = sizeof *list;
    list->untuned_us = one.untunedUs;
    list->tuned_us = one.tunedUs;
    list->gain = one.gain();
    list->budget = one.lists.budget;
    list->queries = one.lists.queries;
    list->item_tokens = one.itemTokens;
  }
  to->list_count = of.lists.size();
  to->lists = lists;
  to->tile_gain = of.tileGain;
  to->seconds = of.seconds;
  to->tile_tokens = of.tile.tileKv;
  to->stages = of.tile.stages;
  to->warps = of.tile.warps;
  to->is_packaged = of.isPackaged;
  to->known = static_cast<std::int32_t>(of.known.size());
  to->end = endOf(of.ended);
  return to;
}

deft_tune_summary *makeSummary(const Tuned &of) {
  Summary made;
  made->size = sizeof(deft_tune_summary);
  made->device = made.text(of.device);
  made->config_file = made.text(of.configFile);
  made->journal = made.text(of.journal);
  auto **const classes = made.add<deft_tuned_class *>(of.classes.size());
  for (std::size_t i = 0; i < of.classes.size(); ++i)
    classes[i] = makeClass(made, of.classes[i]);
  made->classes = classes;
  made->class_count = of.classes.size();
  auto **const warnings = made.add<const char *>(of.warnings.size());
  for (std::size_t i = 0; i < of.warnings.size(); ++i)
    warnings[i] = made.text(of.warnings[i]);
  made->warnings = warnings;
  made->warning_count = of.warnings.size();
  made->seconds = of.seconds;
  made->end = endOf(of.ended);
  made->measured = of.measured;
  made->reused = of.reused;
  made->sparse = of.sparse ? makeSparse(made, *of.sparse) : nullptr;
  return made.release();
}

} // namespace

deft_status deft_tuner_make(const deft_attention *attention, const deft_tune_options *options,
                            deft_tuner **tuner) {
  return make({{"attention", attention}}, tuner, [&]() -> Result<std::unique_ptr<deft_tuner>> {
    const auto known = readSized("deft_tune_options", options);
    if (!known)
      return known.error();
    if (auto checked = checkOptions(*known); !checked)
      return checked.error();
    return std::make_unique<deft_tuner>(*attention, *known);
  });
}

void deft_tuner_destroy(deft_tuner *tuner) { delete tuner; }

deft_status deft_tuner_add_tree(deft_tuner *tuner, const deft_tree *tree, const char *name,
                                int32_t is_held_out) {
  return call({{"tuner", tuner}, {"tree", tree}}, [&]() -> Result<void> {
    const std::string given = textOr(name, "");
    if (!support::isUtf8(given))
      return wrong("name", "is not UTF-8");
    if (tree->tree().queries().empty())
      return wrong("tree", "has no queries, so there is nothing to tune");
    const std::string called = given.empty() ? "tree " + std::to_string(++tuner->trees) : given;
    auto placed = tree::placedTree(tree->tree(), tuner->input.variant.cache.pageSize);
    if (!placed)
      return placed.error();
    tuner->input.samples.push_back({called, 0, std::move(*placed), is_held_out != 0});
    return {};
  });
}

deft_status deft_tuner_add_workload(deft_tuner *tuner, const char *name) {
  return call({{"tuner", tuner}, {"name", name}}, [&]() -> Result<void> {
    auto samples =
        session::namedSamples(name, tuner->input.variant, tuner->options.seed, tuner->recordsFolder);
    if (!samples)
      return samples.error();
    std::move(samples->begin(), samples->end(), std::back_inserter(tuner->input.samples));
    return {};
  });
}

deft_status deft_tuner_set_params(deft_tuner *tuner, const deft_params *params) {
  return call({{"tuner", tuner}, {"params", params}}, [&]() -> Result<void> {
    if (auto checked = params->checkIsOf(*tuner->attention.of); !checked)
      return checked;
    const auto values = params->allOnHost();
    if (!values)
      return values.error();
    tuner->input.params.clear();
    for (const exec::ParamValue *value : *values)
      tuner->input.params.push_back(*value);
    return {};
  });
}

const char *deft_tuner_family(int32_t index) {
  try {
    static const std::vector<workload::WorkloadFamily> families = workload::families();
    return index < 0 || static_cast<std::size_t>(index) >= families.size()
               ? nullptr
               : families[static_cast<std::size_t>(index)].name.c_str();
  } catch (...) {
    failOfException();
    return nullptr;
  }
}

deft_status deft_tuner_run(deft_tuner *tuner, const deft_tune_listener *listener,
                           deft_tune_summary **summary) {
  clear(summary);
  return call({{"tuner", tuner}, {"summary", summary}}, [&]() -> Result<void> {
    const auto known = readSized("deft_tune_listener", listener);
    if (!known)
      return known.error();
    const auto tuned = run(*tuner, *known);
    if (!tuned)
      return tuned.error();
    *summary = makeSummary(*tuned);
    return {};
  });
}

deft_status deft_tune_merge_shards(const char *const *journals, size_t journal_count, const char *config_file,
                                   int32_t is_partial, deft_tune_summary **summary) {
  clear(summary);
  return call({{"summary", summary}}, [&]() -> Result<void> {
    if (journal_count > 0 && !journals)
      return wrong("journals", "is null");
    std::vector<std::string> paths;
    for (size_t i = 0; i < journal_count; ++i) {
      if (!journals[i])
        return wrong("journals[" + std::to_string(i) + "]", "is null");
      paths.emplace_back(journals[i]);
    }
    const auto tuned = mergeShards(paths, textOr(config_file, ""), is_partial != 0);
    if (!tuned)
      return tuned.error();
    *summary = makeSummary(*tuned);
    return {};
  });
}
