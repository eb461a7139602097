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

/// Child processes that compile kernels while others are measured. Configs that differ only in how they plan
/// have the same kernels, which are compiled once.
class CompilePool {
public:
  struct Compiled {
    measure::Message kernels; ///< as measure::packKernels puts them
    std::string error;        ///< empty: they are there
  };

  /// At most so many processes (0: nothing is ever compiled), each kernel within so many seconds.
  CompilePool(measure::ServiceMaker compiler, int processes, double seconds)
      : makeCompiler_(std::move(compiler)), processes_(processes), seconds_(seconds) {}

  bool isNeeded() const { return processes_ > 0; }
  /// Asks for these kernels. Processes are started when there is work for them.
  void ahead(const std::vector<config::Config> &configs);
  /// Whether a config would not have to wait for its kernels. One whose kernels cannot be compiled would not,
  /// either.
  bool has(const config::Config &config) const;
  /// Until another kernel is compiled, or so long.
  void wait(double seconds);
  /// Waits for these. Only where isNeeded().
  const Compiled &get(const config::Config &config);

private:
  struct Compiler {
    measure::Worker worker;
    std::string key; ///< of what it compiles; empty: idle
    std::chrono::steady_clock::time_point since;
  };

  void giveWork();
  void takeAnswers(double seconds);

  measure::ServiceMaker makeCompiler_;
  int processes_;
  double seconds_;
  std::vector<Compiler> compilers_;
  std::deque<std::pair<std::string, config::Config>> queue_; ///< of kernels to compile
  std::map<std::string, Compiled> compiled_;                 ///< by the phases' text
};

} // namespace deft::session
