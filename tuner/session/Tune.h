#pragma once

#include "compiler/codegen/cuda/VariantSource.h"
#include "runtime/config_cache/ConfigCache.h"
#include "runtime/config_cache/VariantLegality.h"
#include "runtime/program/Program.h"
#include "tuner/measure/Ended.h"
#include "tuner/measure/MeasureService.h"
#include "tuner/search/Strategy.h"
#include "tuner/session/Shard.h"
#include "tuner/space/MakeSpace.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

/// Tuning as a library: implements `deftc tune`.
namespace deft::session {

/// A tree to tune for.
struct Sample {
  std::string name; ///< for people, and to rebuild it: "few_shot:branches=20,step=100"
  std::uint64_t seed = 0;
  tree::KvTree tree;
  bool isHeldOut = false; ///< not searched on: the winner is tested on it
  /// Not 0: the tree of this seed that is similar to the named one (workload::similarTree).
  std::uint64_t similar = 0;
};

/// Where candidates run. Created before the session starts processes; used in them.
struct Backend {
  measure::MachineMaker open;
  /// The configs among which a tree decides without tuned entries, for the opened device.
  std::function<support::Result<std::vector<config::Config>>(const config_cache::DeviceKey &)> untuned;
  std::optional<codegen::cuda::VariantSource> source; ///< for a GPU: the source of its kernels

  bool isGpu() const { return source.has_value(); }
};

/// The program must outlive the session.
support::Result<Backend> cpuBackend(const program::Program &program, int threads);
support::Result<Backend> cudaBackend(const program::Program &program);

struct TuneInput {
  spec::Variant variant;
  std::vector<exec::ParamValue> params;
  std::vector<Sample> samples;
  Backend backend;
};

struct TuneOptions {
  search::StrategyKind strategy = search::StrategyKind::Guided;
  std::vector<space::AxisOverride> axes;
  double budgetSeconds = 0; ///< of the whole session; 0: none
  int mostCandidates = 0;   ///< measured per class; 0: 64, or all with an exhaustive search
  int threads = 1;          ///< of the host
  int compilers = 0;        ///< processes that compile at a time; 0: one less than `threads`
  int mostTrees = 3;        ///< measured per class; at most twice as many more are held out
  /// Classes with fewer trees get similar ones: one to search on if there is only one, and as many as may be
  /// held out. A config that is fast on a single tree may not suit its class.
  bool addsSimilar = true;
  tree::PlacementOrder pages = tree::PlacementOrder::Scattered;
  std::uint64_t seed = 1;
  std::string journal;  ///< a file; empty: one in the user's cache, in tune/, named by the session
  bool isFresh = false; ///< does not continue a journal
  /// Does not search a class that was tuned before, with any kernels, for this variant or one that differs
  /// only in type and pages: it measures the configs found for the class and its neighbours again.
  bool fromRelated = false;
  /// Tunes only its own classes, learns nothing from the session's other classes, and writes results only to
  /// the journal: mergeShards() joins the journals of all shards. None: a whole session.
  std::optional<Shard> shard;
  std::string recordFolder;    ///< not empty: an exhaustive search writes each class's times (Recording.h)
  config_cache::Places places; ///< whose entries neighbours' configs come from
  std::string configPath;      ///< file for results; empty: that of the device in places.userFolder
  std::string note;            ///< for the entries' provenance
  std::string command;         ///< the command that starts the session again, for its journal; may be empty
  double timeSeconds = 0;      ///< limit for a candidate; 0: 30, on a GPU 10
};

/// The session's progress, for a line on a terminal.
struct Status {
  int classIndex = 0, classes = 0;
  std::string treeClass;
  std::string stage;                ///< "compile" (before the first class), "search", "final", "confirm"
  int measured = 0;                 ///< candidates of the class
  int left = 0;                     ///< at most this many left
  double bestUs = 0, untunedUs = 0; ///< 0: unknown
  double secondsLeft = -1;          ///< of the budget; below 0: no budget
};

/// The caller's callbacks, called from the session's thread.
struct Listener {
  std::function<void(const Status &)> progress;
  std::function<void(const std::string &)> note; ///< a line: the space, a finished class, a fault
  std::function<bool()> isCancelled;             ///< asked between measurements

  void say(const std::string &line) const {
    if (note)
      note(line);
  }
  bool wantsToStop() const { return isCancelled && isCancelled(); }
};

/// The outcome for one class.
struct ClassReport {
  config_cache::TreeClass treeClass;
  int trees = 0, heldOut = 0;
  config_cache::Entry entry;
  bool isDone = false; ///< false: the session was stopped earlier
  bool isFromJournal = false;
  double gain = 1;      ///< untuned over tuned time, confirmed; 1 if the untuned config stays
  double gainError = 0; ///< relative, standard
  std::optional<double> heldOutGain;
  int candidates = 0, rejected = 0;
  std::string note; ///< why the untuned config stays, or whose config was preferred
};

using measure::Ended;

struct TuneReport {
  config_cache::DeviceKey device;
  std::string driver;
  config_cache::VariantSignature signature;
  space::SpaceSize space;
  std::vector<ClassReport> classes; ///< only of the shard, if there is one
  std::optional<Shard> shard;
  int sessionClasses = 0; ///< of all shards
  Ended ended = Ended::Complete;
  bool isResumed = false;
  int made = 0, reused = 0; ///< measurements
  int restarts = 0;         ///< of the device's process
  double seconds = 0;
  std::string journal;    ///< its path
  std::string configPath; ///< the entries' file; empty: only in the journal
  config_cache::WriteReport written;
  std::optional<support::Error> notSaved; ///< why entries are not saved; running the session again saves them
  std::vector<std::string> warnings;
};

/// Searches class after class, smallest trees first, and writes an entry for each finished one. Faults
/// of candidates are part of the report; errors mean that a session cannot start, or a recording cannot
/// be written. Forks child processes: the caller must not use CUDA before, and should have no other
/// threads.
support::Result<TuneReport> tune(const TuneInput &input, const TuneOptions &options,
                                 const Listener &listener = {});

} // namespace deft::session
