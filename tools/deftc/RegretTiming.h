#pragma once

#include "runtime/jit/Program.h"
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
    int treesPerClass = 3;
    tree::PlacementOrder pages = tree::PlacementOrder::Scattered;
    bool isHeldOut = false; ///< trees that nobody tuned on
  };

  /// For these entries, which are the program's. The program must outlive it.
  static support::Result<RegretTiming> make(const jit::Program &program, const ChosenDevice &device,
                                            const std::vector<const config_cache::Entry *> &entries,
                                            const Options &options);

  /// Where the trees stand that `deftc tune` knows by name, by class.
  using Places = std::map<std::string, std::vector<config_cache::Coordinates>>;
  const Places &named() const { return named_; }

  /// None: nobody knows any.
  std::vector<const tree::KvTree *> treesOf(const config_cache::Entry &entry) const;
  /// Opens the machine, which must be the chosen device, with kernels for all of these.
  support::Result<void> open(const std::vector<config::Config> &configs);
  support::Result<std::vector<double>> measure(const config_cache::Entry &entry, int tree,
                                               const std::vector<config::Config> &configs) {
    return timed_->measure(entry.treeClass.text(), static_cast<std::size_t>(tree), configs);
  }

private:
  RegretTiming(const jit::Program &program, const ChosenDevice &device)
      : program_(&program), device_(device) {}
  support::Result<void> collectTrees(const std::vector<const config_cache::Entry *> &entries,
                                     const Options &options);
  support::Result<void> compile(const std::vector<config::Config> &configs);

  const jit::Program *program_;
  ChosenDevice device_;
  measure::Work work_;
  Places named_;
  std::optional<package::VariantSource> source_;
  std::unique_ptr<session::CompilePool> kernels_;
  std::optional<session::SideBySide> timed_;
};

} // namespace deft::cli
