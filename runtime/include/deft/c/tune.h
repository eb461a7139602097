#pragma once

#include <deft/c/attention.h>
#include <deft/c/tree.h>

/// Finds the fastest configs on this machine, as `deftc tune` does, inside a program. The results are stored
/// in a file for this device, and attentions that are compiled or loaded later use them:
/// deft_config_choice::rule is then "exact". If an attention selects, its sparse layers are tuned on a GPU
/// after the trees, or on their own if there are no trees. See specs/CONFIGS.md.

DEFT_C_BEGIN

enum {
  DEFT_TUNE_ANY = 0, ///< a GPU if there is one, else the processor
  DEFT_TUNE_CPU = 1,
  DEFT_TUNE_GPU = 2 ///< the first that the driver shows
};

/// All zero is the default. Texts are UTF-8.
typedef struct deft_tune_options {
  size_t size;           ///< sizeof(deft_tune_options)
  double budget_seconds; ///< of a run, at most 1e9; 0: no limit
  uint64_t seed;         ///< of inputs and workloads; 0: 1
  /// The file for the results; null: this device's file in the user's cache, where plans look.
  const char *config_file;
  /// The session's file, from which the next run resumes; null: one in the user's cache.
  const char *journal;
  const char *records_folder; ///< of recorded workloads; may be null
  const char *note;           ///< kept with the results; may be null
  int32_t device;             ///< DEFT_TUNE_...
  int32_t candidates;         ///< most configs measured for each class of trees; 0: 64
  int32_t threads;  ///< of the host, at most 1,024; 0: one for each processor that this process may use
  int32_t is_fresh; ///< 1: starts again instead of resuming from a journal
  /// 1: does not search a class of trees that was tuned before, by any version, for this attention or one
  /// that differs only in type and pages. It only measures the known config and nearby ones again.
  int32_t from_related;
  /// The session's number of shards, at most 100,000; 0: this process tunes all. Each shard has a process of
  /// its own, on a device of the same model. It tunes only some classes of trees, no sparse layers, and
  /// writes only its journal. deft_tune_merge_shards joins the journals.
  int32_t shard_count;
  int32_t shard;    ///< which one this process tunes, from 0
  int32_t reserved; ///< 0
} deft_tune_options;

/// The progress of a run. Its texts are valid only during the call. For sparse layers (stage "sparse") it has
/// `measured`, `left` and `seconds_left`.
typedef struct deft_tune_progress {
  size_t size;            ///< fields beyond it do not exist
  const char *tree_class; ///< of trees that are alike
  const char *stage;      ///< "compile" (before the first class), "search", "final", "confirm", "sparse"
  double best_us;         ///< microseconds; 0: not known yet
  double untuned_us;
  double seconds_left; ///< of the budget; below 0: there is none
  int32_t class_index;
  int32_t classes;
  int32_t measured; ///< configs of the class; kinds of lists
  int32_t left;     ///< at most
} deft_tune_progress;

/// The callbacks of a run; the thread that runs the tuner calls them. Any may be null. They must return: an
/// exception ends the run as DEFT_INTERNAL, and a longjmp is not allowed.
typedef struct deft_tune_listener {
  size_t size;   ///< sizeof(deft_tune_listener)
  void *context; ///< passed to each callback
  void (*progress)(void *context, const deft_tune_progress *progress);
  void (*note)(void *context, const char *line); ///< a class begun or done, or a fault
  int32_t (*is_cancelled)(void *context);        ///< called between measurements; other than 0 ends the run
} deft_tune_listener;

/// The result for the trees of one class.
typedef struct deft_tuned_class {
  size_t size;
  const char *tree_class; ///< as deft_config_choice::tree_class
  const char *config;     ///< in the JSON of config files
  const char *note;       ///< in words: the reason to keep the untuned config
  double untuned_us;
  double tuned_us;
  double gain;           ///< untuned over tuned, confirmed
  double held_out_gain;  ///< on trees that the search did not use; 0: there were none
  int32_t trees;         ///< measured trees of the class
  int32_t is_done;       ///< 0: the run ended before it
  int32_t keeps_untuned; ///< 1: nothing was clearly faster
  int32_t is_complete;   ///< 0: the budget cut the search short, so the entry counts only as a nearby one
  int32_t candidates;    ///< measured configs
  int32_t rejected;      ///< configs that failed or gave wrong results
} deft_tuned_class;

enum { DEFT_TUNE_COMPLETE = 0, DEFT_TUNE_BUDGET = 1, DEFT_TUNE_CANCELLED = 2 };

/// The result for lists of one budget that a number of queries read, in sparse layers.
typedef struct deft_tuned_lists {
  size_t size;
  double untuned_us; ///< of a layer with the rules' choices
  double tuned_us;
  double gain; ///< untuned over tuned
  int32_t budget;
  int32_t queries;
  int32_t item_tokens; ///< of the items that lists are cut into; 0: the rule's cut stays
  int32_t reserved;    ///< 0
} deft_tuned_lists;

/// The result for the sparse layers of an attention that selects.
typedef struct deft_tuned_sparse {
  size_t size;
  const char *file;  ///< with the results; empty: nothing was found
  size_t list_count; ///< lists that this run tuned
  const deft_tuned_lists *const *lists;
  double tile_gain; ///< over the rule's tile, geometric mean over all lists
  double seconds;
  int32_t tile_tokens; ///< of the kernel that reads lists
  int32_t stages;
  int32_t warps;
  int32_t is_packaged; ///< 1: the tile is the package's, so only cuts were tuned
  int32_t known;       ///< lists that an earlier run tuned
  int32_t end;         ///< DEFT_TUNE_COMPLETE, _BUDGET or _CANCELLED
} deft_tuned_sparse;

/// Made by the library: free it with deft_free. Fields beyond its size, or beyond that of a struct that it
/// points to, do not exist.
typedef struct deft_tune_summary {
  size_t size;
  const char *device;
  const char *config_file; ///< with the results; without trees empty, like the journal
  const char *journal;
  size_t class_count;
  const deft_tuned_class *const *classes;
  size_t warning_count;
  const char *const *warnings;
  double seconds;
  int32_t end;      ///< DEFT_TUNE_COMPLETE, _BUDGET or _CANCELLED
  int32_t measured; ///< measurements of this run
  int32_t reused;   ///< earlier measurements, from the journal
  int32_t reserved; ///< 0
  /// Null: the attention does not select, or the run ended before its sparse layers.
  const deft_tuned_sparse *sparse;
} deft_tune_summary;

/// Joins the journals of all shards of one session, in any order, and stores the results in `config_file`;
/// null: this device's file in the user's cache. An error names shards that are missing, given twice,
/// unfinished, or of another session, device or release. With `is_partial`, missing and unfinished shards are
/// warnings of the summary. The summary has the classes of all shards, and no journal. Free `*summary` with
/// deft_free.
DEFT_C_API deft_status deft_tune_merge_shards(const char *const *journals, size_t journal_count,
                                              const char *config_file, int32_t is_partial,
                                              deft_tune_summary **summary);

/// Tunes one attention for trees. For one thread at a time.
///
/// A run forks child processes for measurements, so a config that faults or hangs costs only its time. The
/// process must not have used CUDA, because its children could not use it (DEFT_ENVIRONMENT), and must have
/// no other active threads.
typedef struct deft_tuner deft_tuner;

/// `options` may be null.
DEFT_C_API deft_status deft_tuner_make(const deft_attention *attention, const deft_tune_options *options,
                                       deft_tuner **tuner);
DEFT_C_API void deft_tuner_destroy(deft_tuner *tuner);

/// Adds a typical tree, which is copied. `name` may be null. The search does not use a held-out tree, but the
/// result must be as good on it.
DEFT_C_API deft_status deft_tuner_add_tree(deft_tuner *tuner, const deft_tree *tree, const char *name,
                                           int32_t is_held_out);
/// Adds trees by name: a family (deft_tuner_family), `all` families, `rows` for the trees of benchmarks, or a
/// workload as `deftc workloads` lists it: "few_shot:prompt=4000,branches=50".
DEFT_C_API deft_status deft_tuner_add_workload(deft_tuner *tuner, const char *name);
/// Sets the attention's parameters; the values are copied. Without this call the parameters have their
/// defaults.
DEFT_C_API deft_status deft_tuner_set_params(deft_tuner *tuner, const deft_params *params);

/// The families by index, from 0: few_shot and so on; null after the last. Do not free the name.
DEFT_C_API const char *deft_tuner_family(int32_t index);

/// Searches class after class, and saves each. Faults of a config are part of the summary; an error means
/// that a run cannot start or cannot save its results. Then the run tunes sparse layers, if there are any and
/// the device is a GPU. They get a quarter of the budget, up to a minute, or all of it if there are no trees.
/// With trees and a `config_file` they are left out. If they cannot be tuned, that is a warning, or an error
/// if there are no trees. `listener` may be null. Free `*summary` with deft_free.
DEFT_C_API deft_status deft_tuner_run(deft_tuner *tuner, const deft_tune_listener *listener,
                                      deft_tune_summary **summary);

DEFT_C_END
