#include "runtime/c_api/Handles.h"
#include "runtime/c_api/Made.h"
#include "runtime/c_api/Sized.h"

#include <deft/tune.hpp>

using namespace deft::c;

struct deft_tuner {
  deft::Tuner tuner;
};

namespace {

deft::Result<deft::TuneOptions> optionsOf(const deft_tune_options *given) {
  const auto known = readSized("deft_tune_options", given);
  if (!known)
    return known.error();
  deft::TuneOptions options;
  options.device = static_cast<deft::TuneDevice>(known->device);
  options.budgetSeconds = known->budget_seconds;
  options.candidates = known->candidates;
  options.threads = known->threads;
  options.configFile = textOr(known->config_file, "");
  options.journal = textOr(known->journal, "");
  options.isFresh = known->is_fresh != 0;
  options.recordsFolder = textOr(known->records_folder, "");
  if (known->seed != 0)
    options.seed = known->seed;
  options.note = textOr(known->note, "");
  options.fromRelated = known->from_related != 0;
  return options;
}
static_assert(static_cast<int>(deft::TuneDevice::Any) == DEFT_TUNE_ANY &&
              static_cast<int>(deft::TuneDevice::Cpu) == DEFT_TUNE_CPU &&
              static_cast<int>(deft::TuneDevice::Gpu) == DEFT_TUNE_GPU);

deft_tune_progress progressOf(const deft::TuneProgress &progress) {
  deft_tune_progress known{};
  known.size = sizeof known;
  known.tree_class = progress.treeClass.c_str();
  known.stage = progress.stage.c_str();
  known.best_us = progress.bestUs;
  known.untuned_us = progress.untunedUs;
  known.seconds_left = progress.secondsLeft;
  known.class_index = progress.classIndex;
  known.classes = progress.classes;
  known.measured = progress.measured;
  known.left = progress.left;
  return known;
}

/// It calls the caller's functions, and lives no longer than `to`.
deft::TuneListener listenerOf(const deft_tune_listener &to) {
  deft::TuneListener own;
  if (to.progress)
    own.progress = [&to](const deft::TuneProgress &progress) {
      const deft_tune_progress known = progressOf(progress);
      to.progress(to.context, &known);
    };
  if (to.note)
    own.note = [&to](const std::string &line) { to.note(to.context, line.c_str()); };
  if (to.is_cancelled)
    own.isCancelled = [&to] { return to.is_cancelled(to.context) != 0; };
  return own;
}

template <typename T> void fill(Made<T> &made, deft_tuned_class &to, const deft::TunedClass &of) {
  to.size = sizeof to;
  to.tree_class = made.text(of.treeClass);
  to.config = made.text(of.config);
  to.note = made.text(of.note);
  to.untuned_us = of.untunedUs;
  to.tuned_us = of.tunedUs;
  to.gain = of.gain;
  to.held_out_gain = of.heldOutGain.value_or(0);
  to.trees = of.trees;
  to.is_done = of.isDone;
  to.keeps_untuned = of.keepsUntuned;
  to.is_complete = of.isComplete;
  to.candidates = of.candidates;
  to.rejected = of.rejected;
}

int32_t endOf(deft::TuneEnd end) {
  switch (end) {
  case deft::TuneEnd::Budget:
    return DEFT_TUNE_BUDGET;
  case deft::TuneEnd::Cancelled:
    return DEFT_TUNE_CANCELLED;
  case deft::TuneEnd::Complete:
    break;
  }
  return DEFT_TUNE_COMPLETE;
}

template <typename T> deft_tuned_sparse *makeSparse(Made<T> &made, const deft::TunedSparse &of) {
  auto *const sparse = made.template add<deft_tuned_sparse>();
  sparse->size = sizeof *sparse;
  sparse->file = made.text(of.file);
  auto **const lists = made.template add<deft_tuned_lists *>(of.lists.size());
  for (std::size_t i = 0; i < of.lists.size(); ++i) {
    const deft::TunedLists &one = of.lists[i];
    lists[i] = made.template add<deft_tuned_lists>();
    *lists[i] = {sizeof(deft_tuned_lists),
                 one.untunedUs,
                 one.tunedUs,
                 one.gain,
                 one.budget,
                 one.queries,
                 one.itemTokens,
                 0};
  }
  sparse->list_count = of.lists.size();
  sparse->lists = lists;
  sparse->tile_gain = of.tileGain;
  sparse->seconds = of.seconds;
  sparse->tile_tokens = of.tileTokens;
  sparse->stages = of.stages;
  sparse->warps = of.warps;
  sparse->is_packaged = of.isPackaged;
  sparse->known = of.known;
  sparse->end = endOf(of.end);
  return sparse;
}

deft_tune_summary *makeSummary(const deft::TuneSummary &of) {
  Made<deft_tune_summary> made;
  made->size = sizeof(deft_tune_summary);
  made->device = made.text(of.device);
  made->config_file = made.text(of.configFile);
  made->journal = made.text(of.journal);
  auto **const classes = made.add<deft_tuned_class *>(of.classes.size());
  for (std::size_t i = 0; i < of.classes.size(); ++i) {
    classes[i] = made.add<deft_tuned_class>();
    fill(made, *classes[i], of.classes[i]);
  }
  made->classes = classes;
  made->class_count = of.classes.size();
  auto **const warnings = made.add<const char *>(of.warnings.size());
  for (std::size_t i = 0; i < of.warnings.size(); ++i)
    warnings[i] = made.text(of.warnings[i]);
  made->warnings = warnings;
  made->warning_count = of.warnings.size();
  made->seconds = of.seconds;
  made->end = endOf(of.end);
  made->measured = of.measured;
  made->reused = of.reused;
  made->sparse = of.sparse ? makeSparse(made, *of.sparse) : nullptr;
  return made.release();
}

} // namespace

deft_status deft_tuner_make(const deft_attention *attention, const deft_tune_options *options,
                            deft_tuner **tuner) {
  return make(__func__, {{"attention", attention}}, tuner, [&]() -> deft::Result<deft::Tuner> {
    const auto known = optionsOf(options);
    return known ? deft::Tuner::make(attention->attention, *known) : known.error();
  });
}

void deft_tuner_destroy(deft_tuner *tuner) { delete tuner; }

deft_status deft_tuner_add_tree(deft_tuner *tuner, const deft_tree *tree, const char *name,
                                int32_t is_held_out) {
  return call(__func__, {{"tuner", tuner}, {"tree", tree}},
              [&] { return tuner->tuner.addTree(*tree->seen, textOr(name, ""), is_held_out != 0); });
}

deft_status deft_tuner_add_workload(deft_tuner *tuner, const char *name) {
  return call(__func__, {{"tuner", tuner}, {"name", name}}, [&] { return tuner->tuner.addWorkload(name); });
}

deft_status deft_tuner_set_params(deft_tuner *tuner, const deft_params *params) {
  return call(__func__, {{"tuner", tuner}, {"params", params}},
              [&] { return tuner->tuner.setParams(params->params); });
}

const char *deft_tuner_family(int32_t index) {
  try {
    static const std::vector<std::string> families = deft::Tuner::families();
    return index < 0 || static_cast<std::size_t>(index) >= families.size()
               ? nullptr
               : families[static_cast<std::size_t>(index)].c_str();
  } catch (...) {
    failOfException();
    return nullptr;
  }
}

deft_status deft_tuner_run(deft_tuner *tuner, const deft_tune_listener *listener,
                           deft_tune_summary **summary) {
  clearPlace(summary);
  return call(__func__, {{"tuner", tuner}, {"summary", summary}}, [&]() -> deft::Result<void> {
    const auto known = readSized("deft_tune_listener", listener);
    if (!known)
      return known.error();
    const auto tuned = tuner->tuner.run(listenerOf(*known));
    if (!tuned)
      return tuned.error();
    *summary = makeSummary(*tuned);
    return {};
  });
}
