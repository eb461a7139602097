#pragma once

#include "compiler/config/Config.h"
#include "tuner/measure/Worker.h"

#include <chrono>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace deft::session {

/// Child processes that compile kernels during measurements. Configs that differ only in their plans have the
/// same kernels, which are compiled once.
class CompilePool {
public:
  struct Compiled {
    measure::Message kernels; ///< in the form of measure::packKernels
    std::string error;        ///< empty: the kernels exist
  };

  /// At most `processes` (0: never compiles), with a limit of `seconds` for each kernel.
  CompilePool(measure::ServiceMaker compiler, int processes, double seconds)
      : makeCompiler_(std::move(compiler)), processes_(processes), seconds_(seconds) {}

  bool isNeeded() const { return processes_ > 0; }
  /// Requests these kernels. Processes start when there is work for them.
  void ahead(const std::vector<config::Config> &configs);
  /// Whether a config need not wait for its kernels; true as well if they cannot be
  /// compiled.
  bool has(const config::Config &config) const;
  /// Waits until another kernel is compiled, at most `seconds`.
  void wait(double seconds);
  /// Waits for these kernels. Call it only if isNeeded().
  const Compiled &get(const config::Config &config);

private:
  struct Compiler {
    measure::Worker worker;
    std::string key; ///< of its current work; empty: idle
    std::chrono::steady_clock::time_point since;
  };

  void giveWork();
  void takeAnswers(double seconds);

  measure::ServiceMaker makeCompiler_;
  int processes_;
  double seconds_;
  std::vector<Compiler> compilers_;
  std::deque<std::pair<std::string, config::Config>> queue_; ///< of kernels to compile
  std::map<std::string, Compiled> compiled_;                 ///< by the text of the phases
};

} // namespace deft::session
