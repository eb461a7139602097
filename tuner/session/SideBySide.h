#pragma once

#include "tuner/measure/Machine.h"
#include "tuner/measure/Work.h"
#include "tuner/session/Race.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace deft::session {

/// Times configs against each other on a tree, in this process: for configs that are known to work, like
/// those of entries. The regret report uses it, and the evaluation of entries on other trees.
class SideBySide {
public:
  struct Options {
    int rounds = 7;
    int repeats = 5; ///< runs of a config on a tree in each round
    Estimator estimator = Estimator::Median;
    /// The kernels of a config; null: the machine needs none.
    std::function<support::Result<package::KernelSet>(const config::Config &)> kernels;
  };

  /// `work.classes` are named by the text of their class.
  SideBySide(measure::Work work, std::unique_ptr<measure::Machine> machine, Options options)
      : work_(std::make_unique<measure::Work>(std::move(work))), machine_(std::move(machine)),
        options_(std::move(options)), inputs_(*work_) {}

  /// Microseconds of each config on a tree of a class (work.classes). Each round times all of them, in
  /// rotating order.
  support::Result<std::vector<double>> measure(const std::string &treeClass, std::size_t tree,
                                               const std::vector<config::Config> &configs);

private:
  std::unique_ptr<const measure::Work> work_;
  std::unique_ptr<measure::Machine> machine_;
  Options options_;
  measure::InputPool inputs_; ///< of the class that was measured last
  bool isLoaded_ = false;     ///< on the machine
};

} // namespace deft::session
