#pragma once

#include "runtime/program/Program.h"
#include "tools/deftc/DeviceInput.h"
#include "tuner/session/CompilePool.h"
#include "tuner/session/SideBySide.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace deft::cli {

/// Times configs for the report on regret: on trees that `deftc tune` knows by name, or on others like them.
class RegretTiming {
public:
  struct Options {
    std::vector<std::string> params;
    std::string recordsFolder;
    std::vector<std::string> families{"all", "rows"}; ///< whose trees are known by name
    int treesPerClass = 3;
    tree::PlacementOrder pages = tree::PlacementOrder::Scattered;
    bool isHeldOut = false; ///< trees that nobody tuned on
  };

  /// For these entries, which are the program's. The program must outlive it.
  static support::Result<RegretTiming> make(const program::Program &program, const ChosenDevice &device,
                                            const std::vector<const config_cache::Entry *> &entries,
                                            const Options &options);

  /// None: nobody knows any.
  std::vector<const tree::KvTree *> treesOf(const config_cache::Entry &entry) const;
  /// Where the trees of the entry's class stand that have a name: these or others like them are timed.
  std::vector<config_cache::Coordinates> placesOf(const config_cache::Entry &entry) const;
  /// Opens the machine, which must be the chosen device, with kernels for all of these.
  support::Result<void> open(const std::vector<config::Config> &configs);
  support::Result<std::vector<double>> measure(const config_cache::Entry &entry, int tree,
                                               const std::vector<config::Config> &configs) {
    return timed_->measure(entry.treeClass.text(), static_cast<std::size_t>(tree), configs);
  }

private:
  RegretTiming(const program::Program &program, const ChosenDevice &device)
      : program_(&program), device_(device) {}
  support::Result<void> collectTrees(const std::vector<const config_cache::Entry *> &entries,
                                     const Options &options);
  support::Result<void> compile(const std::vector<config::Config> &configs);

  const program::Program *program_;
  ChosenDevice device_;
  measure::Work work_;
  std::map<std::string, std::vector<config_cache::Coordinates>> places_; ///< by class
  std::optional<codegen::cuda::VariantSource> source_;
  std::unique_ptr<session::CompilePool> kernels_;
  std::optional<session::SideBySide> timed_;
};

} // namespace deft::cli
