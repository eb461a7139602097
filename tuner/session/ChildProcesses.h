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
  std::string driver; ///< of a GPU: what it calls itself; else empty
};

struct ChildProcessOptions {
  int compilers = 0;        ///< child processes that compile; 0: the machine needs no kernels
  double openSeconds = 300; ///< to make the inputs of a class
  double compileSeconds = 90;
  double checkSeconds = 120;
  double timeSeconds = 30; ///< of one request to time: beyond it a candidate hangs
};

/// The child processes of a session: one that has the device and some that compile. A candidate that ends the
/// first one costs a new process, no more.
class ChildProcesses {
public:
  ChildProcesses(measure::ServiceMaker device, measure::ServiceMaker compiler, ChildProcessOptions options)
      : makeDevice_(std::move(device)), options_(options),
        compilers_(std::move(compiler), options.compilers, options.compileSeconds) {}

  /// What the device's process says of it.
  support::Result<TunedDevice> device();
  /// Goes to a class; its candidates must be admitted anew.
  support::Result<void> openClass(int index);

  /// Compiles kernels while the device measures.
  CompilePool &compilers() { return compilers_; }

  /// Why a candidate cannot be used.
  struct Fault {
    std::string stage; ///< "compile", "prepare", "check", "time"
    std::string reason;
    bool wasKilled = false; ///< the process was, by somebody else: this says little about the candidate
  };
  /// Compiles, plans, runs and compares with the oracle, as far as this has not been done. What somebody
  /// kills is done once more, in another process.
  std::optional<Fault> admit(const std::string &id, const config::Config &config, bool isChecked);
  /// One request to time an admitted candidate. `error` is a fault of the candidate's.
  std::optional<Fault> time(const std::string &id, int tree, int repeats, std::vector<double> &us);
  /// Gives back what the device holds of a candidate.
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
  int class_ = -1; ///< that the process is at
  int starts_ = 0;
  std::map<std::string, config::Config> configs_; ///< of all that were admitted
  std::set<std::string> prepared_;                ///< in the process that runs now
  CompilePool compilers_;
};

} // namespace deft::session
