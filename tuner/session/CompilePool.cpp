#include "tuner/session/CompilePool.h"

#include "compiler/config/ConfigJson.h"
#include "compiler/kernels/Family.h"

#include <algorithm>
#include <poll.h>

namespace deft::session {

using measure::Worker;
using nlohmann::json;

namespace {

using Clock = std::chrono::steady_clock;
using State = Worker::Answer::State;

/// Configs that differ only in their plans have the same kernels, except those that deal tokens.
std::string kernelsKey(const config::Config &config) {
  json phases = json::array();
  for (const config::PhaseConfig &phase : config.phases) {
    json one = config::toJson(phase);
    one.erase("rows_above"); // only for the planner
    one["is_dealt"] = kernels::isDealt(phase, config.order);
    phases.push_back(std::move(one));
  }
  return phases.dump();
}

} // namespace

void CompilePool::ahead(const std::vector<config::Config> &configs) {
  if (!isNeeded())
    return;
  for (const config::Config &config : configs) {
    const std::string key = kernelsKey(config);
    const bool isQueued =
        std::any_of(queue_.begin(), queue_.end(), [&](const auto &job) { return job.first == key; });
    const bool isRunning =
        std::any_of(compilers_.begin(), compilers_.end(), [&](const Compiler &c) { return c.key == key; });
    if (!isQueued && !isRunning && !compiled_.contains(key))
      queue_.emplace_back(key, config);
  }
  giveWork();
}

bool CompilePool::has(const config::Config &config) const {
  return !isNeeded() || compiled_.contains(kernelsKey(config));
}

void CompilePool::wait(double seconds) {
  giveWork();
  takeAnswers(seconds);
  giveWork();
}

const CompilePool::Compiled &CompilePool::get(const config::Config &config) {
  const std::string key = kernelsKey(config);
  ahead({config});
  // The kernels that the caller waits for go first.
  const auto own =
      std::find_if(queue_.begin(), queue_.end(), [&](const auto &job) { return job.first == key; });
  if (own != queue_.end())
    std::rotate(queue_.begin(), own, own + 1);
  while (!compiled_.contains(key)) {
    giveWork();
    takeAnswers(0.5);
  }
  takeAnswers(0);
  giveWork();
  return compiled_.at(key);
}

void CompilePool::giveWork() {
  while (!queue_.empty()) {
    auto idle =
        std::find_if(compilers_.begin(), compilers_.end(), [](const Compiler &c) { return c.key.empty(); });
    if (idle == compilers_.end()) {
      if (static_cast<int>(compilers_.size()) >= processes_)
        return;
      auto worker = Worker::start(makeCompiler_);
      if (!worker) {
        if (compilers_.empty()) // no compiler is left to wait for
          compiled_[queue_.front().first].error = worker.error().message;
        else
          return;
        queue_.pop_front();
        continue;
      }
      compilers_.push_back({std::move(*worker), {}, {}});
      idle = compilers_.end() - 1;
    }
    auto [key, config] = std::move(queue_.front());
    queue_.pop_front();
    (void)idle->worker.send({{{"config", config::toJson(config)}}, {}});
    idle->key = key;
    idle->since = Clock::now();
  }
}

void CompilePool::takeAnswers(double seconds) {
  std::vector<pollfd> entries;
  for (const Compiler &compiler : compilers_)
    if (!compiler.key.empty())
      entries.push_back({compiler.worker.descriptor(), POLLIN, 0});
  if (entries.empty())
    return;
  (void)::poll(entries.data(), entries.size(), static_cast<int>(1000 * seconds));
  for (auto compiler = compilers_.begin(); compiler != compilers_.end();) {
    const bool isReady = std::any_of(entries.begin(), entries.end(), [&](const pollfd &entry) {
      return entry.fd == compiler->worker.descriptor() && entry.revents != 0;
    });
    const double waited = std::chrono::duration<double>(Clock::now() - compiler->since).count();
    if (compiler->key.empty() || (!isReady && waited < seconds_)) {
      ++compiler;
      continue;
    }
    Worker::Answer answer = compiler->worker.receive(isReady ? seconds_ : 0);
    Compiled &result = compiled_[compiler->key];
    if (answer.state == State::Done)
      result.kernels = std::move(answer.message);
    else
      result.error = answer.state == State::TimedOut ? "the compiler did not end within " +
                                                           std::to_string(static_cast<int>(seconds_)) + " s"
                                                     : answer.error.message;
    compiler->key.clear();
    compiler = compiler->worker.isAlive() ? compiler + 1 : compilers_.erase(compiler);
  }
}

} // namespace deft::session
