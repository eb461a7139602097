#include "tuner/session/Lab.h"

#include "compiler/config/ConfigJson.h"

#include <algorithm>
#include <poll.h>

namespace deft::session {

using measure::Message;
using measure::Worker;
using nlohmann::json;
using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

using Clock = std::chrono::steady_clock;
using State = Worker::Answer::State;

/// Configs that differ in how they plan have the same kernels.
std::string kernelsKey(const config::Config &config) {
  json phases = json::array();
  for (const config::PhaseConfig &phase : config.phases) {
    json one = config::toJson(phase);
    one.erase("rows_above"); // the planner's
    phases.push_back(std::move(one));
  }
  return phases.dump();
}

} // namespace

Result<void> Lab::ensureWorker() {
  if (worker_ && worker_->isAlive())
    return {};
  prepared_.clear();
  worker_.reset();
  auto worker = Worker::start(makeDevice_);
  if (!worker)
    return worker.error();
  worker_.emplace(std::move(*worker));
  ++starts_;
  if (class_ < 0)
    return {};
  const Answer opened = worker_->ask({{{"op", "class"}, {"class", class_}}, {}}, options_.openSeconds);
  return opened.state == State::Done ? Result<void>() : Result<void>(opened.error);
}

Worker::Answer Lab::ask(json head, std::vector<std::string> blobs, double seconds) {
  return worker_->ask({std::move(head), std::move(blobs)}, seconds);
}

/// A device may be unusable after an error, and says so to whoever comes next: they get another process. What
/// is wrong with a config or a plan is no error of the device.
void Lab::distrust(const Answer &answer) {
  if (answer.state == State::Refused && answer.error.code != ErrorCode::Diagnostics &&
      answer.error.code != ErrorCode::Usage)
    worker_.reset();
}

Result<json> Lab::device() {
  if (auto ready = ensureWorker(); !ready)
    return ready.error();
  const Answer answer = ask({{"op", "device"}}, {}, options_.openSeconds);
  if (answer.state != State::Done)
    return answer.error;
  return answer.message.head;
}

Result<void> Lab::openClass(int index) {
  class_ = index;
  configs_.clear();
  prepared_.clear();
  if (!worker_ || !worker_->isAlive())
    return ensureWorker();
  const Answer answer = ask({{"op", "class"}, {"class", index}}, {}, options_.openSeconds);
  return answer.state == State::Done ? Result<void>() : Result<void>(answer.error);
}

std::optional<Lab::Fault> Lab::prepare(const std::string &id, const config::Config &config) {
  json head = {{"op", "prepare"}, {"id", id}, {"config", config::toJson(config)}};
  std::vector<std::string> blobs;
  if (options_.compilers > 0) {
    const Compiled &kernels = compiled(config);
    if (!kernels.error.empty())
      return Fault{"compile", kernels.error};
    head["kernels"] = kernels.kernels.head.at("kernels");
    blobs = kernels.kernels.blobs;
  }
  const Answer answer = ask(std::move(head), std::move(blobs), options_.openSeconds);
  distrust(answer);
  if (answer.state != State::Done)
    return Fault{"prepare", answer.error.message};
  prepared_.insert(id);
  return std::nullopt;
}

std::optional<Lab::Fault> Lab::admit(const std::string &id, const config::Config &config, bool isChecked) {
  configs_.insert_or_assign(id, config);
  if (auto ready = ensureWorker(); !ready)
    return Fault{"prepare", ready.error().message};
  if (!prepared_.contains(id))
    if (auto fault = prepare(id, config))
      return fault;
  if (isChecked)
    return std::nullopt;
  const Answer answer = ask({{"op", "check"}, {"id", id}}, {}, options_.checkSeconds);
  distrust(answer);
  if (answer.state != State::Done)
    return Fault{"check", answer.error.message};
  if (!answer.message.head.value("right", false))
    return Fault{"check", "wrong result: " + answer.message.head.value("why", "")};
  return std::nullopt;
}

std::optional<Lab::Fault> Lab::time(const std::string &id, int tree, int repeats, std::vector<double> &us) {
  if (auto ready = ensureWorker(); !ready)
    return Fault{"time", ready.error().message};
  if (!prepared_.contains(id))
    if (auto fault = prepare(id, configs_.at(id)))
      return fault;
  const Answer answer =
      ask({{"op", "time"}, {"id", id}, {"tree", tree}, {"repeats", repeats}}, {}, options_.timeSeconds);
  if (answer.state == State::Done) {
    us = answer.message.head.at("us").get<std::vector<double>>();
    return std::nullopt;
  }
  distrust(answer);
  return Fault{"time", answer.error.message};
}

void Lab::forget(const std::string &id) {
  if (prepared_.erase(id) > 0 && worker_ && worker_->isAlive())
    (void)ask({{"op", "forget"}, {"id", id}}, {}, options_.openSeconds);
}

void Lab::compileAhead(const std::vector<config::Config> &configs) {
  if (options_.compilers == 0)
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

bool Lab::isCompiled(const config::Config &config) const {
  return options_.compilers == 0 || compiled_.contains(kernelsKey(config));
}

void Lab::waitForKernels(double seconds) {
  giveWork();
  takeAnswers(seconds);
  giveWork();
}

const Lab::Compiled &Lab::compiled(const config::Config &config) {
  const std::string key = kernelsKey(config);
  compileAhead({config});
  // What is waited for goes first.
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

void Lab::giveWork() {
  while (!queue_.empty()) {
    auto idle =
        std::find_if(compilers_.begin(), compilers_.end(), [](const Compiler &c) { return c.key.empty(); });
    if (idle == compilers_.end()) {
      if (static_cast<int>(compilers_.size()) >= options_.compilers)
        return;
      auto worker = Worker::start(makeCompiler_);
      if (!worker) {
        if (compilers_.empty()) // nobody is left to wait for
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

void Lab::takeAnswers(double seconds) {
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
    if (compiler->key.empty() || (!isReady && waited < options_.compileSeconds)) {
      ++compiler;
      continue;
    }
    Answer answer = compiler->worker.receive(isReady ? options_.compileSeconds : 0);
    Compiled &result = compiled_[compiler->key];
    if (answer.state == State::Done)
      result.kernels = std::move(answer.message);
    else
      result.error = answer.state == State::TimedOut
                         ? "the compiler did not end within " +
                               std::to_string(static_cast<int>(options_.compileSeconds)) + " s"
                         : answer.error.message;
    compiler->key.clear();
    compiler = compiler->worker.isAlive() ? compiler + 1 : compilers_.erase(compiler);
  }
}

} // namespace deft::session
