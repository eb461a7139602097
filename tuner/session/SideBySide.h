#pragma once

#include "runtime/config_cache/Entry.h"
#include "tuner/measure/Machine.h"
#include "tuner/measure/Work.h"
#include "tuner/session/Race.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace deft::session {

/// Times configs against each other on the trees of a class, in this process: for configs that are known to
/// work, as those of entries are. Config_cache's regret report is measured by it.
class SideBySide {
public:
  struct Options {
    int rounds = 7;
    int repeats = 5; ///< runs of a config on a tree, each round
    Estimator estimator = Estimator::Median;
    /// The kernels of a config; null: the machine needs none.
    std::function<support::Result<package::KernelSet>(const config::Config &)> kernels;
  };

  /// `work.classes` are named by the text of their class.
  SideBySide(measure::Work work, std::unique_ptr<measure::Machine> machine, Options options)
      : work_(std::make_unique<measure::Work>(std::move(work))), machine_(std::move(machine)),
        options_(std::move(options)), inputs_(*work_) {}

  bool hasTreesOf(const config_cache::TreeClass &treeClass) const;

  /// Microseconds of each config, the geometric mean over the trees of the entry's class; each round times
  /// all of them, in turning order.
  support::Result<std::vector<double>> measure(const config_cache::Entry &entry,
                                               const std::vector<config::Config> &configs);

private:
  std::unique_ptr<const measure::Work> work_;
  std::unique_ptr<measure::Machine> machine_;
  Options options_;
  measure::InputPool inputs_; ///< of the class that was measured last
  bool isLoaded_ = false;     ///< on the machine
};

} // namespace deft::session
