#include "tuner/session/ChildProcesses.h"

#include "compiler/config/ConfigJson.h"

namespace deft::session {

using measure::Worker;
using nlohmann::json;
using support::ErrorCode;
using support::Result;

namespace {

using State = Worker::Answer::State;

} // namespace

Result<void> ChildProcesses::ensureWorker() {
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

Worker::Answer ChildProcesses::ask(json head, std::vector<std::string> blobs, double seconds) {
  return worker_->ask({std::move(head), std::move(blobs)}, seconds);
}

/// After an error, a device may be unusable and refuse later requests: they get another process. Faults of a
/// config or a plan are not errors of the device.
void ChildProcesses::distrust(const Answer &answer) {
  if (answer.state == State::Refused && answer.error.code != ErrorCode::Diagnostics &&
      answer.error.code != ErrorCode::Usage)
    worker_.reset();
}

Result<TunedDevice> ChildProcesses::device() {
  if (auto ready = ensureWorker(); !ready)
    return ready.error();
  const Answer answer = ask({{"op", "device"}}, {}, options_.openSeconds);
  if (answer.state != State::Done)
    return answer.error;
  auto key = config_cache::deviceKeyFromJson(answer.message.head.at("key"));
  if (!key)
    return key.error();
  return TunedDevice{std::move(*key), answer.message.head.value("driver", "")};
}

Result<void> ChildProcesses::openClass(int index) {
  class_ = index;
  configs_.clear();
  prepared_.clear();
  if (!worker_ || !worker_->isAlive())
    return ensureWorker();
  const Answer answer = ask({{"op", "class"}, {"class", index}}, {}, options_.openSeconds);
  if (answer.wasKilled)
    return ensureWorker();
  return answer.state == State::Done ? Result<void>() : Result<void>(answer.error);
}

std::optional<ChildProcesses::Fault> ChildProcesses::prepare(const std::string &id,
                                                             const config::Config &config) {
  json head = {{"op", "prepare"}, {"id", id}, {"config", config::toJson(config)}};
  std::vector<std::string> blobs;
  if (compilers_.isNeeded()) {
    const CompilePool::Compiled &kernels = compilers_.get(config);
    if (!kernels.error.empty())
      return Fault{"compile", kernels.error};
    head["kernels"] = kernels.kernels.head.at("kernels");
    blobs = kernels.kernels.blobs;
  }
  const Answer answer = ask(std::move(head), std::move(blobs), options_.openSeconds);
  distrust(answer);
  if (answer.state != State::Done)
    return Fault{"prepare", answer.error.message, answer.wasKilled};
  prepared_.insert(id);
  return std::nullopt;
}

std::optional<ChildProcesses::Fault> ChildProcesses::admit(const std::string &id,
                                                           const config::Config &config, bool isChecked) {
  auto fault = admitOnce(id, config, isChecked);
  return fault && fault->wasKilled ? admitOnce(id, config, isChecked) : fault;
}

std::optional<ChildProcesses::Fault> ChildProcesses::admitOnce(const std::string &id,
                                                               const config::Config &config, bool isChecked) {
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
    return Fault{"check", answer.error.message, answer.wasKilled};
  if (!answer.message.head.value("right", false))
    return Fault{"check", "wrong result: " + answer.message.head.value("why", "")};
  return std::nullopt;
}

std::optional<ChildProcesses::Fault> ChildProcesses::time(const std::string &id, int tree, int repeats,
                                                          std::vector<double> &us) {
  auto fault = timeOnce(id, tree, repeats, us);
  return fault && fault->wasKilled ? timeOnce(id, tree, repeats, us) : fault;
}

std::optional<ChildProcesses::Fault> ChildProcesses::timeOnce(const std::string &id, int tree, int repeats,
                                                              std::vector<double> &us) {
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
  return Fault{"time", answer.error.message, answer.wasKilled};
}

void ChildProcesses::forget(const std::string &id) {
  if (prepared_.erase(id) > 0 && worker_ && worker_->isAlive())
    (void)ask({{"op", "forget"}, {"id", id}}, {}, options_.openSeconds);
}

} // namespace deft::session
