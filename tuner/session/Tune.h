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

/// Tuning as a library: what `deftc tune` does.
namespace deft::session {

/// A tree to tune for.
struct Sample {
  std::string name; ///< for people, and to make it again: "few_shot:branches=20,step=100"
  std::uint64_t seed = 0;
  tree::KvTree tree;
  bool isHeldOut = false; ///< not searched on: the winner has to prove itself on it
  /// Not 0: the one of this seed that is like the named one (workload::similarTree).
  std::uint64_t similar = 0;
};

/// Where candidates run. Made before the session starts processes; used in them.
struct Backend {
  measure::MachineMaker open;
  /// The configs among which the tree decides, on the device that was opened, where nothing was tuned.
  std::function<support::Result<std::vector<config::Config>>(const config_cache::DeviceKey &)> untuned;
  std::optional<codegen::cuda::VariantSource> source; ///< of a GPU: what its kernels are made of

  bool isGpu() const { return source.has_value(); }
};

/// The program must be there for the session.
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
  int mostCandidates = 0;   ///< measured in a class; 0: 64, with an exhaustive search all
  int threads = 1;          ///< of the host
  int compilers = 0;        ///< processes that compile at a time; 0: one less than there are threads
  int mostTrees = 3;        ///< of a class that are measured; twice as many more are held out at most
  /// Classes that have fewer trees get some that are like theirs: one to search on where there is but one,
  /// and as many as may be held out. What is fast on one tree alone is no config for its class.
  bool addsSimilar = true;
  tree::PlacementOrder pages = tree::PlacementOrder::Scattered;
  std::uint64_t seed = 1;
  std::string journal;  ///< a file; empty: one in the user's cache, in tune/, that is named by the session
  bool isFresh = false; ///< does not go on with a journal
  /// A class that was tuned for before, with these kernels or others, for this variant or one that differs in
  /// no more than type and pages, is not searched: what was found for it and its neighbours is measured anew.
  bool fromRelated = false;
  /// Tunes only its classes, learns nothing from the session's other classes, whoever tunes them, and writes
  /// its results only to the journal: mergeShards() joins the journals of all shards. None: a whole session.
  std::optional<Shard> shard;
  std::string recordFolder; ///< not empty: with an exhaustive search, writes each class's times (Recording.h)
  config_cache::Places places; ///< whose entries neighbours' configs come from
  std::string configPath;      ///< results go to this file; empty: that of the device in places.userFolder
  std::string note;            ///< for the entries' provenance
  std::string command;         ///< how to begin the session again, for its journal; may be empty
  double timeSeconds = 0;      ///< a candidate that takes longer hangs; 0: 30, on a GPU 10
};

/// How far the session is: for a line on a terminal.
struct Status {
  int classIndex = 0, classes = 0;
  std::string treeClass;
  std::string stage;                ///< "compile" (before the first class), "search", "final", "confirm"
  int measured = 0;                 ///< candidates of the class
  int left = 0;                     ///< at most
  double bestUs = 0, untunedUs = 0; ///< 0: not known yet
  double secondsLeft = -1;          ///< of the budget; below 0: there is none
};

/// What the caller wants to hear. Called from the session's thread.
struct Listener {
  std::function<void(const Status &)> progress;
  std::function<void(const std::string &)> note; ///< a line: the space, a class that is done, a fault
  std::function<bool()> isCancelled;             ///< asked between measurements

  void say(const std::string &line) const {
    if (note)
      note(line);
  }
  bool wantsToStop() const { return isCancelled && isCancelled(); }
};

/// What became of one class.
struct ClassReport {
  config_cache::TreeClass treeClass;
  int trees = 0, heldOut = 0;
  config_cache::Entry entry;
  bool isDone = false; ///< else the session was stopped before
  bool isFromJournal = false;
  double gain = 1;      ///< untuned over tuned, confirmed; 1 where the untuned stays
  double gainError = 0; ///< relative, standard
  std::optional<double> heldOutGain;
  int candidates = 0, rejected = 0;
  std::string note; ///< why the untuned stays, whose config was preferred
};

using measure::Ended;

struct TuneReport {
  config_cache::DeviceKey device;
  std::string driver;
  config_cache::VariantSignature signature;
  space::SpaceSize space;
  std::vector<ClassReport> classes; ///< of the shard, where it is one
  std::optional<Shard> shard;
  int sessionClasses = 0; ///< of all shards
  Ended ended = Ended::Complete;
  bool isResumed = false;
  int made = 0, reused = 0; ///< measurements
  int restarts = 0;         ///< of the device's process
  double seconds = 0;
  std::string journal;    ///< its path
  std::string configPath; ///< where the entries are; empty: only in the journal
  config_cache::WriteReport written;
  std::optional<support::Error> notSaved; ///< why they are not; the same session again saves them
  std::vector<std::string> warnings;
};

/// Searches class after class, smallest trees first, and writes an entry for each that is done. Faults of
/// candidates are part of the report; an error is what keeps a session from starting, or a
/// recording from being written. Forks child processes: the caller must not use CUDA before, and should have
/// no other threads.
support::Result<TuneReport> tune(const TuneInput &input, const TuneOptions &options,
                                 const Listener &listener = {});

} // namespace deft::session
