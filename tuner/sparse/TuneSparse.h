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

/// Tuning of the layers that read lists of selected tokens (LANGUAGE.md, rules K): what `deftc tune --sparse`
/// does.
namespace deft::sparse {

struct TuneOptions {
  double seconds = 0; ///< at most; 0: as long as it takes
  int threads = 1;    ///< of the host
  std::uint64_t seed = 1;
  bool isFresh = false;                  ///< asks again what is known already
  std::vector<space::AxisOverride> axes; ///< of tile_kv, stages and warps: these values alone
  std::vector<Lists> lists;              ///< these; empty: listsOf() the variant
  config_cache::Places places;           ///< whose entries are known, and where new ones go
  std::string path;                      ///< they go to this file instead, and none are known
  std::string note;                      ///< for the entries' provenance
};

/// What the caller wants to hear.
struct Listener {
  std::function<void(const Status &)> progress = {};
  std::function<bool()> isCancelled = {}; ///< asked between measurements
};

using measure::Ended;

struct TuneReport {
  config_cache::DeviceKey device;
  config_cache::VariantSignature signature;
  config::PhaseConfig untunedTile, tile;
  int tiles = 1;                 ///< that were compared
  bool isPackaged = false;       ///< the tile is the package's, so only cuts were tuned
  double tileGain = 1;           ///< over the untuned tile, on average
  std::vector<TunedLists> lists; ///< that are done now
  /// That were done before, and are not among these: as their entries have them, so without `cutUntuned`.
  std::vector<TunedLists> known;
  Ended ended = Ended::Complete;
  double seconds = 0;
  std::string path; ///< of the file; empty: nothing was done
  std::vector<std::string> notes;
};

/// Of a budget of seconds for trees and sparse layers what the latter get; 0: there is none.
double shareOfBudget(double seconds);

/// An error where the variant has no sparse layers.
support::Result<void> checkSelects(const spec::Variant &variant);

/// Compiles what may be faster than the rule's tile (of a package nothing: it has one kernel that reads
/// lists), times it on this process's GPU and keeps what is found for this device. Where it was over before
/// all was done, the next call goes on. Opens CUDA in this process: no child may use it then (TuneApart.h).
support::Result<TuneReport> tune(const program::Program &program, const std::vector<exec::ParamValue> &params,
                                 const TuneOptions &options, const Listener &listener = {});

} // namespace deft::sparse
