#pragma once

#include "runtime/config_cache/ConfigCache.h"
#include "runtime/exec/Inputs.h"
#include "runtime/program/Program.h"
#include "tuner/measure/Ended.h"
#include "tuner/space/MakeSpace.h"
#include "tuner/sparse/SparseSearch.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

/// Tuning of the layers that read lists of selected tokens (LANGUAGE.md, rules K): implements `deftc tune
/// --sparse`.
namespace deft::sparse {

struct TuneOptions {
  double seconds = 0; ///< at most; 0: no limit
  int threads = 1;    ///< of the host
  std::uint64_t seed = 1;
  bool isFresh = false;                  ///< measures known results again
  std::vector<space::AxisOverride> axes; ///< for tile_kv, stages and warps: only these values
  std::vector<Lists> lists;              ///< these; empty: listsOf() the variant
  config_cache::Places places;           ///< with the known entries, and for new ones
  std::string path;                      ///< new entries go to this file instead, and no entries are known
  std::string note;                      ///< for the entries' provenance
};

/// The caller's callbacks.
struct Listener {
  std::function<void(const Status &)> progress = {};
  std::function<bool()> isCancelled = {}; ///< asked between measurements
};

using measure::Ended;

struct TuneReport {
  config_cache::DeviceKey device;
  config_cache::VariantSignature signature;
  config::PhaseConfig untunedTile, tile;
  int tiles = 1;                 ///< number of compared tiles
  bool isPackaged = false;       ///< the tile is the package's, so only cuts were tuned
  double tileGain = 1;           ///< over the untuned tile, on average
  std::vector<TunedLists> lists; ///< finished in this run
  /// Finished earlier, and not in `lists`: from their entries, so without `cutUntuned`.
  std::vector<TunedLists> known;
  Ended ended = Ended::Complete;
  double seconds = 0;
  std::string path; ///< of the file; empty: nothing was tuned
  std::vector<std::string> notes;
};

/// The sparse layers' share of a time budget for trees and sparse layers; 0: no budget.
double shareOfBudget(double seconds);

/// An error if the variant has no sparse layers.
support::Result<void> checkSelects(const spec::Variant &variant);

/// Compiles kernels that may be faster than the rule's tile (none for a package: it has a single kernel that
/// reads lists), times them on this process's GPU and stores the results for this device. If time runs out,
/// the next call continues. Opens CUDA in this process: no child may use it then (TuneApart.h).
support::Result<TuneReport> tune(const program::Program &program, const std::vector<exec::ParamValue> &params,
                                 const TuneOptions &options, const Listener &listener = {});

} // namespace deft::sparse
