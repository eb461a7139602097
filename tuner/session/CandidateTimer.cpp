#include "tuner/session/CandidateTimer.h"

#include <algorithm>

namespace deft::session {
namespace {

/// Runs in a row for one measurement. On a GPU they cost less than their setup.
constexpr int kCpuRepeats = 3, kGpuRepeats = 7;

double timeOf(const std::vector<double> &us, Estimator estimator) {
  return estimator == Estimator::Fastest ? *std::min_element(us.begin(), us.end()) : measure::median(us);
}

} // namespace

std::optional<double> CandidateTimer::measure(const std::string &racer, int tree, int round) {
  const std::string &id = racer == kUntuned ? task_.untuned.idOn(tree) : racer;
  if (context_.journal.rejected(class_, id))
    return std::nullopt;
  const Estimator estimator = context_.estimator();
  if (const auto *us = context_.journal.measured(class_, id, tree, round)) {
    // A tree's choice without an entry may also race as a candidate: that is measured once.
    if (!made_.contains({id, tree, round}))
      ++reused_;
    return timeOf(*us, estimator);
  }
  if (!open(id) || !admit(id))
    return std::nullopt;
  std::vector<double> us;
  const int repeats = context_.device.key.kind == config::DeviceKind::Cpu ? kCpuRepeats : kGpuRepeats;
  const ClassClock::Time before = ClassClock::Clock::now();
  if (const auto fault = context_.processes.time(id, tree, repeats, us)) {
    reject(id, *fault);
    return std::nullopt;
  }
  clock_.addMeasurement(ClassClock::Clock::now() - before);
  made_.insert({id, tree, round});
  context_.journal.write(
      {{"event", "measured"}, {"class", class_}, {"id", id}, {"tree", tree}, {"round", round}, {"us", us}});
  return timeOf(us, estimator);
}

/// On behalf of a candidate, which is blamed for a failure.
bool CandidateTimer::open(const std::string &id) {
  if (isOpen_)
    return true;
  const ClassClock::Time before = ClassClock::Clock::now();
  const auto opened = context_.processes.openClass(task_.index);
  const ClassClock::Clock::duration taken = ClassClock::Clock::now() - before;
  clock_.addSetup(taken);
  openSeconds_ += std::chrono::duration<double>(taken).count();
  if (!opened)
    reject(id, {"prepare", opened.error().message});
  isOpen_ = opened.ok();
  return isOpen_;
}

bool CandidateTimer::admit(const std::string &id) {
  if (admitted_.contains(id))
    return true;
  const bool isChecked = context_.journal.isChecked(class_, id);
  const ClassClock::Time before = ClassClock::Clock::now();
  if (const auto fault = context_.processes.admit(id, candidates_.at(id).config, isChecked)) {
    reject(id, *fault);
    return false;
  }
  admitted_.insert(id);
  if (id == task_.untuned.ids().front()) // the first one also waits for the oracle
    clock_.addSetup(ClassClock::Clock::now() - before);
  if (!isChecked)
    context_.journal.write({{"event", "checked"}, {"class", class_}, {"id", id}});
  return true;
}

void CandidateTimer::reject(const std::string &id, const ChildProcesses::Fault &fault) {
  if (context_.listener.wantsToStop()) // the child may have stopped as well
    return;
  ++rejected_;
  context_.journal.write({{"event", "rejected"},
                          {"class", class_},
                          {"id", id},
                          {"stage", fault.stage},
                          {"reason", fault.reason}});
  context_.listener.say("candidate " + id + " is left out: " + fault.stage + ": " + fault.reason);
}

void CandidateTimer::forgetAllBut(std::span<const std::string> ids) {
  std::erase_if(admitted_, [&](const std::string &id) {
    const bool isKept = std::find(ids.begin(), ids.end(), id) != ids.end();
    if (!isKept)
      context_.processes.forget(id);
    return !isKept;
  });
}

} // namespace deft::session
