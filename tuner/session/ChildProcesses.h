#pragma once

#include "runtime/config_cache/DeviceKey.h"
#include "tuner/measure/Work.h"
#include "tuner/session/CompilePool.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace deft::session {

/// The device that candidates run on.
struct TunedDevice {
  config_cache::DeviceKey key;
  std::string driver; ///< of a GPU: the driver's own name; otherwise empty
};

struct ChildProcessOptions {
  int compilers = 0;        ///< child processes that compile; 0: the machine needs no kernels
  double openSeconds = 300; ///< to make the inputs of a class
  double compileSeconds = 90;
  double checkSeconds = 120;
  double timeSeconds = 30; ///< for one timing request: a candidate that takes longer hangs
};

/// The child processes of a session: one has the device, others compile. If a candidate kills the first one,
/// a new process replaces it.
class ChildProcesses {
public:
  ChildProcesses(measure::ServiceMaker device, measure::ServiceMaker compiler, ChildProcessOptions options)
      : makeDevice_(std::move(device)), options_(options),
        compilers_(std::move(compiler), options.compilers, options.compileSeconds) {}

  /// Asks the device's process for its data.
  support::Result<TunedDevice> device();
  /// Switches to a class; its candidates must be admitted again.
  support::Result<void> openClass(int index);

  /// Compiles kernels while the device measures.
  CompilePool &compilers() { return compilers_; }

  /// The reason why a candidate is unusable.
  struct Fault {
    std::string stage; ///< "compile", "prepare", "check", "time"
    std::string reason;
    bool wasKilled = false; ///< another process killed it: this says little about the candidate
  };
  /// Compiles, plans, runs and checks against the oracle, unless already done. If another process kills it,
  /// it tries again once in a new process.
  std::optional<Fault> admit(const std::string &id, const config::Config &config, bool isChecked);
  /// One timing request for an admitted candidate. A fault is the candidate's.
  std::optional<Fault> time(const std::string &id, int tree, int repeats, std::vector<double> &us);
  /// Frees the device's memory of a candidate.
  void forget(const std::string &id);

  int restarts() const { return std::max(starts_ - 1, 0); } ///< of the device's process

private:
  using Answer = measure::Worker::Answer;

  support::Result<void> ensureWorker();
  Answer ask(nlohmann::json head, std::vector<std::string> blobs, double seconds);
  void distrust(const Answer &answer);
  std::optional<Fault> admitOnce(const std::string &id, const config::Config &config, bool isChecked);
  std::optional<Fault> timeOnce(const std::string &id, int tree, int repeats, std::vector<double> &us);
  std::optional<Fault> prepare(const std::string &id, const config::Config &config);

  measure::ServiceMaker makeDevice_;
  ChildProcessOptions options_;
  std::optional<measure::Worker> worker_;
  int class_ = -1; ///< the class in the process
  int starts_ = 0;
  std::map<std::string, config::Config> configs_; ///< of all admitted candidates
  std::set<std::string> prepared_;                ///< in the current process
  CompilePool compilers_;
};

} // namespace deft::session
