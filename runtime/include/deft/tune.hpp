#pragma once

#include <deft/attention.hpp>
#include <deft/c/tune.h>
#include <deft/tree.hpp>

#include <functional>

/// Finds the fastest configs on this machine, as `deftc tune` does, inside a program.
///
///   auto tuner = deft::Tuner::make(attention, {.budgetSeconds = 60}).value();
///   tuner.addTree(tree).value();                  // trees like those to come,
///   tuner.addWorkload("few_shot").value();        // or a family of them that the library knows
///   auto summary = tuner.run().value();
///
/// If an attention selects, its sparse layers are tuned on a GPU after the trees, or on their own if there
/// are no trees. The results are stored in a file for this device, and attentions that are compiled or loaded
/// later use them: ConfigChoice::rule is then "exact". See specs/CONFIGS.md.
namespace deft {

enum class TuneDevice {
  Any = DEFT_TUNE_ANY, ///< a GPU if there is one, else the processor
  Cpu = DEFT_TUNE_CPU,
  Gpu = DEFT_TUNE_GPU, ///< the first that the driver shows
};

struct TuneOptions {
  TuneDevice device = TuneDevice::Any;
  double budgetSeconds = 0; ///< of a run, at most 1e9; 0: no limit
  int candidates = 0;       ///< most configs measured for each class of trees; 0: 64
  int threads = 0; ///< of the host, at most 1,024; 0: one for each processor that this process may use
  /// The file for the results; empty: this device's file in the user's cache, where plans look.
  std::string configFile = {};
  /// The session's file, from which the next run resumes; empty: one in the user's cache.
  std::string journal = {};
  bool isFresh = false;           ///< starts again instead of resuming from a journal
  std::string recordsFolder = {}; ///< of recorded workloads
  std::uint64_t seed = 1;         ///< of inputs and workloads
  std::string note = {};          ///< kept with the results; UTF-8, as are names of trees
  /// Does not search a class of trees that was tuned before, by any version, for this attention or one that
  /// differs only in type and pages. It only measures the known config and nearby ones again.
  bool fromRelated = false;
  /// The session's number of shards, at most 100,000; 0: this process tunes all. Each shard has a process of
  /// its own, on a device of the same model. It tunes only some classes of trees, no sparse layers, and
  /// writes only its journal. mergeShards() joins the journals.
  int shardCount = 0;
  int shard = 0; ///< which one this process tunes, from 0
};

/// The progress of a run. For sparse layers (stage "sparse") it has `measured`, `left` and `secondsLeft`.
struct TuneProgress {
  int classIndex = 0; ///< of trees that are alike
  int classes = 0;
  std::string treeClass;
  std::string stage; ///< "compile" (before the first class), "search", "final", "confirm", "sparse"
  int measured = 0;  ///< configs of the class; kinds of lists
  int left = 0;      ///< at most
  double bestUs = 0; ///< microseconds; 0: not known yet
  double untunedUs = 0;
  double secondsLeft = -1; ///< of the budget; below 0: there is none
};

/// The callbacks of a run; the thread that called run() calls them. Any may be empty.
struct TuneListener {
  std::function<void(const TuneProgress &)> progress = {};
  std::function<void(const std::string &)> note = {}; ///< a line: a class begun or done, or a fault
  std::function<bool()> isCancelled = {};             ///< called between measurements; true ends the run
};

/// The result for the trees of one class.
struct TunedClass {
  std::string treeClass;     ///< as ConfigChoice::treeClass
  int trees = 0;             ///< measured trees of the class
  bool isDone = false;       ///< if not, the run ended before it
  bool keepsUntuned = false; ///< nothing was clearly faster
  bool isComplete = true;    ///< if not, the budget cut the search short: the entry counts only as nearby
  double untunedUs = 0, tunedUs = 0;
  double gain = 1;                   ///< untuned over tuned, confirmed
  std::optional<double> heldOutGain; ///< on trees that the search did not use
  int candidates = 0;                ///< measured configs
  int rejected = 0;                  ///< configs that failed or gave wrong results
  std::string config;                ///< in the JSON of config files
  std::string note;                  ///< in words: the reason to keep the untuned config
};

enum class TuneEnd {
  Complete = DEFT_TUNE_COMPLETE,
  Budget = DEFT_TUNE_BUDGET,
  Cancelled = DEFT_TUNE_CANCELLED
};

/// The result for lists of one budget that a number of queries read, in sparse layers.
struct TunedLists {
  int budget = 0, queries = 0;
  int itemTokens = 0;                ///< of the items that lists are cut into; 0: the rule's cut stays
  double untunedUs = 0, tunedUs = 0; ///< of a layer with the rules' choices, and with the tuned ones
  double gain = 1;                   ///< untuned over tuned
};

/// The result for the sparse layers of an attention that selects.
struct TunedSparse {
  int tileTokens = 0, stages = 0, warps = 0; ///< of the kernel that reads lists
  bool isPackaged = false;                   ///< the tile is the package's, so only cuts were tuned
  double tileGain = 1;                       ///< over the rule's tile, geometric mean over all lists
  std::vector<TunedLists> lists;             ///< lists that this run tuned
  int known = 0;                             ///< lists that an earlier run tuned
  TuneEnd end = TuneEnd::Complete;
  double seconds = 0;
  std::string file; ///< with the results; empty: nothing was found
};

struct TuneSummary {
  std::string device;
  std::vector<TunedClass> classes;
  TuneEnd end = TuneEnd::Complete;
  int measured = 0; ///< measurements of this run
  int reused = 0;   ///< earlier measurements, from the journal
  double seconds = 0;
  std::string configFile, journal; ///< their files; empty without trees
  std::vector<std::string> warnings;
  std::optional<TunedSparse> sparse; ///< none: the attention does not select, or the run ended before that
};

namespace detail {

inline TunedClass publicOf(const deft_tuned_class &own) {
  TunedClass known;
  known.treeClass = own.tree_class;
  known.trees = own.trees;
  known.isDone = own.is_done != 0;
  known.keepsUntuned = own.keeps_untuned != 0;
  known.isComplete = own.is_complete != 0;
  known.untunedUs = own.untuned_us;
  known.tunedUs = own.tuned_us;
  known.gain = own.gain;
  if (own.held_out_gain > 0)
    known.heldOutGain = own.held_out_gain;
  known.candidates = own.candidates;
  known.rejected = own.rejected;
  known.config = own.config;
  known.note = own.note;
  return known;
}

inline TunedSparse publicOf(const deft_tuned_sparse &own) {
  TunedSparse known;
  known.tileTokens = own.tile_tokens;
  known.stages = own.stages;
  known.warps = own.warps;
  known.isPackaged = own.is_packaged != 0;
  known.tileGain = own.tile_gain;
  for (std::size_t i = 0; i < own.list_count; ++i) {
    const deft_tuned_lists &one = *own.lists[i];
    known.lists.push_back({one.budget, one.queries, one.item_tokens, one.untuned_us, one.tuned_us, one.gain});
  }
  known.known = own.known;
  known.end = static_cast<TuneEnd>(own.end);
  known.seconds = own.seconds;
  known.file = own.file;
  return known;
}

inline TuneSummary publicOf(const deft_tune_summary &own) {
  TuneSummary known;
  known.device = own.device;
  for (std::size_t i = 0; i < own.class_count; ++i)
    known.classes.push_back(publicOf(*own.classes[i]));
  known.end = static_cast<TuneEnd>(own.end);
  known.measured = own.measured;
  known.reused = own.reused;
  known.seconds = own.seconds;
  known.configFile = own.config_file;
  known.journal = own.journal;
  known.warnings.assign(own.warnings, own.warnings + own.warning_count);
  if (own.sparse)
    known.sparse = publicOf(*own.sparse);
  return known;
}

template <typename Call> Result<TuneSummary> summaryOf(Call call) {
  const auto made = filled<deft_tune_summary *>(call);
  if (!made)
    return made.error();
  const Owned<deft_tune_summary, deft_free> own(*made);
  return publicOf(*own);
}

/// The functions of a TuneListener, which must live as long.
inline deft_tune_listener listenerOf(const TuneListener &to) {
  deft_tune_listener own{};
  own.size = sizeof own;
  own.context = const_cast<TuneListener *>(&to);
  if (to.progress)
    own.progress = [](void *context, const deft_tune_progress *told) {
      static_cast<TuneListener *>(context)->progress({told->class_index, told->classes, told->tree_class,
                                                      told->stage, told->measured, told->left, told->best_us,
                                                      told->untuned_us, told->seconds_left});
    };
  if (to.note)
    own.note = [](void *context, const char *line) { static_cast<TuneListener *>(context)->note(line); };
  if (to.isCancelled)
    own.is_cancelled = [](void *context) {
      return static_cast<std::int32_t>(static_cast<TuneListener *>(context)->isCancelled());
    };
  return own;
}

} // namespace detail

/// Joins the journals of all shards of one session, in any order, and stores the results in `configFile`;
/// empty: this device's file in the user's cache. An error names shards that are missing, given twice,
/// unfinished, or of another session, device or release. With `isPartial`, missing and unfinished shards are
/// warnings of the summary. The summary has the classes of all shards, and no journal.
inline Result<TuneSummary> mergeShards(const std::vector<std::string> &journals,
                                       const std::string &configFile = "", bool isPartial = false) {
  std::vector<const char *> paths;
  paths.reserve(journals.size());
  for (const std::string &path : journals)
    paths.push_back(path.c_str());
  return detail::summaryOf([&](auto summary) {
    return deft_tune_merge_shards(paths.data(), paths.size(), configFile.c_str(), isPartial, summary);
  });
}

/// Tunes one attention for trees. If it selects, its sparse layers are tuned as well, on a GPU. For one
/// thread at a time.
///
/// A run forks child processes for measurements, so a config that faults or hangs costs only its time. The
/// process must not have used CUDA, because its children could not use it (an Environment error), and must
/// have no other active threads.
class Tuner {
public:
  static Result<Tuner> make(const Attention &attention, const TuneOptions &options = {}) {
    deft_tune_options own{};
    own.size = sizeof own;
    own.device = static_cast<std::int32_t>(options.device);
    own.budget_seconds = options.budgetSeconds;
    own.candidates = options.candidates;
    own.threads = options.threads;
    own.config_file = options.configFile.c_str();
    own.journal = options.journal.c_str();
    own.is_fresh = options.isFresh;
    own.records_folder = options.recordsFolder.c_str();
    own.seed = options.seed;
    own.note = options.note.c_str();
    own.from_related = options.fromRelated;
    own.shard_count = options.shardCount;
    own.shard = options.shard;
    return detail::made<Tuner, deft_tuner>(
        [&](auto to) { return deft_tuner_make(attention.handle(), &own, to); });
  }
  /// Takes a handle of <deft/deft.h>.
  explicit Tuner(deft_tuner *handle) : handle_(handle) {}

  /// Adds a typical tree, which is copied. The search skips a held-out tree, but the result must be as good
  /// on it.
  Result<void> addTree(const Tree &tree, const std::string &name = "", bool isHeldOut = false) {
    return detail::done(deft_tuner_add_tree(handle_.get(), tree.handle(), name.c_str(), isHeldOut));
  }
  /// Adds trees by name: a family (see families()), `all` families, `rows` for the trees of benchmarks, or a
  /// workload as `deftc workloads` lists it: "few_shot:prompt=4000,branches=50".
  Result<void> addWorkload(std::string_view name) {
    return detail::done(deft_tuner_add_workload(handle_.get(), std::string(name).c_str()));
  }
  /// Sets the attention's parameters. Without this call they have their defaults.
  Result<void> setParams(const Params &params) {
    return detail::done(deft_tuner_set_params(handle_.get(), params.handle()));
  }

  /// The families of trees: few-shot, reasoning, speculative and so on.
  static std::vector<std::string> families() {
    std::vector<std::string> names;
    while (const char *name = deft_tuner_family(static_cast<std::int32_t>(names.size())))
      names.push_back(name);
    return names;
  }

  /// Searches class after class, and saves each. Faults of a config are part of the summary; an error means
  /// that a run cannot start or cannot save its results.
  ///
  /// Then the run tunes sparse layers, if there are any and the device is a GPU. They get a quarter of the
  /// budget, up to a minute, or all of it if there are no trees. With trees and a `configFile` they are left
  /// out. If they cannot be tuned, that is a warning, or an error if there are no trees.
  Result<TuneSummary> run(const TuneListener &listener = {}) {
    const deft_tune_listener to = detail::listenerOf(listener);
    return detail::summaryOf([&](auto summary) { return deft_tuner_run(handle_.get(), &to, summary); });
  }

private:
  detail::Owned<deft_tuner, deft_tuner_destroy> handle_;
};

} // namespace deft
