#pragma once

#include "compiler/config/Config.h"
#include "compiler/package/Package.h"
#include "runtime/config_cache/DeviceKey.h"
#include "runtime/exec/Inputs.h"
#include "runtime/tree/DraftStandIn.h"
#include "runtime/tree/KvTree.h"

#include <optional>
#include <string>
#include <vector>

/// One decode step of a program, as a file that another machine can run. docs/files-and-environment.md
/// describes the file for users.
namespace deft::capture {

/// When the step was written.
enum class Moment {
  Run,    ///< after the first run of the step's plan
  Upload, ///< when the plan was uploaded for a graph that was captured earlier
  Call,   ///< on request of the program, between replays
};

/// Which attention of the spec the run computed.
enum class RunKind { Full, Selecting, Sparse };

/// The properties of the run's tensors.
struct RunFacts {
  RunKind kind = RunKind::Full;
  bool isInGraph = false; ///< a CUDA graph replays it
  bool hasLse = false;
  int budget = 0; ///< tokens of a list; 0: no selection
  long long qStride = 0, outStride = 0;
  exec::CacheLayouts cache{}; ///< in elements
};

struct NamedParam {
  std::string name;
  exec::ParamValue value;
};

/// Consecutive entries of the page table that name consecutive pages.
struct PageStretch {
  int entry = 0, page = 0, count = 0;

  bool operator==(const PageStretch &) const = default;
};

/// The drafts of a request, and which of them see which.
struct Drafts {
  tree::DraftedRequest request;
  int gained = 0; ///< tokens before the drafts that the host's tree does not contain
  std::vector<std::vector<int>> sees =
      {};                       ///< of each draft, in rising order, itself among them; empty: not known
  std::vector<int> depths = {}; ///< of each draft; empty: as many as are above it
};

struct PlanFacts {
  bool isInvariant = false;
  int workers = 0; ///< threads of a processor, blocks of a GPU
  int items = 0, partials = 0;
  long long tokensRead = 0;
};

/// The reason for the plan's config.
struct ConfigReason {
  std::string rule, treeClass, why;
  std::string file; ///< its name without the folder; empty: from no file
};

struct Step {
  std::string version; ///< of the library that wrote it
  Moment moment = Moment::Run;
  bool readDevice = false; ///< page table, lengths and drafts are the GPU's at that moment
  config_cache::DeviceKey device;
  std::string attention;               ///< its name in the spec
  bool isPackaged = false;             ///< the kernels came from a package and are not in the file
  std::vector<package::SpecFile> spec; ///< the spec, then its imports
  std::vector<NamedParam> params;
  std::vector<std::string> paramsLeftOut;
  std::optional<RunFacts> run; ///< none: no run of the plan was observed
  config::Config config;
  ConfigReason reason;
  PlanFacts plan;
  std::optional<double> planUs, runUs;
  int pageSize = 0;                                  ///< 0: the cache is contiguous
  std::optional<std::vector<PageStretch>> pageTable; ///< of the pages that the tree names; none: unknown
  std::vector<int> lengths;                          ///< tokens of each query's path; empty: as in the tree
  std::vector<Drafts> drafts;
  std::string tensors; ///< a folder next to the file, with q.npy, k.npy and v.npy; empty: none
  tree::KvTree tree;   ///< as the host planned it, with places, nodes as a tree file numbers them
};

} // namespace deft::capture
